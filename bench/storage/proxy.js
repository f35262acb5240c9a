// A TCP proxy in front of the database that delays what passes, in a process of its own. `startProxies` starts it.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers';
import { URL, fileURLToPath } from 'node:url';

const file = fileURLToPath(import.meta.url);

/** Opens one proxy for each of several processes. */
export async function startProxies(databaseUrl, count, { delayMs }) {
  const child = fork(file, [new URL(databaseUrl).port, count, delayMs].map(String));
  const [ports] = await once(child, 'message');
  const urlOf = (port) => {
    const url = new URL(databaseUrl);
    url.port = String(port);
    return url.href;
  };
  return { urls: ports.map(urlOf), stop: () => child.disconnect() };
}

async function startProxy(databasePort, delayMs) {
  const server = createServer((client) => {
    const database = connect(databasePort, '127.0.0.1');
    for (const [from, to] of [
      [client, database],
      [database, client],
    ]) {
      from.setNoDelay(true);
      from.on('data', (bytes) => setTimeout(() => to.write(bytes), delayMs));
      from.on('error', () => undefined);
      from.on('close', () => setTimeout(() => to.destroy(), delayMs));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

async function run(databasePort, count, delayMs) {
  process.on('disconnect', () => process.exit());
  const proxies = Array.from({ length: count }, () => startProxy(databasePort, delayMs));
  process.send(await Promise.all(proxies));
}

if (process.argv[1] === file) await run(...process.argv.slice(2).map(Number));
