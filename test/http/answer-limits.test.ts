// Clients that do not read their answers: what they make the server keep is limited.
import fastify, { type FastifyInstance } from 'fastify';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, type Socket, connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { limitAnswersInMemory } from '../../src/http/answer-limits.ts';
import { limitPipelines } from '../../src/http/request-end.ts';
import { SharedAnswers } from '../../src/http/answers.ts';
import { SharedJson, toText, toTexts } from '../../src/lib/json.ts';
import { ServiceError } from '../../src/lib/errors.ts';

const mebibyte = 1024 ** 2;
const maxUnanswered = 16;

let app: FastifyInstance;
let sockets: Socket[] = [];
let release: () => void = () => undefined;
let started = 0;
let bodies = 0;

beforeEach(async () => {
  app = fastify({ trustProxy: true, serverFactory: (handle) => createServer(limitPipelines(handle)) });
  started = 0;
  bodies = 0;
  limitAnswersInMemory(app);
  app.setErrorHandler((error, _request, reply) =>
    reply.code(error instanceof ServiceError ? 503 : 500).send({ message: (error as Error).message }),
  );
  const held = new Promise<void>((resolve) => (release = resolve));
  app.get('/waiting', async () => {
    started += 1;
    await held;
    return 'done';
  });
  app.post('/body', () => {
    bodies += 1;
    return 'done';
  });
  app.get('/own/:size', (request) => {
    started += 1;
    return Buffer.alloc(Number((request.params as { size: string }).size) * mebibyte);
  });
  app.get('/late/:size', async (request) => {
    started += 1;
    await held;
    return Buffer.alloc(Number((request.params as { size: string }).size) * mebibyte);
  });
  app.get('/compressed', (_request, reply) =>
    reply.header('content-encoding', 'gzip').send(Buffer.alloc(10 * mebibyte)),
  );
  const bytes = Buffer.alloc(60 * mebibyte);
  const shared = new SharedAnswers();
  app.get('/shared', (_request, reply) => shared.bodyFor(reply, [Buffer.from('<'), bytes], undefined));
  await app.listen({ port: 0, host: '127.0.0.1' });
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  release();
  await app.close();
});

async function open(): Promise<Socket> {
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

const get = (path: string, address = '192.0.2.1') =>
  `GET ${path} HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: ${address}\r\n\r\n`;

/** Sends the request, reads the first bytes of the answer and no more. Returns the status. */
async function stall(path: string, address?: string): Promise<{ status: number; socket: Socket }> {
  const socket = await open();
  socket.write(get(path, address));
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1'))?.[1]), socket };
}

describe('requests of one connection that wait for their answers', () => {
  it('are answered in order', async () => {
    const socket = await open();
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
    socket.write(get('/waiting').repeat(maxUnanswered));
    await expect.poll(() => started).toBe(maxUnanswered);
    release();
    await expect.poll(() => text.match(/HTTP\/1\.1 200/g)?.length).toBe(maxUnanswered);
    socket.write(get('/waiting').repeat(maxUnanswered));
    await expect.poll(() => text.match(/HTTP\/1\.1 200/g)?.length).toBe(2 * maxUnanswered);
  });

  it('close the connection if they are answered at once too, but too many arrive together', async () => {
    const socket = await open();
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const post =
      'POST /body HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}';
    socket.write(post.repeat(maxUnanswered));
    await expect.poll(() => text.match(/HTTP\/1\.1 200/g)?.length).toBe(maxUnanswered);
    socket.write(post.repeat(1_000));
    await new Promise((resolve) => socket.on('close', resolve));
    expect(bodies).toBeLessThan(4 * maxUnanswered);
  });

  it('close the connection if they are too many, and the others do not start', async () => {
    for (const requests of [maxUnanswered + 1, 1_000]) {
      const startedBefore = started;
      const socket = await open();
      socket.write(get('/waiting').repeat(requests));
      await new Promise((resolve) => socket.on('close', resolve));
      expect(started - startedBefore).toBe(maxUnanswered);
    }
  });
});

describe('large answers that are not read', () => {
  it('are limited for a network and for all, until their connections have ended', async () => {
    const first = await stall('/own/60');
    expect(first.status).toBe(200);
    expect((await stall('/own/5')).status).toBe(503);
    const other = await stall('/own/30', '198.51.100.1');
    expect(other.status).toBe(200);
    expect((await stall('/own/10', '203.0.113.1')).status).toBe(503);
    first.socket.destroy();
    await expect.poll(async () => (await stall('/own/60')).status).toBe(200);
  });

  it.each([
    ['several answers', async () => (await open()).write(get('/own/6').repeat(9)), 9],
    ['an answer that comes later', async () => (await open()).write(get('/late/60')), 1],
  ])('are released when a connection with %s is reset', async (_what, ask, requests) => {
    const connected = once(app.server, 'connection') as Promise<[Socket]>;
    await ask();
    const [connection] = await connected;
    const closed = new Promise((resolve) => connection.once('close', resolve));
    await expect.poll(() => started).toBe(requests);
    // When a later request is answered, the answers of the others are in memory, unless they are held.
    await fetch(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/own/0`);
    for (const socket of sockets.splice(0)) socket.resetAndDestroy();
    await closed;
    release();
    await expect.poll(async () => (await stall('/own/60')).status).toBe(200);
  });

  it('are refused without an encoding', async () => {
    await stall('/own/60');
    const refused = await fetch(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/compressed`, {
      headers: { 'x-forwarded-for': '192.0.2.1' },
    });
    expect(refused.status).toBe(503);
    expect(refused.headers.get('content-encoding')).toBeNull();
    expect(await refused.json()).toEqual({ message: 'The server is sending too many large answers.' });
  });

  it('count once if they share their bytes', async () => {
    for (let n = 0; n < 20; n += 1) expect((await stall('/shared')).status).toBe(200);
  });

  it('that share their bytes count for the network of the first client, also when it has left', async () => {
    const first = await stall('/shared');
    await stall('/shared');
    const connections = () =>
      new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count)));
    first.socket.destroy();
    await expect.poll(connections).toBe(1);
    expect((await stall('/own/5')).status).toBe(503);
  });

  it('are possible whatever their size', async () => {
    expect((await stall('/own/120')).status).toBe(200);
  });
});

describe('JSON that many answers share', () => {
  it.each([0, 2])('has the same text in parts, indented by %d', (space) => {
    const head = { name: 'a\n[]', folders: [], services: [] };
    for (const services of [[], [{ a: 1, b: ['x', '\n'] }], [1, { c: [] }, 'z\n']])
      expect([...toTexts(head, services, space)].join('')).toBe(toText({ ...head, services }, space));
  });

  it('is serialized once for each indentation', async () => {
    const json = SharedJson.of({ a: [1] });
    expect(await json.bytes(0)).toBe(await json.bytes(0));
    expect((await json.bytes(2)).toString()).toBe('{\n  "a": [\n    1\n  ]\n}\n');
  });
});
