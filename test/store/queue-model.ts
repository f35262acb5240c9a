// Generates random queue operations, and models a queue as a plain array that every operation searches from the start.
import fc from 'fast-check';
import type { Chore } from './definitions.ts';

export const owners = ['a', 'b', 'c'];

/** The fields of a row that an operation can change. */
type Traits = Pick<Chore, 'due' | 'isUrgent' | 'isDull'>;

export type Change =
  | { kind: 'enqueue'; owner: string; traits: Traits }
  // `which` selects one of the rows that were claimed and not settled, dropped ones included. Without traits, the row stays unchanged.
  | { kind: 'settle'; which: number; traits: Traits | undefined }
  // One row in `every` gets the traits; the others stay unchanged.
  | { kind: 'amend'; owner: string | undefined; traits: Traits; every: number }
  | { kind: 'thin'; owner: string; keep: number }
  | { kind: 'trim'; owner: string; keep: number }
  | { kind: 'drop'; owner: string };

export type Update = { changes: readonly Change[]; throws: boolean };

export type Command =
  // All updates are submitted at the same moment.
  | { kind: 'updates'; updates: readonly Update[] }
  // The lane of each owner, in the order of `owners`, and the free slots of each lane.
  | { kind: 'claim'; at: number; most: number; lanes: readonly number[]; rooms: readonly number[] };

const kind = <K extends string>(name: K) => fc.constant(name);
const owner = fc.constantFrom(...owners);
const time = fc.nat({ max: 12 });
const due = fc.oneof({ weight: 5, arbitrary: time }, { weight: 1, arbitrary: fc.constant(null) });
const traits: fc.Arbitrary<Traits> = fc.record({ due, isUrgent: fc.boolean(), isDull: fc.boolean() });
const finished = traits.map((some) => ({ ...some, due: null }));
const enqueue = fc.record({ kind: kind('enqueue'), owner, traits });
const settle = fc.record({
  kind: kind('settle'),
  which: fc.nat(),
  traits: fc.oneof(traits, finished, fc.constant(undefined)),
});
const amend = fc.record({
  kind: kind('amend'),
  owner: fc.option(owner, { nil: undefined }),
  traits,
  every: fc.integer({ min: 1, max: 3 }),
});
const thin = fc.record({ kind: kind('thin'), owner, keep: fc.nat({ max: 3 }) });
const trim = fc.record({ kind: kind('trim'), owner, keep: fc.nat({ max: 3 }) });
const drop = fc.record({ kind: kind('drop'), owner });
/** No row is settled after its owner was dropped in the same update. */
const several = fc
  .tuple(
    fc.array(fc.oneof(enqueue, settle, trim), { minLength: 1, maxLength: 4 }),
    fc.array(fc.oneof(enqueue, trim, drop), { minLength: 1, maxLength: 3 }),
  )
  .map(([some, more]) => [...some, ...more]);
const changes: fc.Arbitrary<Change[]> = fc.oneof(
  { weight: 8, arbitrary: fc.array(enqueue, { minLength: 1, maxLength: 4 }) },
  { weight: 6, arbitrary: fc.tuple(settle) },
  { weight: 2, arbitrary: fc.tuple(settle, trim) },
  { weight: 2, arbitrary: fc.tuple(amend) },
  { weight: 1, arbitrary: fc.tuple(amend, trim) },
  { weight: 2, arbitrary: fc.tuple(thin) },
  { weight: 1, arbitrary: fc.tuple(thin, amend, trim) },
  { weight: 1, arbitrary: fc.tuple(trim) },
  { weight: 1, arbitrary: fc.tuple(drop) },
  { weight: 1, arbitrary: several },
);
const update: fc.Arbitrary<Update> = fc.record({ changes, throws: fc.nat({ max: 9 }).map((n) => n === 0) });
const updates = fc.oneof(
  { weight: 25, arbitrary: fc.tuple(update) },
  { weight: 5, arbitrary: fc.array(update, { minLength: 2, maxLength: 5 }) },
  // Enough to make the memory queue rebuild its heaps.
  {
    weight: 1,
    arbitrary: amend.map((one) => Array.from({ length: 40 }, () => ({ changes: [one], throws: false }))),
  },
);
const often = <T>(usual: T, unusual: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: unusual });
const lane = fc.nat({ max: 2 });
const room = fc.constantFrom(-1, 0, 1, 2, 3, 99);

export const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 31, arbitrary: fc.record({ kind: kind('updates'), updates }) },
  {
    weight: 20,
    arbitrary: fc.record({
      kind: kind('claim'),
      at: time,
      most: often(99, fc.nat({ max: 4 })),
      lanes: often([0, 1, 2], fc.tuple(lane, lane, lane)),
      rooms: often([99, 99, 99], fc.tuple(room, room, room)),
    }),
  },
);

type Entry = { row: Chore; isClaimed: boolean; placed: number; finished: number };

/** Sorts true before false. */
const trueFirst = (one: boolean, other: boolean) => Number(other) - Number(one);

export type Model = ReturnType<typeof createModel>;

/** All rows, oldest first. `placed` and `finished` number the moments when a row was added or replaced and when it finished. */
export function createModel() {
  let entries: Entry[] = [];
  let moments = 0;

  function createEntry(row: Chore): Entry {
    moments += 1;
    return { row, isClaimed: false, placed: moments, finished: row.due === null ? moments : 0 };
  }
  const replace = (entry: Entry, row: Chore) => Object.assign(entry, createEntry(row));
  const finishedOf = (owner: string) =>
    entries
      .filter(({ row }) => row.owner === owner && row.due === null)
      .sort((one, other) => trueFirst(one.row.isDull, other.row.isDull) || one.finished - other.finished);

  return {
    enqueue(row: Chore): void {
      entries.push(createEntry(row));
    },
    settle({ id }: Chore, row: Chore): void {
      for (const entry of entries) if (entry.row.id === id) replace(entry, row);
    },
    amend(owner: string | undefined, change: (row: Chore) => Chore): void {
      for (const entry of entries) {
        if (entry.row.due === null || entry.isClaimed) continue;
        if (owner !== undefined && owner !== entry.row.owner) continue;
        const row = change(entry.row);
        if (row !== entry.row) replace(entry, row);
      }
    },
    thin(owner: string, keep: number): void {
      const isSpare = ({ row, isClaimed }: Entry) =>
        row.owner === owner && row.due !== null && !row.isUrgent && !isClaimed;
      const spare = entries.filter(isSpare);
      const removed = spare.slice(0, Math.max(0, spare.length - keep));
      entries = entries.filter((entry) => !removed.includes(entry));
    },
    trim(owner: string, keep: number): void {
      const removed = finishedOf(owner).slice(0, Math.max(0, finishedOf(owner).length - keep));
      entries = entries.filter((entry) => !removed.includes(entry));
    },
    drop(owner: string): void {
      entries = entries.filter(({ row }) => row.owner !== owner);
    },
    claim({ id }: Chore): void {
      for (const entry of entries) if (entry.row.id === id) entry.isClaimed = true;
    },
    has: ({ id }: Chore) => entries.some(({ row }) => row.id === id),
    rows: (owner?: string) =>
      entries.map(({ row }) => row).filter((row) => owner === undefined || row.owner === owner),
    /** The rows that can be claimed now or later, oldest first. */
    claimable: () =>
      entries
        .filter(({ row, isClaimed }) => row.due !== null && !isClaimed)
        .map(({ row, placed }) => ({ row, placed, due: row.due ?? NaN })),
  };
}
