// Starts the built server as a process of its own and sends requests to it, for the benchmarks that measure it from
// outside.
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { URL, URLSearchParams, fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { readMemory, startProcess } from './processes.js';

const built = fileURLToPath(new URL('../dist/main.js', import.meta.url));
export const credentials = { username: 'admin', password: 'a password for benches' };

export function startMain({ env = {}, entry = built } = {}) {
  const own = { PORT: '0', LOG_LEVEL: 'silent', ADMIN_PASSWORD: credentials.password };
  return startProcess(entry, { env: { ...own, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', ...env } });
}

/** Resolves when /ready answers 200. Rejects if the process ends before. */
export async function startServer({ storeUrl, env, entry } = {}) {
  const started = performance.now();
  const store = storeUrl && { STORE_URL: storeUrl, SECRET_KEY: 'k'.repeat(32) };
  const { child, address } = await startMain({ env: { ...store, ...env }, entry });
  const server = new Server(child, address);
  while ((await server.ask('GET', '/ready')).status !== 200) await pause(2);
  server.readyMs = performance.now() - started;
  return server;
}

export class Server {
  #child;
  #pool;
  token = '';
  /** The exit code or the signal, once the process has ended. */
  ended;

  constructor(child, address) {
    this.#child = child;
    this.address = address;
    child.once('exit', (code, signal) => (this.ended = signal ?? code));
    this.#pool = new Pool(address, { connections: 64, pipelining: 1 });
  }

  /** Sends a form, or no body, with the token of `signIn`. */
  ask(method, path, form) {
    const authorization = this.token && { authorization: `Bearer ${this.token}` };
    if (!form) return this.#send({ method, path, headers: { ...authorization } });
    const headers = { ...authorization, 'content-type': 'application/x-www-form-urlencoded' };
    return this.#send({ method, path, headers, body: new URLSearchParams(form).toString() });
  }

  askSoap(path, body) {
    return this.#send({ method: 'POST', path, headers: { 'content-type': 'text/xml' }, body });
  }

  /** The body of the answer is an object if it is JSON. */
  async #send(request) {
    const { statusCode, headers, body } = await this.#pool.request(request);
    const text = await body.text();
    const isJson = headers['content-type']?.startsWith('application/json');
    return { status: statusCode, body: isJson ? JSON.parse(text) : text };
  }

  /** Sends a request that must succeed. */
  async require(method, path, form) {
    const { status, body } = await this.ask(method, path, form);
    if (status !== 200) throw new Error(`${path} answers ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  async signIn() {
    this.token = (await this.require('POST', '/tokens/generateToken', credentials)).token;
  }

  /** Uses the token of another process that shares the database. */
  async useTokenOf(other) {
    this.token = other.token;
    while ((await this.ask('GET', '/admin/mode')).status !== 200) await pause(20);
  }

  admin(path, form) {
    return this.require('POST', `/admin/${path}`, form);
  }

  get pid() {
    return this.#child.pid;
  }

  memory() {
    return readMemory(this.pid);
  }

  /** Kills the process: a benchmark starts the next one on another database, or after the lease of this one. */
  async kill() {
    await this.#end('SIGKILL');
  }

  async stop() {
    await this.#end('SIGTERM');
  }

  async #end(signal) {
    if (this.ended === undefined) {
      this.#child.kill(signal);
      await once(this.#child, 'exit');
    }
    await this.#pool.destroy();
  }
}

/** Starts processes that share one database, and signs in to all of them. */
export async function startServers(count, { storeUrls, ...options }) {
  // The first process creates the tables.
  const first = await startServer({ ...options, storeUrl: storeUrls[0] });
  await first.signIn();
  const others = await Promise.all(
    storeUrls.slice(1, count).map((storeUrl) => startServer({ ...options, storeUrl })),
  );
  for (const server of others) await server.useTokenOf(first);
  return [first, ...others];
}

/** With these settings, failures deactivate no webhook, and no attempt ends while a receiver holds its answer. */
const patient = { notificationTimeOutInSeconds: '60', numberOfFailures: '10000' };

/** Creates a webhook for each address and returns their ids. */
export async function createWebhooks(server, urls, { changeTypes = '*', settings = patient } = {}) {
  await server.admin('services/webhooks/settings', settings);
  const ids = [];
  const rest = urls.values();
  async function create() {
    for (const hookUrl of rest) {
      const form = { name: `Receiver at ${hookUrl}`, hookUrl, changeTypes };
      ids.push((await server.admin('services/webhooks/create', form)).webhook.id);
    }
  }
  await Promise.all(Array.from({ length: 16 }, create));
  return ids;
}
