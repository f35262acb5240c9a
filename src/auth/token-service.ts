// Signs users in, identifies callers by their tokens and keys, checks and hashes passwords, and revokes tokens.
import { networkOf, subnetOf } from '../lib/address.ts';
import { type Caller, type Credentials, type Identify, type Identity, isRoleAbove } from '../lib/caller.ts';
import { ServiceError, invalidField, isUnavailable } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { Tasks } from '../lib/tasks.ts';
import { truncate } from '../lib/text.ts';
import type { AuditEntry } from '../store/audit-entry.ts';
import type { Reader } from '../store/state.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Claimant, FairLimiter } from './fair-limiter.ts';
import { type Key, findKey, isKey, recordKeyUse } from './key.ts';
import { type Passwords, createPasswords, saltBytes } from './password.ts';
import type { ProvidedUser } from './oidc/provider.ts';
import { type SignInAttempt, SignInLimit } from './sign-in-limit.ts';
import {
  type Binding,
  type Token,
  bindingAllows,
  expirationMinutes,
  formTokenMatches,
  formTokenOf,
  hashToken,
  addToken,
  expiredTokens,
  isFormToken,
  recordTokenUse,
  tokens,
} from './token.ts';
import { type User, addUser, findUser, hasAdministrator, renewProvidedUser, users } from './user.ts';

const sweepEveryMs = 600_000;
const sweptAtOnce = 1000;

/** How exactly the last use of a token or key is recorded. */
const useEveryMs = 60_000;

const maxUserAgentLength = 256;

/**
 * A password hash occupies a thread and 16 MiB for a noticeable time. Node has four such threads: one stays free,
 * because name resolution and file access need them too.
 */
export const hashingLimits = { running: 3, waiting: 256, waitingPerUser: 64, waitingPerNetwork: 16 };

/** Administrators set the passwords of others. Their calls take turns with the networks of sign-ins. */
const newPasswords: Claimant = { username: '', subnet: '', network: 'new passwords' };

type TokenServiceOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly tasks: Tasks;
  readonly maxTokensPerUser: number;
  /** The only user whose password is accepted. Undefined: all passwords are. */
  readonly onlyPasswordOf?: string | undefined;
  readonly signInLimit?: SignInLimit | undefined;
  readonly passwords?: Passwords | undefined;
};

type PasswordAttempt = {
  readonly username: string;
  readonly password: string;
  readonly address: string;
};

/** The entry of the audit trail for a sign-in that succeeds. */
type EntryOf = (user: User) => AuditEntry;

type SignInRequest = PasswordAttempt & {
  readonly minutes: number;
  readonly binding: Binding;
  readonly userAgent: string | undefined;
  readonly entryOf: EntryOf;
};

type ProvidedSignIn = {
  /** Names the attempt, so that failures count for its network only. */
  readonly attempt: string;
  readonly address: string;
  readonly userAgent: string | undefined;
  /** The hash of a token that ends: that of the previous session of the browser. */
  readonly replaces: string | undefined;
  readonly authenticate: () => Promise<ProvidedUser>;
  readonly entryOf: EntryOf;
  /** Records the entry together with what the transaction has changed so far. */
  readonly record: (transaction: Transaction, entry: AuditEntry) => void;
};

type SignInOrigin = Pick<Token, 'binding' | 'address'> & {
  readonly minutes: number;
  readonly userAgent: string | undefined;
};

type NewToken = Omit<Token, 'username' | 'credentialId'>;

export class TokenService {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #signInLimit: SignInLimit;
  readonly #maxTokensPerUser: number;
  readonly #onlyPasswordOf: string | undefined;
  readonly #passwords: Passwords;
  readonly #hashing = new FairLimiter(hashingLimits);
  readonly #tasks: Tasks;
  /** The hashes of the tokens and keys whose last use is being recorded. */
  readonly #recording = new Set<string>();

  constructor({
    store,
    runtime,
    tasks,
    maxTokensPerUser,
    onlyPasswordOf,
    signInLimit = new SignInLimit(),
    passwords = createPasswords(),
  }: TokenServiceOptions) {
    this.#store = store;
    this.#runtime = runtime;
    this.#tasks = tasks;
    this.#signInLimit = signInLimit;
    this.#maxTokensPerUser = maxTokensPerUser;
    this.#onlyPasswordOf = onlyPasswordOf;
    this.#passwords = passwords;
    // Processes may have been stopped for longer than the interval.
    tasks.start('token sweep', (stopping) => this.#sweep(stopping));
    tasks.every('token sweep', sweepEveryMs, (stopping) => this.#sweep(stopping));
  }

  readonly identify: Identify = async (credentials) => {
    const presented = presentedToken(credentials);
    if (presented === undefined) return undefined;
    const tokenHash = hashToken(presented.token);
    // The cookie, which has a form token, is never a key.
    if (presented.formToken === '' && isKey(presented.token))
      return this.#identifyKey(tokenHash, credentials);
    const token = await this.#findToken(tokenHash);
    const { address, referer } = credentials;
    if (token && !bindingAllows(token.binding, address, referer)) throw invalidToken();
    const caller = this.#callerOf(token, this.#store);
    if (token) this.#recordUse(token, (transaction, at) => recordTokenUse(transaction, tokenHash, at));
    return { caller, tokenHash, formToken: presented.formToken };
  };

  /** The binding of a token never changes, so it is not checked again for the same request. */
  async identifyAgain(identity: Identity): Promise<Identity> {
    if (identity.caller.key !== undefined)
      return {
        ...identity,
        caller: this.#callerOfKey(findKey(this.#store, identity.tokenHash), this.#store),
      };
    const token = await this.#findToken(identity.tokenHash);
    return { ...identity, caller: this.#callerOf(token, this.#store) };
  }

  identifyWithin(transaction: Transaction, identity: Identity): Identity {
    const { tokenHash } = identity;
    if (identity.caller.key !== undefined)
      return { ...identity, caller: this.#callerOfKey(findKey(transaction, tokenHash), transaction) };
    return { ...identity, caller: this.#callerOf(transaction.get(tokens, tokenHash), transaction) };
  }

  async signIn(request: SignInRequest): Promise<{ token: string; expires: number }> {
    const { username, minutes, binding, address, userAgent, entryOf } = request;
    this.#requirePasswordsOf(username, address);
    const { passwordHash } = await this.#checkPassword(request);
    const { token, stored } = this.#newToken({ minutes, binding, address, userAgent });
    await this.#store.update((transaction) => {
      const user = findUser(transaction, username);
      // The password may have been changed during the hash.
      if (user?.passwordHash !== passwordHash) throw wrongCredentials();
      this.#signInWithin(transaction, user, stored);
      transaction.audit.record(entryOf(user));
    });
    return { token, expires: stored.expires };
  }

  /** Signs a user of the identity provider in. The first sign-in adds the user; each one renews the role. */
  async signInProvided(request: ProvidedSignIn): Promise<string> {
    const { address, userAgent, replaces = '', entryOf, record } = request;
    const provided = await this.#limitFailures(request);
    const given = { ...provided, credentialId: this.#runtime.newId(), createdAt: this.#runtime.now() };
    const origin = { minutes: expirationMinutes.default, binding: null, address, userAgent };
    const { token, stored } = this.#newToken(origin);
    await this.#store.update((transaction) => {
      const user = renewProvidedUser(transaction, given);
      // The hash comes from a cookie, so it counts only for a token of the user.
      if (transaction.get(tokens, replaces)?.username === user.username) transaction.remove(tokens, replaces);
      this.#signInWithin(transaction, user, stored);
      record(transaction, entryOf(user));
    });
    return token;
  }

  /** Signs a user in without a password, for the program that has started the server. */
  async issueToken(username: string, minutes: number, entryOf: (user: User) => AuditEntry): Promise<string> {
    const { token, stored } = this.#newToken({ minutes, binding: null, address: null, userAgent: undefined });
    await this.#store.update((transaction) => {
      const user = findUser(transaction, username);
      if (!user) throw new Error(`There is no user ${username}.`);
      this.#signInWithin(transaction, user, stored);
      transaction.audit.record(entryOf(user));
    });
    return token;
  }

  findUsername(username: string): string | undefined {
    return findUser(this.#store, username)?.username;
  }

  /** The session token that a form token stands for, or the given token itself. */
  tokenToRevoke(token: string, cookie: string | undefined): string {
    const isOwnForm = isFormToken(token) && cookie !== undefined && formTokenMatches(token, cookie);
    return isOwnForm ? cookie : token;
  }

  /** Undefined if the token is not valid. */
  async ownerOf(token: string): Promise<Caller> {
    try {
      return this.#callerOf(await this.#findToken(hashToken(token)), this.#store);
    } catch (error) {
      if (error instanceof ServiceError && error.kind === 'token-invalid') return undefined;
      throw error;
    }
  }

  async revoke(token: string, entry?: AuditEntry): Promise<void> {
    const hash = hashToken(token);
    await this.#store.update((transaction) => {
      if (!transaction.get(tokens, hash)) return;
      transaction.remove(tokens, hash);
      if (entry) transaction.audit.record(entry);
    });
  }

  /** Throws if the password is not that of the user. Wrong passwords count as failed sign-ins. */
  async requirePassword(field: string, attempt: PasswordAttempt): Promise<void> {
    try {
      await this.#checkPassword(attempt);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.kind !== 'wrong-credentials') throw error;
      throw invalidField(field, 'this is not your present password.');
    }
  }

  /** `own`: users change their own passwords. */
  async hashPassword(
    password: string,
    own?: PasswordAttempt,
  ): Promise<{ hash: string; credentialId: string }> {
    const salt = this.#runtime.newSecret(saltBytes);
    const hash = await this.#hashing.run(own ? claimantOf(own) : newPasswords, () =>
      this.#passwords.hash(password, salt),
    );
    return { hash, credentialId: this.#runtime.newId() };
  }

  /** `hash` is a function, because hashing is slow and most stores have an administrator already. */
  async ensureAdministrator(username: string, hash: () => Promise<string>): Promise<boolean> {
    if (hasAdministrator(this.#store)) return false;
    const passwordHash = await hash();
    const credentialId = this.#runtime.newId();
    const createdAt = this.#runtime.now();
    return this.#store.update((transaction) => {
      if (hasAdministrator(transaction)) return false;
      addUser(transaction, {
        username,
        role: 'administrator',
        passwordHash,
        credentialId,
        createdAt,
        lastSignIn: null,
        subject: null,
      });
      return true;
    });
  }

  #newToken({ minutes, userAgent, ...origin }: SignInOrigin): { token: string; stored: NewToken } {
    const token = this.#runtime.newSecret(32).toString('base64url');
    const createdAt = this.#runtime.now();
    const stored = {
      hash: hashToken(token),
      id: this.#runtime.newId(),
      createdAt,
      expires: createdAt + minutes * 60_000,
      lastUsedAt: createdAt,
      userAgent: userAgent === undefined ? null : truncate(userAgent, maxUserAgentLength),
      ...origin,
    };
    return { token, stored };
  }

  #signInWithin(transaction: Transaction, user: User, token: NewToken): void {
    const { username, credentialId } = user;
    transaction.put(users, { ...user, lastSignIn: Math.max(user.lastSignIn ?? 0, token.createdAt) });
    addToken(transaction, { ...token, username, credentialId }, this.#maxTokensPerUser);
  }

  /** The request does not wait for it, and succeeds without it. */
  #recordUse(
    { hash, lastUsedAt }: Token | Key,
    record: (transaction: Transaction, at: number) => void,
  ): void {
    const at = this.#runtime.now();
    if ((lastUsedAt !== null && at - lastUsedAt < useEveryMs) || this.#recording.has(hash)) return;
    this.#recording.add(hash);
    this.#tasks.start('last use of a token', async () => {
      try {
        await this.#store.update((transaction) => record(transaction, at));
      } catch (error) {
        if (!isUnavailable(error)) throw error;
      } finally {
        this.#recording.delete(hash);
      }
    });
  }

  async #findToken(hash: string): Promise<Token | undefined> {
    const token = this.#store.get(tokens, hash);
    if (token && ownerOf(token, this.#store)) return token;
    // Another process may have issued the token or changed the password a moment ago.
    await this.#store.refresh();
    return this.#store.get(tokens, hash);
  }

  #callerOf(token: Token | undefined, reader: Reader): NonNullable<Caller> {
    const user = token && ownerOf(token, reader);
    if (!user || token.expires <= this.#runtime.now()) throw invalidToken();
    return { username: user.username, role: user.role };
  }

  async #identifyKey(hash: string, credentials: Credentials): Promise<Identity> {
    // Another process may have created the key a moment ago.
    if (!findKey(this.#store, hash)) await this.#store.refresh();
    const key = findKey(this.#store, hash);
    const caller = this.#callerOfKey(key, this.#store);
    if (key) {
      const address = credentials.address() || null;
      this.#recordUse(key, (transaction, at) => recordKeyUse(transaction, hash, at, address));
    }
    return { caller, tokenHash: hash, formToken: '' };
  }

  #callerOfKey(key: Key | undefined, reader: Reader): NonNullable<Caller> {
    const user = key && findUser(reader, key.username);
    if (!user || (key.expires !== null && key.expires <= this.#runtime.now())) throw invalidToken();
    const role = isRoleAbove(key.role, user.role) ? user.role : key.role;
    return { username: user.username, role, key: key.name };
  }

  async #checkPassword(given: PasswordAttempt): Promise<User> {
    const { username, password, address } = given;
    // Without this, calls that are refused in the end would take places from others.
    this.#requireAllowed({ username, address, at: this.#runtime.now() });
    return this.#hashing.run(claimantOf(given), async () => {
      const attempt = { username, address, at: this.#runtime.now() };
      this.#requireAllowed(attempt);
      this.#signInLimit.start(attempt);
      const user = findUser(this.#store, username);
      const matches = await this.#passwords.matches(
        password,
        user?.passwordHash ?? this.#passwords.unmatchable,
      );
      if (!matches || user === undefined) throw wrongCredentials();
      this.#signInLimit.forget(attempt);
      return user;
    });
  }

  /** Each call makes the identity provider work, so those that fail are limited. */
  async #limitFailures({ attempt: username, address, authenticate }: ProvidedSignIn): Promise<ProvidedUser> {
    const attempt = { username, address, at: this.#runtime.now() };
    this.#requireAllowed(attempt);
    this.#signInLimit.start(attempt);
    try {
      const user = await authenticate();
      this.#signInLimit.forget(attempt);
      return user;
    } catch (error) {
      if (isUnavailable(error)) this.#signInLimit.forget(attempt);
      throw error;
    }
  }

  #requirePasswordsOf(username: string, address: string): void {
    if (this.#onlyPasswordOf === undefined || isSameName(username, this.#onlyPasswordOf)) return;
    const attempt = { username, address, at: this.#runtime.now() };
    this.#requireAllowed(attempt);
    this.#signInLimit.start(attempt);
    throw new ServiceError('forbidden', 'Passwords are not accepted here. Sign in at the identity provider.');
  }

  #requireAllowed(attempt: SignInAttempt): void {
    const retryAfterSeconds = this.#signInLimit.waitSeconds(attempt);
    if (retryAfterSeconds > 0)
      throw new ServiceError('too-many-requests', 'Too many sign-in attempts.', { retryAfterSeconds });
  }

  async #sweep(stopping: AbortSignal): Promise<void> {
    const at = this.#runtime.now();
    this.#signInLimit.removeExpired(at);
    // In parts, so that other updates do not wait long.
    for (let expired = expiredTokens(this.#store, at); expired.length > 0 && !stopping.aborted;) {
      const part = expired.splice(0, sweptAtOnce);
      await this.#store.update((transaction) => {
        for (const { hash } of part) transaction.remove(tokens, hash);
      });
    }
  }
}

function isSameName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

function claimantOf({ username, address }: PasswordAttempt): Claimant {
  return { username: username.toLowerCase(), subnet: subnetOf(address), network: networkOf(address) };
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

/** Returns undefined if the user is removed or has got a new password since. */
function ownerOf({ username, credentialId }: Token, reader: Reader): User | undefined {
  const user = findUser(reader, username);
  return user?.credentialId === credentialId ? user : undefined;
}

function invalidToken(): ServiceError {
  return new ServiceError('token-invalid', 'Invalid token.');
}

function wrongCredentials(): ServiceError {
  return new ServiceError('wrong-credentials', 'Unable to generate token.');
}

function formOfEndedSession(): ServiceError {
  const message = 'this form belongs to a session that has ended. Sign in and open the form again.';
  return new ServiceError('token-invalid', 'Invalid token.', { problems: [{ field: 'token', message }] });
}
