// Measures webhooks in memory, from outside: deliveries per second compared with a bare loop of the same HTTP
// client, the effect of a receiver that never answers on the other receivers, and the memory of pending deliveries.
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { compare, p99, perSecond, printTable } from './kit.js';
import { now, startReceivers } from './receivers.js';
import { createWebhooks, startServer } from './server.js';

/** About 200 bytes of data, the size of a typical event. */
const data = { folderName: 'Planning', serviceName: 'Parcels', type: 'Map', note: 'n'.repeat(128) };
const concurrency = 64;

const publish = (server, payload = data) =>
  server.admin('services/webhooks/publish', {
    changeType: 'ServiceUpdated',
    payload: JSON.stringify(payload),
  });

async function publishMany(server, count, payloadOf = () => data) {
  let left = count;
  async function repeat() {
    while ((left -= 1) >= 0) await publish(server, payloadOf());
  }
  await Promise.all(Array.from({ length: 8 }, repeat));
}

// The bare loop only sends requests that are composed before. The measured time of the server includes accepting
// the events and, for each delivery, claiming, composing, signing, checking the address, sending and storing the
// result.

const receiverCount = 64;
const events = 60;
const throughputRounds = 9;

function createBareLoop(urls) {
  const id = randomUUID();
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Steward/bench',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
    'webhook-signature': `v1,${'s'.repeat(44)}`,
  };
  const event = { id, type: 'ServiceUpdated', timestamp: Date.now(), service: null };
  const body = JSON.stringify({ ...event, webhookId: id, webhookName: 'Receiver 1', data });
  const dispatcher = new Agent();
  return async (count) => {
    const rest = Array.from({ length: count }, () => urls)
      .flat()
      .values();
    async function work() {
      for (const url of rest) {
        const answer = await request(url, { method: 'POST', dispatcher, headers, body });
        await answer.body.text();
        if (answer.statusCode !== 200) throw new Error(`a receiver answered ${answer.statusCode}`);
      }
    }
    await Promise.all(Array.from({ length: concurrency }, work));
  };
}

async function compareThroughput() {
  const receivers = await startReceivers({ answering: receiverCount });
  const server = await startServer();
  await server.signIn();
  await createWebhooks(server, receivers.answering);
  const deliverBare = createBareLoop(receivers.answering);

  async function deliverAll(deliver, count) {
    const end = receivers.received() + count * receiverCount;
    await deliver(count);
    while (receivers.received() < end) await wait(1);
  }
  /** The first event opens the connections, so it is not measured. */
  async function measureRate(deliver) {
    await deliverAll(deliver, 1);
    const started = performance.now();
    await deliverAll(deliver, events);
    return perSecond(events * receiverCount, performance.now() - started);
  }
  const rounds = [];
  for (let round = 0; round <= throughputRounds; round += 1) {
    const baseline = await measureRate(deliverBare);
    rounds.push({ baseline, measured: await measureRate((count) => publishMany(server, count)) });
  }
  rounds.shift(); // The first round is a warm-up.
  await server.stop();
  receivers.stop();
  return compare(rounds);
}

// In every second round the events also go to a black hole, which has a backlog and whose attempts time out and are
// repeated. Latency starts when an event is due to be published. Otherwise a busy server that accepts it late would
// look fast.

const healthy = 99;
const fairnessRounds = 7;
const roundMs = 1500;
const warmUpEvents = 3;
const backlog = 500;
const impatient = {
  notificationAttempts: '5',
  notificationTimeOutInSeconds: '1',
  notificationElapsedTimeInSeconds: '1',
  numberOfFailures: '10000',
};

async function measureLatency(receivers, blackHoles, everyMs) {
  const server = await startServer();
  await server.signIn();
  await createWebhooks(server, blackHoles, { settings: impatient });
  await publishMany(server, backlog);
  await createWebhooks(server, receivers.answering, { settings: impatient });

  const count = Math.ceil(roundMs / everyMs);
  const end = receivers.received() + (warmUpEvents + count) * healthy;
  await publishMany(server, warmUpEvents);
  const started = now() + everyMs;
  for (let n = 0; n < count; n += 1) {
    const due = started + n * everyMs;
    await wait(Math.max(0, due - now()));
    await publish(server, { ...data, due });
  }
  while (receivers.received() < end) await wait(5);
  await server.kill();
  return p99(receivers.takeLatencies());
}

async function compareLatency(everyMs) {
  const receivers = await startReceivers({ answering: healthy, blackHoles: 1 });
  const rounds = [];
  for (let round = 0; round < fairnessRounds; round += 1) {
    const baseline = await measureLatency(receivers, [], everyMs);
    rounds.push({ baseline, measured: await measureLatency(receivers, receivers.blackHoles, everyMs) });
  }
  receivers.stop();
  return compare(rounds);
}

const maxPending = 100_000;

async function measureBacklog(perEvent) {
  const receivers = await startReceivers({ blackHoles: perEvent });
  const server = await startServer({ env: { WEBHOOK_MAX_PENDING: String(maxPending) } });
  await server.signIn();
  await createWebhooks(server, receivers.blackHoles);
  let number = 0;
  await publishMany(server, maxPending / perEvent, () => ({ ...data, number: (number += 1) }));
  const { body } = await server.ask('GET', '/metrics');
  const pending = Number(/^steward_webhook_deliveries_pending (\d+)/m.exec(body)?.[1]);
  if (pending !== maxPending) throw new Error(`${pending} deliveries are pending`);
  const { peak } = server.memory();
  await server.kill();
  receivers.stop();
  return peak;
}

const throughput = await compareThroughput();
// Each event causes a burst of deliveries. With this interval the server is busy for a third of the time.
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
    figure: `peak of resident memory, ${maxPending} pending, ${perEvent} to an event`,
    required: 'under 300 MB',
    measured: `${megabytes.toFixed(0)} MB`,
    isMet: megabytes < 300,
  });
}
printTable(rows);
