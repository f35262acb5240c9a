// Measures where a database is rougher than usual: a foreign snapshot, and webhooks with very many deliveries.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { startReceivers } from '../receivers.js';
import { createWebhooks, startServers } from '../server.js';
import { withClient } from './databases.js';
import { fillPendingDeliveries, settle } from './fill.js';

const receiverCount = 32;
const publishers = 16;
const maxPending = 1_600;
const data = JSON.stringify({ serviceName: 'Parcels', note: 'n'.repeat(128) });

/** Two processes that publish and deliver. */
async function startDelivering(databases, receivers, entry) {
  const databaseUrl = await databases.create();
  const servers = await startServers(2, { storeUrls: [databaseUrl, databaseUrl], entry });
  await createWebhooks(servers[0], receivers.answering);
  const before = receivers.received();
  let published = 0;
  const delivered = () => receivers.received() - before;
  return {
    databaseUrl,
    /** Publishes and delivers until this many are delivered since the start. */
    async deliver(count) {
      async function publish() {
        while (delivered() < count) {
          if (published * receiverCount - delivered() >= maxPending) await pause(2);
          else {
            published += 1;
            const event = { changeType: 'ServiceUpdated', payload: data, eventId: randomUUID() };
            await servers[published % 2].admin('services/webhooks/publish', event);
          }
        }
      }
      await Promise.all(Array.from({ length: publishers }, publish));
    },
    stop: () => Promise.all(servers.map((server) => server.kill())),
  };
}

const windowSize = 10_000;
const maxSlowdown = 1.3;

/** The processor time of the database for each of the last 10,000 of 50,000 deliveries of two processes. */
export async function measureSnapshot({ databases, scale, entry, report }) {
  const count = Math.max(2 * windowSize, Math.round(50_000 * scale));
  const receivers = await startReceivers({ answering: receiverCount });
  const costs = {};
  for (const kind of ['without', 'with']) {
    const queue = await startDelivering(databases, receivers, entry);
    const foreign = new pg.Client(queue.databaseUrl);
    await foreign.connect();
    if (kind === 'with') {
      await foreign.query('begin isolation level repeatable read');
      await foreign.query('select count(*) from queue');
    }
    await queue.deliver(count - windowSize);
    const from = databases.processorMs();
    await queue.deliver(count);
    costs[kind] = (1000 * (databases.processorMs() - from)) / windowSize;
    report(`${kind} a snapshot, after ${count} deliveries: ${costs[kind].toFixed(0)} µs each`);
    await foreign.end();
    await queue.stop();
    await databases.drop(queue.databaseUrl);
  }
  receivers.stop();
  const ratio = costs.with / costs.without;
  return [
    {
      figure: `a delivery after ${count} under a foreign snapshot: ${costs.with.toFixed(0)} µs of the database to ${costs.without.toFixed(0)} µs`,
      required: `at most ${maxSlowdown}`,
      measured: ratio.toFixed(2),
      isMet: ratio <= maxSlowdown,
    },
  ];
}

const maxHoldMs = 100;

/** How long the administrative writes of another process wait while a webhook with many deliveries is emptied. */
export async function measureEmptying({ databases, scale, entry, report }) {
  const count = Math.round(1_000_000 * scale);
  const databaseUrl = await databases.create();
  // Nothing is delivered: the receivers never answer.
  const receivers = await startReceivers({ blackHoles: 2 });
  const env = { WEBHOOK_RECOVERABLE: '1000000', WEBHOOK_MAX_PENDING: '1000000' };
  const [one, other] = await startServers(2, { storeUrls: [databaseUrl, databaseUrl], entry, env });
  const ids = await createWebhooks(one, receivers.blackHoles, { changeTypes: 'NeverPublished' });
  await withClient(databaseUrl, async (client) => {
    for (const id of ids) await fillPendingDeliveries(client, id, count, Date.now());
    await settle(client);
  });
  const rows = [];
  for (const [operation, id] of [
    ['deactivate', ids[0]],
    ['delete', ids[1]],
  ]) {
    let isOver = false;
    const waits = [];
    const writing = (async () => {
      for (let n = 0; !isOver; n += 1) {
        const started = performance.now();
        await other.admin('services/createFolder', { folderName: `${operation}${n}` });
        waits.push(performance.now() - started);
      }
    })();
    await pause(1_000);
    const usual = Math.max(...waits);
    waits.length = 0;
    const started = performance.now();
    const { discarded } = await one.admin(`services/webhooks/${id}/${operation}`, {});
    const answeredMs = performance.now() - started;
    const left = () =>
      withClient(databaseUrl, async (client) => {
        const { rows: found } = await client.query(
          'select count(*)::int from queue where webhook_id = $1 and claimed_by is null',
          [id],
        );
        return found[0].count;
      });
    while ((await left()) > 0) await pause(200);
    const doneMs = performance.now() - started;
    isOver = true;
    await writing;
    const sorted = waits.toSorted((a, b) => a - b);
    const nearlyAll = sorted[Math.floor(sorted.length * 0.999)];
    report(
      `${operation}: ${discarded} deliveries, answer after ${answeredMs.toFixed(0)} ms, done after ${doneMs.toFixed(0)} ms; ` +
        `${sorted.length} writes of another process, 99.9 % within ${nearlyAll.toFixed(0)} ms, all within ${sorted.at(-1).toFixed(0)} ms; ` +
        `before, all within ${usual.toFixed(0)} ms`,
    );
    // Without the last thousandth: PostgreSQL then creates a file of its log, whoever writes.
    rows.push({
      figure: `${operation} a webhook with ${count} deliveries: 99.9 % of the writes of another process`,
      required: `at most ${maxHoldMs} ms`,
      measured: `${nearlyAll.toFixed(0)} ms`,
      isMet: nearlyAll <= maxHoldMs && discarded >= count - 8,
    });
  }
  await Promise.all([one.kill(), other.kill()]);
  receivers.stop();
  await databases.drop(databaseUrl);
  return rows;
}
