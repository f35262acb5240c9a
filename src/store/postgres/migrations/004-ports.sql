-- contract
-- The schema of 0.2.0. Replicated rows become JSON documents, and growing data gets tables that are read by key or page. 0.1.0 cannot run
-- on it, so all its processes must have stopped.

-- The newest contracting migration. A program that does not know it must not write.
alter table clock add column oldest_writer bigint not null default 0;

-- Replicated state. `kind` is the name of a table, or 'cell'. A removed row stays for some minutes, without its value, so that every process
-- learns of it.
create table state (
  kind text collate "C" not null,
  key text collate "C" not null,
  value json,
  version bigint not null,
  primary key (kind, key)
);
create index state_version on state (version);
create index state_kind on state (kind, version);
create index state_removed on state (version) where value is null and kind <> 'cell';

insert into state
select 'users', key, json_build_object('username', username, 'role', role, 'passwordHash', password_hash,
  'credentialId', credential_id, 'createdAt', created_at), version
from users, clock;

insert into state
select 'folders', key, json_build_object('folderName', folder_name, 'description', description), version from folders, clock;

insert into state
select 'services', key, json_build_object('folderName', folder_name, 'serviceName', service_name, 'type', type,
  'description', description, 'capabilities', capabilities, 'parentType', parent_type, 'url', url, 'access', access,
  'createdAt', created_at, 'updatedAt', updated_at), version
from services, clock;

insert into state
select 'webhooks', key, json_build_object('id', key, 'name', name, 'hookUrl', hook_url, 'changeTypes', change_types,
  'service', service, 'contentType', content_type, 'active', active, 'createdAt', created_at, 'updatedAt', updated_at,
  'deactivatedAt', deactivated_at, 'deactivatedBy', deactivated_by, 'deactivations', deactivations,
  'signatureKey', signature_key, 'previousKeys', previous_keys), version
from webhooks, clock;

insert into state select 'cell', key, value, version from cells, clock where key <> 'newestJob';

-- The failures of a webhook that count towards its deactivation. A row without a start is not a window.
create table failure_windows (
  webhook_id text collate "C" primary key,
  start bigint,
  count bigint
);
insert into failure_windows
select key, ("window" ->> 'start')::bigint, ("window" ->> 'count')::bigint from webhooks where "window" ->> 'start' is not null;

create table sign_ins (
  username text collate "C" primary key, -- in lower case
  at bigint not null
);
insert into sign_ins select key, last_sign_in from users where last_sign_in is not null;

alter table tokens rename to old_tokens;
create table tokens (
  hash text collate "C" primary key,
  username text collate "C" not null,
  credential_id text not null,
  created_at bigint not null,
  expires bigint not null,
  binding json
);
create index tokens_of_user on tokens (lower(username), created_at);
create index tokens_expiry on tokens (expires);
insert into tokens select key, username, credential_id, 0, expires, binding from old_tokens;

alter table messages rename to old_messages;
alter table jobs rename to old_jobs;
alter table plans rename to old_plans;

-- Every job except the newest, which is the cell `newestJob`.
create table jobs (
  id text collate "C" primary key,
  number bigint not null unique,
  job json not null
);
insert into jobs
select key, number, json_build_object('id', key, 'number', number, 'operation', operation, 'kind', kind, 'targetId', target_id,
  'installs', installs, 'from', "from", 'to', "to", 'state', state, 'startedAt', started_at, 'endedAt', ended_at,
  'startedBy', started_by, 'runner', runner, 'fence', fence, 'runStartedAt', run_started_at, 'announced', announced,
  'next', next, 'workloadsDone', workloads_done, 'doneBeforeRun', done_before_run, 'workloads', workloads,
  'cancelledBy', cancelled_by, 'reason', reason, 'reverting', reverting, 'uploads', uploads,
  'lastMessageAt', last_message_at, 'messageCount', (select count(*) from old_messages m where m.key = j.key))
from old_jobs j;
insert into state
select 'cell', 'jobBefore', job, version from jobs, clock
where job ->> 'state' <> 'cancelled' and number < (select max(number) from jobs) order by number desc limit 1;
insert into state select 'cell', 'newestJob', job, version from jobs, clock where number = (select max(number) from jobs);
delete from jobs where number = (select max(number) from jobs);

-- The plan of a job that is in progress or can be resumed.
create table plans (
  job_id text collate "C" primary key,
  plan json not null
);
insert into plans
select p.key, json_build_object('steps', p.steps, 'workloads', p.workloads, 'jobId', p.key, 'after', p.after)
from old_plans p join state s on s.kind = 'cell' and s.key = 'newestJob' and s.value ->> 'id' = p.key
where s.value ->> 'state' in ('in_progress', 'failed');

create table messages (
  job_id text collate "C" not null,
  number bigint not null,
  code bigint not null,
  message text not null,
  "when" bigint not null,
  primary key (job_id, number)
);
insert into messages select key, number, code, message, "when" from old_messages;

alter table uploads rename to old_uploads;
create table uploads (
  id text collate "C" primary key,
  placed bigint not null generated by default as identity,
  upload json not null,
  size bigint not null,
  content bytea not null
);
create table upload_totals (
  id boolean primary key default true check (id),
  count bigint not null,
  bytes bigint not null
);
insert into uploads (id, upload, size, content)
select key, json_build_object('itemID', key, 'itemName', item_name, 'description', description, 'date', date,
  'committed', committed, 'contentType', content_type, 'size', size), size, c.bytes
from old_uploads u join upload_contents c using (key) order by date;
insert into upload_totals (count, bytes) select count(*), coalesce(sum(size), 0) from uploads;

-- Event ids, kept for a day to recognise repeated events.
create table event_ids (
  id text collate "C" primary key,
  deliveries bigint not null,
  published_at bigint not null
);
create index event_ids_age on event_ids (published_at);
insert into event_ids select key, deliveries, published_at from publications;

alter table deliveries rename to old_deliveries;
create table deliveries (
  id text collate "C" primary key,
  webhook_id text collate "C" not null,
  event_id text not null,
  event_type text not null,
  event_at bigint not null,
  service text,
  data text not null,
  bytes bigint not null,
  is_ping boolean not null,
  state text not null,
  created_at bigint not null,
  ended_at bigint,
  attempts json not null,
  -- The order of claims: 0 ping, 1 retry, 2 first attempt; then the end of the last attempt, or the creation.
  priority smallint not null,
  since bigint not null,
  -- Discarded without an attempt. Retention removes these first.
  untried boolean not null,
  placed bigint not null generated by default as identity,
  -- The process that has claimed the delivery. The number identifies one claim.
  claimed_by text collate "C",
  claim bigint
);
insert into deliveries (id, webhook_id, event_id, event_type, event_at, service, data, bytes, is_ping, state, created_at, ended_at,
  attempts, priority, since, untried)
select d.key, d.owner, d.event ->> 'id', d.event ->> 'type', (d.event ->> 'timestamp')::bigint, d.event ->> 'service',
  d.event ->> 'data', octet_length(d.event ->> 'data'), d.is_ping, d.state, d.created_at, d.ended_at,
  coalesce(a.attempts, '[]'::json), case when d.is_ping then 0 when a.ended is not null then 1 else 2 end,
  coalesce(a.ended, d.created_at), d.state = 'discarded' and a.ended is null
from old_deliveries d left join lateral (
  select json_agg(json_build_object('when', a."when", 'durationMs', a.duration_ms, 'status', a.status, 'error', a.error,
    'response', a.response) order by a.number) as attempts, max(a."when" + a.duration_ms) as ended
  from attempts a where a.key = d.key) a on true
order by d.placed;
drop table changes, cells, queues, shelves, claims, users, old_tokens, folders, services, old_uploads, upload_contents, old_messages,
  old_plans, old_jobs, webhooks, publications, attempts, old_deliveries;

create index deliveries_free on deliveries (webhook_id, priority, since, placed) where state = 'pending' and claimed_by is null;
create index deliveries_claimed on deliveries (claimed_by, webhook_id) where claimed_by is not null;
create index deliveries_pending on deliveries (placed) where state = 'pending';
create index deliveries_finished on deliveries (webhook_id, untried, ended_at desc, placed desc) where state <> 'pending';
create index deliveries_listed on deliveries (webhook_id, placed);
create sequence claim_numbers;

-- How many deliveries are pending, and their bytes: the sum over all rows. Each process changes rows of its own, so no process waits for
-- another. The row of the process '' has the sum of processes that have ended.
create table pending_counts (
  process text collate "C" not null,
  -- The kind of statement that counted: publish, complete or update. Two kinds at the same moment do not wait for each other.
  statement text collate "C" not null,
  count bigint not null default 0,
  bytes bigint not null default 0,
  primary key (process, statement)
);
insert into pending_counts select '', '', count(*), coalesce(sum(bytes), 0) from deliveries where state = 'pending';
