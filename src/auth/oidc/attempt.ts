// One attempt to sign in at the identity provider. The browser keeps it in a cookie, so the callback may reach another
// process than the start.
//
// The cookie is SameSite=Lax, because the callback comes from the site of the provider. It proves only that the browser
// has started the attempt; it is no session.
import { createHmac } from 'node:crypto';
import * as z from 'zod';

export const attemptCookie = 'steward_oidc';
const maxAgeSeconds = 600;

const attemptSchema = z.object({
  /** `state`, `nonce` and the PKCE verifier follow from it. */
  secret: z.string().length(43),
  next: z.string().optional(),
  /** The hash of the token of the session that the new one replaces. */
  replaces: z
    .string()
    .regex(/^[\w-]{43}$/)
    .optional(),
});

export type Attempt = z.output<typeof attemptSchema>;

export function derive({ secret }: Attempt, purpose: 'state' | 'nonce' | 'verifier'): string {
  return createHmac('sha256', secret).update(purpose).digest('base64url');
}

/** Where the cookie is sent to, and whether by https only. */
type CookiePlace = { readonly path: string; readonly isHttps: boolean };

export function writeAttempt(attempt: Attempt, place: CookiePlace): string {
  const value = Buffer.from(JSON.stringify(attempt)).toString('base64url');
  return cookie(value, maxAgeSeconds, place);
}

export function clearAttempt(place: CookiePlace): string {
  return cookie('', 0, place);
}

/** Undefined if the browser has none, or one that this server has not written. */
export function readAttempt(cookieValue = ''): Attempt | undefined {
  try {
    return attemptSchema.parse(JSON.parse(Buffer.from(cookieValue, 'base64url').toString()));
  } catch {
    return undefined;
  }
}

function cookie(value: string, maxAge: number, { path, isHttps }: CookiePlace): string {
  return `${attemptCookie}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${isHttps ? '; Secure' : ''}`;
}
