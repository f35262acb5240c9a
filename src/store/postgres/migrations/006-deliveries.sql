-- contract
-- Finding deliveries by filter, and recovering those that did not reach their receiver. The program before writes the column `untried`.

alter table deliveries
  add column redelivery_of text collate "C",
  add column redelivered_as text collate "C",
  -- The HTTP status of the last attempt; 0 if there was no answer. An index finds 0 in order, but not null.
  add column status smallint not null default 0;
update deliveries set status = (attempts -> -1 ->> 'status')::smallint where attempts -> -1 ->> 'status' is not null;

drop index deliveries_pending, deliveries_finished, deliveries_listed;
alter table deliveries drop column untried;

-- Retention counts those that can be recovered apart from the others. An expression instead of a generated column: PostgreSQL would compute
-- the column in every statement that adds or completes deliveries.
create index deliveries_retained on deliveries
  (webhook_id, (state in ('failed', 'missed', 'discarded') and not is_ping and redelivered_as is null), ended_at desc, placed desc)
  where state <> 'pending';
-- A page is read state by state, newest first. With the included columns, PostgreSQL checks other filters without reading the rows. Each
-- claim writes every index of pending deliveries again, so only two indexes have them. Filters of pending deliveries, except by event, read all
-- of these.
create index deliveries_of_state on deliveries (state, created_at, placed) include (webhook_id, event_type, status);
create index deliveries_of_webhook on deliveries (webhook_id, state, created_at, placed) include (event_type, status)
  where state <> 'pending';
create index deliveries_of_type on deliveries (event_type, state, created_at, placed) include (status) where state <> 'pending';
create index deliveries_of_status on deliveries (status, state, created_at, placed) where state <> 'pending';
create index deliveries_of_event on deliveries (event_id);
