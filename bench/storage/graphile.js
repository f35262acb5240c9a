// A delivery queue on graphile-worker, for bench/storage/deliveries.js. Its options are the defaults, except as
// many jobs at the same time as Steward, and the number of connections that its documentation recommends for them.
import { Logger, run } from 'graphile-worker';
import pg from 'pg';
import { concurrencyOf, send, servePublishing } from './peer.js';

const [databaseUrl, processes, ...urls] = process.argv.slice(2);
const concurrency = concurrencyOf(urls.length, Number(processes));

const pool = new pg.Pool({ connectionString: databaseUrl, max: concurrency + 2 });
pool.on('error', () => undefined);
pool.on('connect', (client) => client.on('error', () => undefined));
await pool.query('create table if not exists event_ids (id text primary key, published_at bigint not null)');
await run({
  pgPool: pool,
  concurrency,
  noHandleSignals: true,
  logger: new Logger(() => () => undefined),
  taskList: { deliver: ({ url, body }) => send(url, body).then(() => undefined) },
});

const remembering = 'insert into event_ids values ($1, $2) on conflict do nothing returning id';
const adding = `
  select graphile_worker.add_jobs(array_agg(json_populate_record(null::graphile_worker.job_spec, spec)))
  from json_array_elements($1::json) spec`;

await servePublishing(async (eventId, data) => {
  const timestamp = Date.now();
  const specs = urls.map((url, webhook) => {
    const body = JSON.stringify({ id: eventId, timestamp, webhook, data });
    return { identifier: 'deliver', payload: { url, body } };
  });
  const client = await pool.connect();
  await client.query('begin');
  const { rowCount } = await client.query(remembering, [eventId, timestamp]);
  if (rowCount === 1) await client.query(adding, [JSON.stringify(specs)]);
  await client.query('commit');
  client.release();
});
