// The audit trail in memory: a limited number of entries. The user with the most entries loses the oldest one
// first, so no user can push out the entries of others. Entries without a user are grouped by their operation.
import {
  type AuditEntry,
  type AuditFilter,
  matchesAuditFilter,
  mergeKeyOf,
  mergeWithinMs,
} from '../store/audit-entry.ts';
import { freeze } from '../store/changes.ts';
import { type AuditStore, type AuditWrites, readBatch } from './audit-store.ts';

type AuditLimits = { readonly successes: number; readonly others: number };

/** The order of the entries is the order of `number`. Entries are frozen when they are read: most never are. */
type Numbered = { readonly number: number; entry: AuditEntry };

export class MemoryAudit {
  readonly #successes: Trail;
  readonly #others: Trail;
  /** The newest refusals, by their merge key. */
  readonly #refusals = new Map<string, Numbered>();
  #lastNumber = 0;

  constructor({ successes, others }: AuditLimits) {
    this.#successes = new Trail(successes);
    this.#others = new Trail(others);
  }

  readonly port: AuditStore = {
    page: async (filter, start, num) => {
      const found = this.#find(filter);
      return { entries: found.slice(start, start + num).map(toEntry), total: found.length };
    },
    read: async function* (this: MemoryAudit, filter: AuditFilter, start: number) {
      let batch = this.#find(filter).slice(start, start + readBatch);
      for (let last = batch.at(-1); last; last = batch.at(-1)) {
        yield batch.map(toEntry);
        batch = this.#find(filter, last).slice(0, readBatch);
      }
    }.bind(this),
    add: async (entry) => {
      if (!this.#has(entry.id)) this.add(entry);
    },
    count: async (refusal) => this.#count(refusal),
    removeBefore: async (at) => {
      for (const trail of [this.#successes, this.#others]) trail.removeBefore(at);
      this.#forgetRefusals(at);
    },
  };

  readonly writes: AuditWrites = {
    record: async (entry) => void this.add(entry),
  };

  dump(): readonly AuditEntry[] {
    return [...this.#successes.all(), ...this.#others.all()]
      .sort((a, b) => a.number - b.number)
      .map(({ entry }) => entry);
  }

  load(entries: readonly AuditEntry[]): void {
    for (const entry of entries) {
      const numbered = this.add(entry);
      if (entry.outcome === 'refused') this.#refusals.set(mergeKeyOf(entry), numbered);
    }
  }

  add(entry: AuditEntry): Numbered {
    const numbered = { number: (this.#lastNumber += 1), entry };
    (entry.outcome === 'success' ? this.#successes : this.#others).add(numbered);
    return numbered;
  }

  #count(refusal: AuditEntry): string {
    const key = mergeKeyOf(refusal);
    const equal = this.#refusals.get(key);
    if (equal && refusal.at - equal.entry.at < mergeWithinMs) {
      equal.entry = { ...equal.entry, count: equal.entry.count + refusal.count };
      return equal.entry.id;
    }
    this.#forgetRefusals(refusal.at - mergeWithinMs);
    this.#refusals.set(key, this.add(refusal));
    return refusal.id;
  }

  /** Only failures are added by themselves, and these are rare. */
  #has(id: string): boolean {
    return [...this.#successes.all(), ...this.#others.all()].some(({ entry }) => entry.id === id);
  }

  #forgetRefusals(at: number): void {
    for (const [key, { entry }] of this.#refusals) {
      if (entry.at > at) break;
      this.#refusals.delete(key);
    }
  }

  /** Newest first. `after` is the last of those that are already known. */
  #find(filter: AuditFilter, after?: Numbered): Numbered[] {
    return [...this.#successes.all(), ...this.#others.all()]
      .filter((one) => (!after || compare(after, one) < 0) && matchesAuditFilter(one.entry, filter))
      .sort(compare);
  }
}

function compare(a: Numbered, b: Numbered): number {
  return b.entry.at - a.entry.at || b.number - a.number;
}

function toEntry({ entry }: Numbered): AuditEntry {
  return freeze(entry);
}

/** Entries of one kind, by user or operation. */
class Trail {
  readonly #most: number;
  readonly #groups = new Map<string, Queue>();
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(numbered: Numbered): void {
    const { user, operation } = numbered.entry;
    const name = user === null ? `operation ${operation}` : `user ${user.toLowerCase()}`;
    const group = this.#groups.get(name) ?? new Queue();
    if (group.length === 0) this.#groups.set(name, group);
    group.add(numbered);
    this.#count += 1;
    if (this.#count > this.#most) this.#removeOne();
  }

  *all(): Iterable<Numbered> {
    for (const group of this.#groups.values()) yield* group.all();
  }

  removeBefore(at: number): void {
    for (const [name, group] of this.#groups) {
      const { length } = group;
      group.keepOnly(({ entry }) => entry.at >= at);
      this.#count -= length - group.length;
      if (group.length === 0) this.#groups.delete(name);
    }
  }

  #removeOne(): void {
    let [name, largest] = ['', new Queue()];
    for (const [other, group] of this.#groups)
      if (group.length > largest.length) [name, largest] = [other, group];
    largest.removeOldest();
    if (largest.length === 0) this.#groups.delete(name);
    this.#count -= 1;
  }
}

/** Entries of one group, oldest first. */
class Queue {
  #entries: Numbered[] = [];
  /** The index of the oldest entry. Moving all entries whenever one is removed would cost measurable time. */
  #first = 0;

  get length(): number {
    return this.#entries.length - this.#first;
  }

  add(numbered: Numbered): void {
    this.#entries.push(numbered);
  }

  removeOldest(): void {
    this.#first += 1;
    // Without this, the removed entries would stay in memory.
    if (this.#first * 8 > this.#entries.length) this.keepOnly(() => true);
  }

  keepOnly(isKept: (numbered: Numbered) => boolean): void {
    this.#entries = this.all().filter(isKept);
    this.#first = 0;
  }

  all(): Numbered[] {
    return this.#entries.slice(this.#first);
  }
}
