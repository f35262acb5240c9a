// Runs the shell examples of the README as printed, one after another in one shell.
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startProcess } from './kit/process.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const hasCurl = (() => {
  try {
    execFileSync('curl', ['--version']);
    return true;
  } catch {
    return false;
  }
})();

it.skipIf(!hasCurl)(
  'the shell examples of the README work as described',
  async () => {
    const env = {
      ADMIN_PASSWORD: 'correct horse',
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      UPGRADE_STEP_MS: '0',
    };
    const server = startProcess(env);
    const address = await server.listening;
    const blocks = [...readme.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block ?? '');
    const script = blocks
      .map((block) => `${block}\necho; echo ----\n`)
      .join('')
      .replaceAll('http://localhost:8080', address)
      .replaceAll('9099', String(await freePort()));
    const cwd = mkdtempSync(join(tmpdir(), 'steward-'));
    const guarded = `trap 'kill $RECEIVER 2>/dev/null || true' EXIT\n${script}`;
    const { stdout } = await promisify(execFile)('bash', ['-e', '-c', guarded], { cwd, timeout: 60_000 });
    rmSync(cwd, { recursive: true });
    const answers = stdout.split('----\n');
    expect(answers[0]).toContain('<Name>Maps/Roads</Name>');
    expect(answers[1]).toContain('"currentVersion": "10.9.1"');
    expect(answers[2]).toMatch(
      /^\{"status":"success"\}\{"status":"success"\}.*<Name>Harbour\/Depths<\/Name>/s,
    );
    expect(answers[3]).toContain('"username": "ann"');
    expect(answers[3]).toContain('"message":"The system is in read-only mode.","details":["Back at noon."]');
    expect(answers[4]).toContain('"openapi":"3.1');
    expect(answers[5]).toContain('"id":"rel_14072022_2632"');
    expect(answers[5]).toContain('"id": "licenseUpload"');
    expect(answers[6]).toMatch(
      /"problems":\[\]\}\s*\{"status":\{"state":"in_progress","code":1,"messages":\[\{"code":2010/,
    );
    expect(answers[7]).toContain('48 out of 48 deployments updated.');
    expect(answers[7]).toContain('"state":"success"');
    expect(answers[7]).toContain('"fullVersion":"11.0.0.2670"');
    expect(answers[8]).toContain('"signatureKey":"whsec_');
    expect(answers[9]).toMatch(
      /"deliveries":1\}\s*true \{"id":"[^"]+","type":"HarbourClosed",.*"data":\{"berth":7\}\}/,
    );
    expect(answers[10]).toContain('"deactivatedBy":"failures"');
    expect(answers[10]?.match(/"error": "The connection was refused."/g)).toHaveLength(4);
    expect(answers[11]).toMatch(/true \{"id":"closing-2",/);
    server.child.kill('SIGTERM');
    await server.exited;
  },
  90_000,
);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
