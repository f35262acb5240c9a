// The audit trail of one request that calls an operation: who acts, on what, and the entry that records it.
import type { ErrorResponse } from '../http/errors.ts';
import type { Caller } from '../lib/caller.ts';
import type { ServiceError } from '../lib/errors.ts';
import type { Actor, AuditEntry } from '../store/audit-entry.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { UpdateOptions } from './call.ts';
import type { Entry } from './tree.ts';

/** The audit trail, as requests write to it. */
export type AuditTrail = {
  newId: () => string;
  now: () => number;
  /** Completes an entry. */
  createEntry: (facts: Pick<AuditEntry, 'operation'> & Partial<AuditEntry>) => AuditEntry;
  /** Records the entry together with what the transaction has changed so far. */
  recordWithin: (transaction: Transaction, entry: AuditEntry) => void;
  /** Stores an entry that describes no change. The result is the id of the entry that stands for it. */
  record: (entry: AuditEntry) => Promise<string>;
};

/** What a path of the tree names. */
type Place = { readonly entry: Entry; readonly segments: readonly string[] };

type Facts = Pick<AuditEntry, 'code'> & Partial<Pick<AuditEntry, 'target' | 'outcome' | 'changes'>>;

export class RequestAudit {
  readonly #store: Pick<Store, 'update'>;
  readonly #service: AuditTrail;
  readonly #operation: string;
  /**
   * Success and failure share the id: if the answer of the store to a success is lost, the failure does not become
   * a second entry.
   */
  readonly #id: string;
  readonly address: string;
  hasRecorded = false;
  #actor: Actor | undefined;
  #place: Place | undefined;

  /** `operation` is its path in the audit trail. */
  constructor(
    { store, auditService }: { store: Pick<Store, 'update'>; auditService: AuditTrail },
    operation: string,
    address: string,
  ) {
    this.#store = store;
    this.#service = auditService;
    this.#operation = operation;
    this.#id = auditService.newId();
    this.address = address;
  }

  get actor(): Actor | undefined {
    return this.#actor;
  }

  actAs(actor: Actor | undefined): void {
    this.#actor = actor;
  }

  /** Until the ids in the path are found, they may be any text, even a token. */
  actOn(place: Place): void {
    this.#place = place;
  }

  update<T>(
    rule: (transaction: Transaction, at: number) => T,
    checkAgain: (transaction: Transaction) => Caller,
    { target, changes }: UpdateOptions<T>,
  ): Promise<T> {
    this.#recordOnce();
    const at = this.#service.now();
    return this.#store.update((transaction) => {
      const caller = checkAgain(transaction);
      const result = rule(transaction, at);
      const facts = { code: 200, target: target ?? null, changes: changes?.(result) ?? [] };
      this.#service.recordWithin(transaction, this.#entry(actorOf(caller), facts));
      return result;
    });
  }

  createEntry(): AuditEntry {
    this.#recordOnce();
    return this.#entry(this.#actor, { code: 200 });
  }

  /** The result is the id of the entry; undefined if nobody is known to have called. */
  async recordError(error: ServiceError | undefined, response: ErrorResponse): Promise<string | undefined> {
    const actor = this.#actor;
    if (!actor) return undefined;
    const isRefused = response.status < 500 || error?.kind === 'read-only';
    const outcome = isRefused ? ('refused' as const) : ('failed' as const);
    return this.#service.record(this.#entry(actor, { outcome, code: response.body.error.code }));
  }

  #entry(actor: Actor | undefined, facts: Facts): AuditEntry {
    return this.#service.createEntry({
      id: this.#id,
      user: actor?.user ?? null,
      role: actor?.role ?? null,
      key: actor?.key ?? null,
      address: this.address,
      operation: this.#operation,
      target: facts.target ?? this.#target,
      outcome: facts.outcome ?? 'success',
      code: facts.code,
      changes: facts.changes ?? [],
    });
  }

  /** The path of the resource. */
  get #target(): string | null {
    if (!this.#place) return null;
    const { entry, segments } = this.#place;
    const isOnPost = entry.operation === entry.resource.onPost;
    return (isOnPost ? segments : segments.slice(0, -1)).join('/') || null;
  }

  #recordOnce(): void {
    if (this.hasRecorded) throw new Error(`The operation ${this.#operation} records more than one change.`);
    this.hasRecorded = true;
  }
}

export function actorOf(caller: Caller): Actor | undefined {
  return caller && { user: caller.username, role: caller.role, key: caller.key ?? null };
}
