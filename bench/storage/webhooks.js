// Measures what one delivery costs with few and with many webhooks: the processor time of Node.js and of PostgreSQL, the
// rows and index entries that PostgreSQL writes, and the bytes of its write-ahead log.
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { processorMs } from '../processes.js';
import { startReceivers } from '../receivers.js';
import { createWebhooks, startServers } from '../server.js';
import { withClient } from './databases.js';

const few = 32;
const many = 10_000;
const events = 1_000;
const publishers = 16;
const subscribers = 1_000;
const maxRatio = 1.5;
const largestPayload = 253 * 1024;
const maxLargeMs = 1_000;
/** Without a key, rows of webhooks can be copied. */
const env = { WEBHOOK_MAX_PENDING: '10000000', SECRET_KEY: '' };
const data = JSON.stringify({ serviceName: 'Parcels', note: 'n'.repeat(128) });

/** The first webhook gets `One` too, and the first thousand `Thousand`. */
const typesOf = (index) =>
  ['All', ...(index === 0 ? ['One'] : []), ...(index < subscribers ? ['Thousand'] : [])].join();

/**
 * A webhook is created with a search for its name, which is not measured here: the first ones are created over HTTP, and
 * all others are copies of their rows.
 */
async function createMany(server, urls, client) {
  const created = Math.min(urls.length, few);
  for (const [index, url] of urls.slice(0, created).entries())
    await createWebhooks(server, [url], { changeTypes: typesOf(index) });
  const rest = urls.slice(created);
  if (rest.length === 0) return;
  await client.query('begin');
  await client.query('update clock set version = version + 1');
  await client.query(
    `insert into state (kind, key, value, version)
       select 'webhooks', w.id, ((select value::jsonb from state where kind = 'webhooks' order by value ->> 'createdAt' desc limit 1)
         || jsonb_build_object('id', w.id, 'name', 'Receiver ' || w.n, 'hookUrl', w.url, 'changeTypes', w.types::jsonb))::json, (select version from clock)
       from unnest($1::text[], $2::text[], $3::text[]) with ordinality w(id, url, types, n)`,
    [
      rest.map(() => randomUUID()),
      rest,
      rest.map((_url, index) => JSON.stringify(typesOf(created + index).split(','))),
    ],
  );
  await client.query('commit');
  const count = async () => (await server.admin('services/webhooks?f=json')).webhooks.length;
  while ((await count()) < urls.length) await pause(500);
}

/** Counts the records of the write-ahead log since `from`. */
async function readLog(client, from) {
  const { rows } = await client.query(
    `select "resource_manager/record_type" as type, count::int, combined_size::float8 as bytes
     from pg_get_wal_stats($1, pg_current_wal_flush_lsn(), true)`,
    [from],
  );
  const sum = (pattern, figure) =>
    rows.filter(({ type }) => pattern.test(type)).reduce((total, row) => total + row[figure], 0);
  return {
    rows: sum(/^Heap\/(INSERT|UPDATE|HOT_UPDATE|DELETE)/, 'count'),
    indexInserts:
      sum(/^Btree\/(INSERT|SPLIT|NEWROOT|DEDUP)/, 'count') -
      sum(/^Btree\/(DEDUP|INSERT_UPPER|NEWROOT)/, 'count'),
    bytes: sum(/./, 'bytes'),
  };
}

/** A database with one process and these webhooks. */
async function startWith(count, { databases, entry }) {
  const receivers = await startReceivers({ closing: count });
  const databaseUrl = await databases.create();
  const [server] = await startServers(1, { storeUrls: [databaseUrl], entry, env });
  await withClient(databaseUrl, async (client) => {
    await client.query('create extension pg_walinspect');
    await createMany(server, receivers.closing, client);
  });
  let expected = 0;
  const publish = async (changeType, payload = data) => {
    const published = await server.admin('services/webhooks/publish', { changeType, payload });
    expected += published.deliveries;
  };
  async function publishAll(changeType, number) {
    let left = number;
    const repeat = async () => {
      while ((left -= 1) >= 0) await publish(changeType);
    };
    await Promise.all(Array.from({ length: publishers }, repeat));
  }
  async function settle() {
    while (receivers.received() < expected) await pause(20);
  }
  /** The cost of each delivery. `work` ends when all are made. */
  const measure = (work) =>
    withClient(databaseUrl, async (client) => {
      const lsn = async () => (await client.query('select pg_current_wal_insert_lsn() as lsn')).rows[0].lsn;
      const from = {
        expected,
        lsn: await lsn(),
        node: processorMs([server.pid]),
        database: databases.processorMs(),
      };
      const started = performance.now();
      const done = await work();
      const made = done ?? expected - from.expected;
      const ms = performance.now() - started;
      const node = (1000 * (processorMs([server.pid]) - from.node)) / made;
      const database = (1000 * (databases.processorMs() - from.database)) / made;
      // The process completes and trims the last ones a moment later.
      await pause(300);
      const log = await readLog(client, from.lsn);
      const each = Object.fromEntries(Object.entries(log).map(([figure, sum]) => [figure, sum / made]));
      return { node, database, ...each, rate: (1000 * made) / ms };
    });
  return {
    measure,
    publish,
    publishAll,
    settle,
    hold: receivers.hold,
    release: receivers.release,
    async stop() {
      await server.kill();
      receivers.stop();
      await databases.drop(databaseUrl);
    },
  };
}

/** In this order, the first one warms up the process. Each makes about as many deliveries with few webhooks as with many. */
const createMeasurements = (deliveries) => ({
  warmUp: (queue, count) => queue.publishAll('All', Math.ceil(deliveries / count)).then(queue.settle),
  'an event for one webhook': (queue) => queue.publishAll('One', events).then(queue.settle),
  'an event for a thousand webhooks': (queue, count) =>
    queue.publishAll('Thousand', Math.ceil(deliveries / Math.min(count, subscribers))).then(queue.settle),
  'publishing for all webhooks': (queue, count) => {
    queue.hold();
    return queue.publishAll('All', Math.ceil(deliveries / count));
  },
  'delivering a backlog of all webhooks': async (queue, count) => {
    queue.release();
    await queue.settle();
    return Math.ceil(deliveries / count) * count;
  },
});

export async function measureWebhooks(options) {
  const costs = {};
  let largeMs = 0;
  const most = Math.round(many * options.scale);
  const measurements = createMeasurements(most);
  for (const count of [few, most]) {
    const queue = await startWith(count, options);
    for (const [name, work] of Object.entries(measurements)) {
      const cost = await queue.measure(() => work(queue, count));
      (costs[name] ??= []).push(cost);
      const { node, database, rows, indexInserts, bytes, rate } = cost;
      options.report(
        `${count} webhooks, ${name}: ${rate.toFixed(0)}/s; for each delivery ${node.toFixed(0)} + ${database.toFixed(0)} µs of processor time, ` +
          `${rows.toFixed(1)} rows, ${indexInserts.toFixed(1)} index inserts, ${bytes.toFixed(0)} bytes of WAL`,
      );
    }
    const started = performance.now();
    await queue
      .publish(
        'Thousand',
        JSON.stringify({ large: randomBytes((largestPayload * 3) / 4).toString('base64') }),
      )
      .catch((error) => {
        options.report(error.message);
        largeMs = Infinity;
      });
    largeMs = Math.max(largeMs, performance.now() - started);
    await queue.stop();
  }
  const { warmUp: _warmUp, ...compared } = costs;
  return [
    ...Object.entries(compared).map(([name, [one, other]]) => {
      const ratio = (other.node + other.database) / (one.node + one.database);
      const show = ({ node, database }) => `${(node + database).toFixed(0)} µs`;
      return {
        figure: `${name}, each delivery, ${most} webhooks to ${few}: ${show(other)} to ${show(one)}`,
        required: `at most ${maxRatio}`,
        measured: ratio.toFixed(2),
        isMet: ratio <= maxRatio,
      };
    }),
    {
      figure: `publishing ${largestPayload / 1024} KiB to ${subscribers} webhooks`,
      required: `at most ${maxLargeMs} ms`,
      measured: `${largeMs.toFixed(0)} ms`,
      isMet: largeMs <= maxLargeMs,
    },
  ];
}
