// Completes claimed deliveries.
//
// Calls are collected into batches, and a batch is one statement that commits by itself, as in publishing.ts.
import { Batcher, attempt } from '../../../store/postgres/batcher.ts';
import type { Reader } from '../../../store/state.ts';
import type { Completed, Completion } from '../delivery-queue.ts';
import type { Delivery } from '../delivery.ts';
import type { ClaimsOptions } from './claims.ts';
import { type PublishingOptions, areOutcomesOutdated, noteStored, onNewestState } from './publishing.ts';
import {
  type Held,
  completeDeliveries,
  completeParameters,
  completeValues,
  parametersAfter,
} from './rows.ts';

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
    const results = await onNewestState(this.#options, (seen) => this.#completeAt(items, seen));
    return items.map((item) => results.get(item));
  }

  /** Returns undefined, and stores nothing, if a webhook or the settings have changed since the version `seen`. */
  async #completeAt(items: readonly Complete[], seen: number): Promise<Results | undefined> {
    const results: Results = new Map();
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
    if (held.length === 0) return results;
    const { database, replica, claims } = this.#options;
    const [row] = await database.write<{ is_outdated: boolean; numbers: number[] }>(completeStatement, [
      ...completeValues(held),
      seen,
      replica.server,
      database.knownSchema,
    ]);
    if (row?.is_outdated) return undefined;
    const numbers = new Set(row?.numbers);
    const done = held.filter(({ number }) => numbers.has(number));
    for (const { item, delivery } of done) results.set(item, { delivery, needsUpdate: false });
    noteStored(this.#options, [], done);
    for (const { claimed } of held) claims.forget(claimed);
    return results;
  }
}
