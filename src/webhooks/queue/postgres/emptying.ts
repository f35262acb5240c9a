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

const batch = 1_000;

/** After this time, the rest is done in the background and the update returns. */
const waitMs = 2_000;

const isFree = 'q.claimed_by is null and q.webhook_id = $1 and q.number <= $2';

/** A deactivation does not discard pings. */
const countFree = `select count(*) as all, count(*) filter (where q.priority <> 0) as discarded from queue q where ${isFree}`;

/** Ends the oldest free deliveries except pings. The first of them, `$4` in number, are deleted, the others discarded. */
const discardStatement = `with gone as (
    delete from queue q where q.ctid = any(array(
      select q.ctid from queue q where ${isFree} and q.priority <> 0 order by q.priority, q.since, q.number limit ${batch}))
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
      (select q.ctid from queue q where ${isFree} limit ${batch})
      union all
      (select c.ctid from processes p join queue c on c.claimed_by = p.id
       where c.claimed_by is not null and c.webhook_id = $1 and c.number <= $2 limit ${batch}))) returning q.id, q.bytes),
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
  readonly onEmptied: (webhookId: string, emptied: Emptied) => void;
};

export class Emptier {
  readonly #options: EmptierOptions;

  constructor(options: EmptierOptions) {
    this.#options = options;
  }

  /** Resolves when all is done, or after two seconds. The count then includes what is left. */
  async empty(emptying: Emptying): Promise<void> {
    const { webhookId, upTo, discardedAt, count } = emptying;
    const lateAt = performance.now() + waitMs;
    const batches = discardedAt === undefined ? this.#delete(emptying) : this.#discard(emptying);
    while ((await batches.next()).done !== true) {
      if (performance.now() < lateAt) continue;
      const left = await this.#countFree(webhookId, upTo);
      count.value += discardedAt === undefined ? left.all : left.discarded;
      void this.#finish(batches);
      return;
    }
  }

  /** Deletes the finished deliveries of webhooks that do not exist. */
  async deleteOrphans(): Promise<void> {
    const rows = await this.#options.database.ask<{ webhook_id: string }>(selectOrphaned);
    for (const row of rows) await runAll(this.#deleteFinished(row.webhook_id, Number.MAX_SAFE_INTEGER));
  }

  async #finish(batches: AsyncGenerator<void>): Promise<void> {
    try {
      await runAll(batches);
    } catch {
      // The database is unavailable, or the store is closed: what is left is ended when it is claimed.
    }
  }

  async *#discard({ webhookId, upTo, discardedAt, count }: Emptying): AsyncGenerator<void> {
    const { database, keep } = this.#options;
    // Retention would remove these. It is faster to delete them at once.
    let surplus = (await this.#countFree(webhookId, upTo)).discarded - keep;
    for (let last = batch; last === batch;) {
      const values = [webhookId, upTo, discardedAt, Math.max(0, surplus)];
      const [emptied] = await database.write<Emptied>(discardStatement, values);
      last = this.#note(webhookId, emptied, count);
      surplus -= last;
      yield;
    }
  }

  async *#delete({ webhookId, upTo, count }: Emptying): AsyncGenerator<void> {
    for (let last = batch; last >= batch;) {
      const [emptied] = await this.#options.database.write<Emptied>(deletePending, [webhookId, upTo]);
      last = this.#note(webhookId, emptied, count);
      yield;
    }
    yield* this.#deleteFinished(webhookId, upTo);
  }

  async *#deleteFinished(webhookId: string, upTo: number): AsyncGenerator<void> {
    for (let last = batch; last === batch;) {
      const [deleted] = await this.#options.database.write<{ count: number }>(deleteFinished, [
        webhookId,
        upTo,
      ]);
      last = deleted?.count ?? 0;
      yield;
    }
  }

  async #countFree(webhookId: string, upTo: number): Promise<{ all: number; discarded: number }> {
    const [free] = await this.#options.database.ask<{ all: number; discarded: number }>(countFree, [
      webhookId,
      upTo,
    ]);
    return free ?? { all: 0, discarded: 0 };
  }

  #note(webhookId: string, emptied: Emptied | undefined, count: Count): number {
    if (!emptied) return 0;
    count.value += emptied.count;
    this.#options.onEmptied(webhookId, emptied);
    return emptied.count;
  }
}

async function runAll(batches: AsyncGenerator<void>): Promise<void> {
  let isDone = false;
  while (!isDone) isDone = (await batches.next()).done === true;
}
