// Discards the pending deliveries of a webhook that was deactivated, or deletes all deliveries of one that was deleted,
// in batches, so that no other write waits for long.
//
// The update that deactivates or deletes the webhook has committed before. If the process is killed meanwhile, the
// worker of another one discards or deletes what is left of the pending deliveries when it claims them, and
// `deleteOrphans` deletes the finished ones. If the webhook is activated again meanwhile, the worker may attempt some
// of them.
import { webhooks } from '../../webhook.ts';
import type { CompletingOptions } from './completing.ts';

export type Emptying = {
  readonly webhookId: string;
  /** The number of the last delivery that is concerned. */
  readonly upTo: number;
  /** Undefined: the deliveries are deleted. */
  readonly discardedAt: number | undefined;
};

/** What a batch has done: `count` deliveries, of which so many were pending. */
type Emptied = { readonly count: number; readonly pending: number; readonly bytes: number };

const batch = 500;

/** After this time, the rest is done in the background and the update returns. */
const waitMs = 1_000;

/** SQL condition: there is no webhook with this id. */
function isMissing(id: string): string {
  return `not exists (select from state s where s.kind = '${webhooks.name}' and s.key = ${id} and s.value is not null)`;
}

/** After a failover, the webhook may exist again. */
const isGone = isMissing('$1');

const isFree = 'q.claimed_by is null and q.webhook_id = $1 and q.number <= $2';

const discardPending = `with gone as (
    delete from queue q where q.ctid = any(array(
      select q.ctid from queue q where ${isFree} and q.priority <> 0
      limit ${batch} for update skip locked)) returning q.*),
  discarded as (
    insert into finished (number, created_at, id, webhook_id, event_type, state, is_ping, ended_at, attempts, status)
    select number, created_at, id, webhook_id, event_type, 'discarded', false, $3::bigint, attempts, status from gone)
  select count(*), count(*) as pending, coalesce(sum(bytes), 0)::bigint as bytes from gone`;

/** Deletes pending deliveries, free ones and those that a process has claimed. */
const deletePending = `with free as (
    select q.ctid from queue q where ${isFree} and ${isGone} limit ${batch} for update skip locked),
  claimed as (
    select q.ctid from processes p join queue q on q.claimed_by = p.id
    where q.claimed_by is not null and q.webhook_id = $1 and q.number <= $2 and ${isGone} limit ${batch} for update of q skip locked),
  gone as (
    delete from queue q where q.ctid = any(array(select ctid from free union all select ctid from claimed)) returning q.id, q.bytes),
  content as (delete from deliveries d where d.id = any(array(select id from gone)))
  select count(*), count(*) as pending, coalesce(sum(bytes), 0)::bigint as bytes from gone`;

const deleteFinished = `with gone as (
    delete from finished f where f.ctid = any(array(
      select f.ctid from finished f where f.webhook_id = $1 and f.number <= $2 and ${isGone} limit ${batch} for update skip locked)) returning f.id),
  content as (delete from deliveries d where d.id = any(array(select id from gone)))
  select count(*), 0 as pending, 0 as bytes from gone`;

/** The webhooks with finished deliveries that do not exist any more. */
const selectOrphaned = `with recursive w as (
    (select webhook_id from finished order by webhook_id limit 1)
    union all
    select n.webhook_id from w cross join lateral (
      select f.webhook_id from finished f where f.webhook_id > w.webhook_id order by f.webhook_id limit 1) n)
  select w.webhook_id from w where ${isMissing('w.webhook_id')}`;

type EmptierOptions = Pick<CompletingOptions, 'database' | 'runtime' | 'pending' | 'trimmer'> & {
  /** Logs an error of work that nobody waits for. */
  readonly onError: (error: unknown) => void;
};

export class Emptier {
  readonly #options: EmptierOptions;

  constructor(options: EmptierOptions) {
    this.#options = options;
  }

  /** Resolves when all are emptied, or after a second. */
  empty(webhooksToEmpty: readonly Emptying[]): Promise<void> {
    const lateAt = performance.now() + waitMs;
    return new Promise((resolve) => {
      const isLate = () => {
        if (performance.now() < lateAt) return false;
        resolve();
        return true;
      };
      void this.#emptyAll(webhooksToEmpty, isLate).catch(this.#options.onError).finally(resolve);
    });
  }

  /** Deletes the finished deliveries of webhooks that do not exist. */
  async deleteOrphans(stopping: AbortSignal): Promise<void> {
    const rows = await this.#options.database.ask<{ webhook_id: string }>(selectOrphaned);
    for (const { webhook_id: webhookId } of rows) {
      const emptying = { webhookId, upTo: Number.MAX_SAFE_INTEGER, discardedAt: undefined };
      await this.#repeat(deleteFinished, emptying, () => true, stopping);
    }
  }

  async #emptyAll(webhooksToEmpty: readonly Emptying[], isLate: () => boolean): Promise<void> {
    for (const emptying of webhooksToEmpty) {
      const isDeleted = emptying.discardedAt === undefined;
      for (const statement of isDeleted ? [deletePending, deleteFinished] : [discardPending])
        await this.#repeat(statement, emptying, isLate);
    }
  }

  /** A batch may be smaller than the others, because a worker has locked some of its deliveries. */
  async #repeat(
    statement: string,
    emptying: Emptying,
    isLate: () => boolean,
    stopping?: AbortSignal,
  ): Promise<void> {
    const { database, runtime, pending, trimmer } = this.#options;
    const { webhookId, upTo, discardedAt } = emptying;
    const values = [webhookId, upTo, ...(discardedAt === undefined ? [] : [discardedAt])];
    for (let last = batch; last > 0 && stopping?.aborted !== true;) {
      const started = performance.now();
      last = await pending.during(async () => {
        const [emptied] = await database.write<Emptied>(statement, values);
        if (!emptied) return 0;
        pending.add({ count: -emptied.pending, bytes: -emptied.bytes });
        if (discardedAt !== undefined && emptied.pending > 0)
          trimmer.noteDiscarded(webhookId, emptied.pending);
        return emptied.count;
      });
      // Pauses for as long as the batch took, so that other writes get the disk.
      if (isLate()) await runtime.sleep(performance.now() - started);
    }
  }
}
