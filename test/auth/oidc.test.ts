// Sign-in at an identity provider: the way of a browser there and back, users, roles, local sign-in and sign-out.
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/lib/errors.ts';
import { entriesOf } from '../audit/kit.ts';
import { perTest } from '../kit/cleanup.ts';
import { readToken, signToken, startProvider } from '../kit/identity-provider.ts';
import { password, startServer } from '../kit/server.ts';
import {
  type Self,
  ann,
  attemptIn,
  callBack,
  cookiesOf,
  html,
  locationOf,
  provider,
  selfOf,
  server,
  sessionOf,
  signIn,
  startPath,
  startSignIn,
  startWith,
  useProvider,
} from './oidc-kit.ts';
import { signInPath } from './tokens-kit.ts';

useProvider();

const asAdministrator = () => ({ authorization: `Bearer ${server.token('administrator')}` });
const changeUser = (operation: string, fields: Record<string, string>) =>
  server.post(`/admin/security/users/${operation}`, fields, asAdministrator());
const listUsers = async () =>
  (await server.get('/admin/security/users?f=json', asAdministrator())).json<{ users: Self[] }>().users;

describe('the sign-in page', () => {
  it('leads to the provider and back to the requested page, beside the password form', async () => {
    const { body } = await server.get('/admin/mode?x=1', html);
    expect(body).toContain(
      '<a class="button" href="http://localhost:8080/tokens/oidc/start?next=%2Fadmin%2Fmode%3Fx%3D1">Sign in with your organization</a>',
    );
    expect(body).toContain('name="password"');
  });

  it('has a button with the text of OIDC_LABEL, escaped', async () => {
    const labelled = await startWith(provider, { env: { OIDC_LABEL: 'Ask <Ann> & Co' } });
    expect((await labelled.get(signInPath, html)).body).toContain('>Ask &lt;Ann&gt; &amp; Co</a>');
  });

  it('has neither the button nor its routes without OIDC_ISSUER', async () => {
    const local = await startServer();
    expect((await local.get(signInPath, html)).body).not.toContain('oidc');
    expect((await local.get(startPath, html)).statusCode).toBe(404);
  });
});

describe('the start', () => {
  it('redirects to the provider with PKCE, state and nonce', async () => {
    const response = await server.get(startPath, html);
    expect(response.statusCode).toBe(303);
    expect(response.headers['cache-control']).toBe('no-store');
    const { origin, searchParams } = new URL(locationOf(response));
    expect(origin).toBe(provider.issuer);
    const random = expect.stringMatching(/^[\w-]{43}$/) as string;
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: 'steward',
      redirect_uri: 'http://localhost:8080/tokens/oidc/callback',
      response_type: 'code',
      scope: 'openid profile email',
      code_challenge: random,
      code_challenge_method: 'S256',
      state: random,
      nonce: random,
    });
  });

  it('writes a cookie that comes back from the site of the provider, and ends after ten minutes', async () => {
    const { headers } = await server.get(startPath, html);
    const attributes = 'Path=/tokens/oidc; Max-Age=600; HttpOnly; SameSite=Lax';
    expect(String(headers['set-cookie'])).toMatch(
      new RegExp(`^steward_oidc_[\\w-]{8}=[\\w-]+; ${attributes}$`),
    );
    const secure = await startWith(provider, { env: { PUBLIC_URL: 'https://steward.example.com/base' } });
    const { headers: sent, ...response } = await secure.get(startPath, html);
    expect(String(sent['set-cookie'])).toMatch(/; Path=\/base\/tokens\/oidc; .*; SameSite=Lax; Secure$/);
    expect(new URL(locationOf({ headers: sent, ...response })).searchParams.get('redirect_uri')).toBe(
      'https://steward.example.com/base/tokens/oidc/callback',
    );
  });
});

describe('the callback', () => {
  it('ends the attempt of its tab, and no other one until there are many', async () => {
    const tabs = [await startSignIn(server, provider), await startSignIn(server, provider)];
    const cookie = tabs.map((tab) => tab.cookie).join('; ');
    const third = await server.get(startPath, { ...html, cookie });
    expect(cookiesOf(third).size).toBe(1);
    const fourth = await server.get(startPath, { ...html, cookie: `${cookie}; ${attemptIn(third)}` });
    expect([...cookiesOf(fourth).values()].map(Boolean)).toEqual([false, false, false, true]);
    for (const { callback } of tabs) expect((await callBack(server, callback, cookie)).statusCode).toBe(200);
  });

  it('answers with a page that leads on, ends the attempt, and starts a session', async () => {
    const { callback, cookie } = await startSignIn(server, provider, {
      path: `${startPath}?next=/admin/mode`,
    });
    const response = await callBack(server, callback, cookie);
    expect(response.statusCode).toBe(200);
    expect(response.body).toContain('<meta http-equiv="refresh" content="0;url=/admin/mode" />');
    expect(response.body).toContain('<a class="button" href="/admin/mode">Continue</a>');
    expect(response.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
    expect(response.headers['set-cookie']).toEqual([
      `${cookie.replace(/=.*/, '=')}; Path=/tokens/oidc; Max-Age=0; HttpOnly; SameSite=Lax`,
      expect.stringMatching(/^steward_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/),
    ]);
    expect(await selfOf(server, response)).toEqual({
      username: 'ann',
      role: 'administrator',
      source: 'oidc',
    });
  });

  it.each(['//evil.example.com', 'https://evil.example.com/', '/\\evil.example.com', `/${'x'.repeat(2500)}`])(
    'leads to the home page instead of %s',
    async (next) => {
      const response = await signIn(server, provider, {
        path: `${startPath}?next=${encodeURIComponent(next)}`,
      });
      expect(response.body).toContain('content="0;url=/admin"');
    },
  );

  it('checks the address again that the browser has kept', async () => {
    const { callback, cookie } = await startSignIn(server, provider);
    const kept = JSON.parse(Buffer.from(cookie.split('=')[1] ?? '', 'base64url').toString()) as object;
    const changed = Buffer.from(JSON.stringify({ ...kept, next: 'https://evil.example.com/' }));
    const response = await callBack(
      server,
      callback,
      cookie.replace(/=.*/, `=${changed.toString('base64url')}`),
    );
    expect(response.body).toContain('content="0;url=/admin"');
  });

  it('ends no session of another user', async () => {
    const session = `steward_session=${server.token('publisher')}`;
    expect((await signIn(server, provider, { session })).statusCode).toBe(200);
    expect((await server.get('/admin', { ...html, cookie: session })).statusCode).toBe(200);
  });

  it('ends the previous session of the browser in the update that stores the new one', async () => {
    const first = sessionOf(await signIn(server, provider));
    const statusOf = async (cookie: string) => (await server.get('/admin', { ...html, cookie })).statusCode;
    const { update } = server.store;
    server.store.update = () => Promise.reject(new ServiceError('unavailable', 'The database is busy.'));
    expect((await signIn(server, provider, { session: first })).statusCode).toBe(503);
    server.store.update = update;
    expect(await statusOf(first)).toBe(200);
    const second = sessionOf(await signIn(server, provider, { session: first }));
    expect([await statusOf(first), await statusOf(second)]).toEqual([401, 200]);
  });

  it('works in read-only mode', async () => {
    await server.post('/admin/mode/update', { readOnly: 'true' }, asAdministrator());
    expect((await signIn(server, provider)).statusCode).toBe(200);
  });

  it('is in the audit trail, with the new user and each new role', async () => {
    await signIn(server, provider);
    provider.users.set('1', { ...ann, groups: ['editors'] });
    await signIn(server, provider);
    const entries = (await entriesOf(server)).filter(({ operation }) => operation === 'tokens/oidc/callback');
    expect(entries.map(({ user, role, outcome, changes }) => [user, role, outcome, changes])).toEqual([
      ['ann', 'publisher', 'success', [{ field: 'role', before: 'administrator', after: 'publisher' }]],
      [
        'ann',
        'administrator',
        'success',
        [
          { field: 'role', before: null, after: 'administrator' },
          { field: 'subject', before: null, after: '1' },
        ],
      ],
    ]);
  });
});

describe('a user of the provider', () => {
  it('is listed with the source and the last sign-in', async () => {
    await signIn(server, provider);
    const users = await listUsers();
    expect(users.map(({ username, source }) => [username, source])).toEqual([
      ['administrator', 'local'],
      ['ann', 'oidc'],
      ['member', 'local'],
      ['publisher', 'local'],
    ]);
    expect(users[1]).toMatchObject({ lastSignIn: server.runtime.now() });
    const page = await server.get('/admin/security/users', {
      ...html,
      cookie: `steward_session=${server.token('administrator')}`,
    });
    expect(page.body).toMatch(/ann<\/strong>\s*<span class="chip">identity provider<\/span>/);
  });

  it('gets the role of a group inside an object', async () => {
    const other = await startWith(provider, { env: { OIDC_ROLES_CLAIM: 'realm_access.roles' } });
    provider.users.set('1', { preferred_username: 'ann', realm_access: { roles: ['editors'] } });
    expect(await selfOf(other, await signIn(other, provider))).toMatchObject({ role: 'publisher' });
  });

  it('has the name of the claim, else of the email address', async () => {
    provider.users.set('1', { email: 'ann@example.com', email_verified: true, groups: ['editors'] });
    expect(await selfOf(server, await signIn(server, provider))).toMatchObject({
      username: 'ann@example.com',
    });
    const other = await startWith(provider, { env: { OIDC_USERNAME_CLAIM: 'sub' } });
    expect(await selfOf(other, await signIn(other, provider))).toMatchObject({ username: '1' });
  });

  it('gets another role at the next sign-in, which counts for its sessions and keys at once', async () => {
    const first = await signIn(server, provider);
    provider.users.set('1', { ...ann, groups: ['editors'] });
    await signIn(server, provider);
    expect(await selfOf(server, first)).toMatchObject({ role: 'publisher' });
  });

  it('keeps the first name, whatever the provider calls it later', async () => {
    const first = await signIn(server, provider);
    provider.users.set('1', { preferred_username: 'boss', groups: ['editors'] });
    const second = await signIn(server, provider);
    const ann = { username: 'ann', role: 'publisher', source: 'oidc' };
    expect([await selfOf(server, first), await selfOf(server, second)]).toEqual([ann, ann]);
    expect((await listUsers()).map(({ username }) => username)).not.toContain('boss');
  });

  it('has no password, and gets none', async () => {
    const response = await signIn(server, provider);
    const page = await server.get('/admin/security/self', { ...html, cookie: sessionOf(response) });
    expect(page.body).not.toContain('href="/admin/security/self/changePassword?');
    expect(page.body).toContain('at the identity provider');
    const refusal = 'ann signs in at the identity provider and has no password here.';
    const updated = await changeUser('update', { username: 'ann', password: 'a new password', f: 'json' });
    expect([updated.statusCode, updated.json()]).toMatchObject([409, { error: { message: refusal } }]);
    const token = cookiesOf(response).get('steward_session') ?? '';
    const changed = await server.post(
      '/admin/security/self/changePassword',
      { password: 'anything', newPassword: 'a new password', f: 'json' },
      { authorization: `Bearer ${token}` },
    );
    expect([changed.statusCode, changed.json()]).toMatchObject([409, { error: { message: refusal } }]);
    const signedIn = await server.post(signInPath, { username: 'ann', password: '', f: 'json' });
    expect(signedIn.statusCode).toBe(400);
    expect((await server.post(signInPath, { username: 'ann', password })).statusCode).toBe(401);
  });

  it('is no replacement for the last local administrator', async () => {
    await signIn(server, provider);
    const response = await changeUser('remove', { username: 'administrator' });
    expect([response.statusCode, response.json()]).toMatchObject([
      409,
      { error: { message: 'administrator is the last administrator.' } },
    ]);
    expect((await changeUser('remove', { username: 'ann' })).statusCode).toBe(200);
  });
});

describe('the provider', () => {
  it.each(['client_secret_post', 'none'] as const)(
    'may want the client to authenticate by %s',
    async (authMethod) => {
      const other = await startProvider({ authMethod, hasLargeTokens: true });
      const env = authMethod === 'none' ? { OIDC_CLIENT_SECRET: '' } : {};
      const served = await startWith(other, { env });
      expect((await signIn(served, other)).statusCode).toBe(200);
      // The id token has all claims.
      expect(other.requests.get('/me')).toBeUndefined();
      await other.stop();
    },
  );

  it('gives claims of the id token before those of userinfo, and the preferred name of either', async () => {
    provider.users.set('1', { ...ann, email: 'ann@example.com' });
    provider.changeTokens = (answer) => ({
      ...answer,
      id_token: signToken({
        ...readToken(answer.id_token),
        email: 'other@example.com',
        groups: ['editors'],
      }),
    });
    expect(await selfOf(server, await signIn(server, provider))).toMatchObject({
      username: 'ann',
      role: 'publisher',
    });
  });

  it('is discovered once', async () => {
    provider.requests.clear();
    await Promise.all([signIn(server, provider), signIn(server, provider)]);
    await signIn(server, provider);
    expect(provider.requests.get('/.well-known/openid-configuration')).toBe(1);
    await server.runtime.advance(3_600_000);
    await signIn(server, provider);
    expect(provider.requests.get('/.well-known/openid-configuration')).toBe(2);
  });
});

describe('LOCAL_SIGN_IN=false', () => {
  const closed = perTest(() =>
    startWith(provider, { env: { LOCAL_SIGN_IN: 'false', ADMIN_USERNAME: 'administrator' } }),
  );

  it('hides the password form', async () => {
    const { body } = await closed.get('/admin/mode', html);
    expect(body).toContain('Sign in with your organization');
    expect(body).not.toContain('name="password"');
  });

  it('leads the first administrator to the form, which a wrong password shows again', async () => {
    const { body } = await closed.get('/admin/mode', html);
    const href = /<a href="([^"]+)">First administrator</.exec(body)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const form = await closed.get(href, html);
    expect(form.body).toContain('name="next" value="/admin/mode"');
    expect(form.body).toContain('name="password"');
    const wrong = { username: 'administrator', password: 'wrong', f: 'html' };
    const refused = await closed.post(signInPath, wrong, html);
    expect([refused.statusCode, refused.body.includes('name="password"')]).toEqual([401, true]);
  });

  it('warns at the start if the name of the first administrator is that of no local one', async () => {
    const env = { LOCAL_SIGN_IN: 'false', ADMIN_USERNAME: 'publisher' };
    const wrong = await startWith(provider, { env });
    expect(wrong.logLines.join('')).toContain(
      'no password is accepted: ADMIN_USERNAME names no local administrator',
    );
  });

  it('refuses all passwords except that of the first administrator, as if they were wrong', async () => {
    const attempt = (username: string, given = password) =>
      closed.post(signInPath, { username, password: given, f: 'json' });
    const refused = await attempt('publisher');
    expect([refused.statusCode, refused.json()]).toMatchObject([
      401,
      {
        error: {
          details: ['Only the first administrator has a password here. Sign in at the identity provider.'],
        },
      },
    ]);
    expect((await attempt('nobody')).body).toBe(refused.body);
    expect((await attempt('administrator', 'wrong')).body).toBe(refused.body);
    expect((await attempt('Administrator')).statusCode).toBe(200);
    // Refused names count like wrong passwords.
    for (let failures = 1; failures < 10; failures += 1) await attempt('publisher');
    expect((await attempt('publisher')).statusCode).toBe(429);
    expect(
      (await closed.get('/admin', { authorization: `Bearer ${closed.token('publisher')}` })).statusCode,
    ).toBe(200);
  });
});

describe('the sign-out', () => {
  const signOut = async (session: string) => {
    const page = await server.get('/admin', { ...html, cookie: session });
    const token = /name="token" value="(form_[\w-]+)"/.exec(page.body)?.[1] ?? '';
    return server.post('/tokens/revokeToken', { f: 'html', token }, { ...html, cookie: session });
  };

  it('ends the session here and leads to the end of the session at the provider', async () => {
    const session = sessionOf(await signIn(server, provider));
    const response = await signOut(session);
    expect([response.statusCode, locationOf(response)]).toEqual([303, '/tokens/oidc/signOut']);
    expect((await server.get('/admin', { ...html, cookie: session })).statusCode).toBe(401);
    const { body } = await server.get(locationOf(response), html);
    const href = /content="0;url=([^"]+)"/.exec(body)?.[1]?.replaceAll('&amp;', '&') ?? '';
    expect(href.split('?')[0]).toBe(`${provider.issuer}/session/end`);
    expect(Object.fromEntries(new URL(href).searchParams)).toEqual({
      client_id: 'steward',
      post_logout_redirect_uri: 'http://localhost:8080/tokens/generateToken',
    });
  });

  it('of a local user leads to the sign-in page', async () => {
    const response = await signOut(`steward_session=${server.token('publisher')}`);
    expect(locationOf(response)).toBe('/tokens/generateToken?f=html');
  });

  it('leads no visitor to the provider who comes from another site', async () => {
    const response = await server.get('/tokens/oidc/signOut', { ...html, 'sec-fetch-site': 'cross-site' });
    expect([response.statusCode, locationOf(response)]).toEqual([303, '/tokens/generateToken?f=html']);
  });

  it('leads to the sign-in page while the provider is unavailable', async () => {
    const alone = await startWith({ issuer: 'http://127.0.0.1:9' });
    const response = await alone.get('/tokens/oidc/signOut', html);
    expect([response.statusCode, locationOf(response)]).toEqual([303, '/tokens/generateToken?f=html']);
  });
});
