// The cache of tokens in front of PostgreSQL, on a database whose answers and failures the test decides.
import { beforeEach, expect, it } from 'vitest';
import { PostgresTokens } from '../../src/auth/token-store-postgres.ts';
import type { Database } from '../../src/store/postgres/database.ts';
import { token } from './definitions.ts';

const minuteMs = 60_000;
const row = {
  hash: 'h',
  id: 'id of h',
  username: 'Ann',
  credential_id: 'c',
  created_at: 0,
  expires: 1000,
  binding: null,
  address: null,
  user_agent: null,
  last_used_at: 0,
};

let now: number;
let failedAt: number | undefined;
let lookups: number;
/** What the database answers to a lookup. */
let answer: () => Promise<object[]>;
let tokens: PostgresTokens;

beforeEach(() => {
  now = 1_000_000;
  failedAt = undefined;
  lookups = 0;
  answer = () => Promise.resolve([row]);
  const database = {
    get failedAt() {
      return failedAt;
    },
    ask: () => {
      lookups += 1;
      return failedAt === undefined ? answer() : Promise.reject(new Error('unreachable'));
    },
    write: () => Promise.resolve([]),
  };
  tokens = new PostgresTokens(database as unknown as Database, { now: () => now });
});

it('looks a token up again after half a second', async () => {
  for (const later of [0, 499, 1, 499]) {
    now += later;
    expect(await tokens.find('h')).toEqual(token('h'));
  }
  expect(lookups).toBe(2);
});

it('finds a token while the database is unavailable if it was valid in the minute before, however long that takes', async () => {
  await tokens.find('h');
  now += minuteMs - 1;
  failedAt = now;
  now += 100 * minuteMs;
  expect(await tokens.find('h')).toEqual(token('h'));
});

it('finds such a token also with the lookup that notices that the database is unavailable', async () => {
  await tokens.find('h');
  now += minuteMs - 1;
  answer = () => {
    failedAt = now;
    return Promise.reject(new Error('unreachable'));
  };
  expect(await tokens.find('h')).toEqual(token('h'));
});

it('does not find a token while the database is unavailable if it was not looked up in the minute before', async () => {
  await tokens.find('h');
  now += minuteMs;
  failedAt = now;
  await expect(tokens.find('h')).rejects.toThrow('unreachable');
});

it('does not keep the result of a lookup that began before the token ended', async () => {
  let respond: (rows: object[]) => void = () => undefined;
  answer = () => new Promise((resolve) => (respond = resolve));
  const early = tokens.find('h');
  await tokens.end('h', undefined);
  const [respondEarly, later] = [respond, tokens.find('h')];
  respond([]);
  expect(await later).toBeUndefined();
  respondEarly([row]);
  expect(await early).toEqual(token('h'));
  answer = () => Promise.resolve([]);
  expect(await tokens.find('h')).toBeUndefined();
});
