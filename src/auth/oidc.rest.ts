// Sign-in at the identity provider: its start, its callback, and the sign-out there. Only browsers come here.
//
// The callback and the sign-out answer with a page that leads on instead of a redirect. A browser does not send the
// session cookie, which is SameSite=Strict, along redirects that began at another site, and `form-action 'self'` does
// not let the form of the sign-out be redirected to another site.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Frame } from '../console/frame.ts';
import { sendHtml } from '../console/layout.ts';
import { leadOnPage, signInPage } from '../console/pages.ts';
import { clientAddress } from '../http/client-address.ts';
import { cookieOf, sessionCookie, sessionCookieOf } from '../http/credentials.ts';
import { asServiceError, toErrorResponse } from '../http/errors.ts';
import { noteError } from '../http/request-log.ts';
import type { PublicUrls } from '../http/urls.ts';
import { ServiceError, isUnavailable } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { isSameSecret } from '../lib/secret.ts';
import type { AuditTrail } from '../rest/request-audit.ts';
import { ownPath } from '../rest/request.ts';
import {
  type Attempt,
  attemptCookie,
  clearAttempt,
  derive,
  readAttempt,
  writeAttempt,
} from './oidc/attempt.ts';
import type { IdentityProvider } from './oidc/provider.ts';
import type { SignInService } from './sign-in-service.ts';
import { hashToken } from './token.ts';
import { isForeignSite } from './tokens.rest.ts';

const operation = 'tokens/oidc/callback';

/** A browser drops a cookie of more than 4,096 characters. */
const maxKeptLength = 2500;

type OidcOptions = {
  readonly provider: IdentityProvider;
  readonly signInService: SignInService;
  readonly auditService: AuditTrail;
  readonly runtime: Runtime;
  readonly urls: PublicUrls;
  readonly frame: Frame;
};

export function oidcRoutes(scope: FastifyInstance, options: OidcOptions, done: () => void): void {
  const { provider, signInService, urls, frame } = options;
  const place = () => ({ path: urls.tokensPath('oidc'), isHttps: urls.isHttps });
  const noStore = { 'cache-control': 'no-store' };

  scope.get('/start', async (request, reply) => {
    const attempt = newAttempt(request, options);
    const href = await provider.authorizationUrl(callbackUrl(urls), attempt);
    const cookies = writeAttempt(attempt, place(), request.headers.cookie);
    return reply.headers({ ...noStore, 'set-cookie': cookies }).redirect(href, 303);
  });

  // Failures count for the network only: the id of a request is the name of no user.
  scope.get('/callback', (request, reply) =>
    signInService.limitFailures(request.id, clientAddress(request), async () => {
      const callback = new URL(callbackUrl(urls) + new URL(request.url, urls.base).search);
      const attempt = attemptOf(request);
      void reply.header('set-cookie', clearAttempt(attempt, place()));
      const token = await signIn(request, options, { callback, attempt });
      void reply.header('set-cookie', sessionCookieOf(token, urls.isHttps));
      const next = ownPath(attempt.next ?? '') ?? urls.homePath;
      return sendHtml(reply, 200, leadOnPage(frame.bareLayout('You are signed in'), next));
    }),
  );

  scope.get('/signOut', async ({ headers }, reply) => {
    const signInHref = urls.tokensPath('generateToken');
    const signOut = isForeignSite(headers) ? undefined : provider.signOutUrl(urls.tokenService);
    const href = await signOut?.catch((error: unknown) => {
      if (isUnavailable(error)) return undefined;
      throw error;
    });
    if (href === undefined) return reply.headers(noStore).redirect(`${signInHref}?f=html`, 303);
    return sendHtml(reply, 200, leadOnPage(frame.bareLayout('You are signed out here'), href));
  });

  scope.setErrorHandler(async (error, request, reply) => {
    const known = asServiceError(error);
    if (!known) throw error;
    const { status, headers, body } = toErrorResponse(known);
    noteError(request, error, known, await recordRefusal(request, options, known));
    const next = nextOf(request);
    const page = signInPage(
      { ...frame.bareLayout('Sign in'), isError: true },
      {
        // The provider may be unavailable, and then a password is the only way in.
        ...frame.signIn(next, { asksForForm: status === 503 }),
        entered: { next },
        lead: undefined,
        error: body.error,
      },
    );
    return sendHtml(reply, status, page, { ...headers, 'referrer-policy': 'same-origin' });
  });
  done();
}

function callbackUrl(urls: PublicUrls): string {
  return new URL(urls.tokensPath('oidc/callback'), urls.base).href;
}

function newAttempt(request: FastifyRequest, { runtime }: OidcOptions): Attempt {
  const session = cookieOf(request, sessionCookie);
  return {
    secret: runtime.newSecret(32).toString('base64url'),
    next: nextOf(request),
    replaces: session === undefined ? undefined : hashToken(session),
  };
}

/** The page that the browser has asked for: in the query of the start, or in the attempt. */
function nextOf(request: FastifyRequest): string | undefined {
  const { next = keptAttempt(request)?.next } = request.query as { next?: unknown };
  const path = typeof next === 'string' ? ownPath(next) : undefined;
  return path !== undefined && path.length <= maxKeptLength ? path : undefined;
}

/** The attempt that the browser has started. Any site can send a browser here with a code of its own. */
function keptAttempt(request: FastifyRequest): Attempt | undefined {
  const state = String((request.query as { state?: unknown }).state);
  const attempt = readAttempt(cookieOf(request, attemptCookie(state)));
  return attempt && isSameSecret(state, derive(attempt, 'state')) ? attempt : undefined;
}

function attemptOf(request: FastifyRequest): Attempt {
  const attempt = keptAttempt(request);
  if (!attempt)
    throw new ServiceError(
      'invalid',
      'This browser has not started this sign-in, or too long ago. Sign in again.',
    );
  return attempt;
}

async function signIn(
  request: FastifyRequest,
  { provider, signInService, auditService }: OidcOptions,
  { callback, attempt }: { callback: URL; attempt: Attempt },
): Promise<string> {
  const facts = { operation, address: clientAddress(request), code: 200 };
  return signInService.signInProvided({
    provided: await provider.authenticate(callback, attempt),
    address: facts.address,
    userAgent: request.headers['user-agent'],
    replaces: attempt.replaces,
    entryOf: ({ username: user, role }) =>
      auditService.createEntry({ ...facts, user, role, target: `security/users/${user}` }),
    record: (transaction, entry) => auditService.recordWithin(transaction, entry),
  });
}

/** The entry has no user: the claims of a refused user are not trusted. */
async function recordRefusal(
  request: FastifyRequest,
  { auditService }: OidcOptions,
  error: ServiceError,
): Promise<{ address: string; auditEntry: string } | undefined> {
  const isRefusal = ['forbidden', 'conflict', 'wrong-credentials', 'too-many-requests'].includes(error.kind);
  if (!isRefusal) return undefined;
  const address = clientAddress(request);
  const { code } = toErrorResponse(error).body.error;
  request.log.warn({ reason: error.message }, 'a sign-in at the identity provider was refused');
  const entry = auditService.createEntry({ operation, address, outcome: 'refused', code });
  return { address, auditEntry: await auditService.record(entry) };
}
