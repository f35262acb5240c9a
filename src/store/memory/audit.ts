// The audit trail in memory: a limited number of entries. The user with the most entries loses the oldest one first, so no user can push
// out the entries of others.
import {
  type AuditEntry,
  type AuditFilter,
  matchesFilter,
  mergeKeyOf,
  mergeWithinMs,
} from '../../audit/entry.ts';
import { freeze } from '../changes.ts';
import type { AuditStore } from '../audit-store.ts';
import type { AuditWrites } from '../transaction.ts';
import { done, run } from './run.ts';

export type AuditLimits = { readonly successes: number; readonly others: number };

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
    page: (filter, start, num) =>
      run(() => {
        const entries = this.#find(filter);
        return { entries: entries.slice(start, start + num).map(freeze), total: entries.length };
      }),
    read: async function* (this: MemoryAudit, filter: AuditFilter, start: number) {
      yield await run(() => this.#find(filter).slice(start).map(freeze));
    }.bind(this),
    record: (entry) => run(() => this.#record(entry)),
    removeBefore: (at) =>
      run(() => {
        for (const trail of [this.#successes, this.#others]) trail.removeBefore(at);
        this.#forgetRefusals(at);
      }),
  };

  readonly writes: AuditWrites = {
    record: (entry) => {
      this.add(entry);
      return done;
    },
  };

  add(entry: AuditEntry): Numbered {
    const numbered = { number: (this.#lastNumber += 1), entry };
    (entry.outcome === 'success' ? this.#successes : this.#others).add(numbered);
    return numbered;
  }

  #record(entry: AuditEntry): string {
    const key = mergeKeyOf(entry);
    const equal = key === undefined ? undefined : this.#refusals.get(key);
    if (equal && entry.at - equal.entry.at < mergeWithinMs) {
      equal.entry = { ...equal.entry, count: equal.entry.count + entry.count };
      return equal.entry.id;
    }
    this.#forgetRefusals(entry.at - mergeWithinMs);
    const numbered = this.add(entry);
    if (key !== undefined) this.#refusals.set(key, numbered);
    return entry.id;
  }

  #forgetRefusals(at: number): void {
    for (const [key, { entry }] of this.#refusals) {
      if (entry.at > at) break;
      this.#refusals.delete(key);
    }
  }

  #find(filter: AuditFilter): AuditEntry[] {
    return [...this.#successes.all(), ...this.#others.all()]
      .filter(({ entry }) => matchesFilter(entry, filter))
      .sort((a, b) => b.entry.at - a.entry.at || b.number - a.number)
      .map(({ entry }) => entry);
  }
}

/** Entries of one kind, by user. */
class Trail {
  readonly #most: number;
  readonly #byUser = new Map<string | null, Queue>();
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(numbered: Numbered): void {
    const user = numbered.entry.user?.toLowerCase() ?? null;
    const own = this.#byUser.get(user) ?? new Queue();
    if (own.length === 0) this.#byUser.set(user, own);
    own.add(numbered);
    this.#count += 1;
    if (this.#count > this.#most) this.#removeOne();
  }

  *all(): Iterable<Numbered> {
    for (const own of this.#byUser.values()) yield* own.all();
  }

  removeBefore(at: number): void {
    for (const [user, own] of this.#byUser) {
      const length = own.length;
      own.keepOnly(({ entry }) => entry.at >= at);
      this.#count -= length - own.length;
      if (own.length === 0) this.#byUser.delete(user);
    }
  }

  #removeOne(): void {
    let user: string | null = null;
    let longest = new Queue();
    for (const [other, own] of this.#byUser) if (own.length > longest.length) [user, longest] = [other, own];
    longest.removeOldest();
    if (longest.length === 0) this.#byUser.delete(user);
    this.#count -= 1;
  }
}

/** Entries of one user, oldest first. */
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
