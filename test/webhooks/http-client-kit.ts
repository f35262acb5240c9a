// Receivers for the tests of the HTTP client, and a canary server that forbidden requests must not reach.
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, BlockList, type Server, type Socket, connect, createServer } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import type { Resolve } from '../../src/lib/guarded-connector.ts';
import { GuardedHttpClient } from '../../src/webhooks/sending/http-client.ts';

export const NEVER = new AbortController().signal;

export function allow(...ranges: string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    list.addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}

export function requestTo(url: string) {
  return { url, headers: { 'webhook-id': 'e1' }, body: '{"id":"e1"}' };
}

export function createClient(allowed: BlockList, resolve?: Resolve) {
  const httpClient = new GuardedHttpClient(allowed, resolve && { resolve });
  onTestFinished(() => httpClient.close());
  return httpClient;
}

export async function listen(server: Server, host?: string): Promise<number> {
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A receiver on 127.0.0.1. `sockets` holds all its connections. */
export async function startReceiver(onConnection: (socket: Socket) => void = (socket) => socket.resume()) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  const port = await listen(server, '127.0.0.1');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port, sockets, url: `http://127.0.0.1:${port}/hook/secret?key=secret` };
}

/** A receiver that answers every request with these bytes. */
export function startAnswering(answer: string | Buffer, end = false) {
  return startReceiver((socket) => {
    socket.on('data', () => {
      if (end) socket.end(answer);
      else socket.write(answer);
    });
  });
}

export async function expectClosed(sockets: Socket[], count: number): Promise<void> {
  for (const socket of sockets) {
    if (!socket.closed) await new Promise((closed) => socket.once('close', closed));
  }
  expect(sockets.length).toBe(count);
}

export const LOCAL = allow('127.0.0.1/32');

/** Starts a canary server that listens on all addresses of the machine. */
export function useCanary() {
  const canary = { visits: 0, port: 0, expectNoVisit, expectRefusal };
  const server = createHttpServer((_, reply) => void reply.end('seen'));
  server.on('connection', () => (canary.visits += 1));

  beforeAll(async () => {
    canary.port = await listen(server);
  });

  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Opens a connection of its own: earlier connections have been counted when this one is accepted. */
  async function expectNoVisit(): Promise<void> {
    const own = connect(canary.port, '127.0.0.1');
    await once(server, 'connection');
    own.destroy();
    expect(canary.visits).toBe(1);
  }

  async function expectRefusal(sent: Promise<unknown>, message: string): Promise<void> {
    await expect(sent).rejects.toThrow(new Error(message));
    await expectNoVisit();
  }

  return canary;
}
