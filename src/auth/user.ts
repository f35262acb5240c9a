// Users and the rules for changing them: names are unique, ignoring case, and at least one local administrator remains.
import { Secret } from '../lib/audit-fields.ts';
import type { Caller, Role } from '../lib/caller.ts';
import { type Problem, ServiceError, invalid, usualError } from '../lib/errors.ts';
import { isXmlText } from '../lib/text.ts';
import type { Reader, Table } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';
import { deleteKeysOf } from './key.ts';
import { type Token, endTokens, tokensOf } from './token.ts';

export const roleMeanings =
  'The role member sees the services that are open to everyone or to signed-in users. ' +
  'The role publisher also publishes events, and creates, changes and deletes services and folders. ' +
  'The role administrator also manages webhooks, upgrades, users, uploads and the mode.';

export type User = {
  readonly username: string;
  readonly role: Role;
  /** Null: the user signs in at the identity provider only. */
  readonly passwordHash: string | null;
  readonly createdAt: number;
  /** Null: never. */
  readonly lastSignIn: number | null;
  /** Who the user is at the identity provider. Null: a local user. */
  readonly subject: Subject | null;
};

type Subject = { readonly issuer: string; readonly id: string };

export const userSources = ['local', 'oidc'] as const;

export type UserSource = (typeof userSources)[number];

export function sourceOf({ subject }: User): UserSource {
  return subject === null ? 'local' : 'oidc';
}

/** What the user and administrators may see. */
export function profileOf(user: User) {
  const { username, role, createdAt, lastSignIn } = user;
  return { username, role, source: sourceOf(user), createdAt, lastSignIn };
}

export const users: Table<User> = {
  name: 'users',
  keyOf: (user) => user.username.toLowerCase(),
  defaults: {},
  auditFields: ({ role, passwordHash, subject }) => ({
    role,
    password: new Secret(passwordHash ?? ''),
    subject: subject?.id ?? null,
  }),
};

export const usernames = {
  pattern: /^[A-Za-z0-9._@-]{1,64}$/,
  allowed: '1 to 64 letters a to z, digits or . _ @ -',
};
export const passwordLength = { from: 8, to: 256 } as const;
export const passwordRule = `${passwordLength.from} to ${passwordLength.to} characters, not only blanks, without control characters`;

export function isPassword(text: string): boolean {
  const length = Array.from(text).length;
  return (
    text.trim() !== '' &&
    isXmlText(text) &&
    !/[\r\n]/.test(text) &&
    length >= passwordLength.from &&
    length <= passwordLength.to
  );
}

export function findUser(reader: Reader, username: string): User | undefined {
  return reader.get(users, username.toLowerCase());
}

export function listUsers(reader: Reader): User[] {
  return [...reader.all(users)].sort((a, b) => (users.keyOf(a) < users.keyOf(b) ? -1 : 1));
}

/** Only local ones count: the identity provider may be unavailable, and may give its users other roles at any time. */
export function hasAdministrator(reader: Reader, except?: User): boolean {
  for (const user of reader.all(users)) if (isLocalAdministrator(user) && user !== except) return true;
  return false;
}

export function isLocalAdministrator(user: User | undefined): boolean {
  return user?.role === 'administrator' && user.subject === null;
}

export function addUser(transaction: Transaction, user: User): void {
  requireFreeName(transaction, user.username);
  transaction.put(users, user);
}

export function requireFreeName(reader: Reader, username: string): void {
  const user = findUser(reader, username);
  if (user !== undefined) throw new ServiceError('conflict', `A user named ${user.username} exists already.`);
}

type NewProvidedUser = Pick<User, 'username' | 'role' | 'createdAt'> & {
  readonly subject: Subject;
};

/** Adds the user at the first sign-in and renews the role at the others. A user keeps the first name. */
export function renewProvidedUser(transaction: Transaction, given: NewProvidedUser): User {
  const user = findProvidedUser(transaction, given.subject);
  const other = user ? undefined : findUser(transaction, given.username);
  if (other)
    throw new ServiceError(
      'conflict',
      `The name ${other.username} belongs to ${other.subject ? 'another user of the identity provider' : 'a local user'}.`,
      { problems: [{ message: 'An administrator can remove that user.' }] },
    );
  const renewed = user ? { ...user, role: given.role } : { ...given, passwordHash: null, lastSignIn: null };
  transaction.put(users, renewed);
  return renewed;
}

/** Issuer and subject identify the user, because names and email addresses move from one person to another. */
export function findProvidedUser(reader: Reader, { issuer, id }: Subject): User | undefined {
  for (const user of reader.all(users))
    if (user.subject?.id === id && user.subject.issuer === issuer) return user;
  return undefined;
}

type UserChange = {
  role?: Role | undefined;
  passwordHash?: string | undefined;
};

export function updateUser(transaction: Transaction, username: string, change: UserChange): void {
  const user = requireUser(transaction, username);
  const { role = user.role, passwordHash = user.passwordHash } = change;
  if (role !== 'administrator') requireAnotherAdministrator(transaction, user);
  if (change.passwordHash !== undefined) {
    requireLocal(user);
    endTokens(transaction, user.username);
  }
  transaction.put(users, { ...user, role, passwordHash });
}

/** Ends all other tokens of the user. */
export function changeOwnPassword(
  transaction: Transaction,
  username: string,
  passwordHash: string,
  ownToken: string,
): void {
  const user = requireUser(transaction, username);
  transaction.put(users, { ...user, passwordHash });
  endTokens(transaction, user.username, ownToken);
}

export function removeUser(transaction: Transaction, username: string): void {
  const user = requireUser(transaction, username);
  requireAnotherAdministrator(transaction, user);
  transaction.remove(users, users.keyOf(user));
  endTokens(transaction, user.username);
  deleteKeysOf(transaction, user.username);
}

/** The tokens of a user that are valid, newest first. */
export function sessionsOf(reader: Reader, { username }: User, at: number): Token[] {
  return tokensOf(reader, username).filter(({ expires }) => expires > at);
}

/** The user may have been removed since the caller was identified. */
export function requireOwnUser(reader: Reader, caller: Caller): User {
  const user = caller && findUser(reader, caller.username);
  if (!user) throw usualError('token-invalid');
  return user;
}

/**
 * Whether the user with the name is that of the caller. A program may administer other users, but a key that has leaked
 * must not lock its own user out.
 */
export function isOwnUser(reader: Reader, username = '', caller: Caller): boolean {
  return findUser(reader, username)?.username === caller?.username;
}

/** The name comes from a form field, so an unknown user is a problem of that field. */
export function requireUser(reader: Reader, username: string): User {
  const user = findUser(reader, username);
  if (user === undefined) throw invalid([unknownUser(username)]);
  return user;
}

export function unknownUser(username: string): Problem {
  return { field: 'username', message: `there is no user named ${username}.` };
}

function requireAnotherAdministrator(reader: Reader, leaving: User): void {
  if (isLocalAdministrator(leaving) && !hasAdministrator(reader, leaving)) {
    throw new ServiceError('conflict', `${leaving.username} is the last administrator.`);
  }
}

/** A password would let a user in whom the identity provider refuses. */
export function requireLocal({ username, subject }: User): void {
  if (subject !== null)
    throw new ServiceError(
      'conflict',
      `${username} signs in at the identity provider and has no password here.`,
    );
}
