// Raw connections for the attacks: they send bytes as given, and can stay silent.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { URL } from 'node:url';

/** Opens connections and runs `send` on all of them at the same time. */
export async function openAll(address, count, send) {
  const connections = await Promise.all(Array.from({ length: count }, () => open(address)));
  await Promise.all(connections.map(send));
  return connections;
}

/** `status` is that of the first response, once there is one. */
async function open(address) {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname);
  const connection = { socket, status: undefined };
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    connection.status ??= /^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1'))?.[1];
  });
  await once(socket, 'connect').catch(() => undefined);
  return connection;
}

/** Ends early when the server closes the connection. */
export async function write({ socket }, bytes) {
  if (socket.destroyed || socket.write(bytes)) return;
  await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined);
}

export function headOf(method, path, headers = {}) {
  const lines = Object.entries({ Host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}

/** Waits for responses, closes all connections and returns the statuses. */
export async function finish(connections, seconds) {
  const until = Date.now() + seconds * 1000;
  while (Date.now() < until && connections.some(({ status, socket }) => !status && !socket.destroyed))
    await pause(50);
  for (const { socket } of connections) socket.destroy();
  return connections.map(({ status = 'no response' }) => status);
}
