// One attempt to sign in at the identity provider. The browser keeps it in a cookie, so the callback may reach another
// process than the start.
//
// The cookie is SameSite=Lax, because the callback comes from the site of the provider. It proves only that the browser
// has started the attempt; it is no session. Each attempt has a cookie of its own: two tabs may sign in at once.
import { createHmac } from 'node:crypto';
import * as z from 'zod';

const cookiePrefix = 'steward_oidc_';
const maxAgeSeconds = 600;

/** More cookies of up to 4,096 characters would be too long for the header of a request. */
const maxAttempts = 3;

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

export function attemptCookie(state: string): string {
  return cookiePrefix + state.slice(0, 8);
}

/** The cookie of a new attempt. If the browser has many, theirs end. */
export function writeAttempt(attempt: Attempt, place: CookiePlace, present = ''): string[] {
  const value = Buffer.from(JSON.stringify(attempt)).toString('base64url');
  const names = present.match(/steward_oidc_[\w-]{8}(?==)/g) ?? [];
  const ended = names.length < maxAttempts ? [] : names.map((name) => cookie(name, '', 0, place));
  return [...ended, cookie(attemptCookie(derive(attempt, 'state')), value, maxAgeSeconds, place)];
}

export function clearAttempt(attempt: Attempt, place: CookiePlace): string {
  return cookie(attemptCookie(derive(attempt, 'state')), '', 0, place);
}

/** Undefined if the browser has none, or one that this server has not written. */
export function readAttempt(cookieValue = ''): Attempt | undefined {
  try {
    return attemptSchema.parse(JSON.parse(Buffer.from(cookieValue, 'base64url').toString()));
  } catch {
    return undefined;
  }
}

function cookie(name: string, value: string, maxAge: number, { path, isHttps }: CookiePlace): string {
  return `${name}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${isHttps ? '; Secure' : ''}`;
}
