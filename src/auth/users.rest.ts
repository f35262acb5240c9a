// REST resources of users: `security` and `security/users`.
import * as z from 'zod';
import { roles } from '../lib/caller.ts';
import { roleMeanings } from './user.ts';
import { formatCount } from '../lib/format.ts';
import type { Runtime } from '../lib/runtime.ts';
import { answerObject, time } from '../rest/answer.ts';
import { choice, text } from '../rest/field-types.ts';
import type { Call, Checked } from '../rest/call.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import { type Resource, folder, resource } from '../rest/resource.ts';
import { compareFields } from '../store/audit-change.ts';
import type { Reader } from '../store/state.ts';
import type { ReadableStore } from '../store/store.ts';
import { keysResource } from './keys.rest.ts';
import { usersView } from './pages/users.ts';
import { selfResource } from './self.rest.ts';
import type { SignInService } from './sign-in-service.ts';
import { endTokens } from './token.ts';
import {
  addUser,
  findUser,
  isOwnUser,
  listUsers,
  passwordLength,
  profileOf,
  removeUser,
  requireFreeName,
  requireLocal,
  requireUser,
  sessionsOf,
  unknownUser,
  updateUser,
  userSources,
  usernames,
} from './user.ts';

const newUsername = text({ to: 64, ...usernames }).meta({
  label: 'User name',
  description: 'The name of the new user.',
});
const existingUsername = text({ to: 64 }).meta({
  label: 'User name',
  description: 'The name of the user.',
  control: 'fixed',
});
const password = text({ ...passwordLength, control: 'password' }).describe('The password of the user.');
const role = choice(roles).describe(roleMeanings);

const usersAnswer = answerObject('Users', 'The users.', {
  users: z.array(
    answerObject('User', 'A user.', {
      username: z.string(),
      role: z.enum(roles),
      source: z
        .enum(userSources)
        .describe('local: the user has a password here. oidc: the user signs in at the identity provider.'),
      createdAt: time,
      lastSignIn: time.nullable().describe('Null: never.'),
    }),
  ),
});

export function securityResource(
  store: ReadableStore,
  runtime: Runtime,
  signInService: SignInService,
): Resource {
  return folder(
    {
      title: 'Security',
      description: 'The users of this system and their keys.',
      page: (_root, beneath) => (beneath.length === 0 ? userList.path : undefined),
    },
    {
      keys: keysResource(store),
      self: selfResource({ store, runtime, signInService }),
      users: resource({
        title: 'Users',
        description: 'The users, their roles, and when they last signed in.',
        answer: usersAnswer,
        view: (page) => usersView(page.json.users, page),
        operations: {
          add: addOperation(store, signInService),
          update: updateOperation(store, signInService),
          remove: removeOperation(store),
          endSessions: endSessionsOperation(store, runtime),
        },
        read: () => ({ users: listUsers(store).map(profileOf) }),
      }),
    },
  );
}

const userList = { name: 'Show all users', path: ['security', 'users'] };

const targetOf = (username: string) => `security/users/${username}`;

function addOperation(store: ReadableStore, signInService: SignInService): Operation {
  return operation({
    title: 'Add user',
    description: 'Adds a user, who then signs in with the name and the password.',
    refusals: ['too-many-requests'],
    fields: { username: newUsername, password, role },
    run: async ({ values, update }) => {
      requireFreeName(store, values.username);
      const user = {
        username: values.username,
        role: values.role,
        passwordHash: await signInService.hashPassword(values.password),
        lastSignIn: null,
        subject: null,
      };
      await update((transaction, createdAt) => addUser(transaction, { ...user, createdAt }), {
        target: targetOf(user.username),
      });
      return succeeded(`User ${user.username} was added with the role ${user.role}.`, userList);
    },
  });
}

function updateOperation(store: ReadableStore, signInService: SignInService): Operation {
  return operation({
    title: 'Update user',
    titleOf: ({ username = '' }) => `Change ${username || 'user'}`,
    description:
      'Changes the role of a user, which takes effect at once, or the password, which ends all tokens of the user.',
    refusals: ['too-many-requests'],
    ...changeOfUser(store),
    fields: { username: existingUsername, password: password.optional(), role: role.optional() },
    check: (call) => {
      const user = call.values.password !== undefined && findUser(store, call.values.username ?? '');
      if (user) requireLocal(user);
      return changeOfUser(store).check(call);
    },
    run: async ({ values, update }) => {
      const change = {
        role: values.role,
        passwordHash:
          values.password === undefined ? undefined : await signInService.hashPassword(values.password),
      };
      await update((transaction) => updateUser(transaction, values.username, change), {
        target: targetOf(values.username),
      });
      return succeeded(`User ${values.username} was changed.`, userList);
    },
  });
}

function removeOperation(store: ReadableStore): Operation {
  return operation({
    title: 'Remove user',
    description: 'Removes a user, and ends all tokens and keys of the user.',
    isDestructive: true,
    ...changeOfUser(store),
    run: async ({ values: { username }, update }) => {
      await update((transaction) => removeUser(transaction, username), { target: targetOf(username) });
      return succeeded(`User ${username} was removed.`, userList);
    },
  });
}

function endSessionsOperation(store: ReadableStore, runtime: Runtime): Operation {
  return operation({
    title: 'End sessions',
    description: 'Ends all sessions of a user at once.',
    whileReadOnly: 'allowed',
    ...changeOfUser(store),
    run: async ({ values: { username }, update }) => {
      const user = requireUser(store, username);
      const sessions = sessionsOf(store, user, runtime.now()).length;
      await update((transaction) => endTokens(transaction, user.username), {
        target: targetOf(username),
        changes: () => compareFields({ sessions }, { sessions: 0 }),
      });
      return succeeded(`${formatCount(sessions, 'session')} of ${username} ended.`, userList);
    },
  });
}

function changeOfUser(reader: Reader) {
  type CallForUser = Pick<Call<unknown, { username?: string }>, 'values' | 'caller'>;
  return {
    fields: { username: existingUsername },
    refusesKeys: ({ values, caller }: CallForUser) => isOwnUser(reader, values.username, caller),
    check: ({ values: { username } }: CallForUser): Checked<undefined> => {
      const isUnknown = username !== undefined && findUser(reader, username) === undefined;
      return { problems: isUnknown ? [unknownUser(username)] : [] };
    },
  };
}
