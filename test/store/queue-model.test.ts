// Random sequences of everything that can be done to a queue, on the memory store, against a plain array that is searched anew
// for every answer.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';
import type { Queue, Transaction } from '../../src/store/transaction.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 400);

type Errand = {
  readonly id: string;
  readonly owner: string;
  readonly due: number | null;
  readonly urgent: boolean;
  readonly dull: boolean;
  readonly n: number;
};

const errands: Queue<Errand> = {
  name: 'errands',
  keyOf: ({ id }) => id,
  ownerOf: ({ owner }) => owner,
  dueAt: ({ due }) => due,
  isUrgent: ({ urgent }) => urgent,
  isDull: ({ dull }) => dull,
};
const owners = ['a', 'b', 'c'];
const freely = { laneOf: () => '', roomIn: () => Infinity };

/** What a row may be given anew. */
type Traits = Pick<Errand, 'due' | 'urgent' | 'dull'>;

type Change =
  | { kind: 'enqueue'; owner: string; traits: Traits }
  // Of the rows that were claimed and not settled, dropped ones included; undefined gives it free as it is.
  | { kind: 'settle'; which: number; traits: Traits | undefined }
  // One row in `every` gets the traits, the others stay as they are.
  | { kind: 'amend'; owner: string | undefined; traits: Traits; every: number }
  | { kind: 'trim'; owner: string; keep: number }
  | { kind: 'drop'; owner: string };

type Command =
  // So often, one after another.
  | { kind: 'update'; changes: readonly Change[]; throws: boolean; times: number }
  // The lane of each owner, by its number among the owners, and the room in each lane.
  | { kind: 'claim'; at: number; most: number; lanes: readonly number[]; rooms: readonly number[] };

const kind = <K extends string>(name: K) => fc.constant(name);
const owner = fc.constantFrom(...owners);
const time = fc.nat({ max: 12 });
const due = fc.oneof({ weight: 5, arbitrary: time }, { weight: 1, arbitrary: fc.constant(null) });
const traits: fc.Arbitrary<Traits> = fc.record({ due, urgent: fc.boolean(), dull: fc.boolean() });
const finished = traits.map((some) => ({ ...some, due: null }));
const enqueue = fc.record({ kind: kind('enqueue'), owner, traits });
const settle = fc.record({
  ...{ kind: kind('settle'), which: fc.nat() },
  traits: fc.oneof(traits, finished, fc.constant(undefined)),
});
const amend = fc.record({
  ...{ kind: kind('amend'), owner: fc.option(owner, { nil: undefined }), traits },
  every: fc.integer({ min: 1, max: 3 }),
});
const trim = fc.record({ kind: kind('trim'), owner, keep: fc.nat({ max: 3 }) });
const drop = fc.record({ kind: kind('drop'), owner });
const changes: fc.Arbitrary<Change[]> = fc.oneof(
  { weight: 8, arbitrary: fc.array(enqueue, { minLength: 1, maxLength: 4 }) },
  { weight: 6, arbitrary: fc.tuple(settle) },
  { weight: 2, arbitrary: fc.tuple(settle, trim) },
  { weight: 2, arbitrary: fc.tuple(amend) },
  { weight: 1, arbitrary: fc.tuple(amend, trim) },
  { weight: 1, arbitrary: fc.tuple(trim) },
  { weight: 1, arbitrary: fc.tuple(drop) },
  { weight: 1, arbitrary: fc.array(fc.oneof(enqueue, settle, trim, drop), { minLength: 2, maxLength: 5 }) },
);
const often = <T>(usual: T, unusual: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: unusual });
const lane = fc.nat({ max: 2 });
const room = fc.constantFrom(-1, 0, 1, 2, 3, 99);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.record({
      ...{ kind: kind('update'), changes, times: fc.constant(1) },
      throws: fc.nat({ max: 9 }).map((n) => n === 0),
    }),
  },
  // Enough to make the queue leave behind what it remembers of rows as they were.
  {
    weight: 1,
    arbitrary: fc.record({
      ...{ kind: kind('update'), changes: fc.tuple(amend), times: fc.constant(40) },
      throws: fc.constant(false),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({
      ...{ kind: kind('claim'), at: time, most: often(99, fc.nat({ max: 4 })) },
      lanes: often([0, 1, 2], fc.tuple(lane, lane, lane)),
      rooms: often([99, 99, 99], fc.tuple(room, room, room)),
    }),
  },
);

type Entry = { row: Errand; isClaimed: boolean; placed: number; finished: number };

/** What is true sorts first. */
const isFirst = (one: boolean, other: boolean) => Number(other) - Number(one);

/** Every row there is, oldest first. `placed` and `finished` number the moments when a row was put in and when it was finished. */
function createModel() {
  let entries: Entry[] = [];
  let moments = 0;

  function place(row: Errand): Entry {
    moments += 1;
    return { row, isClaimed: false, placed: moments, finished: row.due === null ? moments : 0 };
  }
  const replace = (entry: Entry, row: Errand) => Object.assign(entry, place(row));
  const finishedOf = (owner: string) =>
    entries
      .filter(({ row }) => row.owner === owner && row.due === null)
      .sort((one, other) => isFirst(one.row.dull, other.row.dull) || one.finished - other.finished);

  return {
    enqueue(row: Errand): void {
      entries.push(place(row));
    },
    settle(row: Errand): void {
      for (const entry of entries) if (entry.row.id === row.id) replace(entry, row);
    },
    amend(owner: string | undefined, change: (row: Errand) => Errand): void {
      for (const entry of entries) {
        if (entry.row.due === null || entry.isClaimed) continue;
        if (owner !== undefined && owner !== entry.row.owner) continue;
        const row = change(entry.row);
        if (row !== entry.row) replace(entry, row);
      }
    },
    trim(owner: string, keep: number): void {
      const removed = finishedOf(owner).slice(0, Math.max(0, finishedOf(owner).length - keep));
      entries = entries.filter((entry) => !removed.includes(entry));
    },
    drop(owner: string): void {
      entries = entries.filter(({ row }) => row.owner !== owner);
    },
    claim(row: Errand): void {
      for (const entry of entries) if (entry.row === row) entry.isClaimed = true;
    },
    rows: (owner?: string) =>
      entries.map(({ row }) => row).filter((row) => owner === undefined || row.owner === owner),
    /** What can be claimed, now or later, oldest first. */
    claimable: () =>
      entries
        .filter(({ row, isClaimed }) => row.due !== null && !isClaimed)
        .map(({ row, placed }) => ({ row, placed, due: row.due ?? NaN })),
  };
}

type Model = ReturnType<typeof createModel>;

type System = {
  store: Store;
  model: Model;
  inHand: Errand[];
  passedOver: Map<string, Set<string>>;
  ids: number;
};

/** What the change does to the queue, the same for the store and for the model. */
function toAct(system: System, change: Change): (on: Pick<Model, keyof Model & keyof Transaction>) => void {
  const n = (system.ids += 1);
  switch (change.kind) {
    case 'enqueue': {
      const row = { id: `${change.owner}${n}`, owner: change.owner, ...change.traits, n };
      return (on) => on.enqueue(row);
    }
    case 'settle': {
      const row = system.inHand[change.which % system.inHand.length];
      if (!row) return () => undefined;
      const settled = change.traits === undefined ? row : { ...row, ...change.traits, n };
      return (on) => on.settle(settled);
    }
    case 'amend': {
      // Both must be given the very same row, which says whether it was changed.
      const known = new Map<string, Errand>();
      return (on) =>
        on.amend(change.owner, (row) => {
          const changed = known.get(row.id) ?? { ...row, ...change.traits };
          known.set(row.id, changed);
          return row.n % change.every === 0 ? changed : row;
        });
    }
    case 'trim':
      return (on) => on.trim(change.owner, change.keep);
    case 'drop':
      return (on) => on.drop(change.owner);
  }
}

async function update(system: System, { changes, throws }: Command & { kind: 'update' }): Promise<void> {
  const { store, model } = system;
  const acts: ReturnType<typeof toAct>[] = [];
  const settled: Errand[] = [];
  for (const change of changes) {
    acts.push(toAct(system, change));
    if (change.kind !== 'settle' || throws) continue;
    // Nobody settles a row that is not in hand.
    settled.push(...system.inHand.splice(change.which % system.inHand.length, 1));
  }
  const version = store.version(errands);
  const done = store.update((transaction) => {
    const { enqueue, settle, amend, trim, drop } = transaction;
    for (const act of acts) {
      act({
        enqueue: (row) => enqueue(errands, row),
        settle: (row) => settle(errands, row),
        amend: (owner, change) => amend(errands, owner, change),
        trim: (owner, keep) => trim(errands, owner, keep),
        drop: (owner) => drop(errands, owner),
      });
    }
    if (throws) throw new Error('no');
  });
  if (throws) {
    await expect(done).rejects.toThrow('no');
    expect(store.version(errands)).toBe(version);
    return;
  }
  await done;
  const before = model.rows();
  for (const act of acts) act(model);
  const after = model.rows();
  const isSame = before.length === after.length && before.every((row, index) => row === after[index]);
  if (!isSame || settled.length > 0) expect(store.version(errands)).not.toBe(version);
  // Whoever had nothing left for a moment may have to queue up again.
  if (changes.some(({ kind }) => kind === 'amend' || kind === 'drop')) system.passedOver.clear();
}

async function claim(system: System, asked: Command & { kind: 'claim' }): Promise<void> {
  const { store, model, inHand, passedOver } = system;
  const { at, most, lanes, rooms } = asked;
  const laneOf = (owner: string) => String(lanes[owners.indexOf(owner)]);
  const roomIn = (lane: string) => rooms[Number(lane)] ?? NaN;
  const { rows, nextAt } = await store.claim(errands, { at, most, laneOf, roomIn });

  /** What may come next of an owner: one row, or several due alike that have overtaken one another when they were replaced. */
  const nextOf = (owner: string, taken: readonly Errand[]) => {
    const lane = laneOf(owner);
    if (taken.filter((other) => laneOf(other.owner) === lane).length >= roomIn(lane)) return [];
    const due = model.claimable().filter((entry) => entry.row.owner === owner && entry.due <= at);
    const urgent = due.filter(({ row }) => row.urgent);
    const among = urgent.length > 0 ? urgent : due;
    const first = among.filter((entry) => entry.due === Math.min(...among.map(({ due }) => due)));
    return first
      .filter(({ placed }, index) => first.slice(0, index).every((older) => older.placed > placed))
      .map(({ row }) => row);
  };
  for (const [index, row] of rows.entries()) {
    const taken = rows.slice(0, index);
    expect(nextOf(row.owner, taken)).toContain(row);
    for (const other of owners) {
      if (other === row.owner || nextOf(other, taken).length === 0) passedOver.delete(other);
      else {
        const ahead = passedOver.get(other) ?? new Set();
        expect(ahead.has(row.owner), `${row.owner} goes twice while ${other} waits`).toBe(false);
        passedOver.set(other, ahead.add(row.owner));
      }
    }
    model.claim(row);
    inHand.push(row);
  }
  expect(rows.length).toBeLessThanOrEqual(most);
  if (rows.length < most) expect(owners.flatMap((owner) => nextOf(owner, rows))).toEqual([]);

  const later = model.claimable().flatMap(({ due }) => (due > at ? [due] : []));
  const hasSeenAll = rows.length < most && model.claimable().every(({ due }) => due > at);
  if (hasSeenAll) expect(nextAt).toBe(later.length > 0 ? Math.min(...later) : undefined);
  else if (nextAt !== undefined) expect(later).toContain(nextAt);
}

async function check({ store, model }: System): Promise<void> {
  const { count, oldest } = store.waiting(errands);
  const unfinished = model.rows().filter(({ due }) => due !== null);
  expect(count).toBe(unfinished.length);
  expect(oldest()).toEqual(unfinished[0]);
  for (const owner of owners) {
    const newestFirst = model.rows(owner).reverse();
    const total = newestFirst.length;
    expect(await store.page(errands, owner, 0, 1000)).toEqual({ rows: newestFirst, total });
    expect(await store.page(errands, owner, 1, 2)).toEqual({ rows: newestFirst.slice(1, 3), total });
  }
  for (const row of model.rows()) expect(await store.find(errands, row.id)).toEqual(row);
}

it('a queue behaves like the model whatever is done to it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 60 }), async (commands) => {
      const store = createMemoryStore();
      const system: System = { store, model: createModel(), inHand: [], passedOver: new Map(), ids: 0 };
      const known = new Set<string>();
      for (const asked of commands) {
        if (asked.kind === 'claim') await claim(system, asked);
        else for (let time = 0; time < asked.times; time += 1) await update(system, asked);
        await check(system);
        for (const { id } of system.model.rows()) known.add(id);
      }
      const left = new Set(system.model.rows().map(({ id }) => id));
      for (const id of known) if (!left.has(id)) expect(await store.find(errands, id)).toBeUndefined();
      // Nothing is lost: all that waits and is in nobody's hands is handed out in the end, and only that.
      const waiting = system.model.claimable().map(({ row }) => row.id);
      const { rows, nextAt } = await store.claim(errands, { at: 99, most: 1e6, ...freely });
      expect(rows.map(({ id }) => id).sort()).toEqual(waiting.sort());
      expect(nextAt).toBeUndefined();
    }),
    { numRuns: runs },
  );
}, 300_000);

it('forgets what rows were before they were replaced', async () => {
  let asked = 0;
  const counted: Queue<Errand> = { ...errands, keyOf: ({ id }) => ((asked += 1), id) };
  const store = createMemoryStore();
  const row = { id: 'a1', owner: 'a', due: 0, urgent: false, dull: false, n: 0 };
  await store.update((transaction) => transaction.enqueue(counted, row));
  for (let due = 1; due <= 1000; due += 1)
    await store.update((transaction) =>
      transaction.amend(counted, 'a', (row) => ({ ...row, due, urgent: due % 2 === 0 })),
    );
  asked = 0;
  const { rows } = await store.claim(counted, { at: 1000, most: 10, ...freely });
  expect(rows).toEqual([{ ...row, due: 1000, urgent: true }]);
  expect(asked).toBeLessThan(100);
});
