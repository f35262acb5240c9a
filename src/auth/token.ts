// Tokens of 256 random bits, stored as hashes only; their bindings to an address or a referring page; form tokens.
import { createHmac, hash as digest, timingSafeEqual } from 'node:crypto';

export type Binding = { readonly to: 'address' | 'referer'; readonly value: string } | null;

export type Token = {
  readonly hash: string;
  /** Names the token without being a secret. */
  readonly id: string;
  readonly username: string;
  readonly credentialId: string;
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

/** Many clients never send a Referer, so a request without one is accepted. */
export function bindingAllows(binding: Binding, address: () => string, referer: string | undefined): boolean {
  if (binding === null) return true;
  if (binding.to === 'address') return binding.value === address();
  if (referer === undefined || referer === binding.value) return true;
  const origin = originOf(binding.value);
  return origin !== undefined && origin === originOf(referer);
}

function originOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}
