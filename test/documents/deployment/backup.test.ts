// Runs the commands of docs/operate/backup-and-upgrade.md on a PostgreSQL of Debian, whose pg_dump fits its server.
// Skipped where it is not installed.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startProcess } from '../../kit/process.ts';
import {
  type Command,
  type Shell,
  expectAnswer,
  findPort,
  openShell,
  readCommands,
  readSql,
} from './page.ts';

const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql').sort() : [];
const binaries = join('/usr/lib/postgresql', versions.at(-1) ?? '', 'bin');
const isInstalled = ['initdb', 'postgres', 'pg_dump', 'pg_restore'].every((name) =>
  existsSync(join(binaries, name)),
);
const page = 'docs/operate/backup-and-upgrade.md';
const [backup, restore, showVersion] = readCommands(page);
const [recreate = ''] = readSql(page);

/** PostgreSQL refuses to run as root. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

describe.skipIf(!isInstalled)('the commands of docs/operate/backup-and-upgrade.md', () => {
  let folder: string;
  let port: string;
  let postgres: ChildProcess;
  let shell: Shell;
  const secretKey = 'a key of thirty-two characters or more';
  const credentials = { username: 'admin', password: 'correct horse' };

  const atPort = (text: string) => text.replaceAll('5432', port);
  const storeUrl = () => atPort('postgres://steward:harbour@127.0.0.1:5432/steward');
  const start = (env: Record<string, string> = { SECRET_KEY: secretKey }) =>
    startProcess({ STORE_URL: storeUrl(), ADMIN_PASSWORD: credentials.password, ...env });
  async function follow(command: Command | undefined, address = ''): Promise<void> {
    if (!command) throw new Error('The page has fewer commands than the test.');
    const script = atPort(command.script).replaceAll('http://localhost:8080', address);
    expectAnswer(command, await shell.run(script));
  }
  async function administer(sql: string): Promise<void> {
    const client = new Client(atPort('postgres://postgres@127.0.0.1:5432/postgres'));
    await client.connect();
    for (const statement of sql.trim().split('\n')) await client.query(statement);
    await client.end();
  }
  async function post(address: string, path: string, fields: Record<string, string>): Promise<string> {
    const answer = await fetch(address + path, { method: 'POST', body: new URLSearchParams(fields) });
    expect(answer.status).toBe(200);
    return answer.text();
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'steward-backup-'));
    if (user.uid) chownSync(folder, user.uid, user.gid);
    port = await findPort();
    const data = join(folder, 'data');
    execFileSync(
      join(binaries, 'initdb'),
      ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--locale=C'],
      user,
    );
    const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'];
    const flags = settings.flatMap((setting) => ['-c', setting]);
    postgres = spawn(join(binaries, 'postgres'), ['-D', data, '-p', port, ...flags], {
      ...user,
      cwd: folder,
    });
    while (
      !(await administer('select 1').then(
        () => true,
        () => false,
      ))
    )
      await sleep(50);
    await administer("create role steward login password 'harbour'");
    await administer(recreate);
    shell = openShell(folder, { PATH: `${binaries}:${process.env.PATH}` });
  });
  afterAll(async () => {
    shell.kill();
    const ended = new Promise((resolve) => postgres.once('close', resolve));
    postgres.kill('SIGQUIT');
    await ended;
    await rm(folder, { recursive: true, force: true });
  });

  it('a restored database has the data of the backup and nothing newer', async () => {
    const before = start();
    const address = await before.listening;
    const { token } = JSON.parse(await post(address, '/tokens/generateToken', credentials)) as {
      token: string;
    };
    await post(address, '/admin/services/createFolder', { token, folderName: 'Saved' });
    await follow(backup);
    await follow(showVersion, address);
    await post(address, '/admin/services/createFolder', { token, folderName: 'Newer' });
    before.child.kill('SIGTERM');
    expect(await before.exited).toBe(0);

    await administer(recreate);
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
