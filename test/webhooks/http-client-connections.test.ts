// Tests of the connections of the HTTP client: kept, replaced, aborted, closed, and made without a proxy.
import { once } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  LOCAL,
  NEVER,
  createClient,
  expectClosed,
  requestTo,
  startAnswering,
  startReceiver,
  useCanary,
} from './http-client-kit.ts';

const canary = useCanary();

describe('a connection', () => {
  const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  const CANCELLED = 'The request was cancelled before the answer was complete.';

  it('serves one request after another', async () => {
    const { url, sockets } = await startAnswering(OK);
    const httpClient = createClient(LOCAL);
    for (let turn = 0; turn < 5; turn += 1) await httpClient.post(requestTo(url), NEVER);
    expect(sockets.length).toBe(1);
  });

  it('serves one request at a time', async () => {
    const { url, sockets } = await startReceiver();
    const httpClient = createClient(LOCAL);
    const sent = [1, 2, 3].map(() => httpClient.post(requestTo(url), NEVER));
    await expect.poll(() => sockets.length, { interval: 2 }).toBe(3);
    for (const socket of sockets) socket.write(OK);
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it('is replaced after the receiver has closed it', async () => {
    const { url, sockets } = await startAnswering(OK);
    const httpClient = createClient(LOCAL);
    for (let turn = 0; turn < 3; turn += 1) {
      await httpClient.post(requestTo(url), NEVER);
      sockets[turn]?.end();
      await expectClosed(sockets, turn + 1);
    }
  });

  it('does not use a proxy', async () => {
    canary.visits = 0;
    for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy']) {
      vi.stubEnv(name, `http://127.0.0.1:${canary.port}`);
    }
    vi.stubEnv('NODE_USE_ENV_PROXY', '1');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { url } = await startAnswering(OK);
    expect((await createClient(LOCAL).post(requestTo(url), NEVER)).body.toString()).toBe('ok');
    await canary.expectNoVisit();
  });

  type Phase = [phase: string, scheme: string, answer: string];

  it.each<Phase>([
    ['the TLS handshake', 'https:', ''],
    ['the wait for an answer', 'http:', ''],
    ['the headers of the answer', 'http:', 'HTTP/1.1 200 OK\r\nX-Drip: '],
    ['the body of the answer', 'http:', 'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\na'],
  ])('is closed if the request is aborted during %s', async (_, scheme, answer) => {
    const arrived = new AbortController();
    const { url, sockets } = await startReceiver((socket) => {
      socket.on('data', () => {
        socket.write(answer);
        arrived.abort();
      });
    });
    const end = new AbortController();
    const sent = createClient(LOCAL).post(requestTo(url.replace('http:', scheme)), end.signal);
    await once(arrived.signal, 'abort');
    // Let the client read what the receiver wrote.
    for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
    end.abort();
    await expect(sent).rejects.toThrow(new Error(CANCELLED));
    await expectClosed(sockets, 1);
  });

  it('is not made for a request that is aborted while its name is resolved', async () => {
    canary.visits = 0;
    let found: ((addresses: string[]) => void) | undefined;
    const httpClient = createClient(LOCAL, () => new Promise((resolve) => (found = resolve)));
    const end = new AbortController();
    const sent = httpClient.post(requestTo(`http://hooks.example:${canary.port}/`), end.signal);
    await expect.poll(() => found, { interval: 2 }).toBeDefined();
    end.abort();
    await expect(sent).rejects.toThrow(new Error(CANCELLED));
    found?.(['127.0.0.1']);
    await canary.expectNoVisit();
  });

  it('is not made for a request that was already aborted', async () => {
    canary.visits = 0;
    const sent = createClient(LOCAL).post(requestTo(`http://127.0.0.1:${canary.port}/`), AbortSignal.abort());
    await canary.expectRefusal(sent, CANCELLED);
  });

  it('is closed with the client, idle or not', async () => {
    let requests = 0;
    const { url, sockets } = await startReceiver((socket) => {
      socket.on('data', () => {
        requests += 1;
        if (requests === 1) socket.write(OK);
      });
    });
    const httpClient = createClient(LOCAL);
    await httpClient.post(requestTo(url), NEVER);
    const waiting = [1, 2].map(() => httpClient.post(requestTo(url), NEVER));
    await expect.poll(() => requests, { interval: 2 }).toBe(3);
    const settled = Promise.allSettled(waiting);
    await httpClient.close();
    const reasons = (await settled).map((result) => result.status === 'rejected' && String(result.reason));
    expect(new Set(reasons)).toEqual(new Set(['Error: The request was cancelled: the server is stopping.']));
    await expectClosed(sockets, 2);
  });
});
