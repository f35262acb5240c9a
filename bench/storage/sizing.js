// Measures what docs/operate/sizing.md computes with: the processor time of each kind of work with 1, 3 and 10
// processes on one database, what a process costs at rest, and the memory of a catalog.
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { processorMs } from '../processes.js';
import { startReceivers } from '../receivers.js';
import { createWebhooks, startServer, startServers } from '../server.js';
import { regular } from '../speed/catalogs.js';

const counts = [1, 3, 10];
const receiverCount = 32;
const clients = 16;
/** Publishers pause while this many deliveries are pending: they must not be faster than the deliveries. */
const maxPending = 1_600;
const catalogSizes = [10_000, 40_000, 100_000];
const restMs = 500;

const envelope =
  '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>' +
  '<GetServiceDescriptions xmlns="http://www.example.com/schemas/Product/10.0"/></s:Body></s:Envelope>';
const payload = JSON.stringify({ serviceName: 'Parcels', type: 'Map', note: 'n'.repeat(128) });

let changes = 0;
const changeSettings = (server) =>
  server.admin('services/webhooks/settings', { numberOfFailures: String(9_000 + ((changes += 1) % 1_000)) });
const publish = (server) =>
  server.admin('services/webhooks/publish', {
    changeType: 'ServiceUpdated',
    payload,
    eventId: randomUUID(),
  });

/**
 * Each kind of work: one operation of it, how many clients repeat it, and how many operations of each process come
 * before the measurement: until then, a process compiles its code. `idle` has no operation.
 */
const works = [
  { name: 'idle', clients: 0 },
  {
    name: 'SOAP read of 12 services',
    clients,
    warmUp: 3_000,
    work: (server) => server.askSoap('/services', envelope),
  },
  { name: 'sign-in', clients: 2, warmUp: 1, work: (server) => server.signIn() },
  { name: 'administrative write, one client', clients: 1, warmUp: 500, work: changeSettings },
  { name: 'administrative write, 16 clients', clients, warmUp: 500, work: changeSettings },
  { name: 'event, nobody subscribed', clients, warmUp: 2_000, work: publish },
];
const warmUpWithinMs = 60_000;

/** Repeats the work and returns the processor time and the log of the database for each operation. */
async function measure({ servers, databases, client, ms }, { clients: loops, warmUp, work, countOf }) {
  let operations = 0;
  let isOver = false;
  async function repeat(n) {
    const server = servers[n % servers.length];
    while (!isOver) {
      await work(server);
      operations += 1;
    }
  }
  const repeating = Promise.all(Array.from({ length: loops }, (_, n) => repeat(n)));
  repeating.catch(() => undefined);
  async function read() {
    const { rows } = await client.query("select pg_current_wal_lsn() - '0/0'::pg_lsn as bytes");
    return {
      at: performance.now(),
      operations: countOf?.() ?? operations,
      node: servers.map(({ pid }) => processorMs([pid])),
      database: databases.processorMs(),
      log: Number(rows[0].bytes),
    };
  }
  const begin = performance.now();
  const needed = loops === 0 ? 0 : warmUp * Math.min(loops, servers.length);
  while ((countOf?.() ?? operations) < needed && performance.now() - begin < warmUpWithinMs) await pause(20);
  const from = await read();
  await pause(ms);
  const to = await read();
  isOver = true;
  await repeating;
  const seconds = (to.at - from.at) / 1000;
  const count = loops === 0 ? seconds : to.operations - from.operations;
  const node = to.node.map((used, n) => used - from.node[n]);
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  return {
    rate: count / seconds,
    node: (1000 * sum(node)) / count,
    others: (1000 * sum(node.slice(1))) / count,
    database: (1000 * (to.database - from.database)) / count,
    log: (to.log - from.log) / count,
  };
}

/** Publishes events with 32 receivers each, and counts the requests that arrive. */
function deliveriesTo(receivers) {
  const before = receivers.received();
  const countOf = () => receivers.received() - before;
  let published = 0;
  async function work(server) {
    if (published * receiverCount - countOf() >= maxPending) return pause(2);
    published += 1;
    return publish(server);
  }
  return { clients, warmUp: 10_000, work, countOf };
}

const show = (name, count, { rate, node, others, database, log }) => ({
  figure: `${name}, ${count} ${count === 1 ? 'process' : 'processes'}`,
  measured: `${node.toFixed(0)} µs of Node (${others.toFixed(0)} of all but the first), ${database.toFixed(0)} µs and ${log.toFixed(0)} bytes of the database; ${rate.toFixed(0)}/s`,
});

async function measureWorks(databases, count, { ms, entry, report }) {
  const databaseUrl = await databases.create();
  const storeUrls = Array.from({ length: count }, () => databaseUrl);
  const servers = await startServers(count, { storeUrls, entry });
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const given = { servers, databases, client, ms };
  const rows = [];
  const add = (row) => {
    report(`${row.figure}: ${row.measured}`);
    rows.push(row);
  };
  for (const work of works) add(show(work.name, count, await measure(given, work)));
  const receivers = await startReceivers(receiverCount);
  await createWebhooks(servers[0], receivers.answering);
  add(show('delivery', count, await measure(given, deliveriesTo(receivers))));
  receivers.stop();
  const { rows: sessions } = await client.query(
    "select count(*)::int from pg_stat_activity where datname = current_database() and backend_type = 'client backend'",
  );
  add({
    figure: `at the end, ${count} ${count === 1 ? 'process' : 'processes'}`,
    measured: `${sessions[0].count - 1} connections; at most ${Math.max(...servers.map((server) => server.memory().resident)).toFixed(0)} MB resident`,
  });
  await client.end();
  await Promise.all(servers.map((server) => server.kill()));
  await databases.drop(databaseUrl);
  return rows;
}

async function measureCatalog(databases, services, { entry }) {
  const folder = await mkdtemp(join(tmpdir(), 'steward-sizing-'));
  const CATALOG_FILE = join(folder, 'catalog.json');
  await writeFile(CATALOG_FILE, JSON.stringify(regular(services / 100, 100)));
  const env = { CATALOG_FILE, MAX_SERVICES: '1000000', MAX_CATALOG_BYTES: '1000000000' };
  const storeUrl = await databases.create();
  const first = await startServer({ storeUrl, env, entry });
  await first.stop();
  // The second start reads the catalog from the database.
  const server = await startServer({ storeUrl, env, entry });
  await pause(restMs);
  const { resident } = server.memory();
  const { body } = await server.askSoap('/services', envelope);
  const row = {
    figure: `${services} services`,
    measured: `first start ${first.readyMs.toFixed(0)} ms, second ${server.readyMs.toFixed(0)} ms; ${resident.toFixed(0)} MB resident, ${server.memory().resident.toFixed(0)} MB after a list of all (${(body.length / 1e6).toFixed(1)} MB)`,
  };
  await server.stop();
  await databases.drop(storeUrl);
  await rm(folder, { recursive: true });
  return row;
}

export async function measureSizing({ databases, ms, entry, report }) {
  const rows = [];
  for (const count of counts) rows.push(...(await measureWorks(databases, count, { ms, entry, report })));
  for (const services of catalogSizes) {
    const row = await measureCatalog(databases, services, { entry });
    report(`${row.figure}: ${row.measured}`);
    rows.push(row);
  }
  return rows;
}
