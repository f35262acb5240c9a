// Read-only mode that begins while an operation waits: the transaction of the operation checks it again.
import { expect, it } from 'vitest';
import { findUser } from '../../src/auth/user.ts';
import { perTest } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const server = perTest(() => startServer());

it('refuses an operation that has waited for a password, and changes nothing', async () => {
  const headers = { authorization: `Bearer ${server.token('administrator')}` };
  const isHeld = server.passwords.holdNext();
  const user = { username: 'late', password: 'a password of the user', role: 'member', f: 'json' };
  const adding = server.post('/admin/security/users/add', user, headers);
  const release = await isHeld;
  const mode = await server.post('/admin/mode/update', { isReadOnly: 'true', f: 'json' }, headers);
  expect(mode.statusCode).toBe(200);
  release();
  const answer = await adding;
  expect(answer.statusCode).toBe(503);
  expect(answer.json()).toMatchObject({ error: { code: 503, message: 'The system is in read-only mode.' } });
  expect(findUser(server.store, 'late')).toBeUndefined();
});
