// Keys of programs: 256 random bits behind a prefix, stored as hashes only; and the rules for changing them.
import type { Role } from '../lib/caller.ts';
import { ServiceError, invalidField } from '../lib/errors.ts';
import type { Reader, Table } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';

export type Key = {
  readonly id: string;
  readonly hash: string;
  readonly username: string;
  readonly name: string;
  readonly role: Role;
  readonly createdAt: number;
  /** Null: never. */
  readonly expires: number | null;
  /** Exact to a minute. Null: never. */
  readonly lastUsedAt: number | null;
  /** Where the recorded use came from. */
  readonly lastAddress: string | null;
};

export const keys: Table<Key> = {
  name: 'keys',
  keyOf: ({ id }) => id,
  defaults: {},
  auditFields: ({ name, username, role, expires }) => ({ name, user: username, role, expiresAt: expires }),
};

const maxKeysPerUser = 50;

const prefix = 'stw_';
const secretBytes = 32;
const keyLength = prefix.length + Math.ceil((secretBytes * 4) / 3);

export function newKey(newSecret: (bytes: number) => Buffer): string {
  return prefix + newSecret(secretBytes).toString('base64url');
}

/** A token may begin with the prefix by chance, but is shorter. */
export function isKey(text: string): boolean {
  return text.length === keyLength && text.startsWith(prefix);
}

/** The id is a part of the hash, so that a key is found without an index of hashes. */
export function keyId(hash: string): string {
  return hash.slice(0, 22);
}

export function findKey(reader: Reader, hash: string): Key | undefined {
  const key = reader.get(keys, keyId(hash));
  return key?.hash === hash ? key : undefined;
}

/** Newest first. Expired keys stay in the list, so that the user sees why a program is refused. */
export function listKeys(reader: Reader): Key[] {
  return [...reader.all(keys)].sort(
    (one, other) => other.createdAt - one.createdAt || (one.id < other.id ? -1 : 1),
  );
}

export function keysOf(reader: Reader, username: string): Key[] {
  return listKeys(reader).filter((key) => isOf(key, username));
}

export function addKey(transaction: Transaction, key: Key): void {
  const others = keysOf(transaction, key.username);
  const equal = others.find(({ name }) => name.toLowerCase() === key.name.toLowerCase());
  if (equal) throw new ServiceError('conflict', `You have a key named ${equal.name} already.`);
  if (others.length >= maxKeysPerUser)
    throw new ServiceError('conflict', `You have ${maxKeysPerUser} keys already. Delete one first.`);
  transaction.put(keys, key);
}

/** `owner` is the user who deletes an own key. */
export function deleteKey(transaction: Transaction, id: string, owner?: string): Key {
  const key = transaction.get(keys, id);
  if (!key || (owner !== undefined && !isOf(key, owner))) throw invalidField('id', 'there is no such key.');
  transaction.remove(keys, id);
  return key;
}

export function deleteKeysOf(transaction: Transaction, username: string): void {
  for (const { id } of keysOf(transaction, username)) transaction.remove(keys, id);
}

/** Does nothing if the key is deleted meanwhile. */
export function recordKeyUse(
  transaction: Transaction,
  hash: string,
  at: number,
  address: string | null,
): void {
  const key = findKey(transaction, hash);
  if (key) transaction.put(keys, { ...key, lastUsedAt: at, lastAddress: address });
}

function isOf(key: Key, username: string): boolean {
  return key.username.toLowerCase() === username.toLowerCase();
}
