// The README's examples work as printed, one after another in one shell.
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { hashPassword } from '../src/auth/password.ts';
import { users } from '../src/auth/user.ts';
import { startServer } from './kit/server.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const hasCurl = (() => {
  try {
    execFileSync('curl', ['--version']);
    return true;
  } catch {
    return false;
  }
})();

it.skipIf(!hasCurl)('the README’s shell examples do what it says', async () => {
  const server = await startServer({ env: { PUBLIC_URL: '', UPGRADE_STEP_MS: '0' } });
  const passwordHash = await hashPassword('correct horse', Buffer.alloc(16));
  await server.store.update((transaction) => {
    const admin = {
      username: 'admin',
      role: 'administrator' as const,
      credentialId: 'x',
      createdAt: 0,
      lastSignIn: null,
    };
    transaction.put(users, { ...admin, passwordHash });
  });
  const address = await server.listen();
  const blocks = [...readme.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block ?? '');
  const script = blocks
    .map((block) => `${block}\necho; echo ----\n`)
    .join('')
    .replaceAll('http://localhost:8080', address);
  const cwd = mkdtempSync(join(tmpdir(), 'steward-'));
  const { stdout } = await promisify(execFile)('bash', ['-e', '-c', script], { cwd });
  rmSync(cwd, { recursive: true });
  const answers = stdout.split('----\n');
  expect(answers[0]).toContain('<Name>Maps/Roads</Name>');
  expect(answers[1]).toContain('"currentVersion": "10.9.1"');
  expect(answers[2]).toMatch(/^\{"status":"success"\}\{"status":"success"\}.*<Name>Harbour\/Depths<\/Name>/s);
  expect(answers[3]).toContain('"username": "ann"');
  expect(answers[3]).toContain('"message":"The system is in read-only mode.","details":["Back at noon."]');
  expect(answers[4]).toContain('"id":"rel_14072022_2632"');
  expect(answers[4]).toContain('"id": "licenseUpload"');
  expect(answers[5]).toMatch(
    /"problems":\[\]\}\s*\{"status":\{"state":"in_progress","code":1,"messages":\[\{"code":2010/,
  );
  expect(answers[6]).toContain('48 out of 48 deployments updated.');
  expect(answers[6]).toContain('"state":"success"');
  expect(answers[6]).toContain('"fullVersion":"11.0.0.2670"');
  await server.close();
});
