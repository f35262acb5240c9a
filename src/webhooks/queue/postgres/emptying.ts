// Discards the pending deliveries of a webhook that was deactivated, or deletes all deliveries of one that was deleted,
// in batches, so that no other write waits for long.
//
// The update that deactivates or deletes the webhook has committed before. If the process is killed meanwhile, the
// worker of another one discards or deletes what is left of the pending deliveries when it claims them, and
// `deleteOrphans` deletes the finished ones.
import type { Database } from '../../../store/postgres/database.ts';
import type { Count } from '../../../store/transaction.ts';
import { webhooks } from '../../webhook.ts';

export type Emptying = {
  readonly webhookId: string;
  /** The number of the last delivery that is concerned. */
  readonly upTo: number;
  /** Undefined: the deliveries are deleted. */
  readonly discardedAt: number | undefined;
  /** Gets the number of deliveries that were pending. */
  readonly count: Count;
};

/** What has become of pending deliveries. */
export type Emptied = { readonly count: number; readonly bytes: number; readonly evicted: number };

const batch = 500;

/** After this time, the rest is done in the background and the update returns. */
const waitMs = 1_000;

const isFree = 'q.claimed_by is null and q.webhook_id = $1 and q.number <= $2';

const isDiscarded = `${isFree} and q.priority <> 0`;

const countDiscarded = `select count(*) from queue q where ${isDiscarded}`;

const selectClaimed = `select q.ctid from processes p join queue q on q.claimed_by = p.id
  where q.claimed_by is not null and q.webhook_id = $1 and q.number <= $2`;

const countDeleted = `select (select count(*) from queue q where ${isFree}) + (select count(*) from (${selectClaimed}) c) as count`;

/** Ends the oldest free deliveries except pings. The first of them, `$4` in number, are deleted, the others discarded. */
const discardStatement = `with gone as (
    delete from queue q where q.ctid = any(array(
      select q.ctid from queue q where ${isDiscarded} order by q.priority, q.since, q.number limit ${batch}))
      and q.claimed_by is null returning q.*),
  ranked as materialized (
    select *, row_number() over (order by priority, since, number) <= $4::bigint as is_evicted from gone),
  discarded as (
    insert into finished (number, created_at, id, webhook_id, event_type, state, is_ping, ended_at, attempts, status)
    select number, created_at, id, webhook_id, event_type, 'discarded', false, $3::bigint, attempts, status
    from ranked where not is_evicted),
  content as (delete from deliveries d where d.id = any(array(select id from ranked where is_evicted)))
  select count(*), coalesce(sum(bytes), 0)::bigint as bytes, count(*) filter (where is_evicted) as evicted from ranked`;

/** Deletes pending deliveries, free ones and those that a process has claimed. */
const deletePending = `with gone as (
    delete from queue q where q.ctid = any(array(
      (select q.ctid from queue q where ${isFree} limit ${batch}) union all (${selectClaimed} limit ${batch}))) returning q.id, q.bytes),
  content as (delete from deliveries d where d.id = any(array(select id from gone)))
  select count(*), coalesce(sum(bytes), 0)::bigint as bytes, 0 as evicted from gone`;

const deleteFinished = `with gone as (
    delete from finished f where f.ctid = any(array(
      select f.ctid from finished f where f.webhook_id = $1 and f.number <= $2 limit ${batch})) returning f.id),
  content as (delete from deliveries d where d.id = any(array(select id from gone)))
  select count(*) from gone`;

/** The webhooks with finished deliveries that do not exist any more. */
const selectOrphaned = `with recursive w as (
    (select webhook_id from finished order by webhook_id limit 1)
    union all
    select n.webhook_id from w cross join lateral (
      select f.webhook_id from finished f where f.webhook_id > w.webhook_id order by f.webhook_id limit 1) n)
  select w.webhook_id from w
  where not exists (select from state s where s.kind = '${webhooks.name}' and s.key = w.webhook_id and s.value is not null)`;

type EmptierOptions = {
  readonly database: Database;
  /** How many discarded deliveries a webhook keeps. */
  readonly keep: number;
  readonly sleep: (ms: number) => Promise<void>;
  readonly onEmptied: (webhookId: string, emptied: Emptied) => void;
};

export class Emptier {
  readonly #options: EmptierOptions;

  constructor(options: EmptierOptions) {
    this.#options = options;
  }

  /** Counts the deliveries, and resolves when all is done, or after a second. */
  async empty({ webhookId, upTo, discardedAt, count }: Emptying): Promise<void> {
    const isDeleted = discardedAt === undefined;
    const statement = isDeleted ? countDeleted : countDiscarded;
    const [counted] = await this.#options.database.ask<{ count: number }>(statement, [webhookId, upTo]);
    count.value = counted?.count ?? 0;
    const lateAt = performance.now() + waitMs;
    const batches = isDeleted
      ? this.#delete(webhookId, upTo)
      : this.#discard(webhookId, upTo, { at: discardedAt, count: count.value });
    while ((await batches.next()).done !== true) {
      if (performance.now() < lateAt) continue;
      void this.#finish(batches);
      return;
    }
  }

  /** Deletes the finished deliveries of webhooks that do not exist. */
  async deleteOrphans(): Promise<void> {
    const rows = await this.#options.database.ask<{ webhook_id: string }>(selectOrphaned);
    for (const row of rows) await this.#finish(this.#deleteFinished(row.webhook_id, Number.MAX_SAFE_INTEGER));
  }

  /** Pauses after each batch for as long as it took, so that other writes get the disk. */
  async #finish(batches: AsyncGenerator<void>): Promise<void> {
    try {
      for (let isDone = false; !isDone;) {
        const started = performance.now();
        isDone = (await batches.next()).done === true;
        await this.#options.sleep(performance.now() - started);
      }
    } catch {
      // The database is unavailable, or the store is closed: what is left is ended when it is claimed.
    }
  }

  async *#discard(
    webhookId: string,
    upTo: number,
    { at, count }: { readonly at: number; readonly count: number },
  ): AsyncGenerator<void> {
    // Retention would remove these. It is faster to delete them at once.
    let surplus = count - this.#options.keep;
    // A batch may be smaller than the others, because a worker has claimed some of its deliveries meanwhile.
    for (let last = batch; last > 0;) {
      const values = [webhookId, upTo, at, Math.max(0, surplus)];
      last = await this.#run(webhookId, discardStatement, values);
      surplus -= last;
      yield;
    }
  }

  async *#delete(webhookId: string, upTo: number): AsyncGenerator<void> {
    for (let last = batch; last > 0;) {
      last = await this.#run(webhookId, deletePending, [webhookId, upTo]);
      yield;
    }
    yield* this.#deleteFinished(webhookId, upTo);
  }

  async #run(webhookId: string, statement: string, values: readonly unknown[]): Promise<number> {
    const [emptied] = await this.#options.database.write<Emptied>(statement, values);
    if (!emptied) return 0;
    this.#options.onEmptied(webhookId, emptied);
    return emptied.count;
  }

  async *#deleteFinished(webhookId: string, upTo: number): AsyncGenerator<void> {
    for (let last = batch; last > 0;) {
      const [deleted] = await this.#options.database.write<{ count: number }>(deleteFinished, [
        webhookId,
        upTo,
      ]);
      last = deleted?.count ?? 0;
      yield;
    }
  }
}
