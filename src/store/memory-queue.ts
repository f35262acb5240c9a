// A queue in memory (transaction.ts explains the states of a row).
//
// Every owner has two heaps of its pending rows, ordered by due time: one for urgent rows and one for the others. A row that is replaced,
// claimed or removed stays in its heap; reading the heap skips such outdated entries, and `tidy` rebuilds the heaps before they pile up.
// `claim` goes round the owners: an owner whose row was claimed moves to the end of `turns`, so an owner with many rows cannot starve the
// others.
import { type Heap, createHeap } from './heap.ts';
import type { Claim, Claimed } from './store.ts';
import type { Queue } from './transaction.ts';

/** The most bytes of finished rows. Beyond it, the rows that finished first are removed, of all owners. */
const maxFinishedBytes = 64 * 1024 ** 2;

export type MemoryQueue<T> = {
  put: (row: T) => void;
  /** Whether the row is claimed and still the one that `claim` returned. */
  holds: (claimed: T) => boolean;
  settle: (claimed: T, row: T) => void;
  thin: (owner: string, keep: number) => void;
  trim: (owner: string, keep: number) => void;
  drop: (owner: string) => void;
  amend: (owner: string | undefined, change: (row: T) => T) => void;
  waiting: () => number;
  waitingBytes: () => number;
  oldest: () => T | undefined;
  claim: (claim: Claim) => Claimed<T>;
  find: (key: string) => T | undefined;
  page: (owner: string, start: number, num: number) => { rows: readonly T[]; total: number };
};

type Lines<T> = { readonly urgent: Heap<T>; readonly other: Heap<T> };

/** The rows of one owner. */
type Shelf<T> = {
  /** Oldest first. */
  readonly rows: Map<string, T>;
  /** Pending rows by due time, and outdated entries. */
  due: Lines<T>;
  /** Keys in the order the rows finished; keys of dull rows are in `dull`. */
  readonly finished: Set<string>;
  readonly dull: Set<string>;
};

export function createMemoryQueue<T>(queue: Queue<T>): MemoryQueue<T> {
  const { keyOf, ownerOf, dueAt, isUrgent, isDull, bytesOf } = queue;
  const owners = new Map<string, Shelf<T>>();
  const rows = new Map<string, T>();
  const claimed = new Set<string>();
  /** Owners that may have pending rows, in the order of their turns. */
  const turns = new Set<string>();
  let unfinished = 0;
  let unfinishedBytes = 0;
  /** Keys of all owners in the order the rows finished. */
  const finished = new Set<string>();
  let finishedBytes = 0;

  /** `sign` is 1 for a row that is added and -1 for one that is removed or replaced. */
  function count(row: T | undefined, sign: 1 | -1): void {
    if (row === undefined) return;
    if (dueAt(row) === null) {
      finishedBytes += sign * bytesOf(row);
    } else {
      unfinished += sign;
      unfinishedBytes += sign * bytesOf(row);
    }
  }

  function limitFinished(): void {
    for (const key of finished) {
      const row = rows.get(key);
      if (row === undefined || finishedBytes <= maxFinishedBytes) return;
      remove(key, shelfOf(ownerOf(row)));
    }
  }

  function shelfOf(owner: string): Shelf<T> {
    const shelf = owners.get(owner) ?? createShelf<T>();
    owners.set(owner, shelf);
    return shelf;
  }

  function put(row: T): void {
    const key = keyOf(row);
    const owner = ownerOf(row);
    const shelf = shelfOf(owner);
    count(rows.get(key), -1);
    count(row, 1);
    rows.set(key, row);
    shelf.rows.set(key, row);
    const at = dueAt(row);
    if (at === null) {
      (isDull(row) ? shelf.dull : shelf.finished).add(key);
      finished.add(key);
      limitFinished();
      return;
    }
    forget(key, shelf);
    finished.delete(key);
    schedule(shelf, at, row);
    tidy(shelf);
    turns.add(owner);
  }

  function remove(key: string, shelf: Shelf<T>): void {
    count(rows.get(key), -1);
    rows.delete(key);
    finished.delete(key);
    claimed.delete(key);
    shelf.rows.delete(key);
    forget(key, shelf);
  }

  function schedule(shelf: Shelf<T>, at: number, row: T): void {
    (isUrgent(row) ? shelf.due.urgent : shelf.due.other).push(at, row);
  }

  /** Rebuilds the heaps when they hold more than twice as many entries as the owner has rows. */
  function tidy(shelf: Shelf<T>): void {
    const { urgent, other } = shelf.due;
    if (urgent.size() + other.size() <= 2 * shelf.rows.size + 16) return;
    shelf.due = createLines();
    for (const [key, row] of shelf.rows) {
      const at = dueAt(row);
      if (at !== null && !claimed.has(key)) schedule(shelf, at, row);
    }
  }

  /** The first entry of the heap that is not outdated. */
  function headOf(heap: Heap<T>) {
    for (;;) {
      const head = heap.peek();
      if (head === undefined) return undefined;
      const key = keyOf(head.value);
      if (rows.get(key) === head.value && !claimed.has(key)) return { ...head, heap };
      heap.pop();
    }
  }

  /** The owner's next row: an urgent row that is due, or else the row that is due first. */
  function nextOf({ due }: Shelf<T>, at: number) {
    const urgent = headOf(due.urgent);
    const other = headOf(due.other);
    if (!urgent || !other) return urgent ?? other;
    return urgent.at <= at || urgent.at < other.at ? urgent : other;
  }

  function claim({ at, most, laneOf, roomIn }: Claim): Claimed<T> {
    const taken: T[] = [];
    const rooms = new Map<string, number>();
    let nextAt: number | undefined;
    /** Takes one slot of the owner's lane; returns false if none is free. */
    function takeRoom(owner: string): boolean {
      const lane = laneOf(owner);
      const room = rooms.get(lane) ?? roomIn(lane);
      rooms.set(lane, Math.max(0, room - 1));
      return room > 0;
    }
    // The loop adds an owner to the end of the set it iterates over, so it visits the owner again.
    for (const owner of turns) {
      if (taken.length >= most) break;
      const shelf = shelfOf(owner);
      const head = nextOf(shelf, at);
      if (head === undefined) {
        turns.delete(owner);
      } else if (head.at > at) {
        nextAt = Math.min(nextAt ?? Infinity, head.at);
      } else if (takeRoom(owner)) {
        head.heap.pop();
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
    holds: (row) => claimed.has(keyOf(row)) && rows.get(keyOf(row)) === row,
    settle(held, row) {
      claimed.delete(keyOf(held));
      if (rows.has(keyOf(held))) put(row);
    },
    thin(owner, keep) {
      const shelf = owners.get(owner);
      if (!shelf) return;
      const isSpare = (row: T) => dueAt(row) !== null && !isUrgent(row) && !claimed.has(keyOf(row));
      const spare = [...shelf.rows.values()].filter(isSpare);
      for (const row of spare.slice(0, Math.max(0, spare.length - keep))) remove(keyOf(row), shelf);
    },
    trim(owner, keep) {
      const shelf = owners.get(owner);
      if (!shelf) return;
      for (const keys of [shelf.dull, shelf.finished]) {
        for (const key of keys) {
          if (shelf.dull.size + shelf.finished.size <= keep) return;
          remove(key, shelf);
        }
      }
    },
    drop(owner) {
      const shelf = owners.get(owner);
      if (shelf) for (const key of shelf.rows.keys()) remove(key, shelf);
      owners.delete(owner);
      turns.delete(owner);
    },
    amend(owner, change) {
      const among = owner === undefined ? rows : (owners.get(owner)?.rows ?? []);
      for (const [key, row] of [...among]) {
        if (dueAt(row) === null || claimed.has(key)) continue;
        const changed = change(row);
        if (changed !== row) put(changed);
      }
    },
    waiting: () => unfinished,
    waitingBytes: () => unfinishedBytes,
    oldest: () => {
      for (const row of rows.values()) if (dueAt(row) !== null) return row;
      return undefined;
    },
    claim,
    find: (key) => rows.get(key),
    page(owner, start, num) {
      const all = [...(owners.get(owner)?.rows.values() ?? [])];
      return { rows: all.reverse().slice(start, start + num), total: all.length };
    },
  };
}

function createShelf<T>(): Shelf<T> {
  return { rows: new Map(), due: createLines(), finished: new Set(), dull: new Set() };
}

function forget(key: string, { finished, dull }: { finished: Set<string>; dull: Set<string> }): void {
  finished.delete(key);
  dull.delete(key);
}

function createLines<T>(): Lines<T> {
  return { urgent: createHeap(), other: createHeap() };
}
