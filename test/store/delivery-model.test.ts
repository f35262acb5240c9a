// Runs random operations on the delivery queue of every store and compares the results with the model.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import type { Store } from '../../src/store/store.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import { type Completion, LostClaim } from '../../src/webhooks/queue/delivery-queue.ts';
import type { Delivery } from '../../src/webhooks/queue/delivery.ts';
import type { FailureWindow } from '../../src/webhooks/sending/failure-window.ts';
import { timelessRuntime } from '../kit/runtime.ts';
import { keeping, openBriefly } from './backends.ts';
import { attempted, bytesOf, claimAll, delivery, ended } from './deliveries.ts';
import {
  type Change,
  type Command,
  type Model,
  type Outcome,
  type Update,
  command,
  createModel,
  webhookIds,
} from './delivery-model.ts';
import { clearFailures, failureWindowOf, failureWindows } from '../../src/webhooks/sending/failure-window.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 200);
const timeoutMs = 300_000 * Math.max(1, runs / 500);

type Of<K extends Command['kind']> = Extract<Command, { kind: K }>;

type System = {
  store: Store;
  model: Model;
  /** Deliveries that were claimed and not completed. */
  held: Delivery[];
  /** For each webhook with a delivery that could be claimed: the webhooks that had a turn since. */
  passedOver: Map<string, Set<string>>;
  /** The number of deliveries of each remembered event. */
  events: Map<string, number>;
  ids: number;
  /** The ids of webhooks; those in the same place follow one another. */
  names: string[];
  /** The webhooks that the updates of the command delete: no rule completes a delivery of a webhook that is gone. */
  deleted: Set<string>;
  /** The webhooks whose deliveries they discard: a rule ends a delivery that was claimed before. */
  discarded: Set<string>;
  /** Goes up, so that the order of ends is the order of calls. */
  clock: number;
};

const create = (
  system: System,
  { added }: { added: readonly { webhookId: string; isPing: boolean; createdAt: number }[] },
) =>
  added.map(({ webhookId, isPing, createdAt }) =>
    delivery(`${nameOf(system, webhookId)}${(system.ids += 1)}`, createdAt, { isPing }),
  );

/** The id of a deleted webhook is never used again: the next webhook in its place has another letter. */
function nameOf({ names }: System, webhookId: string): string {
  const place = webhookIds.indexOf(webhookId);
  return names.findLast((_name, index) => index % webhookIds.length === place) ?? '';
}

function replaceName({ names }: System, webhookId: string): void {
  const place = webhookIds.indexOf(webhookId);
  do names.push(String.fromCodePoint(97 + names.length));
  while ((names.length - 1) % webhookIds.length !== place);
}

function take(system: System, which: number): Delivery | undefined {
  return system.held.length === 0 ? undefined : system.held.splice(which % system.held.length, 1)[0];
}

function apply(system: System, held: Delivery, outcome: Exclude<Outcome, { to: 'deleted' }>): Delivery {
  const at = (system.clock += 1);
  if (outcome.to === 'unchanged') return { ...held };
  // A ping is attempted once.
  if (outcome.to === 'retry') return held.isPing ? ended(held, at, 'failed') : attempted(held, outcome.at);
  const state = outcome.to;
  return ended(state === 'discarded' ? held : attempted(held, at), at, state);
}

const oneMore = (window: FailureWindow | null): FailureWindow => ({
  start: window?.start ?? 1,
  count: (window?.count ?? 0) + 1,
});

type Act = { onStore: (transaction: Transaction) => void; onModel: () => boolean };

/** Returns the change for the store and for the model. The model returns false if a claim is lost. */
function toAct(system: System, change: Change, settled: Delivery[]): Act {
  const { model } = system;
  switch (change.kind) {
    case 'enqueue': {
      const added = create(system, change);
      return {
        onStore: ({ deliveries }) => deliveries.enqueue(added),
        onModel: () => (model.add(...added), true),
      };
    }
    case 'complete': {
      const held = take(system, change.which);
      if (!held || change.outcome.to === 'deleted' || system.deleted.has(held.webhookId)) {
        if (held) system.held.push(held);
        return { onStore: () => undefined, onModel: () => true };
      }
      settled.push(held);
      const isKept = change.outcome.to === 'retry' || change.outcome.to === 'unchanged';
      const mustEnd = isKept && system.discarded.has(held.webhookId);
      const by = apply(system, held, mustEnd ? { to: 'discarded' } : change.outcome);
      const { webhookId } = held;
      const isCounted = change.outcome.to === 'failed';
      return {
        onStore: (transaction) => {
          transaction.deliveries.complete(held, by);
          if (isCounted)
            transaction.put(failureWindows, {
              webhookId,
              ...oneMore(failureWindowOf(transaction, webhookId)),
            });
        },
        onModel: () => {
          if (!model.holds(held)) return false;
          model.complete(held, by);
          if (isCounted) model.setWindow(webhookId, oneMore(model.window(webhookId)));
          return true;
        },
      };
    }
    case 'discard': {
      const webhookId = nameOf(system, change.webhookId);
      system.discarded.add(webhookId);
      const at = (system.clock += 1);
      return {
        onStore: ({ deliveries }) => deliveries.discardPending(webhookId, at),
        onModel: () => (model.discard(webhookId, at), true),
      };
    }
    case 'delete': {
      const webhookId = nameOf(system, change.webhookId);
      system.deleted.add(webhookId);
      replaceName(system, change.webhookId);
      return {
        onStore: (transaction) => {
          clearFailures(transaction, webhookId);
          transaction.deliveries.deleteAll(webhookId);
        },
        onModel: () => (model.delete(webhookId), true),
      };
    }
    case 'reset': {
      const webhookId = nameOf(system, change.webhookId);
      return {
        onStore: (transaction) => clearFailures(transaction, webhookId),
        onModel: () => (model.setWindow(webhookId, null), true),
      };
    }
  }
}

/** Runs the update on the model. Returns the rule for the store and its expected outcome. */
function prepare(system: System, { changes, throws }: Update) {
  const { model } = system;
  const settled: Delivery[] = [];
  const acts = changes.map((change) => toAct(system, change, settled));
  const rule = (transaction: Transaction) => {
    for (const { onStore } of acts) onStore(transaction);
    if (throws) throw new Error('no');
  };
  const isDone = model.attempt(() => acts.every(({ onModel }) => onModel()) && !throws);
  // The update failed, so its deliveries are still claimed.
  if (!isDone) system.held.push(...settled);
  return { rule, outcome: isDone ? 'done' : throws ? 'Error' : LostClaim.name };
}

async function update(system: System, { updates }: Of<'updates'>): Promise<void> {
  system.deleted.clear();
  system.discarded.clear();
  const prepared = updates.map((one) => prepare(system, one));
  const results = await Promise.allSettled(prepared.map(({ rule }) => system.store.update(rule)));
  const outcomes = results.map((result) =>
    result.status === 'fulfilled' ? 'done' : (result.reason as Error).name,
  );
  expect(outcomes).toEqual(prepared.map(({ outcome }) => outcome));
  // A webhook that had no pending deliveries for a moment may have lost its turn.
  const kinds = updates.flatMap(({ changes }) => changes.map(({ kind }) => kind));
  if (kinds.includes('discard') || kinds.includes('delete')) system.passedOver.clear();
}

async function publish(system: System, { events }: Of<'publish'>): Promise<void> {
  const { store, model, events: known } = system;
  const calls = events.map(({ added, eventId, throws }) => {
    const id = eventId === undefined ? undefined : `event ${eventId}`;
    const made = create(system, { added }).map((one) =>
      id === undefined ? one : { ...one, event: { ...one.event, id } },
    );
    const earlier = id === undefined ? undefined : known.get(id);
    const expected = earlier ?? (throws ? 'no' : made.length);
    const isStored = earlier === undefined && !throws;
    if (isStored && id !== undefined) known.set(id, made.length);
    const rule = () => {
      // A store may run the rule of an event that it knows already.
      if (throws && earlier === undefined) throw new Error('no');
      return made;
    };
    const remember = id === undefined ? undefined : { eventId: id, at: 1 };
    return { rule, expected, remember, stored: isStored ? made : [] };
  });
  // Calls of the same moment have no order: a store may delay one that has the event id of another.
  const results = await Promise.all(
    calls.map(async ({ rule, remember, stored }) => {
      try {
        const count = await store.deliveries.publish(rule, remember);
        model.add(...stored);
        return count;
      } catch (error) {
        return (error as Error).message;
      }
    }),
  );
  expect(results).toEqual(calls.map(({ expected }) => expected));
  for (const [eventId, deliveries] of known)
    expect(await store.deliveries.findEvent(eventId, 2)).toEqual({ eventId, deliveries, publishedAt: 1 });
}

async function complete(system: System, { completions }: Of<'complete'>): Promise<void> {
  const { store, model } = system;
  const calls = completions.flatMap(({ which, outcome }) => {
    const held = take(system, which);
    return held ? [{ held, completion: toCompletion(system, held, outcome) }] : [];
  });
  const results = await Promise.all(
    calls.map(({ held, completion }) => store.deliveries.complete(held, () => completion)),
  );
  for (const [index, { held, completion }] of calls.entries()) {
    const isHeld = model.holds(held);
    const result = results[index];
    expect(result !== undefined).toBe(isHeld);
    if (!result || !isHeld) continue;
    const { delivery: by, needsUpdate } = { needsUpdate: false, ...completion };
    expect(result).toEqual({ delivery: by, needsUpdate });
    if (needsUpdate) system.held.push(held);
    else if (by === 'deleted') model.remove(held);
    else model.complete(held, by);
  }
}

function toCompletion(system: System, held: Delivery, outcome: Outcome): Completion {
  if (outcome.to === 'deleted') return { delivery: 'deleted' };
  const by = apply(system, held, outcome);
  return outcome.to === 'failed' ? { delivery: by, needsUpdate: outcome.needsUpdate } : { delivery: by };
}

async function release(system: System, { which }: Of<'release'>): Promise<void> {
  const { store, model } = system;
  const released = which.flatMap((one) => take(system, one) ?? []);
  await store.deliveries.release(released);
  for (const held of released) if (model.holds(held)) model.complete(held, held);
}

async function claim(system: System, request: Of<'claim'>): Promise<void> {
  const { store, model, held, passedOver } = system;
  const { at, most, retryWaitMs, receivers, rooms } = request;
  const receiverOf = (webhookId: string) =>
    String(receivers[system.names.indexOf(webhookId) % webhookIds.length]);
  const roomFor = (receiver: string) => rooms[Number(receiver)] ?? NaN;
  const { deliveries, nextAt } = await store.deliveries.claim({ at, most, retryWaitMs, receiverOf, roomFor });

  const claimable = () => model.claimable(retryWaitMs);
  const hasRoom = (webhookId: string, taken: readonly Delivery[]) => {
    const receiver = receiverOf(webhookId);
    return taken.filter((other) => receiverOf(other.webhookId) === receiver).length < roomFor(receiver);
  };
  /** The deliveries of a webhook that may be claimed next: one, or several that wait since the same time. */
  const nextOf = (webhookId: string, taken: readonly Delivery[]) => {
    if (!hasRoom(webhookId, taken)) return [];
    const due = claimable().filter((entry) => entry.delivery.webhookId === webhookId && entry.due <= at);
    const priority = Math.min(...due.map((entry) => entry.priority));
    const among = due.filter((entry) => entry.priority === priority);
    const since = Math.min(...among.map((entry) => entry.since));
    return among.filter((entry) => entry.since === since).map((entry) => entry.delivery);
  };
  for (const [index, one] of deliveries.entries()) {
    const taken = deliveries.slice(0, index);
    expect(nextOf(one.webhookId, taken)).toContainEqual(one);
    for (const other of system.names) {
      if (other === one.webhookId || nextOf(other, taken).length === 0) passedOver.delete(other);
      else {
        const ahead = passedOver.get(other) ?? new Set();
        expect(ahead.has(one.webhookId), `${one.webhookId} goes twice while ${other} waits`).toBe(false);
        passedOver.set(other, ahead.add(one.webhookId));
      }
    }
    model.claim(one);
    held.push(one);
  }
  expect(deliveries.length).toBeLessThanOrEqual(most);
  const left = system.names.flatMap((webhookId) => nextOf(webhookId, deliveries));
  // A store may claim in portions: it claims something, and asks to look again.
  const asksAgain = deliveries.length > 0 && nextAt !== undefined && nextAt <= at;
  if (deliveries.length < most && !asksAgain) expect(left).toEqual([]);

  if (most === 0) return;
  if (left.length > 0) expect(nextAt).toBeLessThanOrEqual(at);
  if (left.length > 0 || asksAgain) return;
  // A webhook without room, or with due deliveries that have no room, may be left out.
  const later = claimable().filter(({ due }) => due > at);
  const isLeftOut = ({ webhookId }: Delivery) =>
    !hasRoom(webhookId, deliveries) ||
    claimable().some((entry) => entry.delivery.webhookId === webhookId && entry.due <= at);
  const required = later.filter((entry) => !isLeftOut(entry.delivery)).map(({ due }) => due);
  if (required.length > 0) expect(nextAt).toBeLessThanOrEqual(Math.min(...required));
  // A delivery that was due then may have ended: the claim of that moment finds out.
  if (nextAt !== undefined) expect(nextAt).toBeGreaterThan(at);
}

async function check({ store, model, names }: System): Promise<void> {
  const { deliveries } = store;
  const pending = model.deliveries().filter(({ state }) => state === 'pending');
  expect(deliveries.pending()).toMatchObject({ count: pending.length, bytes: bytesOf(...pending) });
  const times = pending.map(({ createdAt }) => createdAt).sort((one, other) => one - other);
  // PostgreSQL counts a moment later.
  if (times[0] === undefined) expect(deliveries.pending().oldestAt).toBeUndefined();
  else expect(deliveries.pending().oldestAt).toBeLessThanOrEqual(times[0]);
  const windows = [...store.all(failureWindows)].map(
    ({ webhookId, ...window }) => [webhookId, window] as const,
  );
  expect(new Map(windows)).toEqual(model.windows());
  for (const webhookId of names) {
    const newestFirst = model
      .deliveries(webhookId)
      .reverse()
      .sort((one, other) => other.createdAt - one.createdAt);
    const counted = { total: newestFirst.length, isTotalExact: true };
    expect(await deliveries.page({ webhookId }, 0, 1000)).toEqual({ deliveries: newestFirst, ...counted });
    const second = { deliveries: newestFirst.slice(1, 3), ...counted };
    expect(await deliveries.page({ webhookId }, 1, 2)).toEqual(second);
  }
  for (const one of model.deliveries()) expect(await deliveries.find(one.id)).toEqual(one);
}

async function run(system: System, request: Command): Promise<void> {
  if (request.kind === 'claim') return claim(system, request);
  if (request.kind === 'updates') return update(system, request);
  if (request.kind === 'publish') return publish(system, request);
  if (request.kind === 'complete') return complete(system, request);
  if (request.kind === 'release') return release(system, request);
  await system.store.deliveries.forgetEvents(1e12);
  system.events.clear();
}

// The stores run no background tasks. PostgreSQL removes finished deliveries in the background, so it keeps all of
// them here.
const stores: [string, (keep: number) => Promise<Store>, fc.Arbitrary<number>, checkEvery: number][] = [
  [
    'memory',
    (keep) =>
      Promise.resolve(createMemoryStore({ retention: { ...keeping(keep), jobs: 1 }, maxEventIds: 100 })),
    fc.constantFrom(0, 1, 2, 3, 1000),
    1,
  ],
  [
    'PostgreSQL',
    // On a clock that stands still, a webhook is emptied before its update returns, however busy the machine is.
    (keep) =>
      openBriefly({
        runtime: { ...timelessRuntime, now: () => 0 },
        // Its background tasks do not run, so it never renews its lease: a history that took longer would claim nothing.
        leaseMs: 3_600_000,
        retention: { ...keeping(keep), jobs: 1 },
      }),
    fc.constant(1000),
    // Reading every delivery takes longer than the operations.
    10,
  ],
];

it.each(stores)(
  'the delivery queue of the %s store behaves like the model',
  async (name, open, keeps, checkEvery) => {
    const histories = fc.array(command, { minLength: 5, maxLength: 60, size: 'max' });
    await fc.assert(
      fc.asyncProperty(keeps, histories, async (keep, commands) => {
        const store = await open(keep);
        try {
          const system: System = {
            store,
            model: createModel(keep),
            held: [],
            passedOver: new Map(),
            deleted: new Set(),
            discarded: new Set(),
            events: new Map(),
            ids: 0,
            names: [...webhookIds],
            clock: 10_000,
          };
          const known = new Set<string>();
          for (const [index, request] of commands.entries()) {
            await run(system, request);
            if (index % checkEvery === 0 || index === commands.length - 1) await check(system);
            for (const { id } of system.model.deliveries()) known.add(id);
          }
          const left = new Set(system.model.deliveries().map(({ id }) => id));
          for (const id of known) if (!left.has(id)) expect(await store.deliveries.find(id)).toBeUndefined();
          // No delivery is lost: the last claims return exactly the pending, unclaimed ones.
          const waiting = system.model.claimable(0).map((entry) => entry.delivery.id);
          const { ids, nextAt } = await claimAll(store, 1e9);
          expect(ids.sort()).toEqual(waiting.sort());
          expect(nextAt).toBeUndefined();
        } finally {
          await store.close();
        }
      }),
      // PostgreSQL is slower, so it gets fewer runs, and its failures are not simplified. A test that exceeded its time
      // would not print the seed.
      {
        plugins: [fc.interruptAfterTimeLimit(0.8 * timeoutMs, { failOnInterrupt: true })],
        ...(name === 'memory' ? { numRuns: runs } : { numRuns: Math.ceil(runs / 5), endOnFailure: true }),
      },
    );
  },
  timeoutMs,
);
