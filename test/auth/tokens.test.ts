// Signing in and its limits, the bindings of tokens, and revoking them.
import { describe, expect, it } from 'vitest';
import { hashToken, tokensOf as listTokens } from '../../src/auth/token.ts';
import { type User, findUser, users } from '../../src/auth/user.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import { perTest } from '../kit/cleanup.ts';
import { password, startServer } from '../kit/server.ts';
import { isOnPostgres } from '../kit/store.ts';
import { type Failure, type Token, signInPath, tokensOf } from './tokens-kit.ts';

const server = perTest(startServer);

const { signIn, statusOf } = tokensOf(() => server);

const signInFrom = (remoteAddress: string, fields: Record<string, string>) =>
  server.http.inject({
    method: 'POST',
    url: signInPath,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams(fields).toString(),
    remoteAddress,
  });

describe('generateToken', () => {
  it('returns a valid token, its expiry, and whether the public address is https, and stores its hash only', async () => {
    const { token, expires, ssl } = await signIn();
    expect(Buffer.from(token, 'base64url')).toHaveLength(32);
    expect(expires).toBe(server.runtime.now() + 120 * 60_000);
    expect(ssl).toBe(false);
    expect(await statusOf(token)).toBe(200);
    const stored = listTokens(server.store, 'member');
    expect(stored.map(({ hash }) => hash)).toContain(hashToken(token));
    expect(JSON.stringify(stored)).not.toContain(token);
  });

  it.each([
    ['1', 1],
    ['60', 60],
    // The server deletes expired tokens every ten minutes, which takes seconds on PostgreSQL.
    ...(isOnPostgres ? [] : ([['20160', 20160]] as const)),
  ] as const)('with expiration=%s issues a token for %d minutes', async (expiration, minutes) => {
    const { token, expires } = await signIn({ expiration });
    expect(expires).toBe(server.runtime.now() + minutes * 60_000);
    await server.runtime.advance(minutes * 60_000 - 1);
    expect(await statusOf(token)).toBe(200);
    await server.runtime.advance(1);
    expect(await statusOf(token)).toBe(401);
  });

  it('issues a token for 20160 minutes at most, and refuses an expiration that is no positive integer', async () => {
    for (const expiration of ['20161', '999999999999'])
      expect((await signIn({ expiration })).expires).toBe(server.runtime.now() + 20160 * 60_000);
    for (const expiration of ['0', '-5', '1.0', '1e1', '0x1', 'soon']) {
      const response = await server.post(signInPath, { username: 'member', password, expiration });
      expect(response.statusCode, expiration).toBe(400);
      expect(response.json<Failure>().error.details[0]).toMatch(/^expiration: must be an integer from 1/);
    }
  });

  it('gives the same answer for an unknown user and a wrong password', async () => {
    const wrong = await server.post(signInPath, { username: 'member', password: 'not this one' });
    const unknown = await server.post(signInPath, { username: 'nobody', password: 'not this one' });
    expect(wrong.statusCode).toBe(401);
    expect(wrong.json<Failure>().error).toEqual({
      code: 400,
      message: 'Unable to generate token.',
      details: ['Invalid username or password.'],
    });
    expect(unknown.statusCode).toBe(401);
    expect(unknown.body).toBe(wrong.body);
  });

  it('refuses credentials in the query', async () => {
    for (const [name, value] of Object.entries({ username: 'member', password })) {
      const query = `${name}=${encodeURIComponent(value)}`;
      const response = await server.post(`${signInPath}?${query}`, { username: 'member', password });
      expect(response.statusCode).toBe(400);
      expect(response.json<Failure>().error.details).toEqual([
        `${name}: must be sent in the body, never in the address.`,
      ]);
    }
    expect((await server.get(`${signInPath}?username=member&password=x`)).statusCode).toBe(405);
  });

  it('deletes expired tokens', async () => {
    await signIn({ expiration: '1' });
    const before = listTokens(server.store, 'member');
    await server.runtime.advance(660_000);
    expect(listTokens(server.store, 'member')).toEqual(before.slice(1));
  });
});

describe('an unknown token or key', () => {
  const unknown = ['unknown', `stw_${'k'.repeat(43)}`];

  it('is refused after the server has read the changes of other processes', async () => {
    const { refresh } = server.store;
    let refreshes = 0;
    server.store.refresh = () => {
      refreshes += 1;
      return refresh();
    };
    for (const token of unknown) expect(await statusOf(token)).toBe(401);
    expect(refreshes).toBe(2);
  });

  it('is not refused while the server cannot read them', async () => {
    const { token } = await signIn();
    server.store.refresh = () => Promise.resolve(false);
    for (const each of unknown) {
      const response = await server.get('/admin', { authorization: `Bearer ${each}` });
      expect(response.statusCode).toBe(503);
      expect(response.headers['retry-after']).toBe('5');
    }
    expect((await server.post('/tokens/revokeToken', { token: 'unknown' })).statusCode).toBe(503);
    expect(await statusOf(token)).toBe(200);
  });
});

describe('bindings', () => {
  it('a token bound to the address of its request works only from there', async () => {
    const here = await signInFrom('::ffff:192.0.2.1', { username: 'member', password, client: 'requestip' });
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
  ])('a token bound to a page, used with Referer %s, gets %d', async (referer, status) => {
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
  it('ends a token at once, clears the session cookie, and returns success for an unknown token', async () => {
    const { token } = await signIn();
    for (const each of [token, 'never issued']) {
      const response = await server.post('/tokens/revokeToken', { token: each });
      expect(response.json()).toEqual({ status: 'success' });
      expect(response.headers['set-cookie']).toBe(
        'steward_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0',
      );
    }
    expect(await statusOf(token)).toBe(401);
  });
});

describe('sign-in limits', () => {
  const attempt = (username: string, secret: string, remoteAddress = '192.0.2.1') =>
    signInFrom(remoteAddress, { username, password: secret });

  it('refuses a sign-in after ten failures of one user and address, for a minute', async () => {
    for (let i = 0; i < 10; i += 1) expect((await attempt('member', 'wrong')).statusCode).toBe(401);
    const refused = await attempt('MEMBER', password);
    expect(refused.statusCode).toBe(429);
    expect(refused.headers['retry-after']).toBe('60');
    expect((await attempt('publisher', password)).statusCode).toBe(200);
    expect((await attempt('member', password, '192.0.2.2')).statusCode).toBe(200);
    await server.runtime.advance(60_000);
    expect((await attempt('member', password)).statusCode).toBe(200);
  });

  it('refuses a burst of attempts without computing every hash', async () => {
    const burst = await Promise.all(Array.from({ length: 50 }, () => attempt('nobody', 'wrong')));
    const failed = burst.filter(({ statusCode }) => statusCode === 401).length;
    expect(failed).toBe(10);
  });

  it('does not count sign-ins that succeed', async () => {
    const burst = await Promise.all(Array.from({ length: 15 }, () => attempt('member', password)));
    expect(burst.map(({ statusCode }) => statusCode)).toEqual(Array.from({ length: 15 }, () => 200));
  });
});

describe('the number of tokens of a user', () => {
  it('is limited: a further sign-in ends the oldest', async () => {
    const own = await startServer({ env: { MAX_TOKENS_PER_USER: '3' } });
    const { signIn, statusOf } = tokensOf(() => own);
    const issued: string[] = [];
    // The administrator has one token already. The lifetime of a token does not matter, only its age.
    for (const expiration of ['300', '200', '100', '400']) {
      await own.runtime.advance(1000);
      issued.push((await signIn({ username: 'administrator', expiration })).token);
    }
    const statuses = await Promise.all(issued.map((token) => statusOf(token)));
    expect(statuses).toEqual([401, 200, 200, 200]);
    expect(await statusOf(own.token('administrator'))).toBe(401);
    expect(await statusOf(own.token('member'))).toBe(200);
  });
});

describe('a password that changes while a sign-in hashes the old one', () => {
  it.each<[string, (transaction: Transaction, user: User) => void]>([
    ['with a new password', (transaction, user) => transaction.put(users, { ...user, passwordHash: 'new' })],
    ['when the user is removed', (transaction) => transaction.remove(users, 'member')],
  ])('refuses the sign-in: %s', async (_what, change) => {
    const other = await startServer({ store: await server.store.reopen() });
    const issued = listTokens(server.store, 'member');
    const held = server.passwords.holdNext();
    const response = server.post(signInPath, { username: 'member', password });
    const release = await held;
    await other.store.update((transaction) => {
      const user = findUser(transaction, 'member');
      if (user) change(transaction, user);
    });
    release();
    expect((await response).statusCode).toBe(401);
    expect((await response).json<Failure>().error.message).toBe('Unable to generate token.');
    expect(listTokens(server.store, 'member')).toEqual(issued);
  });
});
