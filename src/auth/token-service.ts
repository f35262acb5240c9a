// Identifies callers by their tokens and keys, and revokes tokens.
import { type Caller, type Credentials, type Identify, type Identity, isRoleAbove } from '../lib/caller.ts';
import { ServiceError, databaseUnreachable, isUnavailable, usualError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { Tasks } from '../lib/tasks.ts';
import type { AuditEntry } from '../store/audit-entry.ts';
import type { Reader } from '../store/state.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Key, findKey, isKey, recordKeyUse } from './key.ts';
import {
  type Token,
  bindingAllows,
  expiredTokens,
  formTokenMatches,
  formTokenOf,
  hashToken,
  isFormToken,
  recordTokenUse,
  tokens,
} from './token.ts';
import { findUser } from './user.ts';

const sweepEveryMs = 600_000;
const sweptAtOnce = 250;

/** How exactly the last use of a token or key is recorded. */
const useEveryMs = 60_000;

type TokenServiceOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly tasks: Tasks;
  /** Whether a token in a field that is bound to the page of an origin needs a Referer of it. */
  readonly fieldTokenNeedsReferer: boolean;
};

export class TokenService {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #tasks: Tasks;
  readonly #fieldTokenNeedsReferer: boolean;
  /** The hashes of the tokens and keys whose last use is being recorded. */
  readonly #recording = new Set<string>();

  constructor({ store, runtime, tasks, fieldTokenNeedsReferer }: TokenServiceOptions) {
    this.#store = store;
    this.#runtime = runtime;
    this.#tasks = tasks;
    this.#fieldTokenNeedsReferer = fieldTokenNeedsReferer;
    // Processes may have been stopped for longer than the interval.
    tasks.start('token sweep', (stopping) => this.#sweep(stopping));
    tasks.every('token sweep', sweepEveryMs, (stopping) => this.#sweep(stopping));
  }

  readonly identify: Identify = (credentials) => {
    const presented = presentedToken(credentials);
    if (presented === undefined) return undefined;
    // Another process may have ended the token or key meanwhile.
    if (this.#store.isBehind()) throw databaseUnreachable();
    const tokenHash = hashToken(presented.token);
    // The cookie, which has a form token, is never a key.
    const isOfKey = presented.formToken === '' && isKey(presented.token);
    const find = () => (isOfKey ? findKey(this.#store, tokenHash) : this.#store.get(tokens, tokenHash));
    const requiresReferer = this.#fieldTokenNeedsReferer && credentials.bearer === undefined;
    const accept = (found: Token | Key | undefined) => {
      if (found && 'binding' in found && !bindingAllows(found.binding, credentials, requiresReferer))
        throw usualError('token-invalid');
      const caller = this.#callerOf(found, this.#store);
      if (found) this.#recordUse(found, credentials.address);
      return { caller, tokenHash, formToken: presented.formToken };
    };
    const found = find();
    return found ? accept(found) : this.#findAgain(find).then(accept);
  };

  /** The binding of a token never changes, so it is not checked again for the same request. */
  async identifyAgain(identity: Identity): Promise<Identity> {
    // Another process may have ended the token or key a moment ago.
    await this.#store.refresh();
    return this.#identifyIn(this.#store, identity);
  }

  identifyWithin(transaction: Transaction, identity: Identity): Identity {
    return this.#identifyIn(transaction, identity);
  }

  /** The session token that a form token stands for, or the given token itself. */
  tokenToRevoke(token: string, cookie: string | undefined): string {
    const isOwnForm = isFormToken(token) && cookie !== undefined && formTokenMatches(token, cookie);
    return isOwnForm ? cookie : token;
  }

  /** Undefined if the token is not valid. */
  async ownerOf(token: string): Promise<Caller> {
    try {
      const find = () => this.#store.get(tokens, hashToken(token));
      return this.#callerOf(find() ?? (await this.#findAgain(find)), this.#store);
    } catch (error) {
      if (error instanceof ServiceError && error.kind === 'token-invalid') return undefined;
      throw error;
    }
  }

  async revoke(token: string, entry: AuditEntry): Promise<void> {
    const hash = hashToken(token);
    await this.#store.update((transaction) => {
      if (!transaction.get(tokens, hash)) return;
      transaction.remove(tokens, hash);
      transaction.audit.record(entry);
    });
  }

  /**
   * Looks again after a refresh, because another process may have issued the token or key a moment ago. Callers of the
   * same moment share the refresh, so that unknown tokens do not load the database.
   */
  async #findAgain<T>(find: () => T | undefined): Promise<T | undefined> {
    // Without this, clients would give up a valid token.
    if (!(await this.#store.refresh())) throw databaseUnreachable();
    return find();
  }

  #identifyIn(reader: Reader, identity: Identity): Identity {
    const { tokenHash, caller } = identity;
    const found = caller.key === undefined ? reader.get(tokens, tokenHash) : findKey(reader, tokenHash);
    return { ...identity, caller: this.#callerOf(found, reader) };
  }

  /** The request does not wait for it, and succeeds without it. */
  #recordUse(found: Token | Key, address: () => string): void {
    const { hash, lastUsedAt } = found;
    const at = this.#runtime.now();
    if ((lastUsedAt !== null && at - lastUsedAt < useEveryMs) || this.#recording.has(hash)) return;
    this.#recording.add(hash);
    const from = address() || null;
    const record = (transaction: Transaction) =>
      'binding' in found ? recordTokenUse(transaction, hash, at) : recordKeyUse(transaction, hash, at, from);
    this.#tasks.start('last use of a token', async () => {
      try {
        await this.#store.update(record);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
      } finally {
        this.#recording.delete(hash);
      }
    });
  }

  #callerOf(found: Token | Key | undefined, reader: Reader): NonNullable<Caller> {
    const user = found && findUser(reader, found.username);
    if (!user || (found.expires !== null && found.expires <= this.#runtime.now()))
      throw usualError('token-invalid');
    const { username, role } = user;
    if ('binding' in found) return { username, role };
    return { username, role: isRoleAbove(found.role, role) ? role : found.role, key: found.name };
  }

  async #sweep(stopping: AbortSignal): Promise<void> {
    const expired = expiredTokens(this.#store, this.#runtime.now());
    // In parts, so that other updates do not wait long.
    while (expired.length > 0 && !stopping.aborted) {
      const part = expired.splice(0, sweptAtOnce);
      await this.#store.update((transaction) => {
        // Another process may have removed some of them meanwhile.
        for (const { hash } of part) if (transaction.get(tokens, hash)) transaction.remove(tokens, hash);
      });
    }
  }
}

type PresentedToken = { readonly token: string; readonly formToken: string };

/** The token of a request that counts. */
function presentedToken({ bearer, field, cookie, readsOnly }: Credentials): PresentedToken | undefined {
  if (bearer !== undefined) return { token: bearer, formToken: '' };
  if (field !== undefined) {
    if (!isFormToken(field) || readsOnly) return { token: field, formToken: '' };
    if (cookie === undefined || !formTokenMatches(field, cookie)) throw formOfEndedSession();
    return { token: cookie, formToken: field };
  }
  if (cookie === undefined || !readsOnly) return undefined;
  return { token: cookie, formToken: formTokenOf(cookie) };
}

function formOfEndedSession(): ServiceError {
  const message = 'this form belongs to a session that has ended. Sign in and open the form again.';
  return usualError('token-invalid', { problems: [{ field: 'token', message }] });
}
