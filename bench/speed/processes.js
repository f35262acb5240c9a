// The processes of bench/speed.js: starts the servers and the load, and reads the CPU time and memory of a server.
import { Buffer } from 'node:buffer';
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { URL, URLSearchParams, fileURLToPath } from 'node:url';
import { request } from 'undici';
import { listening } from '../kit.js';

const password = 'a password for benches';
const files = { server: '../../dist/main.js', limit: 'bare.js', peer: 'peer.js' };
const first = { server: '/health', limit: '/health', peer: '/services?wsdl' };

const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill()));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

function keep(child) {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

export async function start(side, given = [], env = {}) {
  const own = { PATH: process.env.PATH, PORT: '0', LOG_LEVEL: 'silent', ADMIN_PASSWORD: password };
  const entry = fileURLToPath(new URL(files[side], import.meta.url));
  const started = performance.now();
  const child = keep(
    spawn(process.execPath, [entry, ...given], {
      cwd: tmpdir(),
      env: { ...own, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    }),
  );
  const address = await listening(child);

  async function ask({ method = 'GET', path, headers = {}, body }) {
    const answer = await request(address + path, { method, headers, body });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    return { status: answer.statusCode, contentType: answer.headers['content-type'], bytes };
  }
  await ask({ path: first[side] });

  return {
    ask,
    ms: performance.now() - started,
    port: Number(new URL(address).port),
    busyMs: () => readBusyMs(child.pid),
    residentMb: () => Number(/VmRSS:\s+(\d+)/.exec(readOf(child.pid, 'status'))[1]) / 1024,
    async stop() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

const readOf = (pid, name) => readFileSync(`/proc/${pid}/${name}`, 'utf8');

/** In /proc/<pid>/stat, fields 11 and 12 after the process name are the user and system time in ticks of 10 ms. */
function readBusyMs(pid) {
  const fields = readOf(pid, 'stat')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

export async function signIn({ ask }) {
  const { bytes } = await ask({
    method: 'POST',
    path: '/tokens/generateToken',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ username: 'admin', password }).toString(),
  });
  return JSON.parse(bytes).token;
}

export function startLoad() {
  const entry = fileURLToPath(new URL('load.js', import.meta.url));
  const child = keep(fork(entry, { serialization: 'advanced' }));
  return {
    async run(task) {
      child.send(task);
      const [{ error, ...result }] = await once(child, 'message');
      if (error !== undefined) throw new Error(error);
      return result;
    },
    stop: () => child.disconnect(),
  };
}
