// A queue in memory: rows by owner, the waiting ones in the order they are due, owners taking turns.
import { type Heap, createHeap } from './heap.ts';
import type { Claim, Claimed } from './store.ts';
import type { Queue, Waiting } from './transaction.ts';

export type MemoryQueue<T> = {
  put: (row: T) => void;
  settle: (row: T) => void;
  trim: (owner: string, keep: number) => void;
  drop: (owner: string) => void;
  /** Rows that wait and are not claimed, of one owner or of all. */
  unclaimed: (owner: string | undefined) => Iterable<T>;
  waiting: () => Waiting<T>;
  claim: (claim: Claim<T>) => Claimed<T>;
  find: (key: string) => T | undefined;
  page: (owner: string, start: number, num: number) => { rows: readonly T[]; total: number };
};

type Shelf<T> = {
  /** Oldest first. */
  readonly rows: Map<string, T>;
  /** Also holds rows that have changed since: those are passed over. */
  readonly due: Heap<T>;
  /** Keys, the one that was finished first in front. */
  readonly finished: Set<string>;
};

export function createMemoryQueue<T>({ keyOf, ownerOf, dueAt }: Queue<T>): MemoryQueue<T> {
  const owners = new Map<string, Shelf<T>>();
  const rows = new Map<string, T>();
  const claimed = new Set<string>();
  /** Owners that may have something due, whose turn it is in front. */
  const turns = new Set<string>();
  let unfinished = 0;

  function shelfOf(owner: string): Shelf<T> {
    const shelf = owners.get(owner) ?? { rows: new Map(), due: createHeap<T>(), finished: new Set<string>() };
    owners.set(owner, shelf);
    return shelf;
  }

  function put(row: T): void {
    const key = keyOf(row);
    const owner = ownerOf(row);
    const shelf = shelfOf(owner);
    const before = rows.get(key);
    if (before !== undefined && dueAt(before) !== null) unfinished -= 1;
    rows.set(key, row);
    shelf.rows.set(key, row);
    const at = dueAt(row);
    if (at === null) {
      shelf.finished.add(key);
      return;
    }
    unfinished += 1;
    shelf.finished.delete(key);
    shelf.due.push(at, row);
    turns.add(owner);
  }

  function remove(key: string, shelf: Shelf<T>): void {
    const row = rows.get(key);
    if (row !== undefined && dueAt(row) !== null) unfinished -= 1;
    rows.delete(key);
    shelf.rows.delete(key);
    shelf.finished.delete(key);
  }

  /** The first of the owner's rows that waits for its time. */
  function headOf(shelf: Shelf<T>) {
    for (;;) {
      const head = shelf.due.peek();
      if (head === undefined) return undefined;
      const key = keyOf(head.value);
      if (rows.get(key) === head.value && !claimed.has(key)) return head;
      shelf.due.pop();
    }
  }

  function claim({ at, most, reserve }: Claim<T>): Claimed<T> {
    const taken: T[] = [];
    let nextAt: number | undefined;
    // An owner that had its turn goes to the end, where this loop comes by again.
    for (const owner of turns) {
      if (taken.length >= most) break;
      const shelf = shelfOf(owner);
      const head = headOf(shelf);
      if (head === undefined) {
        turns.delete(owner);
      } else if (head.at > at) {
        nextAt = Math.min(nextAt ?? Infinity, head.at);
      } else if (reserve(head.value)) {
        shelf.due.pop();
        claimed.add(keyOf(head.value));
        taken.push(head.value);
        turns.delete(owner);
        turns.add(owner);
      }
    }
    return { rows: taken, nextAt };
  }

  return {
    put,
    settle(row) {
      const key = keyOf(row);
      claimed.delete(key);
      if (rows.has(key)) put(row);
    },
    trim(owner, keep) {
      const shelf = shelfOf(owner);
      for (const key of shelf.finished) {
        if (shelf.finished.size <= keep) break;
        remove(key, shelf);
      }
    },
    drop(owner) {
      const shelf = shelfOf(owner);
      for (const key of shelf.rows.keys()) remove(key, shelf);
      owners.delete(owner);
      turns.delete(owner);
    },
    *unclaimed(owner) {
      const among = owner === undefined ? rows : (owners.get(owner)?.rows ?? []);
      for (const [key, row] of among) if (dueAt(row) !== null && !claimed.has(key)) yield row;
    },
    waiting: () => ({
      count: unfinished,
      oldest: () => {
        for (const row of rows.values()) if (dueAt(row) !== null) return row;
        return undefined;
      },
    }),
    claim,
    find: (key) => rows.get(key),
    page(owner, start, num) {
      const all = [...(owners.get(owner)?.rows.values() ?? [])];
      return { rows: all.reverse().slice(start, start + num), total: all.length };
    },
  };
}
