// Discards the pending deliveries of a webhook that was deactivated, or deletes all deliveries of one that was deleted,
// in batches, so that no other write waits for long.
//
// The update that deactivates or deletes the webhook has committed before. If the process is killed meanwhile, the
// worker of another one discards or deletes what is left of the pending deliveries when it claims them, and
// `deleteOrphans` deletes the finished ones. If the webhook is activated again meanwhile, the worker may attempt some
// of them.
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

/** What has become of pending deliveries: discarded, evicted because there were too many, or deleted. */
type Emptied = {
  readonly count: number;
  readonly bytes: number;
  readonly discarded: number;
  readonly evicted: number;
};

/** The place of a pending delivery in the order of its webhook. */
type Boundary = { readonly priority: number; readonly since: number; readonly number: number };

const batch = 500;

/** After this time, the rest is done in the background and the update returns. */
const waitMs = 1_000;

const isFree = 'q.claimed_by is null and q.webhook_id = $1 and q.number <= $2';

const isDiscarded = `${isFree} and q.priority <> 0`;

const countDiscarded = `select count(*) from queue q where ${isDiscarded}`;

const selectClaimed = `select q.ctid from processes p join queue q on q.claimed_by = p.id
  where q.claimed_by is not null and q.webhook_id = $1 and q.number <= $2`;

const countDeleted = `select (select count(*) from queue q where ${isFree}) + (select count(*) from (${selectClaimed}) c) as count`;

/** The newest delivery that retention would not keep. */
const selectBoundary = `select q.priority, q.since, q.number from queue q where ${isDiscarded}
  order by q.priority desc, q.since desc, q.number desc offset $3 limit 1`;

/** Ends free deliveries except pings, the oldest first: deletes those up to the boundary and discards the others. */
const discardStatement = `with gone as (
    delete from queue q where q.ctid = any(array(
      select q.ctid from queue q where ${isDiscarded} order by q.priority, q.since, q.number limit ${batch}
      for update skip locked)) returning q.*),
  ranked as materialized (
    select *, coalesce((priority, since, number) <= ($4::smallint, $5::bigint, $6::bigint), false) as is_evicted from gone),
  discarded as (
    insert into finished (number, created_at, id, webhook_id, event_type, state, is_ping, ended_at, attempts, status)
    select number, created_at, id, webhook_id, event_type, 'discarded', false, $3::bigint, attempts, status
    from ranked where not is_evicted),
  content as (delete from deliveries d where d.id = any(array(select id from ranked where is_evicted)))
  select count(*), coalesce(sum(bytes), 0)::bigint as bytes, count(*) filter (where is_evicted) as evicted,
    count(*) filter (where not is_evicted) as discarded
  from ranked`;

/** SQL condition: there is no webhook with this id. */
function isMissing(id: string): string {
  return `not exists (select from state s where s.kind = '${webhooks.name}' and s.key = ${id} and s.value is not null)`;
}

/** After a failover, the webhook may exist again. */
const isGone = isMissing('$1');

/** Deletes pending deliveries, free ones and those that a process has claimed. */
const deletePending = `with free as (select q.ctid from queue q where ${isFree} and ${isGone} limit ${batch} for update skip locked),
  claimed as (${selectClaimed} and ${isGone} limit ${batch} for update of q skip locked),
  gone as (
    delete from queue q where q.ctid = any(array(select ctid from free union all select ctid from claimed)) returning q.id, q.bytes),
  content as (delete from deliveries d where d.id = any(array(select id from gone)))
  select count(*), coalesce(sum(bytes), 0)::bigint as bytes, 0 as evicted, 0 as discarded from gone`;

const deleteFinished = `with gone as (
    delete from finished f where f.ctid = any(array(
      select f.ctid from finished f where f.webhook_id = $1 and f.number <= $2 and ${isGone} limit ${batch} for update skip locked)) returning f.id),
  content as (delete from deliveries d where d.id = any(array(select id from gone)))
  select count(*) from gone`;

/** The webhooks with finished deliveries that do not exist any more. */
const selectOrphaned = `with recursive w as (
    (select webhook_id from finished order by webhook_id limit 1)
    union all
    select n.webhook_id from w cross join lateral (
      select f.webhook_id from finished f where f.webhook_id > w.webhook_id order by f.webhook_id limit 1) n)
  select w.webhook_id from w where ${isMissing('w.webhook_id')}`;

type EmptierOptions = {
  readonly database: Database;
  /** How many discarded deliveries a webhook keeps. */
  readonly keep: number;
  readonly sleep: (ms: number) => Promise<void>;
  /** Runs a write that changes the number of pending deliveries. */
  readonly during: <T>(write: () => Promise<T>) => Promise<T>;
  readonly onEmptied: (webhookId: string, emptied: Emptied) => void;
  readonly onError: (error: unknown) => void;
};

export class Emptier {
  readonly #options: EmptierOptions;

  constructor(options: EmptierOptions) {
    this.#options = options;
  }

  /** Counts the deliveries, and resolves when all are emptied, or after a second. */
  async empty(webhooksToEmpty: readonly Emptying[]): Promise<void> {
    const lateAt = performance.now() + waitMs;
    for (const emptying of webhooksToEmpty) {
      const batches = this.#empty(emptying);
      try {
        // The first step counts.
        for (let isDone = false; !isDone;) {
          isDone = (await batches.next()).done === true;
          if (!isDone && performance.now() > lateAt) {
            void this.#finish(batches);
            break;
          }
        }
      } catch (error) {
        this.#options.onError(error);
      }
    }
  }

  /** Deletes the finished deliveries of webhooks that do not exist. */
  async deleteOrphans(stopping: AbortSignal): Promise<void> {
    const rows = await this.#options.database.ask<{ webhook_id: string }>(selectOrphaned);
    for (const row of rows) {
      const batches = this.#deleteFinished(row.webhook_id, Number.MAX_SAFE_INTEGER);
      await this.#finish(batches, stopping);
    }
  }

  /** Pauses after each batch for as long as it took, so that other writes get the disk. */
  async #finish(batches: AsyncGenerator<void>, stopping?: AbortSignal): Promise<void> {
    try {
      for (let isDone = false; !isDone && stopping?.aborted !== true;) {
        const started = performance.now();
        isDone = (await batches.next()).done === true;
        await this.#options.sleep(performance.now() - started);
      }
    } catch (error) {
      this.#options.onError(error);
    }
  }

  async *#empty({ webhookId, upTo, discardedAt, count }: Emptying): AsyncGenerator<void> {
    const { database, keep } = this.#options;
    const values = [webhookId, upTo];
    const statement = discardedAt === undefined ? countDeleted : countDiscarded;
    const [counted] = await database.ask<{ count: number }>(statement, values);
    count.value = counted?.count ?? 0;
    if (count.value > 0) yield;
    if (discardedAt === undefined) {
      yield* this.#repeat(webhookId, deletePending, values);
      yield* this.#deleteFinished(webhookId, upTo);
      return;
    }
    const [boundary] = await database.ask<Boundary>(selectBoundary, [...values, keep]);
    const { priority = null, since = null, number = null } = boundary ?? {};
    yield* this.#repeat(webhookId, discardStatement, [...values, discardedAt, priority, since, number]);
  }

  /** A batch may be smaller than the others, because a worker has locked some of its deliveries. */
  async *#repeat(webhookId: string, statement: string, values: readonly unknown[]): AsyncGenerator<void> {
    const { database, during, onEmptied } = this.#options;
    for (let last = batch; last > 0;) {
      last = await during(async () => {
        const [emptied] = await database.write<Emptied>(statement, values);
        if (emptied) onEmptied(webhookId, emptied);
        return emptied?.count ?? 0;
      });
      yield;
    }
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
