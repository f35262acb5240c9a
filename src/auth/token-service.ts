// The tokenService: signs users in, tells whose token a request carries, ends tokens.
import type { Identify, Identity, Credentials } from '../caller.ts';
import { ServiceError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import type { Tasks } from '../tasks.ts';
import type { Runtime } from '../runtime.ts';
import { hashPassword, passwordMatches, saltBytes, unmatchableHash } from './password.ts';
import { createSignInLimit } from './sign-in-limit.ts';
import { createFairLimiter } from './fair-limiter.ts';
import { networkOf } from '../lib/address.ts';
import {
  type Binding,
  bindingAllows,
  formTokenMatches,
  formTokenOf,
  hashToken,
  isFormToken,
  tokens,
} from './token.ts';
import { addUser, findUser, hasAdministrator, type User, users } from './user.ts';

const sweepEveryMs = 60_000;

export type TokenService = {
  identify: Identify;
  signIn: (credentials: SignInRequest) => Promise<{ token: string; expires: number }>;
  /** Ends a token, or with a form token the session it belongs to. Unknown ones are none of our concern. */
  revoke: (token: string, cookie: string | undefined) => Promise<void>;
  hashPassword: (password: string) => Promise<{ hash: string; credentialId: string }>;
  /** Creates the first administrator where there is none; tells whether it did. `hash` is that of the password. */
  ensureAdministrator: (username: string, hash: () => Promise<string>) => Promise<boolean>;
};

export type SignInRequest = {
  username: string;
  password: string;
  address: string;
  minutes: number;
  binding: Binding;
};

export function createTokenService(store: Store, runtime: Runtime, tasks: Tasks): TokenService {
  const limit = createSignInLimit();
  const limiter = createFairLimiter({ inside: 4, inLane: 16, waiting: 256 });

  function userOf(token: string, credentials: Credentials): User {
    const stored = store.get(tokens, hashToken(token));
    const user = stored && findUser(store, stored.username);
    const good =
      stored !== undefined &&
      stored.expires > runtime.now() &&
      stored.credentialId === user?.credentialId &&
      bindingAllows(stored.binding, credentials.address, credentials.referer);
    if (!good) throw new ServiceError('token-invalid', 'Invalid token.');
    return user;
  }

  function identify(credentials: Credentials): Identity | undefined {
    const { bearer, field, cookie, readsOnly } = credentials;
    const asCaller = (token: string, formToken = '') => {
      const { username, role } = userOf(token, credentials);
      return { caller: { username, role }, formToken };
    };
    if (bearer !== undefined) return asCaller(bearer);
    if (field !== undefined) {
      if (!isFormToken(field) || readsOnly) return asCaller(field);
      if (cookie === undefined || !formTokenMatches(field, cookie)) {
        throw new ServiceError('token-invalid', 'Invalid token.', {
          problems: [
            {
              field: 'token',
              message: 'this form belongs to a session that has ended. Sign in and open the form again.',
            },
          ],
        });
      }
      return asCaller(cookie, field);
    }
    return cookie !== undefined && readsOnly ? asCaller(cookie, formTokenOf(cookie)) : undefined;
  }

  async function signIn({ username, password, address, minutes, binding }: SignInRequest) {
    // Whoever has an address of the newer kind has a whole network of them.
    const network = networkOf(address);
    const matches = await limiter(network, async () => {
      const wait = limit.waitSeconds(username, network, runtime.now());
      if (wait > 0) {
        throw new ServiceError('too-many-requests', 'Too many sign-in attempts.', {
          retryAfterSeconds: wait,
        });
      }
      const hash = findUser(store, username)?.passwordHash ?? unmatchableHash;
      const matched = await passwordMatches(password, hash);
      if (!matched) limit.countFailure(username, network, runtime.now());
      return matched;
    });
    const user = findUser(store, username);
    if (!matches || user === undefined)
      throw new ServiceError('wrong-credentials', 'Unable to generate token.');

    const token = runtime.newSecret(32).toString('base64url');
    const signedInAt = runtime.now();
    const expires = signedInAt + minutes * 60_000;
    await store.update((transaction) => {
      const current = findUser(transaction, username);
      if (current?.passwordHash !== user.passwordHash) {
        throw new ServiceError('wrong-credentials', 'Unable to generate token.');
      }
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

  async function revoke(token: string, cookie: string | undefined): Promise<void> {
    const isOwnForm = isFormToken(token) && cookie !== undefined && formTokenMatches(token, cookie);
    const hash = hashToken(isOwnForm ? cookie : token);
    // It may have been issued elsewhere a moment ago.
    if (store.get(tokens, hash) === undefined) await store.refresh();
    if (store.get(tokens, hash) === undefined) return;
    await store.update((transaction) => transaction.remove(tokens, hash));
  }

  async function makeHash(password: string) {
    const salt = runtime.newSecret(saltBytes);
    return {
      hash: await limiter('new passwords', () => hashPassword(password, salt)),
      credentialId: runtime.newId(),
    };
  }

  async function ensureAdministrator(username: string, hash: () => Promise<string>): Promise<boolean> {
    if (hasAdministrator(store)) return false;
    const passwordHash = await hash();
    const credentialId = runtime.newId();
    const createdAt = runtime.now();
    return store.update((transaction) => {
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

  /** Forgets tokens that can no longer be used. */
  async function sweep(at: number): Promise<void> {
    limit.forget(at);
    const isSpent = (token: { username: string; credentialId: string; expires: number }) =>
      token.expires <= at || findUser(store, token.username)?.credentialId !== token.credentialId;
    const spent = [...store.all(tokens)].filter(isSpent);
    if (spent.length === 0) return;
    await store.update((transaction) => {
      for (const token of spent) transaction.remove(tokens, token.hash);
    });
  }

  tasks.every('token sweep', sweepEveryMs, () => sweep(runtime.now()));

  return { identify, signIn, revoke, hashPassword: makeHash, ensureAdministrator };
}
