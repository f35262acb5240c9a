// Tests slow clients: the server closes hundreds of slow connections after its time limits, keeps a thousand idle
// ones open, and serves other clients meanwhile. No test waits for a limit: it checks the configured one, and sets
// a shorter one.
import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { namespace, startListening } from '../kit/server.ts';
import { judge } from './fuzz-verdict.ts';
import { type Wire, openWire, write } from './wire.ts';

const authorization = 'Bearer token-of-the-administrator';
const urlencoded = 'application/x-www-form-urlencoded';
const multipart = 'multipart/form-data; boundary=b';

const server = perTest(startListening);
let wires: Wire[];
beforeEach(() => {
  wires = [];
});
afterEach(() => {
  for (const { socket } of wires) socket.destroy();
});

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const sockets = () =>
  new Promise<number>((resolve) => server.http.server.getConnections((_error, count) => resolve(count)));

function open(): Wire {
  const wire = openWire(server.port);
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

/**
 * Sends the usual requests on a keep-alive connection and on new ones until `stop`, which returns the statuses of
 * the answers.
 */
function startTraffic() {
  const statuses = new Set<number | undefined>();
  let isStopped = false;
  let rounds = 0;
  async function run(): Promise<void> {
    const kept = openWire(server.port);
    while (!isStopped) {
      for (const request of usualRequests) {
        const fresh = openWire(server.port);
        const number = kept.answers.length;
        kept.write(write(request, true));
        fresh.write(write(request));
        for (const answer of [await kept.answer(number), await fresh.answer()]) statuses.add(answer?.status);
        fresh.socket.destroy();
      }
      rounds += 1;
      await wait(20);
    }
    kept.socket.destroy();
  }
  const done = run();
  return {
    /** Resolves when requests that were sent after the call have been answered. */
    nextRound: () => {
      const present = rounds;
      return expect.poll(() => rounds).toBeGreaterThan(present + 1);
    },
    stop: async () => {
      isStopped = true;
      await done;
      return [...statuses];
    },
  };
}

/** Sends a byte every 100 ms until the server closes the connection. */
function drip(beginning: string | Buffer): Wire {
  const wire = open();
  if (beginning.length === 0) return wire;
  wire.write(beginning);
  const timer = setInterval(() => wire.socket.writable && wire.socket.write('x'), 100);
  void wire.closed.then(() => clearInterval(timer));
  return wire;
}

/** From now on this limit is over for all requests that began before the moment, and for no later one. */
function endLimit(name: 'headersTimeout' | 'requestTimeout', moment: number): void {
  // Node reads the limit whenever it checks its connections.
  Object.defineProperty(server.http.server, name, { get: () => Math.floor(performance.now() - moment) });
}

/** The beginning of a request that announces a longer body than it sends. */
const begin = (url: string, type: string, body = '') => {
  const headers = { 'content-type': type, 'content-length': '10000', authorization };
  return write({ method: 'POST', url, headers, body });
};

describe('slow connections', () => {
  it('are closed after the time limits, 500 at once, while other clients are served', async () => {
    expect(server.http.server.headersTimeout).toBe(10_000);
    expect(server.http.server.requestTimeout).toBe(300_000);
    // A busy machine must not end the limit of the headers too early.
    server.http.server.headersTimeout = 300_000;
    const open100 = (beginning: string | Buffer) => Array.from({ length: 100 }, () => drip(beginning));
    let arrived = 0;
    server.http.server.on('request', () => (arrived += 1));
    const part = '--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n';
    const inBody = [
      begin('/admin/mode', urlencoded, 'f=json&'),
      begin('/services', 'text/xml', '<e:'),
      begin('/admin/uploads/upload', multipart, part),
    ].flatMap(open100);
    const inHeaders = ['', 'GET /health HTTP/1.1\r\nhost: localhost\r\nx: '].flatMap(open100);
    await expect.poll(() => arrived).toBe(300);
    await expect.poll(sockets).toBe(500);
    const openedAt = performance.now();
    // Node counts whole milliseconds.
    await wait(2);
    const stillOpen = (some: readonly Wire[]) => some.filter((wire) => !wire.isClosed()).length;
    const expectTimeout = async (some: readonly Wire[]) => {
      await Promise.all(some.map((wire) => wire.closed));
      for (const { answers } of some) {
        expect(answers.map(({ status }) => status)).toEqual([408]);
        for (const answer of answers) judge(answer, false, false);
      }
    };
    const traffic = startTraffic();
    await traffic.nextRound();
    expect(stillOpen([...inHeaders, ...inBody])).toBe(500);
    endLimit('headersTimeout', openedAt);
    await expectTimeout(inHeaders);
    await traffic.nextRound();
    expect(stillOpen(inBody)).toBe(300);
    endLimit('requestTimeout', openedAt);
    await expectTimeout(inBody);
    await traffic.nextRound();
    expect(await traffic.stop()).toEqual([200]);
    expect(server.logLines.filter((line) => !/^\{"level":[234]0/.test(line))).toEqual([]);
  });

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
    const opened = once(server.http.server, 'connection') as Promise<[Socket]>;
    const client = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    const [socket] = await opened;
    const closed = once(socket, 'close');
    client.resume().write('no HTTP\r\n\r\n');
    await once(client, 'end');
    expect(socket.timeout).toBe(2000);
    socket.setTimeout(1);
    await closed;
    client.destroy();
  });
});

describe('idle connections', () => {
  it('stay open, 1,000 at once, while other clients are served', async () => {
    // On a busy machine, the headers of some arrive late.
    Object.assign(server.http.server, { headersTimeout: 0, requestTimeout: 0 });
    const many = Array.from({ length: 1000 }, open);
    for (const wire of many) wire.write(write({ url: '/health' }, true));
    const traffic = startTraffic();
    const answers = await Promise.all(many.map((wire) => wire.answer()));
    expect(answers.filter((answer) => answer?.status !== 200)).toEqual([]);
    for (let round = 0; round < 3; round += 1) await traffic.nextRound();
    expect(many.filter((wire) => wire.isClosed())).toEqual([]);
    // Each is still usable.
    for (const wire of many) wire.write(write({ url: '/health' }, true));
    const again = await Promise.all(many.map((wire) => wire.answer(1)));
    expect(again.filter((answer) => answer?.status !== 200)).toEqual([]);
    await traffic.nextRound();
    expect(await traffic.stop()).toEqual([200]);
    // Idle connections do not delay closing the server: the keep-alive timeout is longer than the time of this test.
    expect(server.http.server.keepAliveTimeout).toBe(72_000);
    await server.close();
    await Promise.all(many.map((wire) => wire.closed));
  });
});
