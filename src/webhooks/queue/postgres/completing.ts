// Completes claimed deliveries, and counts failures towards the deactivation of their webhooks.
//
// Calls are collected into batches, and a batch is one statement that commits by itself, as in publishing.ts. Only
// failures that count need a transaction: it locks the failure windows of their webhooks, and the claims, until the
// new counts are stored.
import { Batcher, attempt } from '../../../store/postgres/batcher.ts';
import { type Client, isAborted, query } from '../../../store/postgres/database.ts';
import type { Reader } from '../../../store/state.ts';
import type { FailureWindow } from '../../sending/failure-window.ts';
import type { Completed, Completion } from '../delivery-queue.ts';
import type { Delivery } from '../delivery.ts';
import type { ClaimsOptions } from './claims.ts';
import { lockFailureWindows, setFailureWindows } from './failure-windows.ts';
import type { PublishingOptions } from './publishing.ts';
import {
  type Held,
  claimValues,
  completeDeliveries,
  completeParameters,
  completeValues,
  isHeld,
  parametersAfter,
} from './rows.ts';
import { anyVersion, areOutcomesOutdated } from './staleness.ts';

export type CompletingOptions = PublishingOptions & ClaimsOptions;

type Complete = { readonly claimed: Delivery; readonly rule: (reader: Reader) => Completion };

type Ended = Held & { readonly item: Complete };

type Counted = Ended & { readonly count: NonNullable<Extract<Completion, { count?: unknown }>['count']> };

/** The state on which a rule ran. */
type SeenState = { readonly seen: number; readonly server: string };

type Results = Map<Complete, Completed | Error | undefined>;

const maxAtOnce = 500;
const maxAborts = 10;

const isCurrent = 'not (select is_outdated from current)';

const completeStatement = (() => {
  const p = parametersAfter(
    completeParameters,
    'times',
    'numbers',
    'claims',
    'sinces',
    'seen',
    'server',
    'known',
  );
  return `with current as (select ${areOutcomesOutdated(p)} as is_outdated),
    ${completeDeliveries(isCurrent)},
    deleted as (
      delete from queue q using unnest(${p.times}::bigint[], ${p.numbers}::bigint[], ${p.claims}::bigint[], ${p.sinces}::bigint[])
        v(created_at, number, claim, claimed_since)
      where ${isHeld} and ${isCurrent} returning q.number, q.id),
    content as (delete from deliveries d using deleted where d.id = deleted.id)
    select is_outdated, array(select number::float8 from done union all select number::float8 from deleted) as numbers from current`;
})();

const completeCountedStatement = `with ${completeDeliveries()} select from done`;

const lockClaims = `select q.number from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) v(created_at, number, claim, claimed_since)
  join queue q on ${isHeld} order by q.number for update of q`;

const selectOutdated = `select ${areOutcomesOutdated({ seen: '$1', server: '$2', known: '$3' })} as is_outdated`;

export class Completing {
  readonly #options: CompletingOptions;
  readonly #batcher: Batcher<Complete, Completed | undefined>;

  constructor(options: CompletingOptions) {
    this.#options = options;
    this.#batcher = new Batcher({
      run: (items) => options.pending.during(() => this.#completeAll(items)),
      waitForMore: async () => {
        const { completeWaitMs } = options.pace;
        if (completeWaitMs > 0) await options.runtime.sleep(completeWaitMs);
      },
      maxItems: maxAtOnce,
      // The second of two calls with the same claim finds that it has ended.
      keyOf: ({ claimed }) => claimed.id,
    });
  }

  complete(claimed: Delivery, rule: (reader: Reader) => Completion): Promise<Completed | undefined> {
    return this.#batcher.submit({ claimed, rule });
  }

  async #completeAll(items: readonly Complete[]): Promise<readonly (Completed | Error | undefined)[]> {
    const { database, replica, refresh } = this.#options;
    database.requireWritable();
    const results: Results = new Map();
    const outdated = await this.#completeAt(items, { seen: replica.seen, server: replica.server }, results);
    if (outdated.length > 0) {
      await refresh();
      database.requireWritable();
      const again = await this.#completeAt(outdated, { seen: anyVersion, server: replica.server }, results);
      for (const item of again) results.set(item, database.changedMeanwhile());
    }
    await this.#options.trimmer.trim();
    return items.map((item) => results.get(item));
  }

  /**
   * Returns the items that must be repeated because a webhook or the settings have changed since the version
   * `seen`.
   */
  async #completeAt(
    items: readonly Complete[],
    state: SeenState,
    results: Results,
  ): Promise<readonly Complete[]> {
    const plain: Ended[] = [];
    const deleted: Ended[] = [];
    const counted: Counted[] = [];
    for (const item of items) {
      const { claimed } = item;
      const row = this.#options.claims.rowOf(claimed);
      if (row === undefined) continue;
      const completion = attempt(() => item.rule(this.#options.reader));
      if (completion instanceof Error) results.set(item, completion);
      else if (completion.delivery === 'deleted') deleted.push({ item, claimed, delivery: claimed, ...row });
      // The update decides again, on the newest state.
      else if (completion.needsUpdate)
        results.set(item, { delivery: completion.delivery, needsUpdate: true });
      else if (completion.count)
        counted.push({ item, claimed, delivery: completion.delivery, count: completion.count, ...row });
      else plain.push({ item, claimed, delivery: completion.delivery, ...row });
    }
    return [
      ...(await this.#completePlain(plain, deleted, state, results)),
      ...(await this.#completeCounted(counted, state, results)),
    ];
  }

  async #completePlain(
    plain: readonly Ended[],
    deleted: readonly Ended[],
    state: SeenState,
    results: Results,
  ): Promise<readonly Complete[]> {
    const all = [...plain, ...deleted];
    if (all.length === 0) return [];
    const { database } = this.#options;
    const [row] = await database.write<{ is_outdated: boolean; numbers: number[] }>(completeStatement, [
      ...completeValues(plain),
      ...claimValues(deleted),
      state.seen,
      state.server,
      database.knownSchema,
    ]);
    if (row?.is_outdated) return all.map(({ item }) => item);
    const done = new Set(row?.numbers);
    for (const { item, delivery, number } of plain) {
      if (done.has(number)) {
        results.set(item, { delivery, needsUpdate: false });
        this.#noteCompleted(delivery);
      }
      this.#options.claims.forget(item.claimed);
    }
    for (const { item, delivery, number } of deleted) {
      if (done.has(number)) {
        results.set(item, { delivery: 'deleted', needsUpdate: false });
        this.#options.pending.subtract(delivery);
      }
      this.#options.claims.forget(item.claimed);
    }
    return [];
  }

  async #completeCounted(
    counted: readonly Counted[],
    state: SeenState,
    results: Results,
  ): Promise<readonly Complete[]> {
    if (counted.length === 0) return [];
    for (let aborts = 0; ; aborts += 1) {
      try {
        const outcome = await this.#options.database.use((client) =>
          this.#countFailures(client, counted, state),
        );
        if (outcome === 'outdated') return counted.map(({ item }) => item);
        for (const { item, delivery } of counted) {
          const completed = outcome.get(item);
          results.set(item, completed);
          if (completed?.needsUpdate) continue;
          if (completed) this.#noteCompleted(delivery);
          this.#options.claims.forget(item.claimed);
        }
        return [];
      } catch (error) {
        if (!isAborted(error) || aborts === maxAborts) throw error;
      }
    }
  }

  /**
   * One transaction: locks the failure windows and the claims, counts, and completes the deliveries that need no
   * update.
   */
  async #countFailures(
    client: Client,
    counted: readonly Counted[],
    state: SeenState,
  ): Promise<'outdated' | ReadonlyMap<Complete, Completed>> {
    const { database } = this.#options;
    const [, windows, { rows: held }, { rows: current }] = await Promise.all([
      query(client, 'begin'),
      lockFailureWindows(
        client,
        counted.map(({ delivery }) => delivery.webhookId),
      ),
      query<{ number: number }>(client, lockClaims, claimValues(counted)),
      query<{ is_outdated: boolean }>(client, selectOutdated, [
        state.seen,
        state.server,
        database.knownSchema,
      ]),
    ]);
    if (current[0]?.is_outdated) {
      await query(client, 'rollback');
      return 'outdated';
    }
    const heldNumbers = new Set(held.map(({ number }) => number));
    const changed = new Map<string, FailureWindow>();
    const outcome = new Map<Complete, Completed>();
    const stored: Held[] = [];
    for (const one of counted) {
      const { item, delivery, count } = one;
      if (!heldNumbers.has(one.number)) continue;
      const { webhookId } = delivery;
      const { window, needsUpdate } = count(changed.get(webhookId) ?? windows.get(webhookId) ?? null);
      outcome.set(item, { delivery, needsUpdate });
      if (needsUpdate) continue;
      changed.set(webhookId, window);
      stored.push(one);
    }
    await Promise.all([
      setFailureWindows(client, changed),
      query(client, completeCountedStatement, completeValues(stored)),
      query(client, 'commit'),
    ]);
    return outcome;
  }

  #noteCompleted(delivery: Delivery): void {
    if (delivery.state === 'pending') {
      this.#options.claims.noteFree([delivery]);
      return;
    }
    this.#options.pending.subtract(delivery);
    this.#options.trimmer.noteFinished(delivery);
  }
}
