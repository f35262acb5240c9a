// Sign-ins with several processes.
import { expect, it } from 'vitest';
import { addUser, requireUser, updateUser } from '../../src/auth/user.ts';
import { hashCheaply } from '../kit/password.ts';
import { perTest } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const server = perTest(() => startServer());

it('reads the newest changes before it refuses a user or a password', async () => {
  const secret = 'a password of Ann';
  const { refresh } = server.store;
  const signIn = async () =>
    (await server.post('/tokens/generateToken', { username: 'ann', password: secret, f: 'json' })).statusCode;
  const changeAtRefresh = (change: Parameters<typeof server.store.update>[0]) => {
    server.store.refresh = async () => {
      server.store.refresh = refresh;
      await server.store.update(change);
      return refresh();
    };
  };
  // As if another process had added the user a moment before.
  changeAtRefresh((transaction) =>
    addUser(transaction, {
      username: 'ann',
      role: 'member',
      passwordHash: hashCheaply('another password'),
      createdAt: server.runtime.now(),
      lastSignIn: null,
      subject: null,
    }),
  );
  expect(await signIn()).toBe(401);
  changeAtRefresh((transaction) => {
    requireUser(transaction, 'ann');
    updateUser(transaction, 'ann', { passwordHash: hashCheaply(secret) });
  });
  expect(await signIn()).toBe(200);
});
