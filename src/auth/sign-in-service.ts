// Signs users in, and checks and hashes their passwords.
import { networkOf, subnetOf } from '../lib/address.ts';
import { ServiceError, invalidField, usualError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { Tasks } from '../lib/tasks.ts';
import { truncate } from '../lib/text.ts';
import type { AuditEntry } from '../store/audit-entry.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Claimant, FairLimiter } from './fair-limiter.ts';
import { type Passwords, createPasswords, saltBytes } from './password.ts';
import type { ProvidedUser } from './oidc/provider.ts';
import { type SignInAttempt, SignInLimit } from './sign-in-limit.ts';
import { type Binding, type Token, addToken, expirationMinutes, hashToken, tokens } from './token.ts';
import {
  type User,
  addUser,
  findProvidedUser,
  findUser,
  hasAdministrator,
  removeUser,
  renewProvidedUser,
  users,
} from './user.ts';

const forgetEveryMs = 600_000;

const maxUserAgentLength = 256;

/**
 * A password hash occupies a thread and 16 MiB for a noticeable time. Node has four such threads: one stays free,
 * because name resolution and file access need them too.
 */
export const hashingLimits = { running: 3, waiting: 256, waitingPerUser: 64, waitingPerNetwork: 16 };

/** Administrators set the passwords of others. Their calls take turns with the networks of sign-ins. */
const newPasswords: Claimant = { username: '', subnet: '', network: 'new passwords' };

type SignInServiceOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly tasks: Tasks;
  readonly maxTokensPerUser: number;
  /** The only user who signs in with a password. Undefined: all users do. */
  readonly onlyPasswordOf?: string | undefined;
  readonly signInLimit?: SignInLimit | undefined;
  readonly passwords?: Passwords | undefined;
};

type PasswordAttempt = {
  readonly username: string;
  readonly password: string;
  readonly address: string;
};

/** The entry of the audit trail for a sign-in that succeeds. The store may call it more than once. */
type EntryOf = (user: User) => AuditEntry;

type AnySignIn = {
  readonly address: string;
  readonly userAgent: string | undefined;
  /** The hash of a token that ends: that of the previous session of the browser. */
  readonly replaces: string | undefined;
  readonly entryOf: EntryOf;
};

type SignInRequest = AnySignIn & PasswordAttempt & { readonly minutes: number; readonly binding: Binding };

type ProvidedSignIn = AnySignIn & {
  readonly provided: ProvidedUser;
  /** Records the entry together with what the transaction has changed so far. */
  readonly record: (transaction: Transaction, entry: AuditEntry) => void;
};

type SignInOrigin = Pick<Token, 'binding' | 'address'> & {
  readonly minutes: number;
  readonly userAgent: string | undefined;
};

type NewToken = Omit<Token, 'username'>;

export class SignInService {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #signInLimit: SignInLimit;
  readonly #maxTokensPerUser: number;
  readonly #onlyPasswordOf: string | undefined;
  readonly #passwords: Passwords;
  readonly #hashing = new FairLimiter(hashingLimits);

  constructor({
    store,
    runtime,
    tasks,
    maxTokensPerUser,
    onlyPasswordOf,
    signInLimit = new SignInLimit(),
    passwords = createPasswords(),
  }: SignInServiceOptions) {
    this.#store = store;
    this.#runtime = runtime;
    this.#signInLimit = signInLimit;
    this.#maxTokensPerUser = maxTokensPerUser;
    this.#onlyPasswordOf = onlyPasswordOf;
    this.#passwords = passwords;
    tasks.every('failed sign-ins', forgetEveryMs, () =>
      Promise.resolve(signInLimit.removeExpired(runtime.now())),
    );
  }

  async signIn(request: SignInRequest): Promise<{ token: string; expires: number }> {
    const { username, minutes, binding, address, userAgent, replaces = '', entryOf } = request;
    const isAccepted = (this.#onlyPasswordOf ?? username).toLowerCase() === username.toLowerCase();
    const { passwordHash } = await this.#checkPassword(request, isAccepted);
    const { token, stored } = this.#newToken({ minutes, binding, address, userAgent });
    await this.#store.update((transaction) => {
      const user = findUser(transaction, username);
      // The password may have been changed during the hash.
      if (user?.passwordHash !== passwordHash) throw this.#wrongCredentials();
      if (transaction.get(tokens, replaces)) transaction.remove(tokens, replaces);
      this.#signInWithin(transaction, user, stored);
      transaction.audit.record(entryOf(user));
    });
    return { token, expires: stored.expires };
  }

  /** Signs a user of the identity provider in. The first sign-in adds the user; each one renews the role. */
  async signInProvided(request: ProvidedSignIn): Promise<string> {
    const { provided, address, userAgent, replaces = '', entryOf, record } = request;
    const { subject, account } = provided;
    if (!account) return this.#refuseWithoutRole(request);
    const origin = { minutes: expirationMinutes.default, binding: null, address, userAgent };
    const { token, stored } = this.#newToken(origin);
    const given = { ...account, subject, createdAt: stored.createdAt };
    await this.#store.update((transaction) => {
      const user = renewProvidedUser(transaction, given);
      // The hash comes from a cookie, so it counts only for a token of the user.
      if (transaction.get(tokens, replaces)?.username === user.username) transaction.remove(tokens, replaces);
      this.#signInWithin(transaction, user, stored);
      record(transaction, entryOf(user));
    });
    return token;
  }

  /** Whom the provider has given no role any more must not keep it in a session or a key. */
  async #refuseWithoutRole({ provided, entryOf, record }: ProvidedSignIn): Promise<never> {
    await this.#store.update((transaction) => {
      const user = findProvidedUser(transaction, provided.subject);
      if (!user) return;
      removeUser(transaction, user.username);
      record(transaction, { ...entryOf(user), user: null, role: null });
    });
    throw new ServiceError('forbidden', 'You have no role here.', {
      problems: [{ message: 'Ask an administrator for a group that has a role.' }],
    });
  }

  /** Signs a user in without a password, for the program that has started the server. */
  async issueToken(username: string, minutes: number, entryOf: EntryOf): Promise<string> {
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
  hashPassword(password: string, own?: PasswordAttempt): Promise<string> {
    const salt = this.#runtime.newSecret(saltBytes);
    return this.#hashing.run(own ? claimantOf(own) : newPasswords, () =>
      this.#passwords.hash(password, salt),
    );
  }

  /** `hash` is a function, because hashing is slow and most stores have an administrator already. */
  async ensureAdministrator(username: string, hash: () => Promise<string>): Promise<boolean> {
    if (hasAdministrator(this.#store)) return false;
    const passwordHash = await hash();
    const createdAt = this.#runtime.now();
    return this.#store.update((transaction) => {
      if (hasAdministrator(transaction)) return false;
      addUser(transaction, {
        username,
        role: 'administrator',
        passwordHash,
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
    transaction.put(users, { ...user, lastSignIn: Math.max(user.lastSignIn ?? 0, token.createdAt) });
    addToken(transaction, { ...token, username: user.username }, this.#maxTokensPerUser);
  }

  /** A password that is not accepted takes the same time and gets the same answer as a wrong one. */
  async #checkPassword(given: PasswordAttempt, isAccepted = true): Promise<User> {
    const { username, password, address } = given;
    // Without this, calls that are refused in the end would take places from others.
    this.#requireAllowed({ username, address, at: this.#runtime.now() });
    const find = () => (isAccepted ? findUser(this.#store, username) : undefined);
    const matches = (user: User | undefined) =>
      this.#passwords.matches(password, user?.passwordHash ?? this.#passwords.unmatchable);
    const compare = async () => {
      const user = find();
      if ((await matches(user)) && user) return user;
      // Another process may have added the user, or set the password, a moment ago.
      await this.#store.refresh();
      const newer = find();
      if (newer && newer.passwordHash !== user?.passwordHash && (await matches(newer))) return newer;
      throw this.#wrongCredentials();
    };
    return this.#hashing.run(claimantOf(given), () => this.limitFailures(username, address, compare));
  }

  /** Work that fails counts for the user name and the networks of the address. */
  async limitFailures<T>(username: string, address: string, work: () => Promise<T>): Promise<T> {
    const attempt = { username, address, at: this.#runtime.now() };
    this.#requireAllowed(attempt);
    this.#signInLimit.start(attempt);
    const result = await work();
    this.#signInLimit.forget(attempt);
    return result;
  }

  #wrongCredentials(): ServiceError {
    if (this.#onlyPasswordOf === undefined)
      return usualError('wrong-credentials', {
        problems: [{ message: 'Invalid username or password.' }],
        onPage: 'The user name or the password is wrong.',
      });
    const message = 'Only the first administrator has a password here. Sign in at the identity provider.';
    return usualError('wrong-credentials', { problems: [{ message }] });
  }

  #requireAllowed(attempt: SignInAttempt): void {
    const retryAfterSeconds = this.#signInLimit.waitSeconds(attempt);
    if (retryAfterSeconds > 0) throw usualError('too-many-requests', { retryAfterSeconds });
  }
}

function claimantOf({ username, address }: PasswordAttempt): Claimant {
  return { username: username.toLowerCase(), subnet: subnetOf(address), network: networkOf(address) };
}
