// A TCP proxy in front of the database, in a process of its own: it delays what passes, and it can hang.
// `startProxies` starts it.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers';
import { URL, fileURLToPath } from 'node:url';

const file = fileURLToPath(import.meta.url);

/** Opens one proxy for each of several processes. */
export async function startProxies(databaseUrl, count, { delayMs = 0 } = {}) {
  const child = fork(file, [new URL(databaseUrl).port, count, delayMs].map(String));
  const [ports] = await once(child, 'message');
  const urlOf = (port) => {
    const url = new URL(databaseUrl);
    url.port = String(port);
    return url.href;
  };
  return {
    urls: ports.map(urlOf),
    /** Nothing passes until `resume`, and new connections hang too. */
    hang: (index) => child.send({ index, act: 'hang' }),
    /**
     * Sends on what was held back. With `losesOld`, the connections that hang stay silent for ever, and only new
     * ones work.
     */
    resume: (index, { losesOld = false } = {}) => child.send({ index, act: losesOld ? 'lose' : 'resume' }),
    stop: () => child.disconnect(),
  };
}

class Proxy {
  #databasePort;
  #delayMs;
  #pairs = new Set();
  #isHanging = false;

  constructor(databasePort, delayMs) {
    this.#databasePort = databasePort;
    this.#delayMs = delayMs;
  }

  async listen() {
    const server = createServer((client) => this.#accept(client));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server.address().port;
  }

  #accept(client) {
    const database = connect(this.#databasePort, '127.0.0.1');
    const pair = { held: [], isLost: false };
    this.#pairs.add(pair);
    const later = (act) => {
      if (this.#delayMs === 0) this.#pass(pair, act);
      else setTimeout(() => this.#pass(pair, act), this.#delayMs);
    };
    for (const [from, to] of [
      [client, database],
      [database, client],
    ]) {
      from.setNoDelay(true);
      from.on('data', (bytes) => later(() => to.write(bytes)));
      from.on('error', () => undefined);
      from.on('close', () =>
        later(() => {
          to.destroy();
          this.#pairs.delete(pair);
        }),
      );
    }
  }

  #pass(pair, act) {
    if (pair.isLost) return;
    if (this.#isHanging) pair.held.push(act);
    else act();
  }

  hang() {
    this.#isHanging = true;
  }

  resume() {
    this.#isHanging = false;
    for (const pair of this.#pairs) {
      for (const act of pair.held.splice(0)) act();
    }
  }

  lose() {
    this.#isHanging = false;
    for (const pair of this.#pairs) pair.isLost = true;
    this.#pairs.clear();
  }
}

async function run(databasePort, count, delayMs) {
  const proxies = Array.from({ length: count }, () => new Proxy(databasePort, delayMs));
  process.on('message', ({ index, act }) => proxies[index][act]());
  process.on('disconnect', () => process.exit());
  process.send(await Promise.all(proxies.map((proxy) => proxy.listen())));
}

if (process.argv[1] === file) await run(...process.argv.slice(2).map(Number));
