// Measures deliveries per second of Steward and of a queue in plain SQL, with one and with three processes each.
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { URL, fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { compare, median, perSecond } from '../kit.js';
import { processorMs } from '../processes.js';
import { startReceivers } from '../receivers.js';
import { createWebhooks, startServers } from '../server.js';

const receiverCount = 32;
const publishers = 16;
const counts = [1, 3];
/**
 * The measurement begins after this many deliveries of each process: until then, the processes compile their code
 * and connect.
 */
const warmUpDeliveries = 10_000;
const warmUpWithinMs = 30_000;
const leastOfBare = 0.65;

// The publishers pause while this many deliveries are pending. Without a limit, each queue would spend another
// share of the machine on accepting events, and the numbers of deliveries would not compare.
const maxPending = 1_600;

const data = JSON.stringify({
  folderName: 'Planning',
  serviceName: 'Parcels',
  type: 'Map',
  note: 'n'.repeat(128),
});

/** A queue: `publish` stores an event with a delivery for each receiver, in the process with that index. */
const queues = {
  async steward(databaseUrl, count, urls, { entry }) {
    const storeUrls = Array.from({ length: count }, () => databaseUrl);
    const servers = await startServers(count, { storeUrls, entry });
    await createWebhooks(servers[0], urls);
    return {
      publish: (index) =>
        servers[index].admin('services/webhooks/publish', {
          changeType: 'ServiceUpdated',
          payload: data,
          eventId: randomUUID(),
        }),
      pids: servers.map(({ pid }) => pid),
      stop: () => Promise.all(servers.map((server) => server.kill())),
    };
  },
  bare: startPeers,
};

async function startPeers(databaseUrl, count, urls) {
  const peers = [];
  for (let n = 0; n < count; n += 1) peers.push(await startPeer(databaseUrl, count, urls));
  return {
    pids: peers.map(({ pid }) => pid),
    publish: (index) => peers[index].publish(),
    stop: () => Promise.all(peers.map((peer) => peer.stop())),
  };
}

async function startPeer(databaseUrl, count, urls) {
  const child = fork(fileURLToPath(new URL('bare.js', import.meta.url)), [databaseUrl, count, ...urls]);
  const [address] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error('bare.js ended'))),
  ]);
  const pool = new Pool(address, { connections: publishers });
  return {
    pid: child.pid,
    async publish() {
      const body = JSON.stringify({ eventId: randomUUID(), data });
      const answer = await pool.request({ method: 'POST', path: '/', body });
      const text = await answer.body.text();
      if (answer.statusCode !== 200) throw new Error(text);
    },
    async stop() {
      const hasEnded = once(child, 'exit');
      child.kill('SIGKILL');
      await hasEnded;
      await pool.destroy();
    },
  };
}

/** `rate`: deliveries per second. `node` and `database`: microseconds of processor time for each delivery. */
async function measureOnce(queue, count, { receivers, databases, ms }) {
  const before = receivers.received();
  let published = 0;
  let isOver = false;
  const pending = () => published * receiverCount - (receivers.received() - before);
  async function publish(index) {
    while (!isOver) {
      if (pending() >= maxPending) await pause(2);
      else {
        published += 1;
        await queue.publish(index);
      }
    }
  }
  const publishing = Promise.all(Array.from({ length: publishers }, (_, n) => publish(n % count)));
  publishing.catch(() => undefined);
  const begin = performance.now();
  while (
    receivers.received() - before < warmUpDeliveries * count &&
    performance.now() - begin < warmUpWithinMs
  )
    await pause(5);
  const read = () => ({
    at: performance.now(),
    received: receivers.received(),
    node: processorMs(queue.pids),
    database: databases.processorMs(),
  });
  const from = read();
  await pause(ms);
  const to = read();
  const deliveries = to.received - from.received;
  isOver = true;
  await publishing;
  return {
    rate: perSecond(deliveries, to.at - from.at),
    node: (1000 * (to.node - from.node)) / deliveries,
    database: (1000 * (to.database - from.database)) / deliveries,
  };
}

export async function measureDeliveries({ databases, ms, rounds, entry, report }) {
  const receivers = await startReceivers({ answering: receiverCount });
  const results = counts.map((count) => ({ count, rounds: [] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { count, rounds: measured } of results) {
      const rates = {};
      for (const name of ['bare', 'steward']) {
        const databaseUrl = await databases.create();
        const queue = await queues[name](databaseUrl, count, receivers.answering, { entry });
        rates[name] = await measureOnce(queue, count, { receivers, databases, ms });
        await queue.stop();
        await databases.drop(databaseUrl);
        const { rate, node, database } = rates[name];
        report(
          `${count} processes, ${name}: ${rate.toFixed(0)} deliveries/s, ${node.toFixed(0)} + ${database.toFixed(0)} µs of processor time each`,
        );
      }
      measured.push(rates);
    }
  }
  receivers.stop();
  return results.flatMap(toRows);
}

/** Compares by processor time: the rates also depend on what else the machine does. */
function toRows({ count, rounds }) {
  const costOf = ({ node, database }) => node + database;
  // Less processor time is better, so the baseline is divided by what was measured.
  const { measured, baseline, ratio } = compare(
    rounds.map(({ steward, bare }) => ({ baseline: costOf(steward), measured: costOf(bare) })),
  );
  return [
    {
      figure: `deliveries, ${count === 1 ? '1 process' : `${count} processes`}: ${measured.toFixed(0)} µs of plain SQL to ${baseline.toFixed(0)} µs of processor time for each`,
      required: `at least ${leastOfBare}`,
      measured: ratio.toFixed(2),
      isMet: ratio >= leastOfBare,
    },
  ];
}

// One process, many pending deliveries, and a new database each time: the statistics of the tables, and so the
// plans of the queries, differ from one time to the next.

const pendingForDrain = 16_000;
const drainWithinMs = 120_000;

export async function measureDrain({ databases, drains, scale, entry, report }) {
  const receivers = await startReceivers({ answering: receiverCount });
  const rates = [];
  for (let n = 0; n < drains; n += 1) {
    const databaseUrl = await databases.create();
    rates.push(
      await drainOnce(databaseUrl, receivers, Math.round((pendingForDrain * scale) / receiverCount), entry),
    );
    await databases.drop(databaseUrl);
    report(`drain ${n + 1}: ${rates.at(-1).toFixed(0)} deliveries/s`);
  }
  receivers.stop();
  const [slowest, fastest] = [Math.min(...rates), Math.max(...rates)];
  return [
    {
      figure: `drain, the slowest of ${drains} to the fastest: ${slowest.toFixed(0)}/s to ${fastest.toFixed(0)}/s, median ${median(rates).toFixed(0)}/s`,
      required: 'at least 0.5',
      measured: (slowest / fastest).toFixed(2),
      isMet: slowest >= fastest / 2,
    },
  ];
}

async function drainOnce(databaseUrl, receivers, events, entry) {
  receivers.hold();
  const queue = await queues.steward(databaseUrl, 1, receivers.answering, { entry });
  let left = events;
  async function publish() {
    while ((left -= 1) >= 0) await queue.publish(0);
  }
  await Promise.all(Array.from({ length: publishers }, publish));
  const before = receivers.received();
  const [started, wanted] = [performance.now(), events * receiverCount];
  receivers.release();
  const drained = () => receivers.received() - before;
  while (drained() < wanted && performance.now() - started < drainWithinMs) await pause(5);
  const rate = perSecond(drained(), performance.now() - started);
  await queue.stop();
  return rate;
}
