// The pure parts of authentication as tables.
import { describe, expect, it } from 'vitest';
import { networkOf } from '../../src/lib/address.ts';
import { hashPassword, passwordMatches, unmatchableHash } from '../../src/auth/password.ts';
import { createSignInLimit } from '../../src/auth/sign-in-limit.ts';
import { createFairLimiter } from '../../src/auth/fair-limiter.ts';
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
  it('match their hash however they are composed', async () => {
    const hash = await hashPassword('caf\u00e9 au lait', Buffer.alloc(16, 1));
    expect(await passwordMatches('cafe\u0301 au lait', hash)).toBe(true);
    expect(await passwordMatches('cafe au lait', hash)).toBe(false);
  });

  it('never match the hash that stands in for unknown users', async () => {
    expect(await passwordMatches('', unmatchableHash)).toBe(false);
  });
});

describe('failed sign-ins', () => {
  it('of one address count over all users, each for a minute', () => {
    const limit = createSignInLimit();
    for (let i = 0; i < 100; i += 1) limit.countFailure(`user${i}`, 'here', i * 100);
    expect(limit.waitSeconds('somebody', 'here', 10_000)).toBe(50);
    expect(limit.waitSeconds('somebody', 'elsewhere', 10_000)).toBe(0);
    expect(limit.waitSeconds('somebody', 'here', 60_000)).toBe(0);
  });

  it('of one user and address are forgiven one by one', () => {
    const limit = createSignInLimit();
    for (let i = 0; i < 10; i += 1) limit.countFailure('ann', 'here', i * 1000);
    expect(limit.waitSeconds('Ann', 'here', 9000)).toBe(51);
    expect(limit.waitSeconds('ann', 'here', 60_000)).toBe(0);
    limit.countFailure('ann', 'here', 60_000);
    expect(limit.waitSeconds('ann', 'here', 60_000)).toBe(1);
    limit.forget(200_000);
    expect(limit.waitSeconds('ann', 'here', 60_000)).toBe(0);
  });
});

describe('a limiter', () => {
  const limits = { inside: 2, inLane: 3, waiting: 5 };

  it('lets so many in at once and the others in turn', async () => {
    const limiter = createFairLimiter(limits);
    const order: string[] = [];
    let most = 0;
    let inside = 0;
    const work = (name: string) =>
      limiter('here', async () => {
        most = Math.max(most, (inside += 1));
        await new Promise(setImmediate);
        inside -= 1;
        order.push(name);
        if (name === 'b') throw new Error('b fails');
      });
    await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map(work));
    expect(order).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(most).toBe(2);
  });

  it('takes the lines in turn, and turns away who waits in too long a one', async () => {
    const limiter = createFairLimiter(limits);
    const order: string[] = [];
    const come = (lane: string, name: string) =>
      limiter(lane, async () => {
        await new Promise(setImmediate);
        order.push(name);
      }).catch((error: unknown) => order.push(`${name}: ${(error as Error).message}`));
    const many = ['1', '2', '3', '4', '5', '6'].map((name) => come('many', name));
    const few = ['x', 'y'].map((name) => come('few', name));
    await Promise.all([...many, ...few, come('more', 'z')]);
    expect(order).toEqual([
      '6: Too many passwords to work on.',
      'z: Too many passwords to work on.',
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
])('%s tries to sign in from %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

it('a bearer is read quickly, however it is written', () => {
  expect(bearerToken('Bearer  abc ')).toBe('abc');
  expect(bearerToken('bearer a b')).toBe('a b');
  expect(bearerToken('Bearer   ')).toBeUndefined();
  expect(bearerToken('Basic abc')).toBeUndefined();
  expect(bearerToken(`Bearer a${' '.repeat(1_000_000)}b`)).toHaveLength(1_000_002);
});
