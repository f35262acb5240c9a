// The entries of the audit trail: who did what, when, from where, with which outcome.
import { networkOf, subnetOf } from '../lib/address.ts';
import type { Role } from '../lib/caller.ts';
import type { Change } from './audit-change.ts';

export const auditOutcomes = ['success', 'refused', 'failed'] as const;

export type AuditOutcome = (typeof auditOutcomes)[number];

export type AuditEntry = {
  readonly id: string;
  readonly at: number;
  /** Null for the server itself, and for a failed sign-in with an unknown name. */
  readonly user: string | null;
  readonly role: Role | null;
  /** The name of the key that the user has used. Null: a token, or no caller. */
  readonly key: string | null;
  readonly address: string | null;
  /** The path of the operation, such as `services/webhooks/{webhook}/delete`. */
  readonly operation: string;
  /** The path of what the operation concerns. */
  readonly target: string | null;
  readonly outcome: AuditOutcome;
  /** The code of the answer. Null for what the server does itself. */
  readonly code: number | null;
  /** How many equal refusals the entry stands for. */
  readonly count: number;
  readonly changes: readonly Change[];
};

/** Who acts. A user who signs in is not identified yet, so `user` may be null. */
export type Actor = Pick<AuditEntry, 'user' | 'role'> & Partial<Pick<AuditEntry, 'key'>>;

export type AuditFilter = {
  readonly from?: number | undefined;
  /** The last moment. */
  readonly to?: number | undefined;
  /** Ignores case. */
  readonly user?: string | undefined;
  /** The path of an operation, or some consecutive segments of it. */
  readonly operation?: string | undefined;
  readonly outcome?: AuditOutcome | undefined;
  /** All of them must match. */
  readonly words?: readonly AuditWord[] | undefined;
};

/** A word that an entry contains: in its operation, target, user, key or fields, or in what people call them. */
export type AuditWord = {
  /** In lower case (`foldCase`). */
  readonly text: string;
  /** The operations whose titles contain the word. */
  readonly operations: readonly string[];
  /** The targets whose names contain the word. */
  readonly targets: readonly string[];
};

/** Ignores the case of A to Z only: for other letters, it would depend on the locale of the database. */
export function foldCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

export function matchesAuditFilter(entry: AuditEntry, filter: AuditFilter): boolean {
  const { from = -Infinity, to = Infinity, user, operation, outcome, words = [] } = filter;
  return (
    entry.at >= from &&
    entry.at <= to &&
    (user === undefined || entry.user?.toLowerCase() === user.toLowerCase()) &&
    (operation === undefined || `/${entry.operation}/`.includes(`/${operation}/`)) &&
    (outcome === undefined || entry.outcome === outcome) &&
    words.every((word) => hasWord(entry, word))
  );
}

function hasWord({ operation, target, user, key, changes }: AuditEntry, word: AuditWord): boolean {
  const contains = (text: string | null) => text !== null && foldCase(text).includes(word.text);
  return (
    word.operations.includes(operation) ||
    contains(operation) ||
    contains(user) ||
    contains(key) ||
    (target !== null && (word.targets.includes(target) || contains(target))) ||
    changes.some(({ field }) => contains(field))
  );
}

/**
 * Refusals with the same key within a minute are one entry. Calls beyond the limit of sign-ins cost nothing, so a
 * whole network shares their entry: otherwise it could fill the audit trail with its addresses.
 */
export function mergeKeyOf({ user, key, operation, code, address }: AuditEntry): string {
  const source = address && (code === 429 ? networkOf(address) : subnetOf(address));
  return JSON.stringify([user?.toLowerCase() ?? null, key, operation, code, source]);
}

export const mergeWithinMs = 60_000;

/** How many matching entries are counted, paged through and exported. Reading more takes too long for a request. */
export const maxCountedEntries = 100_000;
