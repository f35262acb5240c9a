-- What each delivery adds to the bytes of unfinished rows: the size of its payload as UTF-8.
alter table deliveries add column bytes bigint not null default 0;
update deliveries set bytes = octet_length(event ->> 'data');
update queues set unfinished_bytes = (
  select coalesce(sum(bytes), 0) from deliveries where due_at is not null
) where name = 'deliveries';
