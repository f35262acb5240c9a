// The audit trail in memory: the newest successes and the newest other entries, so that refused requests cannot push
// out the entries of changes.
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
    return this.#all()
      .sort(byNumber)
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
    return this.#all().some(({ entry }) => entry.id === id);
  }

  #all(): Numbered[] {
    return [...this.#successes.entries, ...this.#others.entries];
  }

  #forgetRefusals(at: number): void {
    for (const [key, { entry }] of this.#refusals) {
      if (entry.at > at) break;
      this.#refusals.delete(key);
    }
  }

  /** Newest first. `after` is the last of those that are already known. */
  #find(filter: AuditFilter, after?: Numbered): Numbered[] {
    return this.#all()
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

function byNumber(a: Numbered, b: Numbered): number {
  return a.number - b.number;
}

/** The newest entries of one kind. At the limit, the next entry takes the place of the oldest. */
class Trail {
  readonly #most: number;
  #entries: Numbered[] = [];
  /** The place of the next entry. */
  #next = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get entries(): readonly Numbered[] {
    return this.#entries;
  }

  add(numbered: Numbered): void {
    this.#entries[this.#next] = numbered;
    this.#next = (this.#next + 1) % this.#most;
  }

  removeBefore(at: number): void {
    this.#entries = this.#entries.filter(({ entry }) => entry.at >= at).sort(byNumber);
    this.#next = this.#entries.length % this.#most;
  }
}
