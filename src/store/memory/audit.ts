// The audit trail in memory: a limited number of entries. The user with the most entries loses the oldest one first, so no user can push
// out the entries of others. Entries without a user are grouped by their operation.
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

/** The order of the entries is the order of `number`. */
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
        return { entries: entries.slice(start, start + num), total: entries.length };
      }),
    read: async function* (this: MemoryAudit, filter: AuditFilter, start: number) {
      yield await run(() => this.#find(filter).slice(start));
    }.bind(this),
    add: (entry) =>
      run(() => {
        if (!this.#has(entry.id)) this.add(entry);
      }),
    count: (refusal) => run(() => this.#count(refusal)),
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
    const numbered = { number: (this.#lastNumber += 1), entry: freeze(entry) };
    (entry.outcome === 'success' ? this.#successes : this.#others).add(numbered);
    return numbered;
  }

  #count(refusal: AuditEntry): string {
    const key = mergeKeyOf(refusal);
    const equal = this.#refusals.get(key);
    if (equal && refusal.at - equal.entry.at < mergeWithinMs) {
      equal.entry = freeze({ ...equal.entry, count: equal.entry.count + refusal.count });
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

  #find(filter: AuditFilter): AuditEntry[] {
    return [...this.#successes.all(), ...this.#others.all()]
      .filter(({ entry }) => matchesFilter(entry, filter))
      .sort((a, b) => b.entry.at - a.entry.at || b.number - a.number)
      .map(({ entry }) => entry);
  }
}

/** Entries of one kind, by user or operation, oldest first. */
class Trail {
  readonly #most: number;
  readonly #groups = new Map<string, Numbered[]>();
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(numbered: Numbered): void {
    const { user, operation } = numbered.entry;
    const name = user === null ? `operation ${operation}` : `user ${user.toLowerCase()}`;
    const group = this.#groups.get(name);
    if (group) group.push(numbered);
    else this.#groups.set(name, [numbered]);
    this.#count += 1;
    if (this.#count > this.#most) this.#removeOne();
  }

  *all(): Iterable<Numbered> {
    for (const entries of this.#groups.values()) yield* entries;
  }

  removeBefore(at: number): void {
    for (const [name, entries] of this.#groups)
      this.#keep(
        name,
        entries.filter(({ entry }) => entry.at >= at),
      );
    this.#count = [...this.#groups.values()].reduce((sum, { length }) => sum + length, 0);
  }

  #removeOne(): void {
    let largest: [string, Numbered[]] = ['', []];
    for (const group of this.#groups) if (group[1].length > largest[1].length) largest = group;
    const [name, entries] = largest;
    entries.shift();
    this.#keep(name, entries);
    this.#count -= 1;
  }

  #keep(name: string, entries: Numbered[]): void {
    if (entries.length > 0) this.#groups.set(name, entries);
    else this.#groups.delete(name);
  }
}
