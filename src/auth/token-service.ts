// Signs users in, identifies callers by their tokens, and revokes tokens.
import type { Credentials, Identity } from '../caller.ts';
import { ServiceError } from '../errors.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import type { Reader, Transaction } from '../store/transaction.ts';
import type { Tasks } from '../tasks.ts';
import { networkOf, subnetOf } from '../lib/address.ts';
import { type Claimant, FairLimiter } from './fair-limiter.ts';
import { hashPassword, passwordMatches, saltBytes, unmatchableHash } from './password.ts';
import { type Attempt, SignInLimit } from './sign-in-limit.ts';
import {
  type Binding,
  type Token,
  bindingAllows,
  formTokenMatches,
  formTokenOf,
  hashToken,
  isFormToken,
  tokens,
} from './token.ts';
import { type User, addUser, findUser, hasAdministrator, users } from './user.ts';

const sweepEveryMs = 60_000;

/**
 * A password hash occupies a thread and 16 MiB for a noticeable time. Node has four such threads: one stays free, because name resolution
 * and file access need them too.
 */
export const hashingLimits = { running: 3, waiting: 256, waitingPerUser: 64, waitingPerNetwork: 16 };

/** Administrators set passwords. Their calls take turns with the networks of sign-ins. */
const newPasswords: Claimant = { username: '', subnet: '', network: 'new passwords' };

export type TokenServiceOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly tasks: Tasks;
  readonly maxTokensPerUser: number;
};

export type SignInRequest = {
  readonly username: string;
  readonly password: string;
  readonly address: string;
  readonly minutes: number;
  readonly binding: Binding;
};

export class TokenService {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #signInLimit = new SignInLimit();
  readonly #maxTokensPerUser: number;
  readonly #hashing = new FairLimiter(hashingLimits);

  constructor({ store, runtime, tasks, maxTokensPerUser }: TokenServiceOptions) {
    this.#store = store;
    this.#runtime = runtime;
    this.#maxTokensPerUser = maxTokensPerUser;
    tasks.every('token sweep', sweepEveryMs, () => this.#sweep());
  }

  /** `reader` is a transaction where an operation identifies its caller again. */
  identify(credentials: Credentials, reader: Reader = this.#store): Identity | undefined {
    const { bearer, field, cookie, readsOnly } = credentials;
    if (bearer !== undefined) return this.#identityOf(reader, bearer, credentials);
    if (field !== undefined) {
      if (!isFormToken(field) || readsOnly) return this.#identityOf(reader, field, credentials);
      if (cookie === undefined || !formTokenMatches(field, cookie)) throw formOfEndedSession();
      return this.#identityOf(reader, cookie, credentials, field);
    }
    if (cookie === undefined || !readsOnly) return undefined;
    return this.#identityOf(reader, cookie, credentials, formTokenOf(cookie));
  }

  async signIn(request: SignInRequest): Promise<{ token: string; expires: number }> {
    const { username, minutes, binding } = request;
    const user = await this.#checkPassword(request);
    const token = this.#runtime.newSecret(32).toString('base64url');
    const signedInAt = this.#runtime.now();
    const expires = signedInAt + minutes * 60_000;
    await this.#store.update((transaction) => {
      const current = findUser(transaction, username);
      if (current?.passwordHash !== user.passwordHash) throw wrongCredentials();
      transaction.put(users, { ...current, lastSignIn: signedInAt });
      this.#endOldestTokens(transaction, current, signedInAt);
      transaction.put(tokens, {
        hash: hashToken(token),
        username: current.username,
        credentialId: current.credentialId,
        createdAt: signedInAt,
        expires,
        binding,
      });
    });
    return { token, expires };
  }

  async revoke(token: string, cookie: string | undefined): Promise<void> {
    const isOwnForm = isFormToken(token) && cookie !== undefined && formTokenMatches(token, cookie);
    const hash = hashToken(isOwnForm ? cookie : token);
    // Another process may have issued the token a moment ago.
    if (this.#store.get(tokens, hash) === undefined) await this.#store.refresh();
    if (this.#store.get(tokens, hash) === undefined) return;
    await this.#store.update((transaction) => transaction.remove(tokens, hash));
  }

  async hashPassword(password: string): Promise<{ hash: string; credentialId: string }> {
    const salt = this.#runtime.newSecret(saltBytes);
    const hash = await this.#hashing.run(newPasswords, () => hashPassword(password, salt));
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
      });
      return true;
    });
  }

  #identityOf(reader: Reader, token: string, { address, referer }: Credentials, formToken = ''): Identity {
    const stored = reader.get(tokens, hashToken(token));
    const user = stored && findUser(reader, stored.username);
    const isValid =
      stored !== undefined &&
      stored.expires > this.#runtime.now() &&
      stored.credentialId === user?.credentialId &&
      bindingAllows(stored.binding, address, referer);
    if (!isValid) throw new ServiceError('token-invalid', 'Invalid token.');
    return { caller: { username: user.username, role: user.role }, formToken };
  }

  async #checkPassword({ username, password, address }: SignInRequest): Promise<User> {
    const claimant = {
      username: username.toLowerCase(),
      subnet: subnetOf(address),
      network: networkOf(address),
    };
    // Without this, calls that are refused in the end would take places from others.
    this.#requireAllowed({ username, address, at: this.#runtime.now() });
    return this.#hashing.run(claimant, async () => {
      const attempt = { username, address, at: this.#runtime.now() };
      this.#requireAllowed(attempt);
      this.#signInLimit.start(attempt);
      const user = findUser(this.#store, username);
      const matches = await passwordMatches(password, user?.passwordHash ?? unmatchableHash);
      if (!matches || user === undefined) throw wrongCredentials();
      this.#signInLimit.forget(attempt);
      return user;
    });
  }

  #requireAllowed(attempt: Attempt): void {
    const retryAfterSeconds = this.#signInLimit.waitSeconds(attempt);
    if (retryAfterSeconds > 0)
      throw new ServiceError('too-many-requests', 'Too many sign-in attempts.', { retryAfterSeconds });
  }

  /** Leaves room for one more token. */
  #endOldestTokens(transaction: Transaction, { username, credentialId }: User, at: number): void {
    const valid = [...transaction.all(tokens)]
      .filter((token) => token.username === username && token.credentialId === credentialId)
      .filter(({ expires }) => expires > at)
      .sort((a, b) => (a.createdAt ?? 0) - (b.createdAt ?? 0));
    const surplus = Math.max(0, valid.length + 1 - this.#maxTokensPerUser);
    for (const { hash } of valid.slice(0, surplus)) transaction.remove(tokens, hash);
  }

  async #sweep(): Promise<void> {
    const at = this.#runtime.now();
    this.#signInLimit.removeExpired(at);
    const isInvalid = ({ username, credentialId, expires }: Token) =>
      expires <= at || findUser(this.#store, username)?.credentialId !== credentialId;
    const invalid = [...this.#store.all(tokens)].filter(isInvalid);
    if (invalid.length === 0) return;
    await this.#store.update((transaction) => {
      for (const token of invalid) transaction.remove(tokens, token.hash);
    });
  }
}

function wrongCredentials(): ServiceError {
  return new ServiceError('wrong-credentials', 'Unable to generate token.');
}

function formOfEndedSession(): ServiceError {
  const message = 'this form belongs to a session that has ended. Sign in and open the form again.';
  return new ServiceError('token-invalid', 'Invalid token.', { problems: [{ field: 'token', message }] });
}
