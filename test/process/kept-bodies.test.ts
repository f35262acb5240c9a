// A stored value does not keep the body of its request in memory.
import { request } from 'node:http';
import { expect, it } from 'vitest';
import { startProcess } from '../kit/process.ts';

const password = 'the password of the administrator';

it('500 event ids of large forms do not fill a small heap', { timeout: 120_000 }, async () => {
  const { child, listening, output, kill } = startProcess({
    ADMIN_PASSWORD: password,
    NODE_OPTIONS: '--max-old-space-size=160',
    LOG_LEVEL: 'silent',
  });
  const base = await listening;

  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    new Promise<string>((resolve, reject) => {
      const all = { 'content-type': 'application/x-www-form-urlencoded', ...headers };
      const sent = request(base + path, { method: 'POST', headers: all }, (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => resolve(text));
      });
      sent.on('error', reject);
      sent.end(body);
    });

  const signIn = new URLSearchParams({ username: 'admin', password, client: 'requestip', f: 'json' });
  const { token } = JSON.parse(await post('/tokens/generateToken', signIn.toString())) as { token: string };
  const other = 'x'.repeat(500_000);
  const authorization = `Bearer ${token}`;
  // Together 250 MB.
  for (let n = 0; n < 500; n += 10) {
    const answers = Array.from({ length: 10 }, (_, index) => {
      const fields = `changeType=Tested&eventId=an-event-id-${n + index}&other=${other}`;
      return post('/admin/services/webhooks/publish', fields, { authorization });
    });
    for (const answer of await Promise.all(answers)) expect(answer).toContain('"status":"success"');
  }
  expect(output.err).not.toContain('FATAL');
  expect(child.exitCode).toBeNull();
  await kill();
});
