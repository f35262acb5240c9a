// Runs a PostgreSQL of Debian, which has the pg_dump and psql that fit it: the one of the test kit has neither.
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { findPort } from './page.ts';

const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql').sort() : [];
export const binaries = join('/usr/lib/postgresql', versions.at(-1) ?? '', 'bin');
export const isInstalled = ['initdb', 'postgres', 'pg_dump', 'pg_restore', 'psql'].every((name) =>
  existsSync(join(binaries, name)),
);

/** PostgreSQL refuses to run as root. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

export type DebianPostgres = Awaited<ReturnType<typeof startDebianPostgres>>;

export async function startDebianPostgres() {
  const folder = mkdtempSync(join(tmpdir(), 'steward-debian-'));
  if (user.uid) chownSync(folder, user.uid, user.gid);
  const port = await findPort();
  const data = join(folder, 'data');
  const options = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--locale=C'];
  execFileSync(join(binaries, 'initdb'), ['-D', data, ...options], user);
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'];
  const flags = settings.flatMap((setting) => ['-c', setting]);
  const server = spawn(join(binaries, 'postgres'), ['-D', data, '-p', port, ...flags], {
    ...user,
    cwd: folder,
  });
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;

  /** Runs each line as the superuser. */
  async function administer(sql: string): Promise<void> {
    const client = new Client(url);
    await client.connect();
    for (const statement of sql.trim().split('\n')) await client.query(statement);
    await client.end();
  }
  const answers = () =>
    administer('select 1').then(
      () => true,
      () => false,
    );
  while (!(await answers())) await sleep(50);

  return {
    folder,
    port,
    url,
    administer,
    async stop(): Promise<void> {
      const ended = new Promise((resolve) => server.once('close', resolve));
      server.kill('SIGQUIT');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
