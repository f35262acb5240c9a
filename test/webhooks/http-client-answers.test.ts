// Tests of the HTTP client with answers of all kinds, also broken and endless ones.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { gzipSync } from 'node:zlib';
import {
  LOCAL,
  NEVER,
  createClient,
  expectClosed,
  listen,
  requestTo,
  startAnswering,
  startReceiver,
  useCanary,
} from './http-client-kit.ts';

/** A response counts as complete after these bytes of its body, of which the client returns the first. */
const readBytes = 16 * 1024;
const keptBytes = 2 * 1024;

const CLOSED = 'The connection was closed before the answer was complete.';
const INVALID = 'The answer is not valid HTTP.';

const hint = 'HTTP/1.1 103 Hints\r\n\r\n';
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

const canary = useCanary();

describe('an answer', () => {
  it('is received for a request with the given headers and body only', async () => {
    let received = '';
    const { url, port } = await startReceiver((socket) => {
      socket.on('data', (bytes: Buffer) => {
        received += bytes.toString();
        if (received.endsWith('}')) socket.write('HTTP/1.1 204 No Content\r\n\r\n');
      });
    });
    const answer = await createClient(LOCAL).post(requestTo(url), NEVER);
    expect(answer).toEqual({ status: 204, headers: {}, body: Buffer.alloc(0) });
    expect(received.split('\r\n')).toEqual([
      'POST /hook/secret?key=secret HTTP/1.1',
      `host: 127.0.0.1:${port}`,
      'connection: keep-alive',
      'webhook-id: e1',
      'content-length: 11',
      '',
      '{"id":"e1"}',
    ]);
  });

  type Whole = [behaviour: string, answer: string, status: number, body: string, end?: boolean];

  it.each<Whole>([
    ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc', 200, 'abc'],
    [
      'in chunks',
      'HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n',
      201,
      'abc',
    ],
    ['that ends with the connection', 'HTTP/1.1 200 OK\r\n\r\nabc', 200, 'abc', true],
    [
      'after ten informational ones',
      `${hint.repeat(10)}HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na`,
      200,
      'a',
    ],
    ['that is an error', 'HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy', 503, 'busy'],
  ])('%s is returned', async (_, answer, status, body, end) => {
    const { url } = await startAnswering(answer, end);
    expect(await createClient(LOCAL).post(requestTo(url), NEVER)).toMatchObject({
      status,
      body: Buffer.from(body),
    });
  });

  it('is limited for itself, not together with the earlier ones of the connection', async () => {
    const extension = 'e'.repeat(30_000);
    const { url, sockets } = await startAnswering(
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${extension}\r\na\r\n0\r\n\r\n`,
    );
    const client = createClient(LOCAL);
    for (let n = 0; n < 10; n += 1) expect((await client.post(requestTo(url), NEVER)).status).toBe(200);
    expect(sockets.length).toBe(1);
  });

  it.each([
    ['chunk extensions', 'The answer has more than 98304 bytes.', `${chunked}1;`, 'e'.repeat(16_384)],
    ['chunks of one byte', 'The answer has more than 98304 bytes.', chunked, `1;${'e'.repeat(500)}\r\na\r\n`],
    ['informational responses', 'The answer has more than 10 informational responses.', '', hint],
  ])('with endless %s ends the attempt', async (_what, message, head, repeated) => {
    let sent = 0;
    const { url, sockets } = await startReceiver((socket) => {
      const burst = repeated.repeat(Math.ceil(16_384 / repeated.length));
      const send = () => {
        if (socket.destroyed) return;
        sent += burst.length;
        if (socket.write(burst)) setImmediate(send);
      };
      socket.on('drain', send);
      socket.once('data', () => {
        socket.write(head);
        send();
      });
    });
    await expect(createClient(LOCAL).post(requestTo(url), NEVER)).rejects.toThrow(new Error(message));
    await expectClosed(sockets, 1);
    // What the client did not read is in the buffers of the operating system.
    expect(sent).toBeLessThan(32 * 1024 ** 2);
  });

  it('with a redirect is not followed', async () => {
    canary.visits = 0;
    const { url } = await startAnswering(
      `HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:${canary.port}/\r\nContent-Length: 0\r\n\r\n`,
    );
    expect((await createClient(LOCAL).post(requestTo(url), NEVER)).status).toBe(307);
    await canary.expectNoVisit();
  });

  it('that is compressed is not decompressed', async () => {
    const zipped = gzipSync('a'.repeat(100));
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${zipped.length}\r\n\r\n`;
    const { url } = await startAnswering(Buffer.concat([Buffer.from(head), zipped]));
    expect((await createClient(LOCAL).post(requestTo(url), NEVER)).body).toEqual(zipped);
  });

  it('is truncated: the client does not wait for the rest and closes the connection', async () => {
    const start = 'a'.repeat(keptBytes) + 'b'.repeat(readBytes - keptBytes);
    const { url, sockets } = await startAnswering(
      `HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n${start}`,
    );
    const httpClient = createClient(LOCAL);
    const answer = await httpClient.post(requestTo(url), NEVER);
    expect(answer).toMatchObject({ status: 200, body: Buffer.from('a'.repeat(keptBytes)) });
    await expectClosed(sockets, 1);
  });

  it('that is one byte shorter than the limit must be complete', async () => {
    const start = 'a'.repeat(readBytes - 1);
    const { url } = await startAnswering(`HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n${start}`, true);
    await expect(createClient(LOCAL).post(requestTo(url), NEVER)).rejects.toThrow(new Error(CLOSED));
  });

  type Broken = [behaviour: string, answer: string, message: string, end?: boolean];

  it.each<Broken>([
    ['that is empty', '', CLOSED, true],
    ['that ends within its headers', 'HTTP/1.1 200 OK\r\nContent-', CLOSED, true],
    ['that is shorter than its length', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc', CLOSED, true],
    [
      'that is shorter than its length, with Connection: close',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nabc',
      CLOSED,
      true,
    ],
    [
      'that ends within a chunk',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc',
      CLOSED,
      true,
    ],
    [
      'without its last chunk',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n',
      CLOSED,
      true,
    ],
    [
      'that ends within a chunk, with Connection: close',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc',
      INVALID,
      true,
    ],
    ['in another protocol', '220 mail.example ready\r\n', INVALID],
    [
      'with huge headers',
      `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`,
      'The headers of the answer are too large.',
    ],
  ])('%s is an error', async (_, answer, message, end) => {
    const { url, sockets } = await startAnswering(answer, end);
    await expect(createClient(LOCAL).post(requestTo(url), NEVER)).rejects.toThrow(new Error(message));
    await expectClosed(sockets, 1);
  });

  it('without TLS to an https request is an error', async () => {
    const { url } = await startAnswering('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    const sent = createClient(LOCAL).post(requestTo(url.replace('http:', 'https:')), NEVER);
    await expect(sent).rejects.toThrow('The TLS handshake failed.');
  });

  it('from a closed port is an error', async () => {
    const server = createServer();
    const url = `http://127.0.0.1:${await listen(server, '127.0.0.1')}/`;
    server.close();
    await once(server, 'close');
    const sent = createClient(LOCAL).post(requestTo(url), NEVER);
    await expect(sent).rejects.toThrow(new Error('The connection was refused.'));
  });
});
