// Signing in and out with a browser.
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/lib/errors.ts';
import { perFile } from '../kit/cleanup.ts';
import { password, startServer } from '../kit/server.ts';
import { type Token, signInPath } from './tokens-kit.ts';

const server = perFile(startServer);

describe('a browser', () => {
  const form = { username: 'administrator', password, f: 'html' };

  it('gets the sign-in form', async () => {
    const response = await server.get(signInPath, { accept: 'text/html' });
    expect(response.statusCode).toBe(200);
    expect(response.body).toMatch(/name="password"\s+type="password"/);
    expect(response.body).toMatch(/name="username"[^>]*autofocus/);
    expect(response.body).toMatch(/class="brand"[^>]*>.*Steward<\/a>/);
    expect(response.body).toMatch(/Steward \d+\.\d+\.\d+/);
    // With no-referrer a browser sends Origin: null with the form, which the server refuses.
    expect(response.headers['referrer-policy']).toBe('same-origin');
  });

  it('gets a session and is redirected to the page in next', async () => {
    const response = await server.post(signInPath, { ...form, next: '/admin/mode?x=1' });
    expect(response.statusCode).toBe(303);
    expect(response.headers.location).toBe('/admin/mode?x=1');
    expect(response.headers['set-cookie']).toMatch(
      /^steward_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
  });

  it('gets a session that replaces the one before, in one update', async () => {
    const signIn = async (cookie = '') => {
      const response = await server.post(signInPath, form, { cookie });
      return (String(response.headers['set-cookie']).split(';', 1)[0] ?? '').trim();
    };
    const statusOf = async (cookie: string) => (await server.get('/admin', { cookie })).statusCode;
    const first = await signIn();
    const { update } = server.store;
    server.store.update = () => Promise.reject(new ServiceError('unavailable', 'The database is busy.'));
    await signIn(first);
    server.store.update = update;
    expect(await statusOf(first)).toBe(200);
    const second = await signIn(first);
    expect([await statusOf(first), await statusOf(second)]).toEqual([401, 200]);
  });

  it('gets a Location header with an encoded path', async () => {
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
  ])('is redirected to the home page if next is %j', async (next) => {
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
  ])('that sends a form with the headers %j gets %d', async (headers, status) => {
    expect((await server.post(signInPath, form, headers as Record<string, string>)).statusCode).toBe(status);
  });

  it('without a session is led back to a page with its query, but only to the path if the query is long', async () => {
    const next = async (query: string) => {
      const { body } = await server.get(`/admin/services?q=${query}`, { accept: 'text/html' });
      return /name="next" value="([^"]*)"/.exec(body)?.[1];
    };
    expect(await next('map')).toBe('/admin/services?q=map');
    expect(await next('m'.repeat(5_000))).toBe('/admin/services');
  });

  it('with a wrong password gets the form again with the user name, without the password', async () => {
    const response = await server.post(signInPath, { ...form, password: 'wrong-secret' });
    expect(response.statusCode).toBe(401);
    expect(response.body).toContain('The user name or the password is wrong.');
    expect(response.body).not.toContain('Unable to generate token.');
    expect(response.body).toMatch(/name="password"[^>]*autofocus/);
    expect(response.body).toContain('value="administrator"');
    expect(response.body).not.toContain('wrong-secret');
    expect(response.body).not.toContain('curl');
  });

  it('gets a Secure cookie if the public address is https', async () => {
    const secure = await startServer({ env: { PUBLIC_URL: 'https://steward.example.com/ops/' } });
    const response = await secure.post(signInPath, form);
    expect(response.headers['set-cookie']).toMatch(/; Secure$/);
    expect(response.headers.location).toBe('/ops/admin');
    expect((await secure.post(signInPath, { ...form, f: 'json' })).json<Token>().ssl).toBe(true);
  });

  it('with a form of another site is refused before the fields are checked', async () => {
    const response = await server.post(signInPath, { f: 'html' }, { origin: 'https://evil.example' });
    expect(response.statusCode).toBe(403);
  });

  it('with a session is recognised on pages that need no token', async () => {
    const cookie = 'steward_session=token-of-the-member';
    const page = await server.get('/tokens/revokeToken', { cookie, accept: 'text/html' });
    expect(page.body).toMatch(/popovertarget="account"[^>]*>member <span class="hint">member</);
    expect(page.body).toContain('<a href="/admin/security/self">Your account</a>');
    const stale = { cookie: 'steward_session=gone', accept: 'text/html' };
    expect((await server.get('/tokens/revokeToken', stale)).statusCode).toBe(200);
  });

  it('signs out with the form token of a page', async () => {
    const signedIn = await server.post(signInPath, form);
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? '';
    const page = await server.get('/admin', { cookie, accept: 'text/html' });
    const token = /name="token" value="(form_[\w-]+)"/.exec(page.body)?.[1] ?? '';
    const out = await server.post('/tokens/revokeToken', { f: 'html', token }, { cookie });
    expect(out.statusCode).toBe(303);
    expect((await server.get('/admin', { cookie })).statusCode).toBe(401);
  });

  it('never finds the session token in a page', async () => {
    const cookie = 'steward_session=token-of-the-administrator';
    const page = await server.get('/admin/mode', { cookie, accept: 'text/html' });
    expect(page.body).toContain('form_');
    expect(page.body).not.toContain('token-of-the-administrator');
  });

  it('without the cookie gets a form with an empty token', async () => {
    const page = await server.get('/admin/mode?f=html&token=token-of-the-administrator');
    expect(page.body).toContain('name="token" value=""');
    expect(page.body).toContain('Sign in</a> first');
    expect(page.body).not.toContain('token-of-the-administrator');
  });
});
