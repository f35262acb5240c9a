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

/** Removing one entry moves all later ones, so many are removed together. */
const excess = 1000;

/** Entries are frozen when they are read: most never are. */
type Kept = { entry: AuditEntry };

export class MemoryAudit {
  readonly #limits: AuditLimits;
  /** In the order in which they were added, with up to `excess` entries more than the limits allow. */
  #kept: Kept[] = [];
  /** The newest refusals, by their merge key. */
  readonly #refusals = new Map<string, Kept>();

  constructor(limits: AuditLimits) {
    this.#limits = limits;
  }

  readonly port: AuditStore = {
    page: async (filter, start, num) => {
      const found = this.#find(filter);
      return { entries: found.slice(start, start + num).map(toEntry), total: found.length };
    },
    read: async function* (this: MemoryAudit, filter: AuditFilter, start: number) {
      const found = this.#find(filter).slice(start);
      while (found.length > 0) yield found.splice(0, readBatch).map(toEntry);
    }.bind(this),
    add: async (entry) => {
      // Only failures are added by themselves, and these are rare.
      if (!this.#kept.some((kept) => kept.entry.id === entry.id)) this.add(entry);
    },
    count: async (refusal) => this.#count(refusal),
    removeBefore: async (at) => {
      this.#kept = this.#kept.filter(({ entry }) => entry.at >= at);
      this.#forgetRefusals(at);
    },
  };

  readonly writes: AuditWrites = {
    record: async (entry) => void this.add(entry),
  };

  dump(): readonly AuditEntry[] {
    this.#removeExcess();
    return this.#kept.map(({ entry }) => entry);
  }

  load(entries: readonly AuditEntry[]): void {
    for (const entry of entries) {
      const kept = this.add(entry);
      if (entry.outcome === 'refused') this.#refusals.set(mergeKeyOf(entry), kept);
    }
  }

  add(entry: AuditEntry): Kept {
    const kept = { entry };
    this.#kept.push(kept);
    const { successes, others } = this.#limits;
    if (this.#kept.length > successes + others + excess) this.#removeExcess();
    return kept;
  }

  #removeExcess(): void {
    let { successes, others } = this.#limits;
    // Looks at the newest entry first. Both numbers count down.
    const isAmongNewest = ({ entry }: Kept) => (entry.outcome === 'success' ? successes-- : others--) > 0;
    this.#kept = this.#kept.reverse().filter(isAmongNewest).reverse();
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

  #forgetRefusals(at: number): void {
    for (const [key, { entry }] of this.#refusals) {
      if (entry.at > at) break;
      this.#refusals.delete(key);
    }
  }

  /** Newest first; of the same moment, the one that was added last. */
  #find(filter: AuditFilter): Kept[] {
    this.#removeExcess();
    return this.#kept
      .filter(({ entry }) => matchesAuditFilter(entry, filter))
      .reverse()
      .sort((a, b) => b.entry.at - a.entry.at);
  }
}

function toEntry({ entry }: Kept): AuditEntry {
  return freeze(entry);
}
