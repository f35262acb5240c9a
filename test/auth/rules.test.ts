// Rules of authentication: bearer tokens, passwords, and the limits on sign-ins.
import { describe, expect, it } from 'vitest';
import { networkOf } from '../../src/lib/address.ts';
import { hashPassword, passwordMatches, unmatchableHash } from '../../src/auth/password.ts';
import { SignInLimit } from '../../src/auth/sign-in-limit.ts';
import { FairLimiter } from '../../src/auth/fair-limiter.ts';
import { bearerToken } from '../../src/caller.ts';

describe('bearer tokens', () => {
  it.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['Bearer  abc ', 'abc'],
    ['Bearer a b', 'a b'],
    ['Bearer', undefined],
    ['Bearer ', undefined],
    ['Basic abc', undefined],
    [undefined, undefined],
  ])('%s → %s', (header, token) => {
    expect(bearerToken(header)).toBe(token);
  });
});

describe('passwords', () => {
  it('match their hash in any Unicode composition', async () => {
    const hash = await hashPassword('caf\u00e9 au lait', Buffer.alloc(16, 1));
    expect(await passwordMatches('cafe\u0301 au lait', hash)).toBe(true);
    expect(await passwordMatches('cafe au lait', hash)).toBe(false);
  });

  it('never match the hash used for unknown users', async () => {
    expect(await passwordMatches('', unmatchableHash)).toBe(false);
  });
});

describe('failed sign-ins', () => {
  it('of one network are counted over all users, each for a minute', () => {
    const limit = new SignInLimit();
    for (let i = 0; i < 100; i += 1) limit.countFailure(`user${i}`, 'here', i * 100);
    expect(limit.waitSeconds('another user', 'here', 10_000)).toBe(50);
    expect(limit.waitSeconds('another user', 'elsewhere', 10_000)).toBe(0);
    expect(limit.waitSeconds('another user', 'here', 60_000)).toBe(0);
  });

  it('of one user and network expire one by one', () => {
    const limit = new SignInLimit();
    for (let i = 0; i < 10; i += 1) limit.countFailure('ann', 'here', i * 1000);
    expect(limit.waitSeconds('Ann', 'here', 9000)).toBe(51);
    expect(limit.waitSeconds('ann', 'here', 60_000)).toBe(0);
    limit.countFailure('ann', 'here', 60_000);
    expect(limit.waitSeconds('ann', 'here', 60_000)).toBe(1);
    limit.removeExpired(200_000);
    expect(limit.waitSeconds('ann', 'here', 60_000)).toBe(0);
  });
});

describe('the fair limiter', () => {
  const limits = { running: 2, waitingPerNetwork: 3, waiting: 5 };

  it('runs a limited number of calls at once and the others in order', async () => {
    const limiter = new FairLimiter(limits);
    const order: string[] = [];
    let most = 0;
    let running = 0;
    const work = (name: string) =>
      limiter.run('here', async () => {
        most = Math.max(most, (running += 1));
        await new Promise(setImmediate);
        running -= 1;
        order.push(name);
        if (name === 'b') throw new Error('b fails');
      });
    await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map(work));
    expect(order).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(most).toBe(2);
  });

  it('lets networks take turns and refuses calls beyond the limits', async () => {
    const limiter = new FairLimiter(limits);
    const order: string[] = [];
    const call = (network: string, name: string) =>
      limiter
        .run(network, async () => {
          await new Promise(setImmediate);
          order.push(name);
        })
        .catch((error: unknown) => order.push(`${name}: ${(error as Error).message}`));
    const many = ['1', '2', '3', '4', '5', '6'].map((name) => call('many', name));
    const few = ['x', 'y'].map((name) => call('few', name));
    await Promise.all([...many, ...few, call('more', 'z')]);
    expect(order).toEqual([
      '6: Too many passwords are being processed.',
      'z: Too many passwords are being processed.',
      '1',
      '2',
      '3',
      'x',
      '4',
      'y',
      '5',
    ]);
  });
});

it.each([
  ['192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
])('%s belongs to the network %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

it('reads a bearer token of any length quickly', () => {
  expect(bearerToken('Bearer  abc ')).toBe('abc');
  expect(bearerToken('bearer a b')).toBe('a b');
  expect(bearerToken('Bearer   ')).toBeUndefined();
  expect(bearerToken('Basic abc')).toBeUndefined();
  expect(bearerToken(`Bearer a${' '.repeat(1_000_000)}b`)).toHaveLength(1_000_002);
});
