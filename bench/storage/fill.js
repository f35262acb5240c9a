// Fills the tables of a database that Steward has created. Only this file knows their columns.
import { randomUUID } from 'node:crypto';

export async function fillEventIds(client, count, publishedAt) {
  await client.query(
    `insert into event_ids (id, deliveries, published_at)
     select 'event-' || n || '-0123456789abcdef', 20, $2 from generate_series(1, $1::bigint) n`,
    [count, publishedAt],
  );
}

/** A hundred tokens for each user, the most that a user may have by default. */
export async function fillTokens(client, count, expires) {
  await client.query(
    `insert into state (kind, key, value, version)
     select 'tokens', hash, json_build_object('hash', hash, 'id', gen_random_uuid(), 'username', 'user' || n / 100,
       'createdAt', $2::bigint - 3600000, 'expires', $2::bigint,
       'binding', null, 'address', '192.0.2.' || n % 256, 'userAgent', $3::text, 'lastUsedAt', $2::bigint - 3600000), version
     from clock, generate_series(1, $1::bigint) n
     cross join lateral (select rtrim(translate(encode(sha256(n::text::bytea), 'base64'), '+/', '-_'), '=') as hash) h`,
    [count, expires, 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'],
  );
}

const finishedJob = (at) => ({
  operation: 'upgrade',
  kind: 'release',
  targetId: 'rel_17022022_1250',
  hops: { all: [], done: 1, installedAt: { rel_17022022_1250: at + 60_000 } },
  from: '10.9.1.1',
  to: '11.0.0.2',
  state: 'success',
  startedAt: at,
  endedAt: at + 60_000,
  startedBy: 'admin',
  runner: randomUUID(),
  fence: 1,
  runStartedAt: at,
  announced: true,
  next: 120,
  workloadsDone: 60,
  workloads: 60,
  cancelledBy: null,
  reason: null,
  reverting: null,
  uploads: [],
  lastMessageAt: at + 60_000,
});

export async function fillJobs(client, count, messagesPerJob, at) {
  const job = { ...finishedJob(at), messageCount: messagesPerJob };
  await client.query(
    `insert into jobs (id, number, installed, job)
     select 'job-' || n, n, '{rel_17022022_1250}', ($2::jsonb || jsonb_build_object('id', 'job-' || n, 'number', n))::json
     from generate_series(1, $1::bigint) n`,
    [count, JSON.stringify(job)],
  );
  await client.query(
    `insert into messages (job_id, number, code, message, "when")
     select 'job-' || n, m, 2038, 'The workload MAP_SERVER_' || m || ' was updated with the image map-server:11.0.0.', $3
     from generate_series(1, $1::bigint) n, generate_series(0, $2::bigint - 1) m`,
    [count, messagesPerJob, at],
  );
}

export async function fillDeliveries(client, webhookIds, count, at) {
  await client.query(
    `create temp table filled as
     select gen_random_uuid()::text as id, nextval('delivery_numbers') as number, nextval('delivery_numbers') as event_number, ($2::text[])[1 + n % cardinality($2::text[])] as webhook_id,
       'event-' || n as event_id, 'ServiceUpdated' as type, $3::bigint as at, 'delivered' as state, 200 as status
     from generate_series(1, $1::bigint) n`,
    [count, webhookIds, at],
  );
  await insertFilled(client);
}

/** Pending deliveries of one webhook, which are due. */
export async function fillPendingDeliveries(client, webhookId, count, at) {
  await client.query(
    `create temp table filled as
     select gen_random_uuid()::text as id, nextval('delivery_numbers') as number, nextval('delivery_numbers') as event_number, $2::text as webhook_id, 'event-' || n as event_id,
       'ServiceUpdated' as type, $3::bigint as at, 'pending' as state, 0 as status
     from generate_series(1, $1::bigint) n`,
    [count, webhookId, at],
  );
  await insertFilled(client, null);
}

/**
 * Deliveries in all states, of twenty types and one rare one, created between `from` and `to`. One of a thousand
 * has the rare status 418, and those are of the rare type. Another process has claimed the pending ones.
 */
export async function fillVariedDeliveries(client, webhookIds, count, { from, to }) {
  await client.query(
    `create temp table filled as
     select gen_random_uuid()::text as id, nextval('delivery_numbers') as number, nextval('delivery_numbers') as event_number,
       ($2::text[])[1 + abs(hashint8(n)) % cardinality($2::text[])] as webhook_id, 'event-' || n as event_id, type, at, state, status
     from generate_series(1, $1::bigint) n
     cross join lateral (select $3::bigint + n * (($4::bigint - $3::bigint) / $1::bigint) as at,
       case when n % 1000 = 0 then 'Rare' else 'Type' || least(19, (n * 31) % 40) end as type,
       case n % 100 when 0 then 'failed' when 1 then 'pending' when 2 then 'discarded' when 3 then 'missed' when 4 then 'missed'
         else case when n % 10 = 5 then 'failed' else 'delivered' end end as state) v
     cross join lateral (select case when n % 1000 = 0 then 418 when state = 'delivered' then 200 when state = 'failed' then 503
         else 0 end as status) s`,
    [count, webhookIds, from, to],
  );
  await client.query(
    `insert into processes (id, alive_until) values ('bench', clock_timestamp() + interval '1 day')`,
  );
  await insertFilled(client);
}

async function insertFilled(client, claimedBy = 'bench') {
  const data = JSON.stringify({ folderName: 'Planning', serviceName: 'Parcels', note: 'n'.repeat(128) });
  await client.query(
    `insert into events (number, id, type, at, data)
     select event_number, event_id, type, at, $1 from filled`,
    [data],
  );
  await client.query(
    `insert into queue (created_at, number, event_number, is_late, id, webhook_id, event_type, bytes, priority, since, status, claimed_by, claim)
     select at, number, event_number, false, id, webhook_id, type, octet_length($1), 2, at, status, $2::text,
       case when $2::text <> '' then nextval('claim_numbers') end
     from filled where state = 'pending'`,
    [data, claimedBy],
  );
  await client.query(
    `insert into finished (created_at, number, event_number, is_late, id, webhook_id, event_type, state, is_ping, ended_at, attempts, status)
     select at, number, event_number, false, id, webhook_id, type, state, false, at + 12, case when state = 'missed' then '[]'::json
       else json_build_array(json_build_object('when', at, 'durationMs', 12, 'status', nullif(status, 0), 'error', null, 'response', 'ok')) end,
       status
     from filled where state <> 'pending'`,
  );
  await client.query('drop table filled');
}

/** Autovacuum would do this a while later, during the measurement. */
export async function settle(client) {
  await client.query('vacuum analyze');
  await client.query('checkpoint');
}

/**
 * What retention must remove: event ids older than a day, expired tokens, and the messages of jobs beyond
 * `jobHistory`.
 */
export async function countExpired(client, jobHistory) {
  const { rows } = await client.query(
    `select (select count(*) from event_ids where published_at <= $1::bigint - 86400000)::int as "expired event ids",
       (select count(*) from state where kind = 'tokens' and (value ->> 'expires')::bigint <= $1::bigint)::int as "expired tokens",
       greatest(0, (select count(distinct job_id) from messages) - $2::int)::int as "jobs with messages beyond JOB_HISTORY"`,
    [Date.now(), jobHistory],
  );
  return rows[0];
}

/**
 * Entries of 50 users and 40 operations between `from` and `to`. One of a hundred has failed, and one of ten was
 * refused.
 */
export async function fillAudit(client, count, { from, to }) {
  await client.query(
    `insert into audit (id, at, "user", role, address, operation, target, outcome, code, count, changes)
     select gen_random_uuid()::text, $2::bigint + n * (($3::bigint - $2::bigint) / $1::bigint), 'user' || n % 50,
       'administrator', '192.0.2.' || n % 256, 'services/' || (n * 7919) % 40 || '/edit', 'services/Planning/Parcels.MapServer',
       case when n % 100 = 0 then 'failed' when n % 10 = 1 then 'refused' else 'success' end, 200, 1,
       '[{"field":"description","before":"The parcels of the town.","after":"The parcels of the town and its surroundings."}]'
     from generate_series(1, $1::bigint) n`,
    [count, from, to],
  );
}

export async function countExpiredAudit(client, before) {
  const { rows } = await client.query('select count(*)::int as "expired entries" from audit where at < $1', [
    before,
  ]);
  return rows[0];
}
