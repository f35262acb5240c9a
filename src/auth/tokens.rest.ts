// REST edge of tokens: the token service (contract 3).
import { isIP } from 'node:net';
import { type Problem, ServiceError } from '../errors.ts';
import { type Outcome, type Resource, operation, resource, success } from '../rest/resource.ts';
import type { PublicUrls } from '../http/urls.ts';
import { choice, defaultTo, integer, required, text } from '../rest/fields.ts';
import { type RestRequest, ownPath, sessionCookie } from '../rest/request.ts';
import { plainAddress } from '../lib/address.ts';
import type { TokenService } from './token-service.ts';
import { type Binding, expirationMinutes } from './token.ts';

export type TokenServiceOptions = {
  tokenService: TokenService;
  urls: PublicUrls;
};

const mostMinutes = 10 ** 15 - 1;

export function tokensResource(options: TokenServiceOptions): Resource {
  const { tokenService, urls } = options;

  const generateToken = operation({
    title: 'Generate token',
    description:
      'Signs a user in: answers a token for the other operations, and in a browser starts a session.',
    access: 'anyone',
    effect: 'writes',
    whileReadOnly: 'allowed',
    form: 'sign-in',
    refusals: ['wrong-credentials', 'forbidden', 'too-many-requests'],
    fields: {
      username: required(text('The user name.', { to: 256 })),
      password: required(text('The password.', { to: 1024, secret: true })),
      client: choice('What the token is bound to; not bound when absent.', ['referer', 'ip', 'requestip']),
      referer: text('The referring page the token is bound to, with client=referer.', { to: 2048 }),
      ip: text('The address the token is bound to, with client=ip.', { to: 64 }),
      expiration: defaultTo(
        integer(
          `Minutes the token lasts; at most ${expirationMinutes.most}, more is cut to that.`,
          1,
          mostMinutes,
        ),
        expirationMinutes.default,
      ),
      next: text('Where a browser goes after signing in: a path of this server.', { to: 4096 }),
    },
    guard: (request) => {
      if (request.format === 'html') refuseForeignForm(request, urls.base);
    },
    check: ({ values, request }) => ({
      problems: [...queryProblems(request), ...bindingProblems(values)],
    }),
    run: async ({ values, request }): Promise<Outcome> => {
      const { token, expires } = await tokenService.signIn({
        username: values.username,
        password: values.password,
        address: request.address,
        minutes: Math.min(values.expiration, expirationMinutes.most),
        binding: bindingOf(values, request.address),
      });
      const json = { token, expires, ssl: urls.isHttps };
      if (request.format !== 'html') return { json };
      // The session that the browser had is over.
      if (request.cookie !== undefined) await tokenService.revoke(request.cookie, undefined);
      const next = ownPath(values.next ?? '') ?? urls.homePath;
      return { json, seeOther: next, headers: { 'set-cookie': cookie(token) } };
    },
  });

  const revokeToken = operation({
    title: 'Revoke token',
    description: 'Ends a token at once; in a browser ends the session.',
    access: 'anyone',
    effect: 'writes',
    whileReadOnly: 'allowed',
    refusals: ['forbidden'],
    fields: { token: required(text('The token to end.', { to: 1024, secret: true })) },
    // Pages do not tell where they are, so that an Origin says nothing here.
    guard: ({ format, headers }) => {
      if (format === 'html' && isForeignSite(headers)) throw foreignForm();
    },
    run: async ({ values, request }): Promise<Outcome> => {
      await tokenService.revoke(values.token.trim(), request.cookie);
      return {
        ...success,
        seeOther: `${urls.tokensPath('generateToken')}?f=html`,
        // A page of somebody else may end a token that it knows, and not the browser's own session.
        ...(!isForeignSite(request.headers) && { headers: { 'set-cookie': `${cookie('')}; Max-Age=0` } }),
      };
    },
  });

  function cookie(token: string): string {
    return `${sessionCookie}=${token}; Path=/; HttpOnly; SameSite=Strict${urls.isHttps ? '; Secure' : ''}`;
  }

  const operations = { generateToken, revokeToken };
  return resource({
    title: 'Token service',
    description: 'Where tokens are obtained and ended.',
    access: 'anyone',
    operations,
    read: () => ({ operations: Object.keys(operations) }),
  });
}

/** Addresses end up in logs and histories; passwords must not. */
function queryProblems({ query }: RestRequest): Problem[] {
  const found = ['username', 'password'].filter((name) => query[name] !== undefined);
  return found.map((field) => ({ field, message: 'must be sent in the body, never in the address.' }));
}

type BindingFields = { client?: string | undefined; referer?: string | undefined; ip?: string | undefined };

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

/** A browser says where a form comes from; one from elsewhere must not sign anybody in (or out of their own account). */
function refuseForeignForm({ headers }: RestRequest, publicUrl: string): void {
  const { origin, host } = headers;
  const isForeignOrigin =
    origin !== undefined &&
    origin !== new URL(publicUrl).origin &&
    origin !== `http://${String(host)}` &&
    origin !== `https://${String(host)}`;
  if (isForeignSite(headers) || isForeignOrigin) throw foreignForm();
}

function isForeignSite({ 'sec-fetch-site': site }: RestRequest['headers']): boolean {
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

function foreignForm(): ServiceError {
  return new ServiceError('forbidden', 'The form must come from this server.');
}
