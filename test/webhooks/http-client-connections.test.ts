// Connections of outgoing requests: kept, replaced, given up, closed, and made through no proxy.
import { once } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  LOCAL,
  NEVER,
  egressTo,
  expectClosed,
  outgoing,
  startAnswering,
  startReceiver,
  useCanary,
} from './http-client-kit.ts';

const canary = useCanary();

describe('a connection', () => {
  const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  const GIVEN_UP = 'The request was given up before its answer was complete.';

  it('serves one request after another', async () => {
    const { url, sockets } = await startAnswering(OK);
    const httpClient = egressTo(LOCAL);
    for (let turn = 0; turn < 5; turn += 1) await httpClient.post(outgoing(url), NEVER);
    expect(sockets.length).toBe(1);
  });

  it('serves one request at a time', async () => {
    const { url, sockets } = await startReceiver();
    const httpClient = egressTo(LOCAL);
    const sent = [1, 2, 3].map(() => httpClient.post(outgoing(url), NEVER));
    await expect.poll(() => sockets.length, { interval: 2 }).toBe(3);
    for (const socket of sockets) socket.write(OK);
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it('that the receiver has closed is replaced', async () => {
    const { url, sockets } = await startAnswering(OK);
    const httpClient = egressTo(LOCAL);
    for (let turn = 0; turn < 3; turn += 1) {
      await httpClient.post(outgoing(url), NEVER);
      sockets[turn]?.end();
      await expectClosed(sockets, turn + 1);
    }
  });

  it('goes through no proxy', async () => {
    canary.visits = 0;
    for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy']) {
      vi.stubEnv(name, `http://127.0.0.1:${canary.port}`);
    }
    vi.stubEnv('NODE_USE_ENV_PROXY', '1');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { url } = await startAnswering(OK);
    expect((await egressTo(LOCAL).post(outgoing(url), NEVER)).body.toString()).toBe('ok');
    await canary.expectNoVisit();
  });

  type Phase = [phase: string, scheme: string, answer: string];

  it.each<Phase>([
    ['the handshake', 'https:', ''],
    ['the head of the answer', 'http:', ''],
    ['a dripping head', 'http:', 'HTTP/1.1 200 OK\r\nX-Drip: '],
    ['a dripping body', 'http:', 'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\na'],
  ])('is closed when the request is given up during %s', async (_, scheme, answer) => {
    const arrived = new AbortController();
    const { url, sockets } = await startReceiver((socket) => {
      socket.on('data', () => {
        socket.write(answer);
        arrived.abort();
      });
    });
    const end = new AbortController();
    const sent = egressTo(LOCAL).post(outgoing(url.replace('http:', scheme)), end.signal);
    await once(arrived.signal, 'abort');
    // A few turns, so that what was written has been read.
    for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
    end.abort();
    await expect(sent).rejects.toThrow(new Error(GIVEN_UP));
    await expectClosed(sockets, 1);
  });

  it('is not made for a request that is given up while its name is resolved', async () => {
    canary.visits = 0;
    let found: (addresses: string[]) => void = () => undefined;
    const httpClient = egressTo(LOCAL, () => new Promise((resolve) => (found = resolve)));
    const end = new AbortController();
    const sent = httpClient.post(outgoing(`http://hooks.example:${canary.port}/`), end.signal);
    end.abort();
    await expect(sent).rejects.toThrow(new Error(GIVEN_UP));
    found(['127.0.0.1']);
    await canary.expectNoVisit();
  });

  it('is not made for a request that was given up before', async () => {
    canary.visits = 0;
    const sent = egressTo(LOCAL).post(outgoing(`http://127.0.0.1:${canary.port}/`), AbortSignal.abort());
    await canary.expectRefusal(sent, GIVEN_UP);
  });

  it('is closed with the httpClient, idle or not', async () => {
    let requests = 0;
    const { url, sockets } = await startReceiver((socket) => {
      socket.on('data', () => {
        requests += 1;
        if (requests === 1) socket.write(OK);
      });
    });
    const httpClient = egressTo(LOCAL);
    await httpClient.post(outgoing(url), NEVER);
    const waiting = [1, 2].map(() => httpClient.post(outgoing(url), NEVER));
    await expect.poll(() => requests, { interval: 2 }).toBe(3);
    const given = Promise.allSettled(waiting);
    await httpClient.close();
    const reasons = (await given).map((result) => result.status === 'rejected' && String(result.reason));
    expect(new Set(reasons)).toEqual(new Set(['Error: The request was given up: the server is stopping.']));
    await expectClosed(sockets, 2);
  });
});
