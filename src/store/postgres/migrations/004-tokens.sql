-- Null: a process of 0.1.0 issued the token, before this migration or while it still ran after it.
alter table tokens add column created_at bigint;
