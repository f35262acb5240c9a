// Completes claimed deliveries.
//
// Calls are collected into batches, and a batch is one statement that commits by itself, as in publishing.ts.
import { Batcher, attempt } from '../../../store/postgres/batcher.ts';
import type { Reader } from '../../../store/state.ts';
import type { Completed, Completion } from '../delivery-queue.ts';
import type { Delivery } from '../delivery.ts';
import type { ClaimsOptions } from './claims.ts';
import type { PublishingOptions } from './publishing.ts';
import {
  type Held,
  completeDeliveries,
  completeParameters,
  completeValues,
  parametersAfter,
} from './rows.ts';
import { anyVersion, areOutcomesOutdated } from './staleness.ts';

export type CompletingOptions = PublishingOptions & ClaimsOptions;

type Complete = { readonly claimed: Delivery; readonly rule: (reader: Reader) => Completion };

type Ended = Held & { readonly item: Complete };

type Results = Map<Complete, Completed | Error | undefined>;

const maxAtOnce = 500;

const completeStatement = (() => {
  const p = parametersAfter(completeParameters, 'seen', 'server', 'known');
  return `with current as (select ${areOutcomesOutdated(p)} as is_outdated),
    ${completeDeliveries('not (select is_outdated from current)')}
    select is_outdated, array(select number::float8 from done) as numbers from current`;
})();

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
    const results: Results = new Map();
    const outdated = await this.#completeAt(items, replica.seen, results);
    if (outdated.length > 0) {
      await refresh();
      const again = await this.#completeAt(outdated, anyVersion, results);
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
    seen: number,
    results: Results,
  ): Promise<readonly Complete[]> {
    const held: Ended[] = [];
    for (const item of items) {
      const { claimed } = item;
      const row = this.#options.claims.rowOf(claimed);
      if (row === undefined) continue;
      const completion = attempt(() => item.rule(this.#options.reader));
      if (completion instanceof Error) results.set(item, completion);
      // The update decides again, on the newest state.
      else if (completion.needsUpdate)
        results.set(item, { delivery: completion.delivery, needsUpdate: true });
      else held.push({ item, claimed, delivery: completion.delivery, ...row });
    }
    if (held.length === 0) return [];
    const { database, replica, claims } = this.#options;
    const [row] = await database.write<{ is_outdated: boolean; numbers: number[] }>(completeStatement, [
      ...completeValues(held),
      seen,
      replica.server,
      database.knownSchema,
    ]);
    if (row?.is_outdated) return held.map(({ item }) => item);
    const done = new Set(row?.numbers);
    for (const { item, claimed, delivery, number } of held) {
      claims.forget(claimed);
      if (!done.has(number)) continue;
      results.set(item, { delivery, needsUpdate: false });
      this.#noteCompleted(claimed, delivery);
    }
    return [];
  }

  #noteCompleted(claimed: Delivery, delivery: Delivery | 'deleted'): void {
    const { claims, pending, trimmer } = this.#options;
    if (delivery !== 'deleted' && delivery.state === 'pending') return claims.noteFree([delivery]);
    pending.subtract(claimed);
    if (delivery !== 'deleted') trimmer.noteFinished(delivery);
  }
}
