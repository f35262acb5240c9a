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
    const numbered = { number: (this.#lastNumber += 1), entry: freeze(entry) };
    (entry.outcome === 'success' ? this.#successes : this.#others).add(numbered);
    return numbered;
  }

  #record(entry: AuditEntry): string {
    const key = mergeKeyOf(entry);
    const equal = key === undefined ? undefined : this.#refusals.get(key);
    if (equal && entry.at - equal.entry.at < mergeWithinMs) {
      equal.entry = freeze({ ...equal.entry, count: equal.entry.count + entry.count });
      return equal.entry.id;
    }
    // The request has failed after its change was stored.
    if (entry.outcome === 'failed' && this.#has(entry.id)) return entry.id;
    this.#forgetRefusals(entry.at - mergeWithinMs);
    const numbered = this.add(entry);
    if (key !== undefined) this.#refusals.set(key, numbered);
    return entry.id;
  }

  #has(id: string): boolean {
    for (const { entry } of this.#successes.all()) if (entry.id === id) return true;
    return false;
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

/** Entries of one kind, by user, oldest first. */
class Trail {
  readonly #most: number;
  readonly #byUser = new Map<string | null, Numbered[]>();
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(numbered: Numbered): void {
    const user = numbered.entry.user?.toLowerCase() ?? null;
    const own = this.#byUser.get(user) ?? [];
    this.#byUser.set(user, own);
    own.push(numbered);
    this.#count += 1;
    if (this.#count > this.#most) this.#removeOne();
  }

  *all(): Iterable<Numbered> {
    for (const entries of this.#byUser.values()) yield* entries;
  }

  removeBefore(at: number): void {
    for (const [user, entries] of this.#byUser)
      this.#keep(
        user,
        entries.filter(({ entry }) => entry.at >= at),
      );
    this.#count = [...this.#byUser.values()].reduce((sum, { length }) => sum + length, 0);
  }

  #removeOne(): void {
    const [user, entries] = [...this.#byUser].reduce((most, some) =>
      some[1].length > most[1].length ? some : most,
    );
    entries.shift();
    this.#keep(user, entries);
    this.#count -= 1;
  }

  #keep(user: string | null, entries: Numbered[]): void {
    if (entries.length > 0) this.#byUser.set(user, entries);
    else this.#byUser.delete(user);
  }
}
