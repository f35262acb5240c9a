// Signing in, what tokens are good for, how they end (contract 3).
import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tokens } from '../../src/auth/token.ts';
import { type Server, password, startServer } from '../kit/server.ts';

let server: Server;
beforeEach(async () => {
  server = await startServer();
});
afterEach(() => server.close());

const signInPath = '/tokens/generateToken';
type Token = { token: string; expires: number; ssl: boolean };
type Failure = { error: { code: number; message: string; details: string[] } };

async function signIn(
  fields: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<Token> {
  const response = await server.post(signInPath, { username: 'member', password, ...fields }, headers);
  expect(response.statusCode, response.body).toBe(200);
  return response.json();
}

async function statusOf(token: string, headers: Record<string, string> = {}): Promise<number> {
  return (await server.get('/admin', { authorization: `Bearer ${token}`, ...headers })).statusCode;
}

describe('generateToken', () => {
  it('answers a token that works, when it expires, and whether the address is https', async () => {
    const { token, expires, ssl } = await signIn();
    expect(Buffer.from(token, 'base64url')).toHaveLength(32);
    expect(expires).toBe(server.world.now() + 120 * 60_000);
    expect(ssl).toBe(false);
    expect(await statusOf(token)).toBe(200);
  });

  it('stores the hash of a token, never the token', async () => {
    const { token } = await signIn();
    expect(JSON.stringify([...server.store.all(tokens)])).not.toContain(token);
  });

  it.each([
    ['1', 1],
    ['60', 60],
    ['20160', 20160],
    ['20161', 20160],
    ['999999999999', 20160],
  ])('expiration %s lasts %d minutes', async (expiration, minutes) => {
    const { token, expires } = await signIn({ expiration });
    expect(expires).toBe(server.world.now() + minutes * 60_000);
    await server.world.advance(minutes * 60_000 - 1);
    expect(await statusOf(token)).toBe(200);
    await server.world.advance(1);
    expect(await statusOf(token)).toBe(401);
  });

  it.each(['0', '-5', '1.0', '1e1', '0x1', 'soon'])('refuses the expiration %s', async (expiration) => {
    const response = await server.post(signInPath, { username: 'member', password, expiration });
    expect(response.statusCode).toBe(400);
    expect(response.json<Failure>().error.details[0]).toMatch(/^expiration: must be an integer from 1/);
  });

  it('answers an unknown user exactly as a wrong password', async () => {
    const wrong = await server.post(signInPath, { username: 'member', password: 'not this one' });
    const unknown = await server.post(signInPath, { username: 'nobody', password: 'not this one' });
    expect(wrong.statusCode).toBe(401);
    expect(wrong.json<Failure>().error).toEqual({
      code: 400,
      message: 'Unable to generate token.',
      details: [],
    });
    expect(unknown.statusCode).toBe(401);
    expect(unknown.body).toBe(wrong.body);
  });

  it('refuses credentials in the address', async () => {
    const response = await server.post(`${signInPath}?username=member&password=x`, {
      username: 'member',
      password,
    });
    expect(response.statusCode).toBe(400);
    expect(response.json<Failure>().error.details).toEqual([
      'username: must be sent in the body, never in the address.',
      'password: must be sent in the body, never in the address.',
    ]);
    expect((await server.get(`${signInPath}?username=member&password=x`)).statusCode).toBe(405);
  });

  it('notes when a user last signed in', async () => {
    await server.world.advance(5000);
    await signIn();
    const response = await server.get(`/admin/security/users?token=${server.token('administrator')}`);
    const { users } = response.json<{ users: { username: string; lastSignIn: number | null }[] }>();
    expect(users.find(({ username }) => username === 'member')?.lastSignIn).toBe(server.world.now());
    expect(users.find(({ username }) => username === 'publisher')?.lastSignIn).toBeNull();
  });

  it('forgets tokens that have expired', async () => {
    await signIn({ expiration: '1' });
    const before = [...server.store.all(tokens)].length;
    await server.world.advance(120_000);
    expect([...server.store.all(tokens)].length).toBe(before - 1);
  });
});

describe('bindings', () => {
  it('a token bound to the address it was asked from works only from there', async () => {
    const here = await server.http.inject({
      method: 'POST',
      url: signInPath,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams({ username: 'member', password, client: 'requestip' }).toString(),
      remoteAddress: '::ffff:192.0.2.1',
    });
    const authorization = `Bearer ${here.json<Token>().token}`;
    const from = async (remoteAddress: string) =>
      (await server.http.inject({ url: '/admin', headers: { authorization }, remoteAddress })).statusCode;
    expect(await from('192.0.2.1')).toBe(200);
    expect(await from('192.0.2.2')).toBe(401);
  });

  it('a token bound to a given address works only from there', async () => {
    const elsewhere = await signIn({ client: 'ip', ip: '192.0.2.7' });
    expect(await statusOf(elsewhere.token)).toBe(401);
    const here = await signIn({ client: 'ip', ip: '127.0.0.1' });
    expect(await statusOf(here.token)).toBe(200);
    const spelledOut = await signIn({ client: 'ip', ip: '2001:0DB8:0:0:0:0:0:1' });
    const headers = { authorization: `Bearer ${spelledOut.token}` };
    const six = await server.http.inject({ url: '/admin', headers, remoteAddress: '2001:db8::1' });
    expect(six.statusCode).toBe(200);
  });

  it.each([
    ['https://app.example.com/page', 200],
    ['https://app.example.com/other?x=1', 200],
    ['https://app.example.com.evil.example/page', 401],
    ['http://app.example.com/page', 401],
    ['nonsense', 401],
  ])('a token bound to a page, with Referer %s → %d', async (referer, status) => {
    const { token } = await signIn({ client: 'referer', referer: 'https://app.example.com/page' });
    expect(await statusOf(token, { referer })).toBe(status);
    expect(await statusOf(token)).toBe(200);
  });

  it.each([
    [{ client: 'referer' }, 'referer: is required with client=referer.'],
    [{ client: 'ip' }, 'ip: must be an IPv4 or IPv6 address with client=ip.'],
    [{ client: 'ip', ip: '300.1.1.1' }, 'ip: must be an IPv4 or IPv6 address with client=ip.'],
    [{ client: 'phone' }, 'client: must be one of referer, ip, requestip.'],
  ])('refuses %j', async (fields, problem) => {
    const response = await server.post(signInPath, { username: 'member', password, ...fields });
    expect(response.json<Failure>().error.details).toEqual([problem]);
  });
});

describe('revokeToken', () => {
  it('ends a token at once', async () => {
    const { token } = await signIn();
    expect((await server.post('/tokens/revokeToken', { token })).json()).toEqual({ status: 'success' });
    expect(await statusOf(token)).toBe(401);
  });

  it('answers success for a token it does not know', async () => {
    expect((await server.post('/tokens/revokeToken', { token: 'never issued' })).json()).toEqual({
      status: 'success',
    });
  });

  it('clears the session cookie', async () => {
    const response = await server.post('/tokens/revokeToken', { token: 'x' });
    expect(response.headers['set-cookie']).toMatch(
      /^steward_session=; Path=\/; HttpOnly; SameSite=Strict; Max-Age=0$/,
    );
  });
});

describe('carriers', () => {
  const admin = { authorization: 'Bearer token-of-the-administrator' };

  it('the bearer header counts before the field, the field before the cookie', async () => {
    const users = '/admin/security/users';
    const member = 'token-of-the-member';
    const cookie = `steward_session=${member}`;
    expect((await server.get(`${users}?token=${member}`, admin)).statusCode).toBe(200);
    expect((await server.get(`${users}?token=token-of-the-administrator`, { cookie })).statusCode).toBe(200);
    expect((await server.get(users, { cookie })).statusCode).toBe(403);
    expect((await server.get(`${users}?token=`, { cookie })).statusCode).toBe(403);
  });

  it('another scheme is not looked at', async () => {
    const authorization = 'Basic dXNlcjpwYXNz';
    expect((await server.get('/admin', { authorization })).json<Failure>().error.code).toBe(499);
    expect((await server.get('/admin?token=token-of-the-member', { authorization })).statusCode).toBe(200);
  });

  it('the cookie is good for reading only', async () => {
    const cookie = 'steward_session=token-of-the-administrator';
    expect((await server.get('/admin', { cookie })).statusCode).toBe(200);
    expect((await server.post('/admin', {}, { cookie })).json<Failure>().error.code).toBe(499);
    expect((await server.post('/admin/mode/update', { isReadOnly: 'true' }, { cookie })).statusCode).toBe(
      401,
    );
  });

  it('a form token is good for POST and only with the cookie it belongs to', async () => {
    const session = 'token-of-the-administrator';
    const cookie = `steward_session=${session}`;
    const token = `form_${createHmac('sha256', session).update('form').digest('base64url')}`;
    const update = { token, isReadOnly: 'false' };
    expect((await server.post('/admin/mode/update', update, { cookie })).statusCode).toBe(200);
    expect((await server.post('/admin/mode/update', update)).json<Failure>().error.code).toBe(498);
    const other = { cookie: 'steward_session=token-of-the-publisher' };
    expect((await server.post('/admin/mode/update', update, other)).json<Failure>().error.code).toBe(498);
    expect((await server.get(`/admin?token=${token}`, { cookie })).json<Failure>().error.code).toBe(498);
    expect((await server.get('/admin', { authorization: `Bearer ${token}`, cookie })).statusCode).toBe(401);
  });

  it('a bad bearer header is answered before the body is read', async () => {
    const response = await server.http.inject({
      method: 'POST',
      url: '/admin/mode/update',
      headers: { authorization: 'Bearer nonsense', 'content-type': 'application/json' },
      payload: '{}',
    });
    expect(response.json<Failure>().error.code).toBe(498);
  });
});

describe('sign-in limits', () => {
  const attempt = (username: string, secret: string, remoteAddress = '192.0.2.1') =>
    server.http.inject({
      method: 'POST',
      url: signInPath,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams({ username, password: secret }).toString(),
      remoteAddress,
    });

  it('refuses after ten failures of one user from one address within a minute, then lets in again', async () => {
    for (let i = 0; i < 10; i += 1) expect((await attempt('member', 'wrong')).statusCode).toBe(401);
    const refused = await attempt('MEMBER', password);
    expect(refused.statusCode).toBe(429);
    expect(refused.headers['retry-after']).toBe('60');
    expect((await attempt('publisher', password)).statusCode).toBe(200);
    expect((await attempt('member', password, '192.0.2.2')).statusCode).toBe(200);
    await server.world.advance(60_000);
    expect((await attempt('member', password)).statusCode).toBe(200);
  });

  it('answers a burst without computing every hash', async () => {
    const burst = await Promise.all(Array.from({ length: 50 }, () => attempt('nobody', 'wrong')));
    const failed = burst.filter(({ statusCode }) => statusCode === 401).length;
    expect(failed).toBeGreaterThanOrEqual(10);
    expect(failed).toBeLessThan(14);
  });
});

describe('in a browser', () => {
  const form = { username: 'administrator', password, f: 'html' };

  it('shows the sign-in form', async () => {
    const response = await server.get(signInPath, { accept: 'text/html' });
    expect(response.statusCode).toBe(200);
    expect(response.body).toContain('name="password" type="password"');
    // With no-referrer a browser would send the form with Origin: null, which is refused.
    expect(response.headers['referrer-policy']).toBe('same-origin');
  });

  it('starts a session and goes on to the page asked for', async () => {
    const response = await server.post(signInPath, { ...form, next: '/admin/mode?x=1' });
    expect(response.statusCode).toBe(303);
    expect(response.headers.location).toBe('/admin/mode?x=1');
    expect(response.headers['set-cookie']).toMatch(
      /^steward_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
  });

  it('puts any path into the form a header carries', async () => {
    const response = await server.post(signInPath, { ...form, next: '/admin/services/地図?x=é' });
    expect(response.statusCode).toBe(303);
    expect(response.headers.location).toBe('/admin/services/%E5%9C%B0%E5%9B%B3?x=%C3%A9');
  });

  it.each([
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    '/.//evil.example',
    '/%2e//evil.example',
    'admin',
    '',
  ])('goes home when next is %j', async (next) => {
    const response = await server.post(signInPath, { ...form, next });
    expect(response.headers.location).toBe('/admin');
  });

  it.each([
    [{ 'sec-fetch-site': 'same-origin' }, 303],
    [{ 'sec-fetch-site': 'none' }, 303],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ origin: 'http://localhost:8080' }, 303],
    [{ origin: 'http://steward.internal', host: 'steward.internal' }, 303],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'https://evil.example', 'content-type': 'application/x-www-form-urlencoded' }, 403],
  ])('answers a form with %j → %d', async (headers, status) => {
    expect((await server.post(signInPath, form, headers as Record<string, string>)).statusCode).toBe(status);
  });

  it('says a page needs signing in with 401 and the form that leads back to it', async () => {
    const response = await server.get('/admin/services/Maps', { accept: 'text/html' });
    expect(response.statusCode).toBe(401);
    expect(response.body).toContain('<input type="hidden" name="next" value="/admin/services/Maps" />');
  });

  it('shows a wrong password on the form and keeps the name, not the password', async () => {
    const response = await server.post(signInPath, { ...form, password: 'wrong-secret' });
    expect(response.statusCode).toBe(401);
    expect(response.body).toContain('Unable to generate token.');
    expect(response.body).toContain('value="administrator"');
    expect(response.body).not.toContain('wrong-secret');
  });

  it('is Secure where the public address is https', async () => {
    const secure = await startServer({ env: { PUBLIC_URL: 'https://steward.example.com/ops/' } });
    const response = await secure.post(signInPath, form);
    expect(response.headers['set-cookie']).toMatch(/; Secure$/);
    expect(response.headers.location).toBe('/ops/admin');
    expect((await secure.post(signInPath, { ...form, f: 'json' })).json<Token>().ssl).toBe(true);
    await secure.close();
  });

  it('refuses a foreign form before it looks at its fields', async () => {
    const response = await server.post(signInPath, { f: 'html' }, { origin: 'https://evil.example' });
    expect(response.statusCode).toBe(403);
  });

  it('knows a signed-in browser on the pages that need no token', async () => {
    const cookie = 'steward_session=token-of-the-member';
    const page = await server.get('/tokens/revokeToken', { cookie, accept: 'text/html' });
    expect(page.body).toContain('Signed in as <strong>member</strong>');
    const stale = await server.get('/tokens', { cookie: 'steward_session=gone', accept: 'text/html' });
    expect(stale.statusCode).toBe(200);
  });

  it('signs out with the form token of the page', async () => {
    const signedIn = await server.post(signInPath, form);
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? '';
    const page = await server.get('/admin', { cookie, accept: 'text/html' });
    const token = /name="token" value="(form_[\w-]+)"/.exec(page.body)?.[1] ?? '';
    const out = await server.post('/tokens/revokeToken', { f: 'html', token }, { cookie });
    expect(out.statusCode).toBe(303);
    expect((await server.get('/admin', { cookie })).statusCode).toBe(401);
  });

  it('never puts the session token into a page', async () => {
    const cookie = 'steward_session=token-of-the-administrator';
    const page = await server.get('/admin/mode/update', { cookie, accept: 'text/html' });
    expect(page.body).toContain('form_');
    expect(page.body).not.toContain('token-of-the-administrator');
  });

  it('leaves the token of a form empty on a page opened without the cookie', async () => {
    const page = await server.get('/admin/mode/update?f=html&token=token-of-the-administrator');
    expect(page.body).toContain('name="token" value=""');
    expect(page.body).toContain('Sign in</a> first');
    expect(page.body).not.toContain('token-of-the-administrator');
  });
});
