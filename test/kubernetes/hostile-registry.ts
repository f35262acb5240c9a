// A registry that answers every request as a test wants, and records what it was asked.
import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export type Asked = {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
};

export type Answer = (response: ServerResponse, asked: Asked) => void;

/** No text of Steward may contain this. */
export const bodyText = 'the body of an answer';

export function answerWith(status: number, headers: Record<string, string> = {}): Answer {
  return (response) => void response.writeHead(status, headers).end(bodyText);
}

/** Never answers. */
export const silence: Answer = () => undefined;

/** It ends after the test. */
export async function startHostileRegistry(answer: Answer) {
  const asked: Asked[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    const one = { method: request.method ?? '', path: request.url ?? '', headers: request.headers };
    asked.push(one);
    response.on('error', () => undefined);
    answer(response, one);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { host: `127.0.0.1:${port}`, port, asked, sockets };
}
