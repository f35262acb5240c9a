// REST edge of users: `security` (contract 3).
import { roles } from '../caller.ts';
import { type Resource, folder, operation, resource, success } from '../rest/resource.ts';
import { choice, required, text } from '../rest/fields.ts';
import type { Store } from '../store/store.ts';
import type { Runtime } from '../runtime.ts';
import type { TokenService } from './token-service.ts';
import {
  addUser,
  findUser,
  listUsers,
  noSuchUser,
  passwordLength,
  removeUser,
  requireFreeName,
  updateUser,
  usernames,
} from './user.ts';

export function securityResource(store: Store, runtime: Runtime, tokenService: TokenService): Resource {
  const username = text('The user name.', {
    to: 64,
    ...usernames,
    normalise: (value) => value.trim(),
  });
  const existing = required(text('The name of the user.', { to: 64, normalise: (value) => value.trim() }));
  const password = text('The password.', { ...passwordLength, secret: true });
  const role = choice('What the user may do.', roles);

  const userExists = ({ values: { username: name } }: { values: { username?: string } }) => ({
    problems: name === undefined || findUser(store, name) ? [] : [noSuchUser(name)],
  });

  const add = operation({
    title: 'Add user',
    description: 'Adds a user.',
    access: 'administrator',
    effect: 'writes',
    refusals: ['too-many-requests'],
    fields: { username: required(username), password: required(password), role: required(role) },
    run: async ({ values }) => {
      requireFreeName(store, values.username);
      const { hash, credentialId } = await tokenService.hashPassword(values.password);
      const user = {
        username: values.username,
        role: values.role,
        passwordHash: hash,
        credentialId,
        createdAt: runtime.now(),
        lastSignIn: null,
      };
      await store.update((transaction) => addUser(transaction, user));
      return success;
    },
  });

  const update = operation({
    title: 'Update user',
    description:
      'Gives a user another role, which holds at once, or another password, which ends their tokens.',
    access: 'administrator',
    effect: 'writes',
    refusals: ['too-many-requests'],
    fields: { username: existing, password, role },
    check: userExists,
    run: async ({ values }) => {
      const change = {
        role: values.role,
        password:
          values.password === undefined ? undefined : await tokenService.hashPassword(values.password),
      };
      await store.update((transaction) => updateUser(transaction, values.username, change));
      return success;
    },
  });

  const remove = operation({
    title: 'Remove user',
    description: 'Removes a user and ends their tokens.',
    access: 'administrator',
    effect: 'writes',
    fields: { username: existing },
    check: userExists,
    run: async ({ values }) => {
      await store.update((transaction) => removeUser(transaction, values.username));
      return success;
    },
  });

  return folder(
    { title: 'Security', description: 'Who may use this system.', access: 'administrator' },
    {
      users: resource({
        title: 'Users',
        description: 'The users, their roles, and when they last signed in.',
        access: 'administrator',
        operations: { add, update, remove },
        read: () => ({
          users: listUsers(store).map((user) => ({
            username: user.username,
            role: user.role,
            createdAt: user.createdAt,
            lastSignIn: user.lastSignIn,
          })),
        }),
      }),
    },
  );
}
