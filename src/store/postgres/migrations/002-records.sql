-- The tables for the records in src/records.ts. Times are milliseconds since the epoch.

create table users (
  key text primary key, -- the name in lower case
  username text not null,
  role text not null,
  password_hash text not null,
  credential_id text not null,
  created_at bigint not null,
  last_sign_in bigint
);

create table tokens (
  key text primary key, -- SHA-256 of the token
  username text not null,
  credential_id text not null,
  expires bigint not null,
  binding json
);

create table folders (
  key text primary key,
  folder_name text not null,
  description text not null
);

create table services (
  key text primary key,
  folder_name text not null,
  service_name text not null,
  type text not null,
  description text not null,
  capabilities text not null,
  parent_type text not null,
  url text,
  access text not null,
  created_at bigint not null,
  updated_at bigint not null
);

create table uploads (
  key text primary key,
  item_name text not null,
  description text not null,
  date bigint not null,
  committed boolean not null,
  content_type text not null,
  size bigint not null
);

create table upload_contents (
  key text primary key,
  bytes bytea not null
);

create table jobs (
  key text primary key,
  number bigint not null unique,
  operation text not null,
  kind text not null,
  target_id text not null,
  installs json not null,
  "from" text not null,
  "to" text not null,
  state text not null,
  started_at bigint not null,
  ended_at bigint,
  started_by text not null,
  runner text not null,
  fence bigint not null,
  run_started_at bigint not null,
  announced boolean not null,
  next bigint not null,
  workloads_done bigint not null,
  done_before_run bigint not null,
  workloads bigint not null,
  cancelled_by text,
  reason text,
  reverting json,
  uploads json not null,
  last_message_at bigint not null
);

create unique index one_job_at_a_time on jobs (state) where state = 'in_progress';

-- Written once, when a job is accepted.
create table plans (
  key text primary key references jobs (key) deferrable initially deferred,
  steps json not null,
  workloads bigint not null,
  after json not null
);

create table messages (
  key text not null references jobs (key) deferrable initially deferred,
  number bigint not null,
  code bigint not null,
  message text not null,
  "when" bigint not null,
  primary key (key, number)
);

create table webhooks (
  key text primary key,
  name text not null,
  hook_url text not null,
  change_types json not null,
  service text,
  content_type text not null,
  active boolean not null,
  created_at bigint not null,
  updated_at bigint not null,
  deactivated_at bigint,
  deactivated_by text,
  deactivations bigint not null,
  "window" json,
  signature_key text not null,
  previous_keys text not null
);

-- Events that were published with an id, kept for a day to detect repetitions.
create table publications (
  key text primary key,
  deliveries bigint not null,
  published_at bigint not null
);

create table deliveries (
  key text collate "C" primary key,
  owner text collate "C" not null, -- the webhook
  event json not null,
  is_ping boolean not null,
  state text not null,
  created_at bigint not null,
  ended_at bigint,
  next_attempt_at bigint,
  -- Columns of every queue table. `due_at`: the earliest time to claim the row (null: finished). The others determine the order.
  due_at bigint,
  urgent boolean not null,
  dull boolean not null,
  placed bigint not null,
  finished bigint
);

create index deliveries_waiting on deliveries (owner, urgent, due_at, placed) where due_at is not null;
create index deliveries_unfinished on deliveries (placed) where due_at is not null;
create index deliveries_finished on deliveries (owner, dull desc, finished) where due_at is null;
create index deliveries_listed on deliveries (owner, placed);

create table attempts (
  key text collate "C" not null references deliveries (key) on delete cascade,
  number bigint not null,
  "when" bigint not null,
  duration_ms bigint not null,
  status bigint,
  error text,
  response text,
  primary key (key, number)
);
