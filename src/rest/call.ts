// What the code of a resource or an operation gets of a request.
import type { IncomingHttpHeaders } from 'node:http';
import type { Caller } from '../lib/caller.ts';
import type { Problem } from '../lib/errors.ts';
import type { Change } from '../store/audit-change.ts';
import type { Actor, AuditEntry } from '../store/audit-entry.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Form } from './form.ts';
import type { Format } from './response.ts';

/** `S` is the item that the ids in the path name. */
export type Call<S, V> = {
  readonly subject: S;
  readonly values: V;
  readonly caller: Caller;
  /** Names the token of the caller in the store. */
  readonly tokenHash: string | undefined;
  /** Identifies and authorizes the caller again, for a read that waits before its answer. */
  readonly requireCallerNow: () => Promise<Caller>;
  readonly request: RequestContext;
  /** Whether a page has sent it: the session of a browser, with its form token. */
  readonly isForm: boolean;
};

/** The call of an operation. An operation that writes calls `update` or `auditEntry` once. */
export type OperationCall<S, V> = Call<S, V> & {
  /**
   * Updates the store and records the change in the audit trail, in one transaction. The transaction first
   * checks again, with the errors of the first check, that the system is not read-only and that the caller may do it:
   * meanwhile a job may have started, the token may have ended, or the user may have got another role. `at` is now.
   */
  readonly update: <T>(
    rule: (transaction: Transaction, at: number) => T,
    options?: UpdateOptions<T>,
  ) => Promise<T>;
  /** The entry of the audit trail for an update that a service runs, which records it together with the change. */
  readonly auditEntry: () => AuditEntry;
};

export type UpdateOptions<T> = {
  /** The path of what the operation concerns. Default: the path of its resource. */
  readonly target?: string;
  /** Changes that are no rows of the replicated state. */
  readonly changes?: (result: T) => readonly Change[];
};

export type RequestContext = {
  readonly format: Format;
  readonly address: string;
  readonly headers: IncomingHttpHeaders;
  readonly query: Form;
};

/** A check without problems must set `prepared`, which `run` gets. */
export type Checked<P = unknown> = { readonly problems: readonly Problem[]; readonly prepared?: P };

export type PreparedCall<S, V, P> = OperationCall<S, V> & {
  readonly prepared: P;
  /** Who acts, as the audit trail records it. */
  readonly actor: Actor | undefined;
};
