// Raw connections for the attacks: they send bytes as given, and can stay silent.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { URL } from 'node:url';

/** Opens a connection. `status` is that of the first response, once there is one. */
export async function open(baseUrl) {
  const { hostname, port } = new URL(baseUrl);
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

/** The head of a POST. Without `length` the body is chunked. */
export function head(path, { contentType, length, headers = {} }) {
  const lines = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    `Content-Type: ${contentType}`,
    length === undefined ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** Waits for responses, closes all connections and counts the statuses. */
export async function finish(connections, seconds) {
  const until = Date.now() + seconds * 1000;
  while (Date.now() < until && connections.some(({ status, socket }) => !status && !socket.destroyed))
    await pause(50);
  for (const { socket } of connections) socket.destroy();
  const counts = {};
  for (const { status = 'no response' } of connections) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

export const formats = {
  form: 'application/x-www-form-urlencoded',
  multipart: 'multipart/form-data; boundary=b',
  soap: 'text/xml',
};
