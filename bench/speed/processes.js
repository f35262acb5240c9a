// The processes of bench/speed.js: starts the servers and the load.
import { Buffer } from 'node:buffer';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { URL, URLSearchParams, fileURLToPath } from 'node:url';
import { request } from 'undici';
import { readMemory, scheduledMs, startProcess } from '../processes.js';
import { credentials, startMain } from '../server.js';

const fileOf = (name) => fileURLToPath(new URL(name, import.meta.url));
const startOther = (name) => (folder) =>
  startProcess(fileOf(name), { args: folder ? [folder] : [], env: { LOG_LEVEL: 'silent' } });

/** For each side: how to start it, and the address of the first request. */
const sides = {
  server: { start: (env) => startMain({ env }), first: '/health' },
  limit: { start: startOther('bare.js'), first: '/health' },
};

/** `given`: the variables of the server, or the folder with the answers of the others. */
export async function start(side, given) {
  const started = performance.now();
  const { child, address } = await sides[side].start(given);

  async function ask({ method = 'GET', path, headers = {}, body }) {
    const answer = await request(address + path, { method, headers, body });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    return { status: answer.statusCode, contentType: answer.headers['content-type'], bytes };
  }
  await ask({ path: sides[side].first });

  return {
    ask,
    ms: performance.now() - started,
    port: Number(new URL(address).port),
    busyMs: () => scheduledMs(child.pid),
    residentMb: () => readMemory(child.pid).resident,
    async stop() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

export async function signIn({ ask }) {
  const { bytes } = await ask({
    method: 'POST',
    path: '/tokens/generateToken',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(credentials).toString(),
  });
  return JSON.parse(bytes).token;
}

export function startLoad() {
  const child = fork(fileOf('load.js'), { serialization: 'advanced' });
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
