// Rules of authentication: bearer tokens, passwords, and the limits on sign-ins.
import { describe, expect, it } from 'vitest';
import { FairLimiter } from '../../src/auth/fair-limiter.ts';
import { hashingLimits } from '../../src/auth/sign-in-service.ts';
import { createPasswords } from '../../src/auth/password.ts';
import { SignInLimit } from '../../src/auth/sign-in-limit.ts';
import { networkOf, subnetOf } from '../../src/lib/address.ts';
import { bearerToken } from '../../src/lib/caller.ts';

describe('bearer tokens', () => {
  it.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['Bearer  abc ', 'abc'],
    ['Bearer a b', 'a b'],
    ['Bearer', undefined],
    ['Bearer   ', undefined],
    ['Basic abc', undefined],
    [undefined, undefined],
  ])('%s → %s', (header, token) => {
    expect(bearerToken(header)).toBe(token);
  });
});

describe('passwords', () => {
  const { hash, matches, unmatchable } = createPasswords();

  it('match their hash in any Unicode composition', async () => {
    const hashed = await hash('caf\u00e9 au lait', Buffer.alloc(16, 1));
    expect(await matches('cafe\u0301 au lait', hashed)).toBe(true);
    expect(await matches('cafe au lait', hashed)).toBe(false);
  });

  it('never match the hash of unknown users, which costs the same work', async () => {
    expect(await matches('', unmatchable)).toBe(false);
    const costs = [await hash('caf\u00e9 au lait', Buffer.alloc(16, 1)), unmatchable].map((text) =>
      text.split('$').slice(0, 4).join('$'),
    );
    expect(costs).toEqual(['scrypt$16384$8$5', 'scrypt$16384$8$5']);
  });

  it('cost the same work if the hash has a lower cost', async () => {
    const cheap = await createPasswords({ N: 2, r: 8, p: 1 }).hash('a', Buffer.alloc(16, 1));
    const costOf = async (text: string) => {
      const before = process.cpuUsage();
      expect(await matches('a', text)).toBe(text === cheap);
      return process.cpuUsage(before).user;
    };
    expect(await costOf(cheap)).toBeGreaterThan(0.2 * (await costOf(unmatchable)));
  });
});

describe('failed sign-ins', () => {
  const here = '192.0.2.1';

  it('of one network are counted over all users, each for a minute', () => {
    const limit = new SignInLimit();
    for (let i = 0; i < 100; i += 1) limit.start({ username: `user${i}`, address: here, at: i * 100 });
    const wait = (address: string, at: number) =>
      limit.waitSeconds({ username: 'another user', address, at });
    expect(wait(here, 10_000)).toBe(50);
    expect(wait('192.0.2.2', 10_000)).toBe(0);
    expect(wait(here, 60_000)).toBe(0);
  });

  it('of one user and network expire one by one', () => {
    const limit = new SignInLimit();
    const wait = (username: string, at: number) => limit.waitSeconds({ username, address: here, at });
    for (let i = 0; i < 10; i += 1) limit.start({ username: 'ann', address: here, at: i * 1000 });
    expect(wait('Ann', 9000)).toBe(51);
    expect(wait('ann', 60_000)).toBe(0);
    limit.start({ username: 'ann', address: here, at: 60_000 });
    expect(wait('ann', 60_000)).toBe(1);
    limit.removeExpired(200_000);
    expect(wait('ann', 60_000)).toBe(0);
  });

  it.each([
    [
      'one user and an IPv6 /64',
      10,
      (count: number) => `2001:db8:1:2::${count.toString(16)}`,
      '2001:db8:1:3::1',
    ],
    [
      'one user and an IPv6 /48',
      30,
      (count: number) => `2001:db8:1:${count.toString(16)}::1`,
      '2001:db8:2::1',
    ],
    ['one user and an IPv4 /24', 30, (count: number) => `192.0.2.${count}`, '192.0.3.1'],
    ['an IPv6 /48', 300, (count: number) => `2001:db8:1:${count.toString(16)}::1`, '2001:db8:2::1'],
    ['an IPv4 /24', 300, (count: number) => `192.0.2.${count % 256}`, '192.0.3.1'],
  ])('of %s are limited to %d', (_network, most, addressOf, elsewhere) => {
    const limit = new SignInLimit();
    // The limits of one user must not apply to the others.
    const nameOf = (count: number) => (most < 300 ? 'ann' : `user${count}`);
    for (let count = 0; count < most; count += 1) {
      const attempt = { username: nameOf(count), address: addressOf(count), at: 0 };
      expect(limit.waitSeconds(attempt)).toBe(0);
      limit.start(attempt);
    }
    expect(limit.waitSeconds({ username: nameOf(most), address: addressOf(most), at: 0 })).toBe(60);
    expect(limit.waitSeconds({ username: nameOf(most), address: elsewhere, at: 0 })).toBe(0);
  });

  it('do not include sign-ins that succeed, even if all start at the same time', () => {
    const limit = new SignInLimit();
    const attempt = { username: 'ann', address: here, at: 0 };
    for (let count = 0; count < 10; count += 1) limit.start(attempt);
    expect(limit.waitSeconds(attempt)).toBe(60);
    limit.forget(attempt);
    expect(limit.waitSeconds(attempt)).toBe(0);
    limit.start(attempt);
    for (let count = 0; count < 10; count += 1) limit.forget(attempt);
    expect(limit.waitSeconds(attempt)).toBe(0);
  });
});

describe('the fair limiter', () => {
  const limits = { running: 2, waiting: 5, waitingPerUser: 4, waitingPerNetwork: 3 };

  it('computes three hashes of passwords at once', () => {
    expect(hashingLimits.running).toBe(3);
  });

  /** Calls that do not end before the test lets them. */
  function createCalls(limiter: FairLimiter) {
    const done: string[] = [];
    const refused: string[] = [];
    const leave: (() => void)[] = [];
    const all: Promise<unknown>[] = [];
    return {
      call: (name: string, network: string, username = name, subnet = network) => {
        const work = async () => {
          await new Promise<void>((resolve) => leave.push(resolve));
          done.push(name);
        };
        const call = limiter.run({ username, subnet, network }, work);
        all.push(call.catch(() => refused.push(name)));
      },
      finish: async () => {
        await new Promise(setImmediate);
        for (let end = leave.shift(); end; end = leave.shift()) {
          end();
          await new Promise(setImmediate);
        }
        await Promise.all(all);
        return { done: done.join(' '), refused: refused.sort().join(' ') };
      },
    };
  }

  it('runs a limited number of calls at once and the others in order', async () => {
    const limiter = new FairLimiter(limits);
    const order: string[] = [];
    let most = 0;
    let running = 0;
    const work = (name: string) =>
      limiter.run({ username: name, subnet: 'here', network: 'here' }, async () => {
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

  it('lets networks take turns', async () => {
    const { call, finish } = createCalls(new FairLimiter(limits));
    for (const name of ['1', '2', '3', '4', '5']) call(name, 'many');
    for (const name of ['x', 'y']) call(name, 'few');
    expect(await finish()).toEqual({ done: '1 2 3 x 4 y 5', refused: '' });
  });

  it('refuses calls of a network that has used up its places', async () => {
    const { call, finish } = createCalls(new FairLimiter(limits));
    for (const name of ['1', '2', '3', '4', '5', '6']) call(name, 'many');
    expect(await finish()).toEqual({ done: '1 2 3 4 5', refused: '6' });
  });

  it('gives a place of the network with the most calls to a network with fewer', async () => {
    const { call, finish } = createCalls(new FairLimiter(limits));
    for (const name of ['1', '2', '3', '4', '5']) call(name, 'many');
    for (const name of ['x', 'y']) call(name, 'few');
    call('z', 'another');
    // Now two calls of each wait, and one of the new network. No network may take a place from the others.
    call('w', 'few');
    expect(await finish()).toEqual({ done: '1 2 3 x z 4 y', refused: '5 w' });
  });

  it('gives a place of the subnet with the most calls to another subnet of the network', async () => {
    const { call, finish } = createCalls(new FairLimiter(limits));
    for (const name of ['1', '2', '3', '4', '5']) call(name, 'net', name, 'many');
    call('x', 'net', 'x', 'few');
    expect(await finish()).toEqual({ done: '1 2 3 4 x', refused: '5' });
  });

  it('keeps places for other user names, whatever number of networks tries one', async () => {
    const { call, finish } = createCalls(new FairLimiter(limits));
    for (const name of ['1', '2', '3', '4', '5', '6', '7']) call(name, `network ${name}`, 'admin');
    call('ann', 'elsewhere');
    expect(await finish()).toEqual({ done: '1 2 3 4 5 6 ann', refused: '7' });
  });

  it('lets a network with few calls for a user name in, if another has several', async () => {
    const { call, finish } = createCalls(new FairLimiter(limits));
    for (const name of ['1', '2', '3', '4', '5']) call(name, 'many', 'admin');
    call('6', 'some', 'admin');
    call('admin', 'few', 'admin');
    expect(await finish()).toEqual({ done: '1 2 3 6 admin 4', refused: '5' });
  });
});

it.each([
  ['192.0.2.7', '192.0.2.7', '192.0.2.0/24'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64', '2001:db8:1::/48'],
  ['2001:db8::6', '2001:db8:0:0::/64', '2001:db8:0::/48'],
  ['::1', '0:0:0:0::/64', '0:0:0::/48'],
  ['', '', ''],
])('%s belongs to the subnet %s and the network %s', (address, subnet, network) => {
  expect(subnetOf(address)).toBe(subnet);
  expect(networkOf(address)).toBe(network);
});

it('reads a bearer token of any length quickly', () => {
  expect(bearerToken(`Bearer a${' '.repeat(1_000_000)}b`)).toHaveLength(1_000_002);
});
