-- What the store needs for itself, whatever is kept in it.

-- One row, locked by whoever changes anything: `version` counts the changes.
create table clock (
  id boolean primary key default true check (id),
  version bigint not null default 0,
  -- Changes up to this version are no longer listed.
  pruned_to bigint not null default 0,
  -- Sealed with the key that all processes share; null while there is none.
  seal text
);
insert into clock default values;

-- Which rows, cells and logs were changed, for the other processes' copies. Not what they are: that is read where it is kept.
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
  -- The version at which it was last changed.
  touched bigint not null default 0
);

-- How many finished rows of a queue each owner has: to count them would cost more than to remove one.
create table shelves (
  queue text collate "C" not null,
  owner text collate "C" not null,
  finished bigint not null,
  primary key (queue, owner)
);

-- Who has which row of a queue in hand. The number tells one claim of a row from the next.
create table claims (
  queue text collate "C" not null,
  key text collate "C" not null,
  number bigint not null generated always as identity,
  owner text collate "C" not null,
  process text collate "C" not null,
  primary key (queue, key)
);
create index claims_of_process on claims (process);

-- The processes at work, each alive until then unless it says so again. What a dead one has claimed is given free.
create table processes (
  id text primary key,
  -- Since when it has said so without a gap.
  since timestamptz not null default clock_timestamp(),
  alive_until timestamptz not null
);
