// What callers learn while the database is unavailable.
import pg from 'pg';
import { expect, it } from 'vitest';
import { ServiceError, databaseUnreachable } from '../../src/lib/errors.ts';
import { shortageOf } from '../../src/store/postgres/errors.ts';
import { perTest } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const server = perTest(() => startServer());

const reason = 'the database cannot be reached: could not extend file "base/1/2": No space left on device';

it.each([
  ['administrator', [reason]],
  ['publisher', []],
] as const)('a write of the %s that is refused has these reasons: %j', async (role, details) => {
  server.store.update = () => Promise.reject(databaseUnreachable());
  server.store.problems = () => [reason];
  const headers = { authorization: `Bearer ${server.token(role)}` };
  const answer = await server.post('/admin/services/createFolder', { folderName: 'New', f: 'json' }, headers);
  expect(answer.statusCode).toBe(503);
  expect(answer.headers['retry-after']).toBe('5');
  expect(answer.json()).toMatchObject({ error: { message: 'The database cannot be reached.', details } });
});

it('names a shortage of the database, and nothing that names addresses or roles', () => {
  const failure = (message: string, code: string) =>
    Object.assign(new pg.DatabaseError(message, 1, 'error'), { code });
  expect(shortageOf(failure('No space left on device', '53100'))).toEqual(['No space left on device']);
  expect(shortageOf(failure('password authentication failed for user "steward"', '28P01'))).toEqual([]);
  expect(shortageOf(new ServiceError('unavailable', 'connect ECONNREFUSED 10.0.0.1:5432'))).toEqual([]);
});
