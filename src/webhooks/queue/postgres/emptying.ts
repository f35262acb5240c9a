// Discards the pending deliveries of a webhook that was deactivated, or deletes all deliveries of one that was deleted,
// in batches, so that no other write waits for long.
//
// The update that deactivates or deletes the webhook notes in `emptied` up to which number its deliveries are concerned.
// No process claims those any more, also if the webhook is activated again. The process of the update empties the
// webhook after the commit. Every process looks for notes every two seconds, so what a killed one leaves is emptied too.
// A delivery that is published at the same moment may have a higher number: the worker then discards or deletes it.
import type { CompletingOptions } from './completing.ts';
import { countHours } from './history.ts';
import { moved } from './rows.ts';

/** What a batch has done to the pending deliveries of a webhook. */
type Emptied = {
  readonly webhookId: string;
  readonly count: number;
  readonly bytes: number;
  readonly areDiscarded: boolean;
  /** The events of deliveries that were deleted. */
  readonly events: readonly number[] | null;
};

const batch = 500;

/** After this time, the rest is done in the background and the update returns. */
const waitMs = 1_000;

/** SQL condition: every event is committed that was published while the webhook of the note `e` existed. */
const isSettled = `e.noted_at < clock_timestamp() - interval '1 minute'`;

/** SQL condition: the note `e` concerns the delivery `q`, which no process has claimed. */
const isConcerned = `q.claimed_by is null and q.webhook_id = e.webhook_id and q.number <= e.up_to
  and (e.discarded_at is null or q.priority <> 0)`;

const discardedRows = `select webhook_id, 'discarded' as state, discarded_at as ended_at, null::bigint as duration_ms
  from gone where discarded_at is not null`;

/** Deletes also pending deliveries that a process has claimed. */
const emptyStatement = `with free as (
    select q.ctid from emptied e cross join lateral (
      select q.ctid from queue q where ${isConcerned} limit ${batch} for update skip locked) q
    limit ${batch}),
  claimed as (
    select q.ctid from processes p join queue q on q.claimed_by = p.id join emptied e on e.webhook_id = q.webhook_id
    where q.claimed_by is not null and q.number <= e.up_to and e.discarded_at is null limit ${batch} for update of q skip locked),
  gone as (
    delete from queue q where q.ctid = any(array(select ctid from free union all select ctid from claimed))
    returning q.*, (select e.discarded_at from emptied e where ${isConcerned} order by e.up_to limit 1) as discarded_at),
  discarded as (
    insert into finished (${moved()}, state, ended_at, is_ping, attempts, status)
    select ${moved()}, 'discarded', discarded_at, false, attempts, status from gone where discarded_at is not null),
  ${countHours('counted', discardedRows, 'statement')},
  removed as (
    delete from finished f where f.ctid = any(array(
      select f.ctid from emptied e cross join lateral (
        select f.ctid from finished f where f.webhook_id = e.webhook_id and (f.number <= e.up_to or ${isSettled})
        limit ${batch} for update skip locked) f
      where e.discarded_at is null limit ${batch})) returning f.event_number)
  select webhook_id as "webhookId", count(*), sum(bytes)::bigint as bytes, discarded_at is not null as "areDiscarded",
    array_agg(event_number::float8) filter (where discarded_at is null) as events
  from gone group by webhook_id, discarded_at is not null
  union all select '', 0, 0, false, array_agg(event_number::float8) from removed having count(*) > 0`;

/** Other processes may have locked the deliveries that a batch has left. */
const endStatement = `delete from emptied e
  where (select count(*) from (select from queue q where ${isConcerned} limit 1) q) = 0 and (e.discarded_at is not null
    or (${isSettled} and (select count(*) from (select from finished f where f.webhook_id = e.webhook_id limit 1) f) = 0))`;

type EmptierOptions = Pick<CompletingOptions, 'database' | 'runtime' | 'pending' | 'trimmer' | 'unused'> & {
  /** Logs an error of work that nobody waits for. */
  readonly onError: (error: unknown) => void;
};

export class Emptier {
  readonly #options: EmptierOptions;

  constructor(options: EmptierOptions) {
    this.#options = options;
  }

  /** Resolves when all webhooks are emptied, or after a second. */
  empty(): Promise<void> {
    const { runtime, onError } = this.#options;
    const lateAt = runtime.now() + waitMs;
    return new Promise((resolve) => {
      const isLate = () => {
        if (runtime.now() < lateAt) return false;
        resolve();
        return true;
      };
      void this.#emptyAll(isLate).catch(onError).finally(resolve);
    });
  }

  /** Empties what other processes have left. */
  async emptyRest(stopping: AbortSignal): Promise<void> {
    const { database } = this.#options;
    const [note] = await database.ask('select from emptied limit 1');
    if (!note) return;
    await this.#emptyAll(() => true, stopping);
  }

  async #emptyAll(isLate: () => boolean, stopping?: AbortSignal): Promise<void> {
    const { database, runtime, pending, trimmer, unused } = this.#options;
    for (let found = 1; found > 0 && stopping?.aborted !== true;) {
      const started = performance.now();
      found = await pending.during(async () => {
        const emptied = await database.write<Emptied>(emptyStatement);
        for (const { webhookId, count, bytes, areDiscarded, events } of emptied) {
          unused.note(events ?? []);
          pending.add({ count: -count, bytes: -bytes });
          if (areDiscarded) trimmer.noteDiscarded(webhookId, count);
        }
        return emptied.length;
      });
      // Pauses for as long as the batch took, so that other writes get the disk.
      if (isLate()) await runtime.sleep(performance.now() - started);
    }
    await database.write(endStatement);
  }
}
