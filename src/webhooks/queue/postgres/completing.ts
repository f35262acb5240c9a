// Completes claimed deliveries, and counts failures towards the deactivation of their webhooks.
//
// Calls are collected into batches, and a batch is one statement that commits by itself, as in publishing.ts. Only
// failures that count need a transaction: it locks the failure windows of their webhooks, and the claims, until the
// new counts are stored.
import { Batcher, attempt } from '../../../store/postgres/batcher.ts';
import { type Client, isAborted, outdatedProgram, query } from '../../../store/postgres/database.ts';
import type { Reader } from '../../../store/state.ts';
import type { FailureWindow } from '../../sending/failure-window.ts';
import type { Completed, Completion } from '../delivery-queue.ts';
import type { Delivery } from '../delivery.ts';
import type { Claims, ClaimsOptions } from './claims.ts';
import { lockFailureWindows, setFailureWindows } from './failure-windows.ts';
import type { PublishingOptions } from './publishing.ts';
import {
  type Held,
  completeDeliveries,
  completeParameters,
  completeValues,
  pendingCountStatement,
} from './rows.ts';
import { anyVersion, areOutcomesOutdated } from './staleness.ts';

export type CompletingOptions = PublishingOptions &
  ClaimsOptions & {
    readonly claims: Claims;
  };

type Complete = { readonly claimed: Delivery; readonly rule: (reader: Reader) => Completion };

type Ended = Held & { readonly item: Complete };

type Counted = Ended & { readonly count: NonNullable<Extract<Completion, { count?: unknown }>['count']> };

type Results = Map<Complete, Completed | Error | undefined>;

const maxAtOnce = 500;
const maxAborts = 10;

const isCurrent = 'not (select is_outdated from current)';

const completeStatement = (() => {
  const p = completeParameters;
  const [ids, claims, self, seen, known] = [p + 1, p + 2, p + 3, p + 4, p + 5];
  return `with current as (select ${areOutcomesOutdated(`$${seen}`, `$${known}`)} as is_outdated),
    done as (${completeDeliveries(isCurrent)}),
    deleted as (
      delete from deliveries d using unnest($${ids}::text[], $${claims}::bigint[]) v(id, claim)
      where d.id = v.id and d.claim = v.claim and ${isCurrent} returning d.id, d.bytes),
    counted as (${pendingCountStatement(
      `$${self}::text`,
      'complete',
      `select -count(*) as count, -coalesce(sum(bytes), 0) as bytes from (
        select bytes from done where state <> 'pending' union all select bytes from deleted) ended`,
    )})
    select is_outdated, array(select id from done union all select id from deleted) as ids from current`;
})();

const completeCountedStatement = `with done as (${completeDeliveries()})
  ${pendingCountStatement(
    `$${completeParameters + 1}::text`,
    'complete',
    `select -count(*) as count, -coalesce(sum(bytes), 0) as bytes from done where state <> 'pending'`,
  )}`;

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
    const outdated = await this.#completeAt(items, replica.seen, results);
    if (outdated.length > 0) {
      await refresh();
      database.requireWritable();
      const again = await this.#completeAt(outdated, anyVersion, results);
      // A newer version has changed the schema meanwhile.
      for (const item of again) results.set(item, outdatedProgram());
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
    seen: number,
    results: Results,
  ): Promise<readonly Complete[]> {
    const plain: Ended[] = [];
    const deleted: Ended[] = [];
    const counted: Counted[] = [];
    for (const item of items) {
      const claim = this.#options.claims.numberOf(item.claimed);
      if (claim === undefined) continue;
      const completion = attempt(() => item.rule(this.#options.reader));
      if (completion instanceof Error) results.set(item, completion);
      else if (completion.delivery === 'deleted') deleted.push({ item, claim, delivery: item.claimed });
      // The update decides again, on the newest state.
      else if (completion.needsUpdate)
        results.set(item, { delivery: completion.delivery, needsUpdate: true });
      else if (completion.count)
        counted.push({ item, claim, delivery: completion.delivery, count: completion.count });
      else plain.push({ item, claim, delivery: completion.delivery });
    }
    return [
      ...(await this.#completePlain(plain, deleted, seen, results)),
      ...(await this.#completeCounted(counted, seen, results)),
    ];
  }

  async #completePlain(
    plain: readonly Ended[],
    deleted: readonly Ended[],
    seen: number,
    results: Results,
  ): Promise<readonly Complete[]> {
    const all = [...plain, ...deleted];
    if (all.length === 0) return [];
    const { database, self } = this.#options;
    const [row] = await database.write<{ is_outdated: boolean; ids: string[] }>(completeStatement, [
      ...completeValues(plain),
      deleted.map(({ delivery }) => delivery.id),
      deleted.map(({ claim }) => claim),
      self,
      seen,
      database.knownSchema,
    ]);
    if (row?.is_outdated) return all.map(({ item }) => item);
    const done = new Set(row?.ids);
    for (const { item, delivery } of plain) {
      if (done.has(delivery.id)) {
        results.set(item, { delivery, needsUpdate: false });
        this.#noteCompleted(delivery);
      }
      this.#options.claims.forget(item.claimed);
    }
    for (const { item, delivery } of deleted) {
      if (done.has(delivery.id)) {
        results.set(item, { delivery: 'deleted', needsUpdate: false });
        this.#options.pending.subtract(delivery);
      }
      this.#options.claims.forget(item.claimed);
    }
    return [];
  }

  async #completeCounted(
    counted: readonly Counted[],
    seen: number,
    results: Results,
  ): Promise<readonly Complete[]> {
    if (counted.length === 0) return [];
    for (let aborts = 0; ; aborts += 1) {
      try {
        const outcome = await this.#options.database.use((client) =>
          this.#countFailures(client, counted, seen),
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
    seen: number,
  ): Promise<'outdated' | ReadonlyMap<Complete, Completed>> {
    const [, windows, { rows: held }, { rows: current }] = await Promise.all([
      query(client, 'begin'),
      lockFailureWindows(
        client,
        counted.map(({ delivery }) => delivery.webhookId),
      ),
      query<{ id: string }>(
        client,
        `select d.id from unnest($1::text[], $2::bigint[]) v(id, claim) join deliveries d on d.id = v.id and d.claim = v.claim
         order by d.id for update of d`,
        [counted.map(({ delivery }) => delivery.id), counted.map(({ claim }) => claim)],
      ),
      query<{ is_outdated: boolean }>(client, `select ${areOutcomesOutdated('$1', '$2')} as is_outdated`, [
        seen,
        this.#options.database.knownSchema,
      ]),
    ]);
    if (current[0]?.is_outdated) {
      await query(client, 'rollback');
      return 'outdated';
    }
    const isHeld = new Set(held.map(({ id }) => id));
    const changed = new Map<string, FailureWindow>();
    const outcome = new Map<Complete, Completed>();
    const stored: Held[] = [];
    for (const { item, delivery, claim, count } of counted) {
      if (!isHeld.has(delivery.id)) continue;
      const { webhookId } = delivery;
      const { window, needsUpdate } = count(changed.get(webhookId) ?? windows.get(webhookId) ?? null);
      outcome.set(item, { delivery, needsUpdate });
      if (needsUpdate) continue;
      changed.set(webhookId, window);
      stored.push({ delivery, claim });
    }
    await Promise.all([
      setFailureWindows(client, changed),
      query(client, completeCountedStatement, [...completeValues(stored), this.#options.self]),
      query(client, 'commit'),
    ]);
    return outcome;
  }

  #noteCompleted(delivery: Delivery): void {
    if (delivery.state === 'pending') return;
    this.#options.pending.subtract(delivery);
    this.#options.trimmer.noteFinished(delivery);
  }
}
