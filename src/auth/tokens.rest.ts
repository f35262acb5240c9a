// REST resource of the token service: `generateToken` and `revokeToken`.
import { isIP } from 'node:net';
import * as z from 'zod';
import { cookieOf, sessionCookie, sessionCookieOf } from '../http/credentials.ts';
import type { PublicUrls } from '../http/urls.ts';
import { plainAddress } from '../lib/address.ts';
import { type Problem, ServiceError, invalidField } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { answerObject, ignored, successAnswer, time } from '../rest/answer.ts';
import { choice, integer, text } from '../rest/field-types.ts';
import { maxNextLength, ownPath } from '../rest/request.ts';
import type { RequestContext } from '../rest/call.ts';
import { type Operation, operation } from '../rest/operation.ts';
import type { Outcome } from '../rest/outcome.ts';
import { type Resource, resource } from '../rest/resource.ts';
import { type PortalOptions, portalResources } from './portal.rest.ts';
import type { SignInService } from './sign-in-service.ts';
import type { TokenService } from './token-service.ts';
import { type Binding, expirationMinutes, hashToken } from './token.ts';
import { findUser, sourceOf } from './user.ts';

type TokensOptions = PortalOptions & {
  readonly tokenService: TokenService;
  readonly signInService: SignInService;
  /** Whether users sign in at an identity provider. */
  readonly hasProvider: boolean;
};

/** The operation shortens longer times to `expirationMinutes.max` instead of refusing them. */
const longestAcceptedMinutes = 10 ** 15 - 1;

const signInFields = {
  username: text({ to: 256 }).describe('The user name.'),
  password: text({ to: 1024, control: 'password' }).describe('The password.'),
  client: choice(['referer', 'ip', 'requestip'], { ignoresCase: true })
    .optional()
    .describe('What the token is bound to. Without it the token is not bound.'),
  referer: text({ to: 2048 })
    .optional()
    .meta({
      description:
        'The referring page the token is bound to, with client=referer. Default: the header Referer.',
      unused: ({ client }) => client !== 'referer',
    }),
  ip: text({ to: 64 })
    .optional()
    .meta({
      description: 'The address the token is bound to, with client=ip.',
      unused: ({ client }) => client !== 'ip',
    }),
  expiration: integer(1, longestAcceptedMinutes)
    .default(expirationMinutes.default)
    .describe(
      `How many minutes the token is valid. A number above ${expirationMinutes.max} counts as ${expirationMinutes.max}.`,
    ),
  next: text({ to: maxNextLength })
    .optional()
    .describe('Where a browser goes after signing in: a path of this server.'),
};

const tokenServiceAnswer = answerObject('TokenService', 'The token service.', {
  operations: z.array(z.string()).describe('The names of its operations.'),
});

const tokenAnswer = answerObject('Token', 'A new token.', {
  ignored,
  token: z.string(),
  expires: time.describe('When the token expires, in milliseconds since the epoch.'),
  ssl: z.boolean().describe('Whether the server is reached by https.'),
});

const revokedAnswer = answerObject('Revoked', 'The token is not valid any more.', {
  ignored,
  success: z.literal(true),
});

export function tokensResource(options: TokensOptions): Resource {
  const token = text({ to: 1024, control: 'password' }).describe('The token to end.');
  const operations = {
    generateToken: generateTokenOperation(options),
    revokeToken: revokeTokenOperation(options, {
      fields: { token },
      answer: successAnswer,
      success: { status: 'success' },
    }),
  };
  const oauthRevokeToken = revokeTokenOperation(options, {
    fields: {
      auth_token: token.optional(),
      token: token.optional().meta({
        description: 'The token to end, if auth_token is absent.',
        unused: ({ auth_token: other }) => other !== undefined,
      }),
    },
    answer: revokedAnswer,
    success: { success: true },
  });
  return resource({
    title: 'Token service',
    description: 'Issues and revokes tokens.',
    access: 'anyone',
    answer: tokenServiceAnswer,
    // The other resources are for programs.
    page: (_root, [name = '', ...beneath]) =>
      name in operations && beneath.length === 0 ? undefined : ['generateToken'],
    resources: portalResources(options, oauthRevokeToken),
    operations,
    read: () => ({ operations: Object.keys(operations) }),
  });
}

export function generateTokenOperation({
  signInService,
  urls,
}: Pick<TokensOptions, 'signInService' | 'urls'>): Operation {
  return operation({
    title: 'Generate token',
    description:
      'Signs a user in. Returns a token for the other operations; in a browser it also starts a session.',
    access: 'anyone',
    whileReadOnly: 'allowed',
    form: 'sign-in',
    refusals: ['wrong-credentials', 'forbidden', 'too-many-requests'],
    fields: signInFields,
    answer: tokenAnswer,
    guard: (request) => {
      if (request.format === 'html') refuseForeignForm(request, urls);
    },
    check: ({ values, request }) => ({
      problems: [...queryProblems(request), ...bindingProblems(bindingFields(values, request))],
    }),
    // An unknown name is not recorded: it may be a password in the wrong field.
    actor: ({ values: { username = '' } }) => ({
      user: signInService.findUsername(username) ?? null,
      role: null,
    }),
    run: async ({ values, request, auditEntry }): Promise<Outcome> => {
      const entry = auditEntry();
      const session = request.format === 'html' ? cookieOf(request, sessionCookie) : undefined;
      const { token, expires } = await signInService.signIn({
        username: values.username,
        password: values.password,
        address: request.address,
        userAgent: request.headers['user-agent'],
        minutes: Math.min(values.expiration, expirationMinutes.max),
        binding: bindingOf(bindingFields(values, request), request.address),
        replaces: session && hashToken(session),
        entryOf: ({ username: user, role }) => ({ ...entry, user, role }),
      });
      const json = { token, expires, ssl: urls.isHttps };
      if (request.format !== 'html') return { json };
      const next = ownPath(values.next ?? '') ?? urls.homePath;
      return { json, seeOther: next, headers: { 'set-cookie': sessionCookieOf(token, urls.isHttps) } };
    },
  });
}

type TokenFields = { readonly token?: string | undefined; readonly auth_token?: string | undefined };

type Revocation = Pick<Operation, 'fields' | 'answer'> & { readonly success: Readonly<Record<string, Json>> };

function revokeTokenOperation(
  { tokenService, urls, store, hasProvider }: TokensOptions,
  { fields, answer, success }: Revocation,
): Operation {
  const tokenToRevoke = ({ auth_token, token = '' }: TokenFields, request: RequestContext) =>
    tokenService.tokenToRevoke((auth_token ?? token).trim(), cookieOf(request, sessionCookie));
  return operation({
    title: 'Revoke token',
    description: 'Ends a token at once. In a browser it ends the session.',
    access: 'anyone',
    whileReadOnly: 'allowed',
    refusals: ['forbidden'],
    fields,
    answer,
    // Pages are served with `Referrer-Policy: no-referrer`, so browsers send `Origin: null` here, which proves nothing.
    guard: ({ format, headers }) => {
      if (format === 'html' && isForeignSite(headers)) throw foreignForm();
    },
    actor: async ({ values, request }) => {
      const owner = await tokenService.ownerOf(tokenToRevoke(values, request));
      return owner && { user: owner.username, role: owner.role };
    },
    run: async ({ values, request, actor, auditEntry }) => {
      const token = tokenToRevoke(values, request);
      if (token === '') throw invalidField('auth_token', 'is required, or token.');
      // Without this condition, unknown tokens would wait for the updates of all processes, and delay them.
      if (actor) await tokenService.revoke(token, auditEntry());
      const user = findUser(store, actor?.user ?? '');
      return {
        json: success,
        ...(hasProvider && user && sourceOf(user) === 'oidc'
          ? { seeOther: urls.tokensPath('oidc/signOut') }
          : {
              seeOther: `${urls.tokensPath('generateToken')}?f=html`,
              notice: { text: 'You are signed out.' },
            }),
        // A page of another site may end a token that it knows, but must not end the session of the browser.
        ...(!isForeignSite(request.headers) && {
          headers: { 'set-cookie': `${sessionCookieOf('', urls.isHttps)}; Max-Age=0` },
        }),
      };
    },
  });
}

/** Logs and browser histories contain addresses. The form API refuses passwords there. */
function queryProblems({ query }: RequestContext): Problem[] {
  if (query.username === undefined) return [];
  return [{ field: 'username', message: 'must be sent in the body, never in the address.' }];
}

type BindingFields = { client?: string | undefined; referer?: string | undefined; ip?: string | undefined };

/** Some clients name the referring page only in the header. */
function bindingFields({ client, referer, ip }: BindingFields, { headers }: RequestContext): BindingFields {
  return { client, referer: referer ?? headers.referer, ip };
}

function bindingProblems({ client, referer, ip = '' }: BindingFields): Problem[] {
  if (client === 'referer' && referer === undefined)
    return [{ field: 'referer', message: 'is required with client=referer.' }];
  if (client === 'ip' && isIP(ip.trim()) === 0)
    return [{ field: 'ip', message: 'must be an IPv4 or IPv6 address with client=ip.' }];
  return [];
}

function bindingOf({ client, referer = '', ip = '' }: BindingFields, address: string): Binding {
  if (client === 'referer') return { to: 'referer', value: referer.trim() };
  if (client === 'ip') return { to: 'address', value: plainAddress(ip.trim()) };
  return client === 'requestip' ? { to: 'address', value: address } : null;
}

/** Without this, a form of another site could sign the user in to an account of its choice. */
function refuseForeignForm({ headers }: RequestContext, urls: PublicUrls): void {
  const { origin, host } = headers;
  const isForeignOrigin =
    origin !== undefined &&
    origin !== new URL(urls.base).origin &&
    origin !== `http://${String(host)}` &&
    origin !== `https://${String(host)}`;
  if (isForeignSite(headers) || isForeignOrigin) throw foreignForm();
}

export function isForeignSite({ 'sec-fetch-site': site }: RequestContext['headers']): boolean {
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

function foreignForm(): ServiceError {
  return new ServiceError('forbidden', 'The form must come from this server.');
}
