// Tests slow clients: the server closes hundreds of slow connections within its time limits, keeps thousands of idle ones open, and serves
// other clients meanwhile.
import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { judge } from './fuzz-verdict.ts';
import { type Server, namespace, startServer } from '../kit/server.ts';
import { type Wire, openWire, write } from './wire.ts';

const authorization = 'Bearer token-of-the-administrator';
const urlencoded = 'application/x-www-form-urlencoded';
const multipart = 'multipart/form-data; boundary=b';
/** Node checks connections every second; the rest allows for a busy machine. */
const slackMs = 4000;
const slowestAllowedMs = 3000;

let server: Server;
let port: number;
let wires: Wire[];
beforeEach(async () => {
  server = await startServer();
  port = Number(new URL(await server.listen()).port);
  wires = [];
});
afterEach(async () => {
  for (const { socket } of wires) socket.destroy();
  await server.close();
});

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function open(): Wire {
  const wire = openWire(port);
  wires.push(wire);
  return wire;
}

const soap =
  '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>' +
  `<GetFolders xmlns="${namespace}"/></e:Body></e:Envelope>`;

const usualRequests = [
  { url: '/health' },
  { url: '/admin?f=html', headers: { authorization } },
  { method: 'POST', url: '/services', headers: { 'content-type': 'text/xml' }, body: soap },
  {
    method: 'POST',
    url: '/admin/services/webhooks/settings',
    body: 'daysInPast=5',
    headers: { 'content-type': urlencoded, authorization },
  },
  {
    method: 'POST',
    url: '/admin/mode',
    headers: { 'content-type': multipart, authorization },
    body: '--b\r\nContent-Disposition: form-data; name="f"\r\n\r\njson\r\n--b--\r\n',
  },
];

/** Sends the usual requests on a keep-alive connection and on new ones until `stop`, which returns the results. */
function startTraffic() {
  const statuses = new Map<number | undefined, number>();
  let isStopped = false;
  let slowestMs = 0;
  async function run(): Promise<void> {
    const kept = openWire(port);
    while (!isStopped) {
      for (const request of usualRequests) {
        const began = performance.now();
        const fresh = openWire(port);
        const number = kept.answers.length;
        kept.write(write(request, true));
        fresh.write(write(request));
        for (const answer of [await kept.answer(number), await fresh.answer()]) {
          statuses.set(answer?.status, (statuses.get(answer?.status) ?? 0) + 1);
        }
        fresh.socket.destroy();
        slowestMs = Math.max(slowestMs, performance.now() - began);
      }
      await wait(20);
    }
    kept.socket.destroy();
  }
  const done = run();
  return {
    stop: async () => {
      isStopped = true;
      await done;
      return { statuses: [...statuses.keys()], count: statuses.get(200) ?? 0, slowestMs };
    },
  };
}

/** Sends a byte every 500 ms until the server closes the connection; returns how long that took. */
async function drip(beginning: string | Buffer): Promise<{ wire: Wire; closedAfterMs: number }> {
  const wire = open();
  const began = performance.now();
  let timer: NodeJS.Timeout | undefined;
  if (beginning.length > 0) {
    wire.write(beginning);
    timer = setInterval(() => wire.socket.writable && wire.socket.write('x'), 500);
  }
  await wire.closed;
  clearInterval(timer);
  return { wire, closedAfterMs: performance.now() - began };
}

/** The beginning of a request that announces a longer body than it sends. */
const begin = (url: string, type: string, body = '') => {
  const headers = { 'content-type': type, 'content-length': '10000', authorization };
  return write({ method: 'POST', url, headers, body });
};

describe('slow connections', () => {
  it('are closed in time, 500 at once, without delaying other clients', { timeout: 40_000 }, async () => {
    const { headersTimeout, requestTimeout } = server.http.server;
    // The configured time limit for a body is minutes: too long for a test.
    expect(requestTimeout).toBeGreaterThan(headersTimeout);
    const bodyMs = (server.http.server.requestTimeout = headersTimeout + 1000);
    const kinds: [string | Buffer, number][] = [
      ['', headersTimeout],
      ['GET /health HTTP/1.1\r\nhost: localhost\r\nx: ', headersTimeout],
      [begin('/admin/mode', urlencoded, 'f=json&'), bodyMs],
      [begin('/services', 'text/xml', '<e:'), bodyMs],
      [
        begin('/admin/uploads/upload', multipart, '--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n'),
        bodyMs,
      ],
    ];
    const traffic = startTraffic();
    const slow = kinds.flatMap(([beginning, limitMs]) =>
      Array.from({ length: 100 }, async () => ({ limitMs, ...(await drip(beginning)) })),
    );
    for (const { limitMs, wire, closedAfterMs } of await Promise.all(slow)) {
      expect(closedAfterMs).toBeGreaterThan(limitMs - 1000);
      expect(closedAfterMs).toBeLessThan(limitMs + slackMs);
      const [answer] = wire.answers;
      expect(answer?.status).toBe(408);
      if (answer) judge(answer, false, false);
    }
    const { statuses, count, slowestMs } = await traffic.stop();
    expect(statuses).toEqual([200]);
    expect(count).toBeGreaterThan(100);
    expect(slowestMs).toBeLessThan(slowestAllowedMs);
    expect(server.logLines.filter((line) => !/^\{"level":[234]0/.test(line))).toEqual([]);
  });

  it('may take a minute to send a form without a token, and then make room for others', async () => {
    const headers = { 'content-type': multipart, 'content-length': '10000' };
    const form = write({ method: 'POST', url: '/admin/mode', headers, body: '--b\r\n' });
    let arrived = 0;
    server.http.server.on('request', () => (arrived += 1));
    const slow = Array.from({ length: 4 }, () => drip(form));
    await expect.poll(() => arrived).toBe(4);
    await server.runtime.advance(1000);
    /** Sends a form in two parts, a second apart. */
    const isFull = async () => {
      const before = arrived;
      const wire = open();
      const whole = write({
        method: 'POST',
        url: '/admin/mode',
        headers: { 'content-type': multipart },
        body: '--b--\r\n',
      });
      wire.write(whole.subarray(0, -2));
      await expect.poll(() => arrived).toBe(before + 1);
      await server.runtime.advance(1000);
      wire.socket.write(whole.subarray(-2));
      return (await wire.answer())?.status === 503;
    };
    expect(await isFull()).toBe(true);
    await server.runtime.advance(60_000);
    for (const { wire } of await Promise.all(slow))
      expect(wire.answers.map(({ status }) => status)).toEqual([400]);
    expect(await isFull()).toBe(false);
  });

  const sockets = () =>
    new Promise<number>((resolve) => server.http.server.getConnections((_error, count) => resolve(count)));

  it('are closed after 120 seconds if the client does not read the responses', async () => {
    const opened = once(server.http.server, 'connection') as Promise<[Socket]>;
    const wire = open();
    wire.socket.pause();
    const [socket] = await opened;
    const request = write({ url: '/admin/openapi.json' }, true);
    wire.socket.write(Buffer.concat(Array.from({ length: 150 }, () => request)));
    await expect.poll(() => socket.timeout).toBe(120_000);
    wire.socket.destroy();
  });

  it('are closed after a refused request even if the client keeps its side open', async () => {
    await expect.poll(sockets).toBe(0);
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.resume().write('no HTTP\r\n\r\n');
    await once(socket, 'end');
    expect(await sockets()).toBe(1);
    await expect.poll(sockets).toBe(0);
    socket.destroy();
  });
});

describe('idle connections', () => {
  it('stay open, 1,000 at once, without delaying other clients', { timeout: 40_000 }, async () => {
    const many = Array.from({ length: 1000 }, open);
    for (const wire of many) wire.write(write({ url: '/health' }, true));
    const traffic = startTraffic();
    const answers = await Promise.all(many.map((wire) => wire.answer()));
    expect(answers.filter((answer) => answer?.status !== 200)).toEqual([]);
    await wait(1000);
    expect(many.filter((wire) => wire.isClosed())).toEqual([]);
    // Each is still usable.
    for (const wire of many) wire.write(write({ url: '/health' }, true));
    const again = await Promise.all(many.map((wire) => wire.answer(1)));
    expect(again.filter((answer) => answer?.status !== 200)).toEqual([]);
    const { statuses, count, slowestMs } = await traffic.stop();
    expect(statuses).toEqual([200]);
    expect(count).toBeGreaterThan(20);
    expect(slowestMs).toBeLessThan(slowestAllowedMs);
    // Idle connections do not delay closing the server.
    const began = performance.now();
    await server.close();
    await Promise.all(many.map((wire) => wire.closed));
    expect(performance.now() - began).toBeLessThan(slackMs);
  });

  it('are closed after the keep-alive timeout', async () => {
    expect(server.http.server.keepAliveTimeout).toBe(72_000);
    server.http.server.keepAliveTimeout = 500;
    const wire = open();
    wire.write(write({ url: '/health' }, true));
    await wire.answer();
    const began = performance.now();
    await wire.closed;
    expect(performance.now() - began).toBeLessThan(500 + slackMs);
  });
});
