-- The tables of the store itself, independent of the stored data.

-- One row that every update locks. `version` counts the committed batches of updates.
create table clock (
  id boolean primary key default true check (id),
  version bigint not null default 0,
  -- The entries in `changes` up to this version have been deleted.
  pruned_to bigint not null default 0,
  -- An empty text, encrypted with the secret key that all processes share; null while none is configured.
  seal text
);
insert into clock default values;

-- The names and keys of changed rows, cells and logs, without their values. Other processes read those rows to update their copies.
create table changes (
  version bigint not null,
  name text not null,
  key text not null,
  primary key (version, name, key)
);

create table cells (
  key text primary key,
  value json
);

create table queues (
  name text primary key,
  unfinished bigint not null default 0,
  -- The version of the last change.
  touched bigint not null default 0
);

-- The number of finished rows of each owner in a queue. Counting them in the queue table would cost more than removing one.
create table shelves (
  queue text collate "C" not null,
  owner text collate "C" not null,
  finished bigint not null,
  primary key (queue, owner)
);

-- The process that has claimed a row of a queue. The number identifies one claim of the row.
create table claims (
  queue text collate "C" not null,
  key text collate "C" not null,
  number bigint not null generated always as identity,
  owner text collate "C" not null,
  process text collate "C" not null,
  primary key (queue, key)
);
create index claims_of_process on claims (process);

-- The running processes. Each renews its lease; when the lease has expired, other processes delete the process and its claims.
create table processes (
  id text primary key,
  -- Since when the lease has been renewed without a gap.
  since timestamptz not null default clock_timestamp(),
  alive_until timestamptz not null
);
