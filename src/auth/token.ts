// Tokens of 256 random bits, stored as hashes only, and the rules for changing them; their bindings to an address or a
// referring page; form tokens.
import { createHmac, hash as digest, timingSafeEqual } from 'node:crypto';
import { notAudited } from '../lib/audit-fields.ts';
import type { Credentials } from '../lib/caller.ts';
import type { Reader, Table } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';

export type Binding = { readonly to: 'address' | 'referer'; readonly value: string } | null;

export type Token = {
  readonly hash: string;
  /** Names the token without being a secret. */
  readonly id: string;
  readonly username: string;
  readonly createdAt: number;
  readonly expires: number;
  readonly binding: Binding;
  /** Where the user has signed in. Null: not recorded. */
  readonly address: string | null;
  /** The program that the user has signed in with. Null: not recorded. */
  readonly userAgent: string | null;
  /** Exact to a minute. */
  readonly lastUsedAt: number;
};

/** The operations that change tokens record what they do. */
export const tokens: Table<Token> = {
  name: 'tokens',
  keyOf: ({ hash }) => hash,
  defaults: {},
  auditFields: notAudited,
};

/** Newest first. `username` is the name as the user has it: there may be 100,000 tokens to compare it with. */
export function tokensOf(reader: Reader, username: string): Token[] {
  const own = [...reader.all(tokens)].filter((token) => token.username === username);
  return own.reverse().sort((one, other) => other.createdAt - one.createdAt);
}

/** Adds a token and ends the oldest ones of the user, so that at most `max` are left. */
export function addToken(transaction: Transaction, token: Token, max: number): void {
  transaction.put(tokens, token);
  // Expired tokens must not end tokens that are valid.
  const isValid = ({ expires }: Token) => expires > token.createdAt;
  const own = tokensOf(transaction, token.username);
  const ended = [...own.filter((one) => !isValid(one)), ...own.filter(isValid).slice(max)];
  for (const { hash } of ended) transaction.remove(tokens, hash);
}

/** Ends all tokens of the user, except the one with the hash. */
export function endTokens(transaction: Transaction, username: string, except?: string): void {
  for (const { hash } of tokensOf(transaction, username))
    if (hash !== except) transaction.remove(tokens, hash);
}

/** Does nothing if the token has ended meanwhile. */
export function recordTokenUse(transaction: Transaction, hash: string, at: number): void {
  const token = transaction.get(tokens, hash);
  if (token) transaction.put(tokens, { ...token, lastUsedAt: at });
}

export function expiredTokens(reader: Reader, at: number): Token[] {
  return [...reader.all(tokens)].filter(({ expires }) => expires <= at);
}

export const expirationMinutes = { default: 120, max: 20160 } as const;

export function hashToken(token: string): string {
  return digest('sha256', token, 'base64url');
}

/** This token proves that a form came from a page of this server. It is no credential without the cookie. */
export function formTokenOf(sessionToken: string): string {
  return `form_${createHmac('sha256', sessionToken).update('form').digest('base64url')}`;
}

export function isFormToken(text: string): boolean {
  return text.startsWith('form_');
}

export function formTokenMatches(formToken: string, sessionToken: string): boolean {
  const expected = Buffer.from(formTokenOf(sessionToken));
  const given = Buffer.from(formToken);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/**
 * Many clients never send a Referer, so a request without one is accepted, unless it is required and the token is bound
 * to the page of an origin.
 */
export function bindingAllows(
  binding: Binding,
  { address, referer }: Pick<Credentials, 'address' | 'referer'>,
  requiresReferer: boolean,
): boolean {
  if (binding === null) return true;
  if (binding.to === 'address') return binding.value === address();
  const origin = originOf(binding.value);
  if (referer === undefined) return !requiresReferer || origin === undefined;
  if (referer === binding.value) return true;
  return origin !== undefined && origin === originOf(referer);
}

function originOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}
