// Runs the commands of docs/operate/backup-and-upgrade.md on a PostgreSQL of Debian, whose pg_dump fits its server.
// Skipped where it is not installed.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startProcess } from '../../kit/process.ts';
import { type DebianPostgres, binaries, isInstalled, startDebianPostgres } from './debian-postgres.ts';
import { type Command, type Shell, expectAnswer, openShell, readCommands, readSql } from './page.ts';

const page = 'docs/operate/backup-and-upgrade.md';
const [backup, restore] = readCommands(page);
const [recreate = ''] = readSql(page);

describe.skipIf(!isInstalled)('the commands of docs/operate/backup-and-upgrade.md', () => {
  let postgres: DebianPostgres;
  let shell: Shell;
  const secretKey = 'a key of thirty-two characters or more';
  const credentials = { username: 'admin', password: 'correct horse' };

  const atPort = (text: string) => text.replaceAll('5432', postgres.port);
  const storeUrl = () => atPort('postgres://steward:harbour@127.0.0.1:5432/steward');
  const start = (env: Record<string, string> = { SECRET_KEY: secretKey }) =>
    startProcess({ STORE_URL: storeUrl(), ADMIN_PASSWORD: credentials.password, ...env });
  async function follow(command: Command | undefined): Promise<void> {
    if (!command) throw new Error('The page has fewer commands than the test.');
    expectAnswer(command, await shell.run(atPort(command.script)));
  }
  async function post(address: string, path: string, fields: Record<string, string>): Promise<string> {
    const answer = await fetch(address + path, { method: 'POST', body: new URLSearchParams(fields) });
    expect(answer.status).toBe(200);
    return answer.text();
  }

  beforeAll(async () => {
    postgres = await startDebianPostgres();
    await postgres.administer("create role steward login password 'harbour'");
    await postgres.administer(recreate);
    shell = openShell(postgres.folder, { PATH: `${binaries}:${process.env.PATH}` });
  });
  afterAll(async () => {
    shell.kill();
    await postgres.stop();
  });

  it('a restored database has the data of the backup and nothing newer', async () => {
    const before = start();
    const address = await before.listening;
    const { token } = JSON.parse(await post(address, '/tokens/generateToken', credentials)) as {
      token: string;
    };
    await post(address, '/admin/services/createFolder', { token, folderName: 'Saved' });
    await follow(backup);
    await post(address, '/admin/services/createFolder', { token, folderName: 'Newer' });
    before.child.kill('SIGTERM');
    expect(await before.exited).toBe(0);

    await postgres.administer(recreate);
    await follow(restore);
    const after = start();
    const listing = await fetch(`${await after.listening}/admin/services?token=${token}`);
    const { folders } = (await listing.json()) as { folders: string[] };
    expect(folders).toContain('Saved');
    expect(folders).not.toContain('Newer');
    after.child.kill('SIGTERM');
    expect(await after.exited).toBe(0);
  });

  it('no process starts without the secret key or with another one', async () => {
    const without = start({});
    expect(await without.exited).toBe(1);
    expect(without.output.err).toContain('The database contains encrypted secrets: SECRET_KEY must be set.');
    const other = start({ SECRET_KEY: 'another key of thirty-two characters' });
    expect(await other.exited).toBe(1);
    expect(other.output.err).toContain('encrypted with another SECRET_KEY.');
  });
});
