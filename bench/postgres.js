// Measures the cost of the PostgreSQL store: deliveries per second compared with a queue in plain SQL, and frequent reads compared
// with the memory store. It uses the database of DATABASE_URL, or starts its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { Buffer } from 'node:buffer';
import { URL, URLSearchParams, fileURLToPath } from 'node:url';
import pg from 'pg';
import { Pool } from 'undici';
import { records } from '../dist/records.js';
import { openPostgresStore, readMigrations } from '../dist/store/postgres/store.js';
import { realRuntime } from '../dist/runtime.js';
import { createPostgresDirectory, createPostgresServer } from '../test/kit/postgres-server.js';
import { config, createEngine, eventDraft } from './engine.js';
import { compare, listening, printTable } from './kit.js';

const directory = await createPostgresDirectory();
const server = process.env.DATABASE_URL ? undefined : await createPostgresServer(directory);
const databaseUrl = process.env.DATABASE_URL ?? server.url;
const admin = new pg.Client(databaseUrl);
await admin.connect();

const migrations = await readMigrations(new URL('../dist/store/postgres/migrations/', import.meta.url));

const schemas = [];

async function createSchema() {
  const name = `bench_${process.pid}_${schemas.length}`;
  schemas.push(name);
  await admin.query(`create schema ${name}`);
  const url = new URL(databaseUrl);
  url.searchParams.set('options', `--search_path=${name}`);
  return url.href;
}

// The receivers answer immediately, so that the rounds measure only the engine and its store. The loop in plain SQL does the same
// work: it claims as many rows at a time, records the attempts, and deletes rows beyond the history limit.

const receivers = 64;
const events = 80;
const deliveryRounds = 7;

const perSecond = (count, started) => (count * 1000) / (performance.now() - started);

async function createEngineDrain() {
  const url = await createSchema();
  const store = await openPostgresStore({ url, records, migrations, runtime: realRuntime });
  const answer = { status: 200, body: Buffer.from('ok') };
  const registry = createEngine(() => undefined, { store });
  await registry.register(Array.from({ length: receivers }, (_, n) => `http://127.0.0.1:${1000 + n}/`));
  await registry.stop();
  async function drain() {
    let left = receivers * events;
    let finish;
    const done = new Promise((resolve) => (finish = resolve));
    const onAttempt = () => {
      left -= 1;
      if (left === 0) finish();
    };
    const httpClient = { post: () => Promise.resolve(answer), close: () => Promise.resolve() };
    const engine = createEngine(onAttempt, { store, httpClient });
    for (let n = 0; n < events; n += 1) await engine.publish();
    const started = performance.now();
    engine.start();
    await done;
    const rate = perSecond(receivers * events, started);
    await engine.stop();
    return rate;
  }
  return { drain, close: store.close };
}

const bareTables = `
  create table deliveries (
    key text primary key, owner text not null, event json not null, is_ping boolean not null, state text not null,
    created_at bigint not null, ended_at bigint, next_attempt_at bigint, claimed_by text);
  create index on deliveries (next_attempt_at) where next_attempt_at is not null and claimed_by is null;
  create index on deliveries (owner, ended_at desc) where next_attempt_at is null;
  create table attempts (
    key text not null references deliveries (key) on delete cascade, number bigint not null, "when" bigint not null,
    duration_ms bigint not null, status bigint, error text, response text, primary key (key, number))`;

const bareClaim = `update deliveries set claimed_by = $1 where key in (
    select key from deliveries where next_attempt_at <= $2 and next_attempt_at is not null and claimed_by is null
    order by next_attempt_at limit $3 for update skip locked)
  returning key, owner, event, is_ping, state, created_at`;

const bareRecord = `with done as (
    update deliveries set claimed_by = null, state = 'delivered', ended_at = $2, next_attempt_at = null
    where key = any($1::text[]) returning key)
  insert into attempts select key, 0, $2, 1, 200, null, 'ok' from done`;

const bareTrim = `delete from deliveries where key in (
    select d.key from unnest($1::text[]) t(owner) cross join lateral (
      select key from deliveries where owner = t.owner and next_attempt_at is null
      order by ended_at desc offset $2) d)`;

async function createBareDrain() {
  const url = await createSchema();
  const pool = new pg.Pool({ connectionString: url });
  await pool.query(bareTables);
  const event = JSON.stringify({ ...eventDraft, id: realRuntime.newId(), timestamp: realRuntime.now() });
  async function work() {
    for (;;) {
      const claim = {
        name: 'claim',
        text: bareClaim,
        values: ['bare', realRuntime.now(), config.webhookConcurrency],
      };
      const { rows } = await pool.query(claim);
      if (rows.length === 0) return;
      const keys = rows.map(({ key }) => key);
      await pool.query({ name: 'record', text: bareRecord, values: [keys, realRuntime.now()] });
      const owners = [...new Set(rows.map(({ owner }) => owner))];
      await pool.query({ name: 'trim', text: bareTrim, values: [owners, config.webhookHistory] });
    }
  }
  async function drain() {
    await pool.query(
      `insert into deliveries (key, owner, event, is_ping, state, created_at, next_attempt_at)
       select gen_random_uuid()::text, n % $1::int, $3, false, 'pending', $4, $4 from generate_series(1, $1::int * $2::int) n`,
      [receivers, events, event, realRuntime.now()],
    );
    const started = performance.now();
    await work();
    return perSecond(receivers * events, started);
  }
  return { drain, close: () => pool.end() };
}

async function compareDeliveries() {
  const bare = await createBareDrain();
  const engine = await createEngineDrain();
  const measured = [];
  for (let round = 0; round <= deliveryRounds; round += 1) {
    measured.push({ baseline: await bare.drain(), measured: await engine.drain() });
  }
  measured.shift(); // The first round is a warm-up.
  await bare.close();
  await engine.close();
  return compare(measured);
}

const readRounds = 9;
const roundMs = 1500;
const connections = 16;
const password = 'a password for benches';

async function startServer(env) {
  const entry = fileURLToPath(new URL('../dist/main.js', import.meta.url));
  const own = { PORT: '0', LOG_LEVEL: 'silent', ADMIN_PASSWORD: password };
  const child = spawn(process.execPath, [entry], { env: { PATH: process.env.PATH, ...own, ...env } });
  const address = await listening(child);
  const pool = new Pool(address, { connections });
  const signIn = await pool.request({
    path: '/tokens/generateToken',
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ username: 'admin', password }).toString(),
  });
  const { token } = await signIn.body.json();
  async function stop() {
    await pool.destroy();
    child.kill();
    await once(child, 'exit');
  }
  return { pool, token, stop };
}

const soap = (operation) =>
  `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><${operation} xmlns="http://www.example.com/schemas/Product/10.0"/></s:Body></s:Envelope>`;

const work = {
  'catalog reads': () => ({
    path: '/services',
    method: 'POST',
    headers: { 'content-type': 'text/xml' },
    body: soap('GetServiceDescriptions'),
  }),
  'token checks': (token) => ({
    path: '/admin/mode',
    method: 'GET',
    headers: { authorization: `Bearer ${token}` },
  }),
};

async function measureReads({ pool, token }, requestOf) {
  const started = performance.now();
  let count = 0;
  async function ask() {
    while (performance.now() - started < roundMs) {
      const { statusCode, body } = await pool.request(requestOf(token));
      await body.dump();
      if (statusCode !== 200) throw new Error(`unexpected status ${statusCode}`);
      count += 1;
    }
  }
  await Promise.all(Array.from({ length: connections }, ask));
  return perSecond(count, started);
}

async function compareReads() {
  const inMemory = await startServer({});
  const durable = await startServer({ STORE_URL: await createSchema() });
  const figures = [];
  for (const [name, requestOf] of Object.entries(work)) {
    const measured = [];
    for (let round = 0; round <= readRounds; round += 1) {
      const baseline = await measureReads(inMemory, requestOf);
      measured.push({ baseline, measured: await measureReads(durable, requestOf) });
    }
    measured.shift();
    figures.push({ name, ...compare(measured) });
  }
  await inMemory.stop();
  await durable.stop();
  return figures;
}

const deliveries = await compareDeliveries();
const reads = await compareReads();
for (const schema of schemas) await admin.query(`drop schema ${schema} cascade`);
await admin.end();
await server?.stop();
await rm(directory, { recursive: true, force: true });
printTable([
  {
    figure: `deliveries per second, ${deliveries.measured.toFixed(0)} compared with plain SQL's ${deliveries.baseline.toFixed(0)}`,
    required: 'at least 0.5',
    measured: deliveries.ratio.toFixed(3),
    isMet: deliveries.ratio >= 0.5,
  },
  ...reads.map(({ name, measured, baseline, ratio }) => ({
    figure: `${name} per second, ${measured.toFixed(0)} compared with memory's ${baseline.toFixed(0)}`,
    required: 'at least 0.9',
    measured: ratio.toFixed(3),
    isMet: ratio >= 0.9,
  })),
]);
