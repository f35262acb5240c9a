// Sign-ins at the identity provider that are refused: forged and replayed answers, bad tokens, users without a name or
// a role, and a provider that is unavailable.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { entriesOf } from '../audit/kit.ts';
import { foreignKeys, readToken, signToken, startProvider } from '../kit/identity-provider.ts';
import {
  type Response,
  ann,
  attemptIn,
  callBack,
  cookiesOf,
  html,
  locationOf,
  provider,
  server,
  signIn,
  startPath,
  startSignIn,
  startWith,
  useProvider,
} from './oidc-kit.ts';

useProvider({ hasOneServer: true });

/** A page with the status and the message, and no session. */
function expectRefused(response: Response, status: number, message: string): void {
  expect([response.statusCode, response.headers['content-type']]).toEqual([
    status,
    'text/html; charset=utf-8',
  ]);
  expect(response.body).toContain(message);
  expect(response.body).toContain('<title>Error: Sign in · Steward</title>');
  expect(cookiesOf(response).has('steward_session')).toBe(false);
}

const notStarted = 'This browser has not started this sign-in, or too long ago. Sign in again.';
const notValid = 'The answer of the identity provider is not valid. Sign in again.';
const unavailable = 'The identity provider is unavailable. Try again later.';

describe('a callback', () => {
  it('is refused without the cookie of the attempt, or with one that is no attempt', async () => {
    const { callback, cookie } = await startSignIn(server, provider);
    expectRefused(await callBack(server, callback, ''), 400, notStarted);
    for (const value of [
      'x',
      Buffer.from('{"secret":1}').toString('base64url'),
      Buffer.from('null').toString('base64url'),
    ])
      expectRefused(await callBack(server, callback, cookie.replace(/=.*/, `=${value}`)), 400, notStarted);
  });

  it('is refused with another state, and the attempt of the browser goes on', async () => {
    const mine = await startSignIn(server, provider);
    const foreign = await startSignIn(server, provider);
    const response = await callBack(server, foreign.callback, mine.cookie);
    expectRefused(response, 400, notStarted);
    expect(attemptIn(response)).toBe('');
    expect((await callBack(server, mine.callback, mine.cookie)).statusCode).toBe(200);
  });

  it('is refused with a code that was used before', async () => {
    const { callback, cookie } = await startSignIn(server, provider);
    expect((await callBack(server, callback, cookie)).statusCode).toBe(200);
    expectRefused(await callBack(server, callback, cookie), 401, notValid);
  });

  it('is refused with the code of another attempt, whose PKCE verifier the browser does not have', async () => {
    const mine = await startSignIn(server, provider);
    const stolen = await startSignIn(server, provider);
    mine.callback.searchParams.set('code', stolen.callback.searchParams.get('code') ?? '');
    expectRefused(await callBack(server, mine.callback, mine.cookie), 401, notValid);
  });

  it('is refused when it names another issuer', async () => {
    const { callback, cookie } = await startSignIn(server, provider);
    callback.searchParams.set('iss', 'https://other.example.com');
    expectRefused(await callBack(server, callback, cookie), 401, notValid);
  });

  it('is refused when the user refuses', async () => {
    provider.subject = undefined;
    expectRefused(await signIn(server, provider), 403, 'The identity provider refused the sign-in.');
  });

  it.each(['constructor', '__proto__', 'toString', 'server_error'])(
    'is no defect with error=%s',
    async (error) => {
      const { callback, cookie } = await startSignIn(server, provider);
      callback.searchParams.delete('code');
      callback.searchParams.set('error', error);
      expectRefused(await callBack(server, callback, cookie), 503, unavailable);
    },
  );

  it('keeps the requested page for the next try', async () => {
    provider.subject = undefined;
    const response = await signIn(server, provider, { path: `${startPath}?next=/admin/mode` });
    expect(response.body).toContain('/tokens/oidc/start?next=%2Fadmin%2Fmode"');
    expect(response.body).toContain('name="next" value="/admin/mode"');
  });

  it('shows and logs no text of the provider', async () => {
    const { callback, cookie } = await startSignIn(server, provider);
    callback.searchParams.delete('code');
    callback.searchParams.set('error', 'access_denied');
    callback.searchParams.set('error_description', '<script>alert(1)</script>');
    const response = await callBack(server, callback, cookie);
    expectRefused(response, 403, 'The identity provider refused the sign-in.');
    expect(response.body).not.toContain('alert(1)');
    expect(server.logLines.join('')).not.toContain('alert(1)');
    expect(server.logLines.join('')).toContain('access_denied');
  });

  it('is recorded in the audit trail, without a user', async () => {
    const alone = await startWith(provider);
    provider.users.set('1', { preferred_username: 'ann' });
    await signIn(alone, provider);
    provider.users.set('1', ann);
    provider.changeTokens = (answer) => ({ ...answer, id_token: 'anything' });
    await signIn(alone, provider);
    const refused = {
      operation: 'tokens/oidc/callback',
      outcome: 'refused',
      user: null,
      address: '127.0.0.1',
    };
    expect(await entriesOf(alone)).toMatchObject([
      { ...refused, code: 400 },
      { ...refused, code: 403 },
    ]);
  });

  it('is limited after 100 failures of a network within a minute, whatever fails', async () => {
    const alone = await startWith(provider);
    const fail = async (error = 'access_denied', cookie?: string) => {
      const started = await alone.get(startPath, html);
      const state = new URL(locationOf(started)).searchParams.get('state') ?? '';
      const callback = new URL(`http://localhost/tokens/oidc/callback?error=${error}&state=${state}`);
      callback.searchParams.set('iss', provider.issuer);
      return callBack(alone, callback, cookie ?? attemptIn(started));
    };
    for (let failures = 0; failures < 100; failures += 4) {
      // It does not count.
      expect((await signIn(alone, provider)).statusCode).toBe(200);
      expect((await fail()).statusCode).toBe(403);
      expect((await fail('server_error')).statusCode).toBe(503);
      expect((await fail('invalid_grant')).statusCode).toBe(401);
      expect((await fail('access_denied', '')).statusCode).toBe(400);
    }
    const response = await fail();
    expect([response.statusCode, response.headers['retry-after']]).toEqual([429, '60']);
    await alone.runtime.advance(60_000);
    expect((await fail()).statusCode).toBe(403);
  });
});

describe('an id token', () => {
  const seconds = () => Math.floor(Date.now() / 1000);
  const changes: [string, (claims: Readonly<Record<string, unknown>>) => string][] = [
    ['that has expired', (claims) => signToken({ ...claims, iat: seconds() - 900, exp: seconds() - 300 })],
    ['that another key has signed', (claims) => signToken(claims, foreignKeys.privateKey)],
    ['for another client', (claims) => signToken({ ...claims, aud: 'another' })],
    [
      'for several clients, authorized for another',
      (claims) => signToken({ ...claims, aud: ['steward', 'b'], azp: 'b' }),
    ],
    ['of another issuer', (claims) => signToken({ ...claims, iss: 'https://other.example.com' })],
    ['with another nonce', (claims) => signToken({ ...claims, nonce: 'another' })],
    ['without a nonce', ({ nonce: _, ...claims }) => signToken(claims)],
    ['without a subject', ({ sub: _, ...claims }) => signToken(claims)],
    [
      'that is not signed',
      (claims) =>
        `${Buffer.from('{"alg":"none"}').toString('base64url')}.${signToken(claims).split('.')[1] ?? ''}.`,
    ],
    ['with an empty subject', (claims) => signToken({ ...claims, sub: '' })],
    ['with a subject of 256 characters', (claims) => signToken({ ...claims, sub: 'x'.repeat(256) })],
    ['with a control character in the subject', (claims) => signToken({ ...claims, sub: 'a\u0000b' })],
    ['that is no token', () => 'anything'],
  ];

  it.each(changes)('%s is refused', async (_, change) => {
    provider.changeTokens = (answer) => ({ ...answer, id_token: change(readToken(answer.id_token)) });
    expectRefused(await signIn(server, provider), 401, notValid);
  });

  it('must be there', async () => {
    provider.changeTokens = ({ id_token: _, ...answer }) => answer;
    expectRefused(await signIn(server, provider), 401, notValid);
  });

  it('is accepted when the test signs what the provider has sent', async () => {
    provider.changeTokens = (answer) => ({ ...answer, id_token: signToken(readToken(answer.id_token)) });
    expect((await signIn(server, provider)).statusCode).toBe(200);
  });
});

describe('a user of the provider', () => {
  /** Somebody who has not signed in before. */
  const signInAs = (claims: Record<string, unknown>) => {
    provider.subject = 'new';
    provider.users.set('new', claims);
    return signIn(server, provider);
  };

  it.each<[string, Record<string, unknown>, string]>([
    ['no role', { preferred_username: 'ann', groups: ['unknown'] }, 'You have no role here.'],
    ['no role and a name of a local user', { preferred_username: 'member' }, 'You have no role here.'],
    [
      'a name with markup',
      { ...ann, preferred_username: '<img src=x onerror=alert(1)>' },
      'not “&lt;img src=x onerror=alert(1)&gt;”.',
    ],
    ['a very long name', { ...ann, preferred_username: 'x'.repeat(100_000) }, `not “${'x'.repeat(63)}`],
  ])('with %s is refused', async (_, claims, message) => {
    expectRefused(await signInAs(claims), 403, message);
  });

  it.each(['administrator', 'Administrator'])(
    'named %s like a local user is refused',
    async (preferred_username) => {
      const refused = await signInAs({ ...ann, preferred_username });
      expectRefused(refused, 409, 'The name administrator belongs to a local user.');
    },
  );

  it('who takes the name of another user of the provider is refused', async () => {
    await signIn(server, provider);
    const refused = await signInAs(ann);
    expectRefused(refused, 409, 'The name ann belongs to another user of the identity provider.');
  });
});

describe('an unavailable provider', () => {
  it('is a page with the password form, and does not make the server unready', async () => {
    const env = { LOCAL_SIGN_IN: 'false' };
    const alone = await startWith({ issuer: 'http://127.0.0.1:9' }, { env });
    const response = await alone.get(startPath, html);
    expectRefused(response, 503, unavailable);
    expect(response.body).toContain('name="password"');
    expect((await alone.get('/ready')).statusCode).toBe(200);
  });

  it('is called again after two seconds', async () => {
    const late = await startProvider();
    const { issuer } = late;
    await late.stop();
    const alone = await startWith({ issuer });
    const { fetch } = globalThis;
    let calls = 0;
    globalThis.fetch = (...given) => ((calls += 1), fetch(...given));
    const starts = [1, 2, 3].map(() => alone.get(startPath, html));
    for (const start of [...starts, alone.get(startPath, html)]) expect((await start).statusCode).toBe(503);
    expect((await alone.get(startPath, html)).statusCode).toBe(503);
    globalThis.fetch = fetch;
    expect(calls).toBe(1);
    const again = await startProvider({ port: Number(new URL(issuer).port) });
    await alone.runtime.advance(2000);
    expect((await signIn(alone, again)).statusCode).toBe(200);
    await again.stop();
    // Its endpoints are known, so the start needs no request.
    const { statusCode, headers } = await alone.get(startPath, html);
    expect([statusCode, String(headers.location).startsWith(issuer)]).toEqual([303, true]);
  });

  it('is one that fails, or answers with something else, at the token endpoint', async () => {
    for (const [status, answer] of [
      [401, { error: 'invalid_client' }],
      [500, { error: 'server_error' }],
      [200, 'no JSON'],
    ] as const) {
      provider.tokenStatus = status;
      provider.changeTokens = () => answer;
      expectRefused(await signIn(server, provider), 503, unavailable);
    }
    provider.tokenStatus = undefined;
    provider.changeTokens = (tokens) => tokens;
    expect((await signIn(server, provider)).statusCode).toBe(200);
  });

  it.each([
    ['on another host', () => `http://localhost:${new URL(provider.issuer).port}`],
    ['whose address is that of its metadata', () => `${provider.issuer}/.well-known/openid-configuration`],
    ['with one issuer for all tenants', () => 'https://login.microsoftonline.com'],
  ])('is one %s, whose metadata name another issuer', async (_, issuerOf) => {
    const { fetch } = globalThis;
    globalThis.fetch = (url, options) =>
      fetch((url as string).replace('https://login.microsoftonline.com', provider.issuer), options);
    const other = await startWith({ issuer: issuerOf() });
    expectRefused(await other.get(startPath, html), 503, unavailable);
    await other.close();
    globalThis.fetch = fetch;
  });

  it('is one whose answer has more than 1 MiB', async () => {
    const signInWith = (more: number) => {
      provider.changeTokens = (answer) => ({ ...answer, more: 'x'.repeat(more) });
      return signIn(server, provider);
    };
    expectRefused(await signInWith(1024 ** 2), 503, unavailable);
    expect((await signInWith(1_000_000)).statusCode).toBe(200);
  });

  it.each([
    {},
    { authorization_endpoint: 'javascript:alert(1)', end_session_endpoint: 'javascript:alert(1)' },
  ])('is one with the metadata %j', async (endpoints) => {
    const http = createServer((_, response) =>
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ issuer, ...endpoints })),
    );
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
    const other = await startWith({ issuer });
    expectRefused(await other.get(startPath, html), 503, unavailable);
    const signOut = await other.get('/tokens/oidc/signOut', html);
    expect([signOut.statusCode, locationOf(signOut)]).toEqual([303, '/tokens/generateToken?f=html']);
    await other.close();
    http.close();
  });
});
