// Publishes events: stores their ids and deliveries.
//
// Calls are collected into batches, and each batch is one statement that commits by itself. The rules run on this
// process's copy of the state before the statement. The statement does nothing if another process has changed a
// webhook since; then the process reads the changes and repeats the batch.
import { Batcher, attempt } from '../../../store/postgres/batcher.ts';
import type { Database } from '../../../store/postgres/database.ts';
import { type Replica, cellKind, isOtherServer } from '../../../store/postgres/replica.ts';
import type { Reader } from '../../../store/state.ts';
import { bytesOfPayload } from '../../event.ts';
import { webhookSettings } from '../../settings.ts';
import { webhooks } from '../../webhook.ts';
import { type Remembered, rememberedForMs } from '../delivery-queue.ts';
import { type Delivery, countPending } from '../delivery.ts';
import type { Claims } from './claims.ts';
import type { PendingCount } from './pending-count.ts';
import type { Trimmer } from './retention.ts';
import { type Held, insertDeliveries, insertParameters, insertValues, parametersAfter } from './rows.ts';
import type { UnusedEvents } from './unused-events.ts';

export type PublishingOptions = {
  readonly database: Database;
  readonly reader: Reader;
  readonly replica: Pick<Replica, 'seen' | 'server'>;
  /** Reads the changes of other processes. */
  readonly refresh: () => Promise<void>;
  readonly pending: PendingCount;
  readonly trimmer: Trimmer;
  readonly claims: Claims;
  readonly unused: UnusedEvents;
};

/** For a rule that ran on a state that is newer than its call: what changes after the call does not matter. */
const anyVersion = Number.MAX_SAFE_INTEGER;

/** Parameters: the version and the server of the state on which the rule ran, and the newest known migration. */
type Seen = { readonly seen: string; readonly server: string; readonly known: string };

/**
 * A webhook has changed since, the server is another one, or the schema has a contracting migration that this
 * program does not know.
 */
export function arePublicationsOutdated({ seen, server, known }: Seen): string {
  return `(exists (select from state where kind = '${webhooks.name}' and version > ${seen})
    or ${isOtherServer(server)} or (select oldest_writer from clock) > ${known})`;
}

/** The same, or the settings have changed. */
export function areOutcomesOutdated(parameters: Seen): string {
  return `(${arePublicationsOutdated(parameters)} or exists (
    select from state where kind = '${cellKind}' and key = '${webhookSettings.name}' and version > ${parameters.seen}))`;
}

/**
 * Runs a statement on the copy of the state. If it returns undefined, because another process has changed what its
 * rules have read, it runs again on a newer copy.
 */
export async function onNewestState<T>(
  { database, replica, refresh }: Pick<PublishingOptions, 'database' | 'replica' | 'refresh'>,
  run: (seen: number) => Promise<T | undefined>,
): Promise<T> {
  const first = await run(replica.seen);
  if (first !== undefined) return first;
  await refresh();
  const second = await run(anyVersion);
  if (second === undefined) throw database.changedMeanwhile();
  return second;
}

/** Notes the deliveries that a commit has added and completed. */
export function noteStored(
  { claims, pending, trimmer }: Pick<PublishingOptions, 'claims' | 'pending' | 'trimmer'>,
  added: readonly Delivery[],
  completed: readonly Pick<Held, 'claimed' | 'delivery'>[] = [],
): void {
  for (const { claimed } of completed) claims.forget(claimed);
  pending.subtractAll(completed.map(({ claimed }) => claimed));
  const kept = completed.flatMap(({ delivery }) => (delivery === 'deleted' ? [] : delivery));
  for (const deliveries of [added, kept]) {
    pending.addAll(deliveries);
    claims.noteFree(deliveries);
    for (const delivery of deliveries) trimmer.noteFinished(delivery);
  }
}

export type Publish = {
  readonly rule: (reader: Reader) => readonly Delivery[];
  readonly remember?: Remembered | undefined;
  /** The number of an announced event, which is stored already. */
  readonly announced?: number;
};

type Plan = Omit<Publish, 'rule'> & { readonly deliveries: readonly Delivery[] | Error };
type Planned = Plan & { readonly deliveries: readonly Delivery[] };

const maxAtOnce = 500;
/** A statement is in memory as a whole, and must not take long. */
const maxBytesAtOnce = 8 * 1024 ** 2;
const maxDeliveriesAtOnce = 5_000;

const isCurrent = 'not (select is_outdated from current)';

const publishStatement = (() => {
  const p = parametersAfter(
    insertParameters,
    'ids',
    'counts',
    'times',
    'expiry',
    'announced',
    'seen',
    'server',
    'known',
  );
  return `with current as (select ${arePublicationsOutdated(p)} as is_outdated),
    fresh as (
      insert into event_ids as e (id, deliveries, published_at)
      select v.* from unnest(${p.ids}::text[], ${p.counts}::bigint[], ${p.times}::bigint[]) v(id, deliveries, at)
      where ${isCurrent} order by v.id
      on conflict (id) do update set deliveries = excluded.deliveries, published_at = excluded.published_at
        where e.published_at <= excluded.published_at - ${p.expiry}::bigint
      returning id),
    taken as (
      update events set announced = null where number = any(array(
        select number from events where number = any(${p.announced}::bigint[]) and announced is not null and ${isCurrent}
        for update skip locked)) returning number),
    ${insertDeliveries(`${isCurrent} and (e.remembered_as is null or e.remembered_as in (select id from fresh))
      and (e.stored is null or e.stored in (select number from taken))`)}
    select is_outdated, array(select id from fresh) as fresh, array(select number::float8 from taken) as taken from current`;
})();

export class Publishing {
  readonly #options: PublishingOptions;
  readonly #batcher: Batcher<Publish, number>;

  constructor(options: PublishingOptions) {
    this.#options = options;
    this.#batcher = new Batcher({
      run: (items) =>
        options.pending.during(() => onNewestState(options, (seen) => this.#publishAt(items, seen))),
      maxItems: maxAtOnce,
      // Two events with the same id in one statement would conflict with each other.
      keyOf: ({ remember }) => remember?.eventId,
    });
  }

  publish(published: Publish): Promise<number> {
    return this.#batcher.submit(published);
  }

  /**
   * Publishes the first items, as many as one statement may hold. Returns undefined, and stores nothing, if a webhook
   * has changed since the version `seen`.
   */
  async #publishAt(
    items: readonly Publish[],
    seen: number,
  ): Promise<readonly (number | Error)[] | undefined> {
    const { database, replica, unused } = this.#options;
    const planned = this.#plan(items);
    const stored = planned.filter((plan) => !(plan.deliveries instanceof Error)) as Planned[];
    const remembered = stored.flatMap(({ remember, deliveries }) =>
      remember ? [{ eventId: remember.eventId, at: remember.at, count: countPending(deliveries) }] : [],
    );
    const announced = stored.flatMap((plan) => plan.announced ?? []);
    const notes = stored.flatMap(({ deliveries, remember, announced: number }) =>
      deliveries.map(({ event }) => [event, { number, rememberedAs: remember?.eventId }] as const),
    );
    const [row] = await database.write<{ is_outdated: boolean; fresh: string[]; taken: number[] }>(
      publishStatement,
      [
        ...insertValues(
          stored.flatMap(({ deliveries }) => deliveries),
          new Map(notes),
        ),
        remembered.map(({ eventId }) => eventId),
        remembered.map(({ count }) => count),
        remembered.map(({ at }) => at),
        rememberedForMs,
        announced,
        seen,
        replica.server,
        database.knownSchema,
      ],
    );
    if (!row || row.is_outdated) return undefined;
    const fresh = new Set(row.fresh);
    const taken = new Set(row.taken);
    // An announced event may have no deliveries.
    unused.note(row.taken);
    const isRepeated = ({ remember, announced: number }: Plan) =>
      (remember !== undefined && !fresh.has(remember.eventId)) ||
      (number !== undefined && !taken.has(number));
    for (const plan of stored) if (!isRepeated(plan)) noteStored(this.#options, plan.deliveries);
    const earlier = await this.#earlierCounts(stored.filter(isRepeated));
    return planned.map((plan) => {
      if (plan.deliveries instanceof Error) return plan.deliveries;
      return isRepeated(plan)
        ? (earlier.get(plan.remember?.eventId ?? '') ?? 0)
        : countPending(plan.deliveries);
    });
  }

  /** Runs the rules of the first items. Each sees the deliveries of those before it as pending. */
  #plan(items: readonly Publish[]): Plan[] {
    const { reader, pending } = this.#options;
    const plans: Plan[] = [];
    const planned: Delivery[] = [];
    let statementBytes = 0;
    for (const { rule, ...item } of items) {
      if (statementBytes > maxBytesAtOnce || planned.length > maxDeliveriesAtOnce) break;
      const deliveries = attempt(() => rule(reader));
      plans.push({ ...item, deliveries });
      const [first] = deliveries instanceof Error ? [] : deliveries;
      if (!first || deliveries instanceof Error) continue;
      statementBytes += bytesOfPayload(first.event);
      planned.push(...deliveries);
      pending.addAll(deliveries);
    }
    pending.subtractAll(planned);
    return plans;
  }

  async #earlierCounts(repeated: readonly Pick<Publish, 'remember'>[]): Promise<ReadonlyMap<string, number>> {
    const ids = repeated.flatMap(({ remember }) => remember?.eventId ?? []);
    if (ids.length === 0) return new Map();
    const rows = await this.#options.database.ask<{ id: string; deliveries: number }>(
      'select id, deliveries from event_ids where id = any($1::text[])',
      [ids],
    );
    return new Map(rows.map(({ id, deliveries }) => [id, deliveries]));
  }
}
