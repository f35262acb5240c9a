// What webhooks cost: deliveries per second against a bare loop of the same HTTP client, what a receiver that never answers does to the
// others, and the memory of deliveries that wait. What is compared alternates within one run, and medians are told; receivers are on
// loopback, in another process. Ends with 1 when a figure is missed. Run with `npm run bench`, which builds first.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { URL, fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { bodyOf } from '../dist/webhooks/delivery.js';
import { signBody } from '../dist/webhooks/signature.js';
import { realRuntime } from '../dist/runtime.js';
import { config, news, startEngine } from './engine.js';
import { compare, p99, printTable } from './kit.js';

/** Starts one of the files here as a process; answers what it tells, and how to end it. */
async function start(file, ...given) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), given.map(String));
  const [told] = await once(child, 'message');
  return { told, stop: () => child.disconnect() };
}

// Throughput. Both keep as many requests in flight to the same receivers, from a backlog, and read the answers. The bare loop does nothing
// else: what it sends was composed before, signatures included. The engine is handed its events within the time, and for each delivery
// claims, composes, signs, checks the address, sends and records.

const receivers = 64;
const events = 40;
const throughputRounds = 9;

function composeAll(webhooks) {
  return Array.from({ length: events }, () => {
    const event = { ...news, id: realRuntime.newId(), timestamp: realRuntime.now() };
    return webhooks.map((webhook) => composeOne(event, webhook));
  }).flat();
}

function composeOne(event, { hookUrl, signatureKey, ...webhook }) {
  const body = bodyOf({ event }, webhook);
  const timestampSeconds = Math.floor(event.timestamp / 1000);
  const headers = {
    'content-type': webhook.contentType,
    'user-agent': 'Steward/bench',
    'webhook-id': event.id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signBody({ id: event.id, timestampSeconds, body, keys: [signatureKey] }),
  };
  return { hookUrl, headers, body };
}

/** Answers what sends the first so many events to all receivers. */
function createBareLoop(webhooks) {
  const requests = composeAll(webhooks);
  const dispatcher = new Agent();
  return async (count) => {
    const some = requests.slice(0, count * receivers).values();
    async function work() {
      for (const { hookUrl, headers, body } of some) {
        const answer = await request(hookUrl, { method: 'POST', dispatcher, headers, body });
        await answer.body.text();
        if (answer.statusCode !== 200) throw new Error(`a receiver answered ${answer.statusCode}`);
      }
    }
    await Promise.all(Array.from({ length: config.webhookConcurrency }, work));
  };
}

/** Deliveries per second. One event goes ahead, for the connections. */
async function measureRate(deliver) {
  await deliver(1);
  const started = performance.now();
  await deliver(events);
  return (events * receivers * 1000) / (performance.now() - started);
}

async function compareThroughput() {
  const { told, stop } = await start('receivers.js', receivers, 0);
  let left = 0;
  let ended;
  const engine = await startEngine({ notificationTimeOutInSeconds: 60 }, ({ error }) => {
    left -= 1;
    if (error !== null) ended.reject(new Error(error));
    else if (left === 0) ended.resolve();
  });
  async function deliverByEngine(count) {
    left = count * receivers;
    const end = new Promise((resolve, reject) => (ended = { resolve, reject }));
    for (let n = 0; n < count; n += 1) await engine.publish();
    await end;
  }
  const deliverBare = createBareLoop(await engine.register(told.answering));

  const rounds = [];
  for (let round = 0; round <= throughputRounds; round += 1) {
    const baseline = await measureRate(deliverBare);
    rounds.push({ baseline, measured: await measureRate(deliverByEngine) });
  }
  rounds.shift(); // It was for warming up.
  await engine.stop();
  stop();
  return compare(rounds);
}

// Fairness. Every event goes to 99 receivers that answer, and in every other round to a black hole besides: one that has a backlog already,
// and whose attempts are given up after a second and made again. A few events go ahead, for the connections. Time runs from the moment an
// event was due to be published, so that an engine too busy to take it in does not look quick, until its delivery is on record.

const healthy = 99;
const fairnessRounds = 7;
const roundMs = 1500;
const eventsAhead = 3;
const backlog = 500;

async function measureLatency(urls, blackHoles, everyMs) {
  const settings = { notificationTimeOutInSeconds: 1, notificationElapsedTimeInSeconds: 1 };
  const count = eventsAhead + Math.ceil(roundMs / everyMs);
  const due = [];
  const latencies = [];
  let left = count * healthy;
  const engine = await startEngine(settings, (_attempt, { state, event }) => {
    if (state !== 'delivered') return;
    left -= 1;
    if (Number(event.id) >= eventsAhead) latencies.push(performance.now() - due[event.id]);
  });
  await engine.register(blackHoles);
  for (let n = 0; n < backlog; n += 1) await engine.publish();
  await engine.register(urls);
  const started = performance.now();
  for (let n = 0; n < count; n += 1) {
    due.push(started + n * everyMs);
    await wait(Math.max(0, due[n] - performance.now()));
    await engine.publish(`${n}`);
  }
  while (left > 0) await wait(10);
  await engine.stop();
  return p99(latencies);
}

async function compareLatency(everyMs) {
  const { told, stop } = await start('receivers.js', healthy, 1);
  const rounds = [];
  for (let round = 0; round < fairnessRounds; round += 1) {
    const baseline = await measureLatency(told.answering, [], everyMs);
    rounds.push({ baseline, measured: await measureLatency(told.answering, told.blackHoles, everyMs) });
  }
  stop();
  return compare(rounds);
}

// Memory. As many deliveries as may be pending, each of an event of its own or a hundred to an event; nobody answers any.

async function measureBacklog(perEvent) {
  const { told, stop } = await start('receivers.js', 0, perEvent);
  const server = await start('backlog.js', config.webhookMaxPending, ...told.blackHoles);
  const { pending, megabytes } = server.told;
  if (pending !== config.webhookMaxPending) throw new Error(`${pending} deliveries are pending`);
  server.stop();
  stop();
  return megabytes;
}

const throughput = await compareThroughput();
// Every event is a burst; a third of the time is spent on them.
const latency = await compareLatency((healthy * 3000) / throughput.measured);
const rows = [
  {
    figure: `deliveries per second, ${throughput.measured.toFixed(0)} to a bare loop's ${throughput.baseline.toFixed(0)}`,
    required: 'at least 0.6',
    measured: throughput.ratio.toFixed(3),
    isMet: throughput.ratio >= 0.6,
  },
  {
    figure: `p99 beside a black hole, ${latency.measured.toFixed(1)} ms to ${latency.baseline.toFixed(1)} ms without`,
    required: 'at most 1.5',
    measured: latency.ratio.toFixed(3),
    isMet: latency.ratio <= 1.5,
  },
];
for (const perEvent of [1, 100]) {
  const megabytes = await measureBacklog(perEvent);
  rows.push({
    figure: `resident, ${config.webhookMaxPending} pending, ${perEvent} to an event`,
    required: 'under 300 MB',
    measured: `${megabytes.toFixed(0)} MB`,
    isMet: megabytes < 300,
  });
}
printTable(rows);
