// Generates random operations of the delivery queue, and models the queue as a plain array that every operation
// searches from the start.
import fc from 'fast-check';
import {
  type Delivery,
  discard,
  isRecoverable,
  priorityOf,
  waitingSince,
} from '../../src/webhooks/queue/delivery.ts';
import type { FailureWindow } from '../../src/webhooks/sending/failure-window.ts';

export const webhookIds = ['a', 'b', 'c'];

/**
 * What becomes of a claimed delivery: a retry after an attempt that ended at the time, an end, a counted failure,
 * or its deletion.
 */
export type Outcome =
  | { to: 'retry'; at: number }
  | { to: 'delivered' | 'discarded' | 'unchanged' }
  | { to: 'failed'; needsUpdate: boolean }
  | { to: 'deleted' };

type New = { webhookId: string; isPing: boolean; createdAt: number };

// `which` selects one of the deliveries that were claimed and not completed, deleted ones included.
export type Change =
  | { kind: 'enqueue'; added: readonly New[] }
  | { kind: 'complete'; which: number; outcome: Outcome }
  | { kind: 'discard'; webhookId: string }
  | { kind: 'delete'; webhookId: string }
  | { kind: 'reset'; webhookId: string };

export type Update = { changes: readonly Change[]; throws: boolean };

export type Command =
  // All calls of a command are made at the same moment.
  | { kind: 'updates'; updates: readonly Update[] }
  | {
      kind: 'publish';
      events: readonly { added: readonly New[]; eventId: number | undefined; throws: boolean }[];
    }
  | { kind: 'complete'; completions: readonly { which: number; outcome: Outcome }[] }
  | { kind: 'release'; which: readonly number[] }
  | { kind: 'forget' }
  // The receiver of each webhook, in the order of `webhookIds`, and the room of each receiver.
  | {
      kind: 'claim';
      at: number;
      most: number;
      retryWaitMs: number;
      receivers: readonly number[];
      rooms: readonly number[];
    };

const kind = <K extends string>(name: K) => fc.constant(name);
const webhookId = fc.constantFrom(...webhookIds);
/** The times differ by more than the moment after which a store may look again. */
const time = fc.nat({ max: 9 }).map((n) => 100 * n);
const which = fc.nat();
const added: fc.Arbitrary<New> = fc.record({
  webhookId,
  isPing: fc.nat({ max: 4 }).map((n) => n === 0),
  createdAt: time,
});
const some = fc.array(added, { maxLength: 4 });
const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ to: kind('retry'), at: time }) },
  { weight: 3, arbitrary: fc.record({ to: kind('delivered') }) },
  { weight: 2, arbitrary: fc.record({ to: kind('failed'), needsUpdate: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ to: kind('discarded') }) },
  { weight: 1, arbitrary: fc.record({ to: kind('unchanged') }) },
);
const enqueue = fc.record({ kind: kind('enqueue'), added: some });
const completeWithin = fc.record({ kind: kind('complete'), which, outcome });
const discardOne = fc.record({ kind: kind('discard'), webhookId });
const deleteOne = fc.record({ kind: kind('delete'), webhookId });
const resetOne = fc.record({ kind: kind('reset'), webhookId });
const changes: fc.Arbitrary<Change[]> = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(enqueue) },
  { weight: 3, arbitrary: fc.tuple(completeWithin) },
  { weight: 2, arbitrary: fc.tuple(discardOne) },
  { weight: 1, arbitrary: fc.tuple(deleteOne) },
  { weight: 1, arbitrary: fc.tuple(resetOne) },
  {
    weight: 2,
    // An update completes deliveries before it discards or deletes others.
    arbitrary: fc
      .array(fc.oneof(enqueue, completeWithin, discardOne, deleteOne, resetOne), {
        minLength: 2,
        maxLength: 5,
      })
      .map((mixed) => [
        ...mixed.filter((change) => change.kind === 'complete'),
        ...mixed.filter((change) => change.kind !== 'complete'),
      ]),
  },
);
const rarely = fc.nat({ max: 9 }).map((n) => n === 0);
const update: fc.Arbitrary<Update> = fc.record({ changes, throws: rarely });
const several = <T>(one: fc.Arbitrary<T>) =>
  fc.oneof(
    { weight: 5, arbitrary: fc.tuple(one) },
    { weight: 1, arbitrary: fc.array(one, { minLength: 2, maxLength: 5 }) },
  );
const often = <T>(usual: T, unusual: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: unusual });
const receiver = fc.nat({ max: 2 });
const room = fc.constantFrom(-1, 0, 1, 2, 3, 99);

export const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: kind('updates'), updates: several(update) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: kind('publish'),
      events: several(
        fc.record({
          added: some,
          eventId: fc.option(fc.nat({ max: 3 }), { nil: undefined }),
          throws: rarely,
        }),
      ),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: kind('complete'),
      completions: several(
        fc.record({
          which,
          outcome: fc.oneof(
            { weight: 9, arbitrary: outcome },
            { weight: 1, arbitrary: fc.record({ to: kind('deleted') }) },
          ),
        }),
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind('release'), which: fc.array(which, { maxLength: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('forget') }) },
  {
    weight: 16,
    arbitrary: fc.record({
      kind: kind('claim'),
      at: time,
      most: often(99, fc.nat({ max: 4 })),
      retryWaitMs: often(300, time),
      receivers: often([0, 1, 2], fc.tuple(receiver, receiver, receiver)),
      rooms: often([99, 99, 99], fc.tuple(room, room, room)),
    }),
  },
);

type Entry = { delivery: Delivery; isClaimed: boolean; finished: number };

export type Model = ReturnType<typeof createModel>;

/**
 * All deliveries, oldest first. `finished` numbers the moments when a delivery finished. `keep` is how many of each
 * kind a webhook keeps.
 */
export function createModel(keep: number) {
  let entries: Entry[] = [];
  let windows = new Map<string, FailureWindow>();
  let moments = 0;

  function trim(webhookId: string): void {
    for (const kind of [true, false]) {
      const finished = entries
        .filter(({ delivery }) => delivery.webhookId === webhookId && delivery.state !== 'pending')
        .filter(({ delivery }) => isRecoverable(delivery) === kind)
        .sort((one, other) => one.finished - other.finished);
      const removed = finished.slice(0, Math.max(0, finished.length - keep));
      entries = entries.filter((entry) => !removed.includes(entry));
    }
  }

  function replace(entry: Entry, delivery: Delivery): void {
    moments += 1;
    Object.assign(entry, { delivery, isClaimed: false, finished: moments });
  }

  const find = ({ id }: Delivery) => entries.find(({ delivery }) => delivery.id === id);

  return {
    add(...added: readonly Delivery[]): void {
      entries.push(...added.map((delivery) => ({ delivery, isClaimed: false, finished: 0 })));
    },
    /** Whether the delivery is claimed and still the one that was claimed. */
    holds(claimed: Delivery): boolean {
      const entry = find(claimed);
      return entry?.isClaimed === true && entry.delivery === claimed;
    },
    complete(claimed: Delivery, delivery: Delivery): void {
      const entry = find(claimed);
      if (entry) replace(entry, delivery);
      trim(claimed.webhookId);
    },
    remove({ id }: Delivery): void {
      entries = entries.filter(({ delivery }) => delivery.id !== id);
    },
    discard(webhookId: string, at: number): void {
      for (const entry of entries) {
        const { delivery, isClaimed } = entry;
        if (delivery.webhookId !== webhookId || delivery.state !== 'pending') continue;
        if (!isClaimed && !delivery.isPing) replace(entry, discard(delivery, at));
      }
      trim(webhookId);
    },
    delete(webhookId: string): void {
      entries = entries.filter(({ delivery }) => delivery.webhookId !== webhookId);
      windows.delete(webhookId);
    },
    claim(claimed: Delivery): void {
      const entry = find(claimed);
      // The identity of the object shows whether a claim is still the same.
      if (entry) Object.assign(entry, { delivery: claimed, isClaimed: true });
    },
    setWindow(webhookId: string, window: FailureWindow | null): void {
      if (window === null) windows.delete(webhookId);
      else windows.set(webhookId, window);
    },
    window: (webhookId: string) => windows.get(webhookId) ?? null,
    windows: () => new Map(windows),
    deliveries: (webhookId?: string) =>
      entries
        .map(({ delivery }) => delivery)
        .filter((delivery) => webhookId === undefined || delivery.webhookId === webhookId),
    /** The deliveries that can be claimed now or later. */
    claimable: (retryWaitMs: number) =>
      entries
        .filter(({ delivery, isClaimed }) => delivery.state === 'pending' && !isClaimed)
        .map(({ delivery }) => ({
          delivery,
          priority: priorityOf(delivery),
          since: waitingSince(delivery),
          due: priorityOf(delivery) === 1 ? waitingSince(delivery) + retryWaitMs : -Infinity,
        })),
    /** Runs the function, and takes everything back that it has done if it returns false. */
    attempt(run: () => boolean): boolean {
      const before = { entries: entries.map((entry) => ({ ...entry })), windows: new Map(windows), moments };
      if (run()) return true;
      ({ entries, windows, moments } = before);
      return false;
    },
  };
}
