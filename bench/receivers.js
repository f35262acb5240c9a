// Receivers of deliveries in their own process, so that they use none of the CPU time of the measured process.
// `startReceivers` starts them and counts what they receive. A black hole accepts a connection and never answers.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { setInterval } from 'node:timers';
import { fileURLToPath } from 'node:url';

const file = fileURLToPath(import.meta.url);

/** The time in milliseconds, with fractions, on a clock that all processes share. */
export const now = () => performance.timeOrigin + performance.now();

export async function startReceivers(answering, blackHoles = 0) {
  const child = fork(file, [answering, blackHoles].map(String));
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

async function run(answering, blackHoles) {
  let received = 0;
  let reported = 0;
  let latencies = [];
  let held;

  function answer(response) {
    received += 1;
    response.end('ok');
  }
  const createAnswering = () =>
    createHttpServer((request, response) => {
      let body = '';
      request.setEncoding('utf8');
      request.on('data', (chunk) => (body += chunk));
      request.on('end', () => {
        const due = /"due":([0-9.]+)/.exec(body)?.[1];
        if (due !== undefined) latencies.push(now() - Number(due));
        if (held) held.push(response);
        else answer(response);
      });
    });
  const createBlackHole = () => createServer((socket) => socket.on('error', () => undefined));

  async function listen(server) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `http://127.0.0.1:${server.address().port}/hook`;
  }
  const listenAll = (count, create) => Promise.all(Array.from({ length: count }, () => listen(create())));

  process.on('message', (message) => {
    if (message === 'hold') held ??= [];
    if (message !== 'release') return;
    const waiting = held ?? [];
    held = undefined;
    waiting.forEach(answer);
  });
  process.on('disconnect', () => process.exit());
  process.send({
    answering: await listenAll(answering, createAnswering),
    blackHoles: await listenAll(blackHoles, createBlackHole),
  });
  setInterval(() => {
    if (reported === received) return;
    reported = received;
    process.send({ received, latencies });
    latencies = [];
  }, 5);
}

if (process.argv[1] === file) await run(...process.argv.slice(2).map(Number));
