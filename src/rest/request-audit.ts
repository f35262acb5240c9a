// The audit trail of one request that calls an operation: who acts, on what, and the entry that records it.
import type { ErrorResponse } from '../http/errors.ts';
import type { Access, Caller, Identity } from '../lib/caller.ts';
import type { ServiceError } from '../lib/errors.ts';
import type { Actor, AuditEntry } from '../store/audit-entry.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Entry, UpdateOptions } from './resource.ts';

/** The request as far as it is known: some of it is read after the audit begins. */
type AuditedRequest = {
  readonly entry: Entry;
  readonly segments: readonly string[];
  readonly access: Access;
  readonly address: string;
  readonly identity: Identity | undefined;
  readonly subject: { readonly found: unknown } | undefined;
};

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

type Facts = Pick<AuditEntry, 'code'> & Partial<Pick<AuditEntry, 'target' | 'outcome' | 'changes'>>;

export class RequestAudit {
  readonly #store: Pick<Store, 'update'>;
  readonly #service: AuditTrail;
  readonly #request: AuditedRequest;
  readonly #operation: string;
  /**
   * Success and failure share the id: if the answer of the store to a success is lost, the failure does not become
   * a second entry.
   */
  readonly #id: string;
  /** Read at once: a connection that is closed has no address any more. */
  readonly address: string | null;
  hasRecorded = false;
  #namedActor: Actor | undefined;

  constructor(
    { store, auditService }: { store: Pick<Store, 'update'>; auditService: AuditTrail },
    request: AuditedRequest,
    operation: string,
  ) {
    this.#store = store;
    this.#service = auditService;
    this.#request = request;
    this.#operation = operation;
    this.#id = auditService.newId();
    this.address = request.address || null;
  }

  /** For an operation that needs no token. */
  actAs(actor: Actor | undefined): void {
    this.#namedActor = actor;
  }

  update<T>(
    rule: (transaction: Transaction, at: number) => T,
    requireCaller: (transaction: Transaction) => Caller,
    { target, changes }: UpdateOptions<T>,
  ): Promise<T> {
    this.#recordOnce();
    const at = this.#service.now();
    return this.#store.update((transaction) => {
      const caller = requireCaller(transaction);
      const result = rule(transaction, at);
      const facts = { code: 200, target: target ?? null, changes: changes?.(result) ?? [] };
      this.#service.recordWithin(transaction, this.#entry(actorOf(caller), facts));
      return result;
    });
  }

  createEntry(): AuditEntry {
    this.#recordOnce();
    return this.#entry(this.actor, { code: 200 });
  }

  /** The result is the id of the entry; undefined if nobody is known to have called. */
  async recordError(error: ServiceError | undefined, response: ErrorResponse): Promise<string | undefined> {
    const actor = this.actor;
    if (!actor) return undefined;
    const isRefused = response.status < 500 || error?.kind === 'read-only';
    const outcome = isRefused ? ('refused' as const) : ('failed' as const);
    return this.#service.record(this.#entry(actor, { outcome, code: response.body.error.code }));
  }

  get actor(): Actor | undefined {
    return (
      this.#namedActor ??
      actorOf(this.#request.access === 'anyone' ? undefined : this.#request.identity?.caller)
    );
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

  /** The path of the resource. Until its ids are found, they may be any text, even a token. */
  get #target(): string | null {
    const { entry, segments, subject } = this.#request;
    if (entry.items.length > 0 && subject?.found === undefined) return null;
    const isOnPost = entry.operation === entry.resource.onPost;
    return (isOnPost ? segments : segments.slice(0, -1)).join('/') || null;
  }

  #recordOnce(): void {
    if (this.hasRecorded) throw new Error(`The operation ${this.#operation} records more than one change.`);
    this.hasRecorded = true;
  }
}

function actorOf(caller: Caller): Actor | undefined {
  return caller && { user: caller.username, role: caller.role, key: caller.key ?? null };
}
