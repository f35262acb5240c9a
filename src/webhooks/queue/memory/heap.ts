// A binary min-heap. Entries with equal keys come out in the order they were added.

export type Heap<T> = {
  push: (at: number, value: T) => void;
  peek: () => { readonly at: number; readonly value: T } | undefined;
  pop: () => void;
  size: () => number;
};

type Entry<T> = { readonly at: number; readonly number: number; readonly value: T };

export function createHeap<T>(): Heap<T> {
  const entries: Entry<T>[] = [];
  let added = 0;

  function isBefore(a: Entry<T>, b: Entry<T>): boolean {
    return a.at < b.at || (a.at === b.at && a.number < b.number);
  }

  function rise(entry: Entry<T>, from: number): void {
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = entries[parentIndex];
      if (!parent || isBefore(parent, entry)) break;
      entries[index] = parent;
      index = parentIndex;
    }
    entries[index] = entry;
  }

  function sink(entry: Entry<T>): void {
    let index = 0;
    for (;;) {
      const left = entries[2 * index + 1];
      const right = entries[2 * index + 2];
      const child = left && right && isBefore(right, left) ? right : left;
      if (!child || isBefore(entry, child)) break;
      entries[index] = child;
      index = 2 * index + (child === left ? 1 : 2);
    }
    entries[index] = entry;
  }

  return {
    push(at, value) {
      rise({ at, number: (added += 1), value }, entries.length);
    },
    size: () => entries.length,
    peek: () => entries[0],
    pop() {
      const last = entries.pop();
      if (last && entries.length > 0) sink(last);
    },
  };
}
