// Signs users in, identifies callers by their tokens, and revokes tokens.
import type { Credentials, Identity } from '../caller.ts';
import { ServiceError } from '../errors.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import type { Tasks } from '../tasks.ts';
import { networkOf } from '../lib/address.ts';
import { FairLimiter } from './fair-limiter.ts';
import { hashPassword, passwordMatches, saltBytes, unmatchableHash } from './password.ts';
import { SignInLimit } from './sign-in-limit.ts';
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

export type TokenServiceOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly tasks: Tasks;
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
  /** A password hash occupies a thread and 16 MiB for a noticeable time. */
  readonly #hashing = new FairLimiter({ running: 4, waitingPerNetwork: 16, waiting: 256 });

  constructor({ store, runtime, tasks }: TokenServiceOptions) {
    this.#store = store;
    this.#runtime = runtime;
    tasks.every('token sweep', sweepEveryMs, () => this.#sweep());
  }

  identify(credentials: Credentials): Identity | undefined {
    const { bearer, field, cookie, readsOnly } = credentials;
    if (bearer !== undefined) return this.#identityOf(bearer, credentials);
    if (field !== undefined) {
      if (!isFormToken(field) || readsOnly) return this.#identityOf(field, credentials);
      if (cookie === undefined || !formTokenMatches(field, cookie)) throw formOfEndedSession();
      return this.#identityOf(cookie, credentials, field);
    }
    if (cookie === undefined || !readsOnly) return undefined;
    return this.#identityOf(cookie, credentials, formTokenOf(cookie));
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
      transaction.put(tokens, {
        hash: hashToken(token),
        username: current.username,
        credentialId: current.credentialId,
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
    const hash = await this.#hashing.run('new passwords', () => hashPassword(password, salt));
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

  #identityOf(token: string, { address, referer }: Credentials, formToken = ''): Identity {
    const stored = this.#store.get(tokens, hashToken(token));
    const user = stored && findUser(this.#store, stored.username);
    const isValid =
      stored !== undefined &&
      stored.expires > this.#runtime.now() &&
      stored.credentialId === user?.credentialId &&
      bindingAllows(stored.binding, address, referer);
    if (!isValid) throw new ServiceError('token-invalid', 'Invalid token.');
    return { caller: { username: user.username, role: user.role }, formToken };
  }

  #checkPassword({ username, password, address }: SignInRequest): Promise<User> {
    // One client may own a whole IPv6 network. Counting single addresses would not limit it.
    const network = networkOf(address);
    return this.#hashing.run(network, async () => {
      const retryAfterSeconds = this.#signInLimit.waitSeconds(username, network, this.#runtime.now());
      if (retryAfterSeconds > 0)
        throw new ServiceError('too-many-requests', 'Too many sign-in attempts.', { retryAfterSeconds });
      const user = findUser(this.#store, username);
      const matches = await passwordMatches(password, user?.passwordHash ?? unmatchableHash);
      if (!matches) this.#signInLimit.countFailure(username, network, this.#runtime.now());
      if (!matches || user === undefined) throw wrongCredentials();
      return user;
    });
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
