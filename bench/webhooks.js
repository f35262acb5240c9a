// Measures webhooks: deliveries per second compared with a bare loop of the same HTTP client, the effect of a receiver that never
// answers on the other receivers, and the memory of pending deliveries.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { URL, fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { bodyOf } from '../dist/webhooks/delivery.js';
import { signBody } from '../dist/webhooks/signature.js';
import { realRuntime } from '../dist/runtime.js';
import { config, eventDraft, startEngine } from './engine.js';
import { compare, p99, printTable } from './kit.js';

async function start(file, ...args) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args.map(String));
  const [message] = await once(child, 'message');
  return { message, stop: () => child.disconnect() };
}

// The bare loop only sends requests that are composed and signed before. The measured time of the engine includes publishing the
// events and, for each delivery, claiming, composing, signing, checking the address, sending and storing the result.

const receivers = 64;
const events = 40;
const throughputRounds = 9;

function composeAll(webhooks) {
  return Array.from({ length: events }, () => {
    const event = { ...eventDraft, id: realRuntime.newId(), timestamp: realRuntime.now() };
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

/** The first event opens the connections, so it is not measured. */
async function measureRate(deliver) {
  await deliver(1);
  const started = performance.now();
  await deliver(events);
  return (events * receivers * 1000) / (performance.now() - started);
}

async function compareThroughput() {
  const { message, stop } = await start('receivers.js', receivers, 0);
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
  const deliverBare = createBareLoop(await engine.register(message.answering));

  const rounds = [];
  for (let round = 0; round <= throughputRounds; round += 1) {
    const baseline = await measureRate(deliverBare);
    rounds.push({ baseline, measured: await measureRate(deliverByEngine) });
  }
  rounds.shift(); // The first round is a warm-up.
  await engine.stop();
  stop();
  return compare(rounds);
}

// In every second round the events also go to a black hole, which has a backlog and whose attempts time out and are repeated.
// Latency starts when an event is due to be published. Otherwise a busy engine that publishes late would look fast.

const healthy = 99;
const fairnessRounds = 7;
const roundMs = 1500;
const warmUpEvents = 3;
const backlog = 500;

async function measureLatency(urls, blackHoles, everyMs) {
  const settings = { notificationTimeOutInSeconds: 1, notificationElapsedTimeInSeconds: 1 };
  const count = warmUpEvents + Math.ceil(roundMs / everyMs);
  const due = [];
  const latencies = [];
  let left = count * healthy;
  const engine = await startEngine(settings, (_attempt, { state, event }) => {
    if (state !== 'delivered') return;
    left -= 1;
    if (Number(event.id) >= warmUpEvents) latencies.push(performance.now() - due[event.id]);
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
  const { message, stop } = await start('receivers.js', healthy, 1);
  const rounds = [];
  for (let round = 0; round < fairnessRounds; round += 1) {
    const baseline = await measureLatency(message.answering, [], everyMs);
    rounds.push({ baseline, measured: await measureLatency(message.answering, message.blackHoles, everyMs) });
  }
  stop();
  return compare(rounds);
}

async function measureBacklog(perEvent) {
  const { message, stop } = await start('receivers.js', 0, perEvent);
  const server = await start('backlog.js', config.webhookMaxPending, ...message.blackHoles);
  const { pending, megabytes } = server.message;
  if (pending !== config.webhookMaxPending) throw new Error(`${pending} deliveries are pending`);
  server.stop();
  stop();
  return megabytes;
}

const throughput = await compareThroughput();
// Each event causes a burst of deliveries. With this interval the engine is busy for a third of the time.
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
