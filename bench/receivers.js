// Receivers of deliveries in their own process, so that they use none of the CPU time of the measured process.
// `startReceivers` starts them and counts what they receive. Each has its own port, because the number of parallel
// attempts per receiver is limited. A black hole accepts a connection and never answers.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { setInterval, setTimeout } from 'node:timers';
import { fileURLToPath } from 'node:url';

const file = fileURLToPath(import.meta.url);
const slowMs = 200;

/** The time in milliseconds, with fractions, on a clock that all processes share. */
export const now = () => performance.timeOrigin + performance.now();

/** Returns the addresses of each kind. Those of `closing` share a port, and close each connection after its answer. */
export async function startReceivers({ answering = 0, blackHoles = 0, slow = 0, failing = 0, closing = 0 }) {
  const child = fork(file, [JSON.stringify({ answering, blackHoles, slow, failing, closing })]);
  const [urls] = await once(child, 'message');
  let received = 0;
  let latencies = [];
  child.on('message', (message) => {
    received = message.received;
    latencies = [...latencies, ...message.latencies];
  });
  return {
    ...urls,
    /** How many requests have been answered. The child reports the number every few milliseconds. */
    received: () => received,
    /** The times from `due` in the data of the event to its receipt, in milliseconds; once for each request. */
    takeLatencies() {
      const taken = latencies;
      latencies = [];
      return taken;
    },
    /** From now on, requests wait for `release`. */
    hold: () => child.send('hold'),
    release: () => child.send('release'),
    stop: () => child.disconnect(),
  };
}

async function run(counts) {
  let received = 0;
  let reported = 0;
  let latencies = [];
  let held;

  function answer(response, status = 200) {
    received += 1;
    response.statusCode = status;
    response.end('ok');
  }
  const createReceiver = (reply) => () =>
    createHttpServer((request, response) => {
      let body = '';
      request.setEncoding('utf8');
      request.on('data', (chunk) => (body += chunk));
      request.on('end', () => {
        const due = /"due":([0-9.]+)/.exec(body)?.[1];
        if (due !== undefined) latencies.push(now() - Number(due));
        reply(response);
      });
    });
  const answerOrHold = (response) => (held ? held.push(response) : answer(response));
  const kinds = {
    answering: createReceiver(answerOrHold),
    closing: createReceiver((response) => answerOrHold(response.setHeader('connection', 'close'))),
    slow: createReceiver((response) => setTimeout(answer, slowMs, response)),
    failing: createReceiver((response) => answer(response, 500)),
    blackHoles: () => createServer((socket) => socket.on('error', () => undefined)),
  };

  async function listen(server, host = '127.0.0.1') {
    server.listen({ port: 0, host, backlog: 4096 });
    await once(server, 'listening');
    return `http://127.0.0.1:${server.address().port}/hook`;
  }

  /** Thousands of receivers: every address of 127.0.0.0/8 leads here. */
  async function listenForAll(server, count) {
    const url = await listen(server, '0.0.0.0');
    const addressOf = (n) => `127.${1 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
    return Array.from({ length: count }, (_, n) => url.replace('127.0.0.1', addressOf(n)));
  }

  process.on('message', (message) => {
    if (message === 'hold') held ??= [];
    if (message !== 'release') return;
    const waiting = held ?? [];
    held = undefined;
    for (const response of waiting) answer(response);
  });
  process.on('disconnect', () => process.exit());
  const urls = {};
  for (const [kind, count] of Object.entries(counts))
    urls[kind] =
      kind === 'closing'
        ? await listenForAll(kinds.closing(), count)
        : await Promise.all(Array.from({ length: count }, () => listen(kinds[kind]())));
  process.send(urls);
  setInterval(() => {
    if (reported === received) return;
    reported = received;
    process.send({ received, latencies });
    latencies = [];
  }, 5);
}

if (process.argv[1] === file) await run(JSON.parse(process.argv[2]));
