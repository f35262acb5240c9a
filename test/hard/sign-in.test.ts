// Floods of sign-ins: they must not keep other networks from signing in.
import { beforeEach, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { password, startListening } from '../kit/server.ts';
import { ask, write } from './wire.ts';

let received = 0;
const server = perTest(() => startListening({ env: { TRUSTED_PROXIES: '127.0.0.1' } }));
beforeEach(() => {
  received = 0;
  server.http.server.on('request', () => (received += 1));
});

async function signIn(address: string, username: string, secret: string): Promise<number | undefined> {
  const bytes = write({
    method: 'POST',
    url: '/tokens/generateToken',
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-forwarded-for': address },
    body: new URLSearchParams({ username, password: secret }).toString(),
  });
  return (await ask(server.port, bytes))?.status;
}

it('400 sign-ins at once from one IPv6 /48 refuse none from elsewhere', { timeout: 60_000 }, async () => {
  const flood = Array.from({ length: 400 }, (_, count) =>
    signIn(`2001:db8:1:${count.toString(16)}::1`, `user${count}`, 'wrong'),
  );
  await expect.poll(() => received).toBe(400);
  expect(await signIn('192.0.2.1', 'member', password)).toBe(200);
  expect(await signIn('2001:db8:2::1', 'member', password)).toBe(200);
  const statuses = await Promise.all(flood);
  expect(new Set(statuses)).toEqual(new Set([401, 429]));
});
