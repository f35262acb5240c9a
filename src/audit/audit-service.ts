// Writes the audit trail and removes old entries.
//
// An entry of a success is part of the update that makes the change. All other entries are stored on their own. One
// that cannot be stored, such as while the database is unavailable, is logged: a process that ends would lose
// entries that wait in memory.
import { type Runtime, dayMs } from '../lib/runtime.ts';
import type { Tasks } from '../lib/tasks.ts';
import { changesOf } from '../store/audit-change.ts';
import type { AuditEntry } from '../store/audit-entry.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';

const sweepEveryMs = 600_000;
type AuditServiceOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly tasks: Tasks;
  /** How many days entries are kept. */
  readonly days: number;
  /** Called for an entry that could not be stored. */
  readonly onLost: (entry: AuditEntry, error: unknown) => void;
};

export class AuditService {
  readonly #options: AuditServiceOptions;

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

  now(): number {
    return this.#options.runtime.now();
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
   * Stores an entry that describes no change. The result is the id of the entry that stands for it. Never throws:
   * the answer to a request must not depend on the audit trail.
   */
  async record(entry: AuditEntry): Promise<string> {
    const { store, onLost } = this.#options;
    try {
      if (entry.outcome === 'refused') return await store.audit.count(entry);
      await store.audit.add(entry);
    } catch (error) {
      onLost(entry, error);
    }
    return entry.id;
  }
}
