// REST resources of the keys of programs: `security/self/keys`, and `security/keys` for administrators.
import * as z from 'zod';
import { type Role, isRoleAbove, roles } from '../lib/caller.ts';
import { roleMeanings } from './user.ts';
import { type Problem, invalid } from '../lib/errors.ts';
import { type Runtime, dayMs } from '../lib/runtime.ts';
import { answerObject, time, ignored } from '../rest/answer.ts';
import { choice, integer, text } from '../rest/field-types.ts';
import type { OperationCall } from '../rest/call.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { type NoticeLink, type Outcome, succeeded } from '../rest/outcome.ts';
import { type Resource, resource } from '../rest/resource.ts';
import type { ReadableStore } from '../store/store.ts';
import { type Key, addKey, deleteKey, keyId, keys, keysOf, listKeys, newKey } from './key.ts';
import { keysView, ownKeysView } from './pages/keys.ts';
import { hashToken } from './token.ts';
import { isOwnUser, requireOwnUser } from './user.ts';

const keyFields = {
  id: z.string().describe('delete takes it. It is not the key.'),
  name: z.string(),
  role: z.enum(roles).describe('The key acts with the lower of this role and the role of its user.'),
  createdAt: time,
  expires: time.nullable().describe('When the key expires, in milliseconds since the epoch. Null: never.'),
  lastUsedAt: time.nullable().describe('When the key was used last, exact to a minute. Null: never.'),
  lastAddress: z.string().nullable().describe('Where the key was used from at lastUsedAt.'),
};

const ownKeysAnswer = answerObject('Keys', 'The keys of the caller.', {
  keys: z.array(answerObject('Key', 'A key of a program.', keyFields)),
});

const allKeysAnswer = answerObject('AllKeys', 'The keys of all users.', {
  keys: z.array(answerObject('UserKey', 'A key of a user.', { username: z.string(), ...keyFields })),
});

const newKeyAnswer = answerObject('NewKey', 'A new key.', {
  ignored,
  status: z.literal('success'),
  key: z.string().describe('Send it instead of a token. No other answer contains it.'),
  id: z.string(),
});

export const ownAccount = { name: 'Show your account', path: ['security', 'self'] };
const allKeys = { name: 'Show all keys', path: ['security', 'keys'] };

const targetOf = (id: string) => `security/keys/${id}`;

type KeysOptions = { readonly store: ReadableStore; readonly runtime: Runtime };

export function ownKeysResource(options: KeysOptions): Resource {
  const { store } = options;
  return resource({
    title: 'Your keys',
    description: 'Your keys for programs, newest first.',
    access: 'member',
    answer: ownKeysAnswer,
    read: ({ caller }) => ({
      keys: keysOf(store, requireOwnUser(store, caller).username).map(toJson),
    }),
    view: (page) => ownKeysView(page.json.keys, page),
    operations: {
      create: createOperation(options),
      delete: operation({
        ...deletion,
        description: 'Deletes one of your keys, which ends it at once.',
        access: 'member',
        refusesKeys: () => true,
        suggest: (_subject, caller) => ({
          id: keysOf(store, caller?.username ?? '').map(({ id, name }) => ({ value: id, label: name })),
        }),
        run: ({ values: { id }, caller, update }) =>
          deleteOne(update, id, ownAccount, caller?.username ?? ''),
      }),
    },
  });
}

export function keysResource(store: ReadableStore): Resource {
  return resource({
    title: 'Keys',
    description: 'The keys for programs of all users, newest first.',
    answer: allKeysAnswer,
    read: () => ({
      keys: listKeys(store).map((key) => ({ username: key.username, ...toJson(key) })),
    }),
    view: (page) => keysView(page.json.keys, page),
    operations: {
      delete: operation({
        ...deletion,
        description: 'Deletes a key of any user, which ends it at once.',
        refusesKeys: ({ values: { id = '' }, caller }) =>
          isOwnUser(store, store.get(keys, id)?.username, caller),
        suggest: () => ({
          id: listKeys(store).map(({ id, name, username }) => ({
            value: id,
            label: `${name} of ${username}`,
          })),
        }),
        run: ({ values: { id }, update }) => deleteOne(update, id, allKeys),
      }),
    },
  });
}

function toJson({ id, name, role, createdAt, expires, lastUsedAt, lastAddress }: Key) {
  return { id, name, role, createdAt, expires, lastUsedAt, lastAddress };
}

const lifetimes = [
  ...[7, 30, 90, 365].map((days) => ({ value: String(days), label: `after ${days} days` })),
  { value: '', label: 'never' },
];

function createOperation({ runtime }: KeysOptions): Operation {
  return operation({
    title: 'Create key',
    description: 'Creates a key, with which a program calls Steward as you.',
    access: 'member',
    refusesKeys: () => true,
    fields: {
      name: text({ to: 128, normalise: (name) => name.trim(), isName: true }).describe(
        'What the key is for. None of your other keys may have this name, ignoring case.',
      ),
      role: choice(roles)
        .optional()
        .meta({
          description: `Not above your own role, which is the default of the API. ${roleMeanings}`,
          isRequiredInForm: true,
        }),
      expires: integer(1, 3650).optional().describe('After how many days the key expires. Default: never.'),
    },
    answer: newKeyAnswer,
    present: () => ({ expires: '90' }),
    suggest: () => ({ expires: lifetimes }),
    check: ({ values: { role }, caller }) => ({ problems: roleProblems(role, caller?.role) }),
    run: async ({ values: { name, role, expires }, caller, update }) => {
      const text = newKey(runtime.newSecret);
      const hash = hashToken(text);
      const id = keyId(hash);
      await update(
        (transaction, createdAt) => {
          const user = requireOwnUser(transaction, caller);
          // Another request may have given the user a lower role.
          const problems = roleProblems(role, user.role);
          if (problems.length > 0) throw invalid(problems);
          addKey(transaction, {
            id,
            hash,
            username: user.username,
            name,
            role: role ?? user.role,
            createdAt,
            expires: expires === undefined ? null : createdAt + expires * dayMs,
            lastUsedAt: null,
            lastAddress: null,
          });
        },
        { target: targetOf(id) },
      );
      return {
        ...succeeded(`The key ${name} was created.`, ownAccount, { key: text, id }),
        shownOnce: {
          label: 'Key.',
          value: text,
          hint: 'The program sends it instead of a token. It is not shown again.',
        },
      };
    },
  });
}

function roleProblems(role: Role | undefined, highest: Role | undefined): Problem[] {
  if (role === undefined || highest === undefined || !isRoleAbove(role, highest)) return [];
  return [{ field: 'role', message: `must not be above your own role, ${highest}.` }];
}

const deletion = {
  title: 'Delete key',
  whileReadOnly: 'allowed',
  isDestructive: true,
  warning: () => 'Programs that use the key are refused at once.',
  fields: { id: text({ to: 128 }).meta({ label: 'Key', description: 'The id of the key.' }) },
} as const;

async function deleteOne(
  update: OperationCall<unknown, unknown>['update'],
  id: string,
  link: NoticeLink,
  owner?: string,
): Promise<Outcome> {
  const { name } = await update((transaction) => deleteKey(transaction, id, owner), { target: targetOf(id) });
  return succeeded(`The key ${name} was deleted.`, link);
}
