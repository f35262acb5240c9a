// A delivery queue in plain SQL, the baseline of bench/storage/deliveries.js. It claims, records and trims in
// batches and does nothing else: no signatures, no retries, no failure counts, no turns between receivers, no
// recovery of the deliveries of a dead process.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { Agent, request } from 'undici';

const [databaseUrl, processes, ...urls] = process.argv.slice(2);
/** As Steward: at most four requests to one receiver at the same time, over all processes. */
const concurrency = Math.ceil((4 * urls.length) / Number(processes));
const history = 100;
const smallestBatch = concurrency / 2;
const pollMs = 10;
const trimEveryMs = 1_000;

const tables = `
  create table if not exists event_ids (id text primary key, deliveries bigint not null, published_at bigint not null);
  create table if not exists deliveries (
    id bigint generated always as identity primary key, webhook int not null, event_id text not null, data text not null,
    state text not null, created_at bigint not null, ended_at bigint, attempts json, claimed_by text);
  create index if not exists waiting on deliveries (id) where state = 'pending' and claimed_by is null;
  create index if not exists finished on deliveries (webhook, ended_at desc) where state <> 'pending'`;

const publishing = `
  with remembered as (insert into event_ids values ($1, $2, $3) on conflict do nothing returning id)
  insert into deliveries (webhook, event_id, data, state, created_at)
  select n, $1, $4, 'pending', $3 from remembered, generate_series(0, $2::int - 1) n`;

const claiming = `
  update deliveries set claimed_by = $1 where id in (
    select id from deliveries where state = 'pending' and claimed_by is null order by id limit $2 for update skip locked)
  returning id, webhook, event_id, data, created_at`;

const recording = `
  update deliveries set state = 'delivered', ended_at = $3, claimed_by = null, attempts = done.attempts::json
  from unnest($1::bigint[], $2::text[]) done (id, attempts) where deliveries.id = done.id`;

const trimming = `
  delete from deliveries where id in (
    select beyond.id from generate_series(0, $1::int - 1) n cross join lateral (
      select id from deliveries where webhook = n and state <> 'pending' order by ended_at desc offset $2) beyond)`;

const self = randomUUID();
const pool = new pg.Pool({ connectionString: databaseUrl });
await pool.query(tables);

const run = (name, text, values) => pool.query({ name, text, values });

const dispatcher = new Agent();
const headers = { 'content-type': 'application/json', 'user-agent': 'Steward/bench' };

async function send(url, body) {
  const answer = await request(url, { method: 'POST', dispatcher, headers, body });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`a receiver answered ${answer.statusCode}`);
  return text;
}

let sending = 0;
let sent = [];

async function attempt({ id, webhook, event_id: eventId, data, created_at: timestamp }) {
  const when = Date.now();
  const response = await send(urls[webhook], JSON.stringify({ id: eventId, timestamp, webhook, data }));
  sending -= 1;
  sent.push({ id, attempts: [{ when, durationMs: Date.now() - when, status: 200, error: null, response }] });
}

async function claim() {
  for (;;) {
    const free = concurrency - sending;
    const { rows } = free < smallestBatch ? { rows: [] } : await run('claim', claiming, [self, free]);
    sending += rows.length;
    for (const row of rows) void attempt(row);
    if (rows.length === 0) await pause(free < smallestBatch ? 1 : pollMs);
  }
}

async function record() {
  for (;;) {
    const batch = sent;
    sent = [];
    if (batch.length === 0) await pause(1);
    else {
      const columns = [batch.map(({ id }) => id), batch.map(({ attempts }) => JSON.stringify(attempts))];
      await run('record', recording, [...columns, Date.now()]);
    }
  }
}

async function trim() {
  for (;;) {
    await pause(trimEveryMs);
    await run('trim', trimming, [urls.length, history]);
  }
}

/** Takes events over HTTP and sends the address to the parent. */
async function servePublishing() {
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8');
    incoming.on('data', (chunk) => (body += chunk));
    incoming.on('end', () => {
      const { eventId, data } = JSON.parse(body);
      run('publish', publishing, [eventId, urls.length, Date.now(), data]).then(
        () => response.end('{"status":"success"}'),
        (error) => response.writeHead(500).end(error.message),
      );
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.on('disconnect', () => process.exit());
  process.send(`http://127.0.0.1:${server.address().port}`);
}

void claim();
void record();
void trim();
await servePublishing();
