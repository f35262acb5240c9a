-- The bytes of the unfinished rows of each queue.
alter table queues add column unfinished_bytes bigint not null default 0;
