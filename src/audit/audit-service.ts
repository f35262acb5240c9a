// Writes the audit trail and removes old entries.
//
// An entry of a success is part of the update that makes the change. All other entries are stored on their own;
// while the database is unavailable, they wait in memory.
import { retryWhileUnavailable } from '../lib/async.ts';
import { isUnavailable } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { Tasks } from '../lib/tasks.ts';
import { changesOf } from '../store/audit-change.ts';
import { type AuditEntry, mergeKeyOf, mergeWithinMs } from '../store/audit-entry.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';

const sweepEveryMs = 600_000;
const dayMs = 86_400_000;
const maxWaiting = 1_000;
const maxWaitingOfUser = 100;

type AuditServiceOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly tasks: Tasks;
  /** How many days entries are kept. */
  readonly days: number;
  /** Called for an entry that could not be stored. */
  readonly onLost: (entry: AuditEntry, error?: unknown) => void;
};

export class AuditService {
  readonly #options: AuditServiceOptions;
  /** Entries that the store has not taken yet, oldest first. */
  readonly #waiting = new Map<string, AuditEntry>();
  #isStoring = false;

  constructor(options: AuditServiceOptions) {
    this.#options = options;
    const { tasks, store, runtime, days } = options;
    const sweep = (stopping: AbortSignal) => store.audit.removeBefore(runtime.now() - days * dayMs, stopping);
    // Processes may have been stopped for longer than the interval.
    tasks.start('audit sweep', sweep);
    tasks.every('audit sweep', sweepEveryMs, sweep);
  }

  newId(): string {
    return this.#options.runtime.newId();
  }

  /** Completes an entry. Facts that are not given are those of a success of the server itself. */
  createEntry(facts: Pick<AuditEntry, 'operation'> & Partial<AuditEntry>): AuditEntry {
    const { runtime } = this.#options;
    return {
      id: facts.id ?? runtime.newId(),
      at: facts.at ?? runtime.now(),
      user: facts.user ?? null,
      role: facts.role ?? null,
      key: facts.key ?? null,
      address: facts.address ?? null,
      operation: facts.operation,
      target: facts.target ?? null,
      outcome: facts.outcome ?? 'success',
      code: facts.code ?? null,
      count: facts.count ?? 1,
      changes: facts.changes ?? [],
    };
  }

  /** Records the entry together with what the transaction has changed so far. */
  recordWithin(transaction: Transaction, entry: AuditEntry): void {
    const changes = [...changesOf(transaction.changed()), ...entry.changes];
    transaction.audit.record({ ...entry, changes });
  }

  /**
   * Stores an entry that describes no change, if possible at once. The result is the id of the entry that stands
   * for it. Never throws: the answer to a request must not depend on the audit trail.
   */
  async record(entry: AuditEntry): Promise<string> {
    if (this.#isStoring) return this.#queue(entry);
    const { store, onLost } = this.#options;
    try {
      if (entry.outcome === 'refused') return await store.audit.count(entry);
      await store.audit.add(entry);
    } catch (error) {
      if (isUnavailable(error)) return this.#queue(entry);
      onLost(entry, error);
    }
    return entry.id;
  }

  /** Reports the entries that still wait. Called after the last request. */
  close(): void {
    for (const entry of this.#waiting.values()) this.#options.onLost(entry);
    this.#waiting.clear();
  }

  #queue(entry: AuditEntry): string {
    const key = entry.outcome === 'refused' ? mergeKeyOf(entry) : entry.id;
    const equal = this.#waiting.get(key);
    if (equal && entry.at - equal.at < mergeWithinMs) {
      this.#waiting.set(key, { ...equal, count: equal.count + entry.count });
      return equal.id;
    }
    if (!this.#hasPlaceFor(entry)) {
      this.#options.onLost(entry);
      return entry.id;
    }
    this.#waiting.set(equal ? entry.id : key, entry);
    if (!this.#isStoring)
      this.#options.tasks.start('audit trail', (stopping) => this.#storeWaiting(stopping));
    return entry.id;
  }

  /** Without a limit for each user, one user could use up the places of all others. */
  #hasPlaceFor({ user }: AuditEntry): boolean {
    const ofUser = [...this.#waiting.values()].filter((other) => other.user === user).length;
    return this.#waiting.size < maxWaiting && ofUser < maxWaitingOfUser;
  }

  async #storeWaiting(stopping: AbortSignal): Promise<void> {
    this.#isStoring = true;
    try {
      while (this.#waiting.size > 0)
        await retryWhileUnavailable(() => this.#storeOne(), this.#options.runtime, stopping);
    } finally {
      this.#isStoring = false;
    }
  }

  /** The entry keeps its id, which log lines name already, so it is not counted in an entry of the store. */
  async #storeOne(): Promise<void> {
    const [first] = this.#waiting;
    if (!first) return;
    const [key, entry] = first;
    this.#waiting.delete(key);
    try {
      await this.#options.store.audit.add(entry);
    } catch (error) {
      if (!isUnavailable(error)) return this.#options.onLost(entry, error);
      const added = this.#waiting.get(key)?.count ?? 0;
      this.#waiting.set(key, { ...entry, count: entry.count + added });
      throw error;
    }
  }
}
