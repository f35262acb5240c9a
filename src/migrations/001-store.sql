-- What the store needs for itself, whatever is kept in it.

-- One row, locked by whoever changes anything: `version` counts the changes.
create table clock (
  id boolean primary key default true check (id),
  version bigint not null default 0,
  -- Changes up to this version are no longer listed.
  pruned_to bigint not null default 0
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

create sequence claims;

-- The processes at work, each alive until then unless it says so again. What a dead one has claimed is given free.
create table processes (
  id text primary key,
  alive_until timestamptz not null
);
