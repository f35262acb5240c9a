// Runs random sequences of queue operations on every store and compares the results with the model.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';
import { LostClaim, type Queue, type Transaction } from '../../src/store/transaction.ts';
import { timelessRuntime } from '../kit/runtime.ts';
import { createTestDatabase } from './backends.ts';
import { type Chore, chores, sizeOf } from './definitions.ts';
import {
  type Change,
  type Command,
  type Model,
  type Update,
  command,
  createModel,
  owners,
} from './queue-model.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 400);
const unlimited = { laneOf: () => '', roomIn: () => Infinity };

type System = {
  store: Store;
  model: Model;
  /** Rows that are claimed and not settled. */
  held: Chore[];
  /** For each owner with a row that could be claimed: the owners that had a turn since. */
  passedOver: Map<string, Set<string>>;
  ids: number;
};

/** Returns the operation of the change, to be run on the store and on the model. Removes a settled row from `held`. */
function toAct(system: System, change: Change): (on: Pick<Model, keyof Model & keyof Transaction>) => void {
  const n = (system.ids += 1);
  switch (change.kind) {
    case 'enqueue': {
      const row = { id: `${change.owner}${n}`, owner: change.owner, ...change.traits, n };
      return (on) => on.enqueue(row);
    }
    case 'settle': {
      const [row] = system.held.splice(change.which % system.held.length, 1);
      if (!row) return () => undefined;
      const settled = change.traits === undefined ? row : { ...row, ...change.traits, n };
      return (on) => on.settle(row, settled);
    }
    case 'amend': {
      // Store and model must get the same object: its identity shows whether the row was changed.
      const known = new Map<string, Chore>();
      return (on) =>
        on.amend(change.owner, (row) => {
          const changed = known.get(row.id) ?? { ...row, ...change.traits };
          known.set(row.id, changed);
          return row.n % change.every === 0 ? changed : row;
        });
    }
    case 'thin':
      return (on) => on.thin(change.owner, change.keep);
    case 'trim':
      return (on) => on.trim(change.owner, change.keep);
    case 'drop':
      return (on) => on.drop(change.owner);
  }
}

/** Runs the update on the model. Returns the update for the store and its expected outcome. */
function prepare(system: System, { changes, throws }: Update) {
  const { model } = system;
  const { held } = system;
  system.held = [...held];
  const acts = changes.map((change) => toAct(system, change));
  const settled = held.filter((row) => !system.held.includes(row));
  const isLost = !settled.every(model.has);
  const change = (transaction: Transaction) => {
    for (const act of acts) {
      act({
        enqueue: (row) => transaction.enqueue(chores, row),
        settle: (claimed, row) => transaction.settle(chores, claimed, row),
        amend: (owner, change) => transaction.amend(chores, owner, change),
        thin: (owner, keep) => transaction.thin(chores, owner, keep),
        trim: (owner, keep) => transaction.trim(chores, owner, keep),
        drop: (owner) => transaction.drop(chores, owner),
      });
    }
    if (throws && !isLost) throw new Error('no');
  };
  if (isLost || throws) {
    // The update failed, so its rows are still claimed unless they were dropped.
    system.held = [...system.held, ...settled.filter(model.has)];
    return { change, outcome: isLost ? LostClaim.name : 'Error', hasTouched: false };
  }
  const before = model.rows();
  for (const act of acts) act(model);
  const after = model.rows();
  const isSame = before.length === after.length && before.every((row, index) => row === after[index]);
  return { change, outcome: 'done', hasTouched: !isSame || settled.length > 0 };
}

async function update(system: System, { updates }: Command & { kind: 'updates' }): Promise<void> {
  const { store, passedOver } = system;
  const prepared = updates.map((one) => prepare(system, one));
  const version = store.version(chores);
  const results = await Promise.allSettled(prepared.map(({ change }) => store.update(change)));
  const outcomes = results.map((result) =>
    result.status === 'fulfilled' ? 'done' : (result.reason as Error).name,
  );
  expect(outcomes).toEqual(prepared.map(({ outcome }) => outcome));
  if (prepared.some(({ hasTouched }) => hasTouched)) expect(store.version(chores)).not.toBe(version);
  if (!outcomes.includes('done')) expect(store.version(chores)).toBe(version);
  // An owner that had no pending rows for a moment may have lost its turn.
  const kinds = updates.flatMap(({ changes }) => changes.map(({ kind }) => kind));
  if (kinds.includes('amend') || kinds.includes('drop')) passedOver.clear();
}

async function claim(system: System, request: Command & { kind: 'claim' }): Promise<void> {
  const { store, model, held, passedOver } = system;
  const { at, most, lanes, rooms } = request;
  const laneOf = (owner: string) => String(lanes[owners.indexOf(owner)]);
  const roomIn = (lane: string) => rooms[Number(lane)] ?? NaN;
  const { rows, nextAt } = await store.claim(chores, { at, most, laneOf, roomIn });

  /** The rows of an owner that may be claimed next: one, or several with the same due time, whose order changes when they are replaced. */
  const nextOf = (owner: string, taken: readonly Chore[]) => {
    const lane = laneOf(owner);
    if (taken.filter((other) => laneOf(other.owner) === lane).length >= roomIn(lane)) return [];
    const due = model.claimable().filter((entry) => entry.row.owner === owner && entry.due <= at);
    const urgent = due.filter(({ row }) => row.isUrgent);
    const among = urgent.length > 0 ? urgent : due;
    const first = among.filter((entry) => entry.due === Math.min(...among.map(({ due }) => due)));
    return first
      .filter(({ placed }, index) => first.slice(0, index).every((older) => older.placed > placed))
      .map(({ row }) => row);
  };
  for (const [index, row] of rows.entries()) {
    const taken = rows.slice(0, index);
    expect(nextOf(row.owner, taken)).toContainEqual(row);
    for (const other of owners) {
      if (other === row.owner || nextOf(other, taken).length === 0) passedOver.delete(other);
      else {
        const ahead = passedOver.get(other) ?? new Set();
        expect(ahead.has(row.owner), `${row.owner} goes twice while ${other} waits`).toBe(false);
        passedOver.set(other, ahead.add(row.owner));
      }
    }
    model.claim(row);
    held.push(row);
  }
  expect(rows.length).toBeLessThanOrEqual(most);
  if (rows.length < most) expect(owners.flatMap((owner) => nextOf(owner, rows))).toEqual([]);

  const later = model.claimable().flatMap(({ due }) => (due > at ? [due] : []));
  const hasSeenAll = rows.length < most && model.claimable().every(({ due }) => due > at);
  if (hasSeenAll) expect(nextAt).toBe(later.length > 0 ? Math.min(...later) : undefined);
  else if (nextAt !== undefined) expect(later).toContain(nextAt);
}

async function check({ store, model }: System): Promise<void> {
  const unfinished = model.rows().filter(({ due }) => due !== null);
  expect(store.waiting(chores)).toBe(unfinished.length);
  expect(store.waitingBytes(chores)).toBe(unfinished.reduce((sum, { id }) => sum + sizeOf(id), 0));
  expect(await store.oldest(chores)).toEqual(unfinished[0]);
  for (const owner of owners) {
    const newestFirst = model.rows(owner).reverse();
    const total = newestFirst.length;
    expect(await store.page(chores, owner, 0, 1000)).toEqual({ rows: newestFirst, total });
    expect(await store.page(chores, owner, 1, 2)).toEqual({ rows: newestFirst.slice(1, 3), total });
  }
  for (const row of model.rows()) expect(await store.find(chores, row.id)).toEqual(row);
}

/** The stores run no background tasks: those would change the versions of queues. */
const stores: [string, () => Promise<Store>][] = [
  ['memory', () => Promise.resolve(createMemoryStore())],
  ['PostgreSQL', async () => (await createTestDatabase()).open({ runtime: timelessRuntime })],
];

it.each(stores)(
  'a queue of the %s store behaves like the model',
  async (name, open) => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 60 }), async (commands) => {
        const store = await open();
        try {
          const system: System = { store, model: createModel(), held: [], passedOver: new Map(), ids: 0 };
          const known = new Set<string>();
          for (const request of commands) {
            if (request.kind === 'claim') await claim(system, request);
            else await update(system, request);
            await check(system);
            for (const { id } of system.model.rows()) known.add(id);
          }
          const left = new Set(system.model.rows().map(({ id }) => id));
          for (const id of known) if (!left.has(id)) expect(await store.find(chores, id)).toBeUndefined();
          // No row is lost: a last claim returns exactly the pending, unclaimed rows.
          const waiting = system.model.claimable().map(({ row }) => row.id);
          const { rows, nextAt } = await store.claim(chores, { at: 99, most: 1e6, ...unlimited });
          expect(rows.map(({ id }) => id).sort()).toEqual(waiting.sort());
          expect(nextAt).toBeUndefined();
        } finally {
          await store.close();
        }
      }),
      // PostgreSQL is slower, so it gets fewer runs.
      { numRuns: name === 'memory' ? runs : Math.ceil(runs / 20) },
    );
  },
  300_000,
);

it('removes outdated entries of replaced rows', async () => {
  let calls = 0;
  const counted: Queue<Chore> = { ...chores, keyOf: ({ id }) => ((calls += 1), id) };
  const store = createMemoryStore();
  const row = { id: 'a1', owner: 'a', due: 0, isUrgent: false, isDull: false, n: 0 };
  await store.update((transaction) => transaction.enqueue(counted, row));
  for (let due = 1; due <= 1000; due += 1)
    await store.update((transaction) =>
      transaction.amend(counted, 'a', (row) => ({ ...row, due, isUrgent: due % 2 === 0 })),
    );
  calls = 0;
  const { rows } = await store.claim(counted, { at: 1000, most: 10, ...unlimited });
  expect(rows).toEqual([{ ...row, due: 1000, isUrgent: true }]);
  expect(calls).toBeLessThan(100);
});
