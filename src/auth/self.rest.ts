// REST resource of the caller's own account: `security/self`, with the sessions, the password and the keys.
import * as z from 'zod';
import { roles } from '../lib/caller.ts';
import { invalidField } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { type AnswerOf, answerObject, time } from '../rest/answer.ts';
import { text } from '../rest/field-types.ts';
import type { Call } from '../rest/call.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import { type Resource, resource } from '../rest/resource.ts';
import { compareFields } from '../store/audit-change.ts';
import type { ReadableStore } from '../store/store.ts';
import { keysOf } from './key.ts';
import { ownAccount, ownKeysResource } from './keys.rest.ts';
import { accountView } from './pages/account.ts';
import type { SignInService } from './sign-in-service.ts';
import { tokens } from './token.ts';
import {
  changeOwnPassword,
  passwordLength,
  profileOf,
  requireLocal,
  requireOwnUser,
  sessionsOf,
  userSources,
} from './user.ts';

const selfAnswer = answerObject('Self', 'The account of the caller. A key sees no sessions.', {
  username: z.string(),
  role: z.enum(roles),
  source: z
    .enum(userSources)
    .describe('oidc: you sign in at the identity provider and have no password here.'),
  createdAt: time,
  lastSignIn: time.nullable().describe('Null: never.'),
  sessions: z.array(
    answerObject('Session', 'A valid token.', {
      id: z.string().describe('endSession takes it. It is not the token.'),
      createdAt: time.describe('When the user signed in, in milliseconds since the epoch.'),
      expires: time,
      address: z.string().nullable().describe('Where the user signed in. Null: not recorded.'),
      userAgent: z
        .string()
        .nullable()
        .describe('The header User-Agent at the sign-in, cut at 256 characters. Null: not recorded.'),
      lastUsedAt: time.describe('When the session was used last, exact to a minute.'),
      current: z.boolean().describe('Whether this request uses the session.'),
    }),
  ),
});

type SelfOptions = {
  readonly store: ReadableStore;
  readonly runtime: Runtime;
  readonly signInService: SignInService;
};

export function selfResource(options: SelfOptions): Resource {
  return resource({
    title: 'Your account',
    description: 'Your account, your sessions and your keys, newest first.',
    access: 'member',
    answer: selfAnswer,
    read: (call) => readSelf(options, call),
    view: (page) => accountView(page, keysOf(options.store, page.json.username)),
    resources: { keys: ownKeysResource(options) },
    operations: {
      changePassword: changePasswordOperation(options),
      endSession: endSessionOperation(),
    },
  });
}

function readSelf(
  { store, runtime }: SelfOptions,
  { caller, tokenHash }: Call<unknown, unknown>,
): AnswerOf<typeof selfAnswer> {
  const user = requireOwnUser(store, caller);
  const sessions = caller?.key === undefined ? sessionsOf(store, user, runtime.now()) : [];
  return {
    ...profileOf(user),
    role: caller?.role ?? user.role,
    sessions: sessions.map(({ id, createdAt, expires, address, userAgent, lastUsedAt, hash }) => {
      return { id, createdAt, expires, address, userAgent, lastUsedAt, current: hash === tokenHash };
    }),
  };
}

function changePasswordOperation({ store, signInService }: SelfOptions): Operation {
  return operation({
    title: 'Change password',
    description: 'Changes your password and ends your other sessions.',
    access: 'member',
    refusals: ['too-many-requests'],
    fields: {
      password: text({ to: 1024, control: 'password' }).meta({
        label: 'Present password',
        description: 'The present password.',
      }),
      newPassword: text({ ...passwordLength, control: 'password' }).describe('The new password.'),
    },
    refusesKeys: () => true,
    check: ({ values: { password, newPassword }, caller }) => {
      requireLocal(requireOwnUser(store, caller));
      const isSame = newPassword !== undefined && newPassword === password;
      return {
        problems: isSame ? [{ field: 'newPassword', message: 'must differ from the present password.' }] : [],
      };
    },
    run: async ({ values, caller, tokenHash = '', request, update }) => {
      const username = caller?.username ?? '';
      const attempt = { username, password: values.password, address: request.address };
      await signInService.requirePassword('password', attempt);
      const passwordHash = await signInService.hashPassword(values.newPassword, attempt);
      await update((transaction) => changeOwnPassword(transaction, username, passwordHash, tokenHash), {
        target: `security/users/${username}`,
      });
      return succeeded('Your password was changed. Your other sessions have ended.', ownAccount);
    },
  });
}

function endSessionOperation(): Operation {
  return operation({
    title: 'End session',
    form: 'elsewhere',
    description: 'Ends one of your sessions at once.',
    access: 'member',
    whileReadOnly: 'allowed',
    fields: { id: text({ to: 128 }).describe('The id of the session, as security/self lists it.') },
    refusesKeys: () => true,
    run: async ({ values: { id }, caller, update }) => {
      await update(
        (transaction, at) => {
          const user = requireOwnUser(transaction, caller);
          const session = sessionsOf(transaction, user, at).find((some) => some.id === id);
          if (!session) throw invalidField('id', 'there is no own session with this id.');
          transaction.remove(tokens, session.hash);
        },
        {
          target: `security/users/${caller?.username ?? ''}`,
          changes: () => compareFields({ session: id }, {}),
        },
      );
      return succeeded('The session has ended.', ownAccount);
    },
  });
}
