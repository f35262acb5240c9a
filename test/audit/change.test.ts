// What the audit trail shows of a change: the fields that differ, secrets masked, long texts cut.
import { expect, it } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { users } from '../../src/auth/user.ts';
import { type AuditFields, Secret, SecretUrl } from '../../src/lib/audit-fields.ts';
import { modeSetting } from '../../src/mode/mode.ts';
import { type Change, changesOf, compareFields } from '../../src/store/audit-change.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { webhooks } from '../../src/webhooks/webhook.ts';
import { defaultStoreOptions } from '../kit/store.ts';
import { job, webhook } from '../store/definitions.ts';

it.each<[string, AuditFields, AuditFields, Change[]]>([
  ['nothing if nothing differs', { a: 1, b: 'x' }, { a: 1, b: 'x' }, []],
  ['a field that differs', { a: 1, b: 'x' }, { a: 2, b: 'x' }, [{ field: 'a', before: 1, after: 2 }]],
  ['a new field', {}, { a: false }, [{ field: 'a', before: null, after: false }]],
  ['no new field without a value', {}, { a: '', b: null, c: [] }, []],
  ['a removed field', { a: 'x' }, {}, [{ field: 'a', before: 'x', after: null }]],
  ['a list as one text', { a: ['x'] }, { a: ['x', 'y'] }, [{ field: 'a', before: 'x', after: 'x, y' }]],
  [
    'no secret, only that it differs',
    { key: new Secret('old'), same: new Secret('s') },
    { key: new Secret('new'), same: new Secret('s') },
    [{ field: 'key', before: '***', after: '***' }],
  ],
  ['no new secret', {}, { key: new Secret('k') }, [{ field: 'key', before: null, after: '***' }]],
  [
    'no query of a URL',
    {},
    { url: new SecretUrl('https://a.test/b?token=t#u') },
    [{ field: 'url', before: null, after: 'https://a.test/b?***' }],
  ],
  [
    'no user information of a URL',
    {},
    { url: new SecretUrl('https://u:p@a.test/b') },
    [{ field: 'url', before: null, after: 'https://***@a.test/b' }],
  ],
  [
    '256 characters of a long text',
    {},
    { a: 'x'.repeat(300) },
    [{ field: 'a', before: null, after: 'x'.repeat(256) }],
  ],
  [
    'a difference after them',
    { a: `${'x'.repeat(300)}1` },
    { a: `${'x'.repeat(300)}2` },
    [{ field: 'a', before: 'x'.repeat(256), after: 'x'.repeat(256) }],
  ],
])('shows %s', (_what, before, after, changes) => {
  expect(compareFields(before, after)).toEqual(changes);
});

/** The changes of an update that follows `first`. */
async function changesAfter(
  first: (transaction: Transaction) => void,
  then: (transaction: Transaction) => void,
): Promise<readonly Change[]> {
  const store = createMemoryStore(defaultStoreOptions);
  await store.update(first);
  return store.update((transaction) => {
    then(transaction);
    return changesOf(transaction.changed());
  });
}

const user = {
  username: 'Ann',
  role: 'member',
  passwordHash: 'hash one',
  createdAt: 1,
  lastSignIn: null,
  subject: null,
} as const;

it('names the fields of a row, without those that only the server uses', async () => {
  const put = (transaction: Transaction) => transaction.put(users, user);
  expect(
    await changesAfter(put, (transaction) =>
      transaction.put(users, { ...user, role: 'publisher', passwordHash: 'hash two' }),
    ),
  ).toEqual([
    { field: 'role', before: 'member', after: 'publisher' },
    { field: 'password', before: '***', after: '***' },
  ]);
  expect(await changesAfter(put, (transaction) => transaction.remove(users, 'ann'))).toEqual([
    { field: 'role', before: 'member', after: null },
    { field: 'password', before: '***', after: null },
  ]);
});

it('names the rows if there are several, and limits the list', async () => {
  const put = (active: boolean) => (transaction: Transaction) => {
    for (let n = 0; n < 60; n += 1) transaction.put(webhooks, webhook(`w${n}`, { active }));
  };
  const changes = await changesAfter(put(true), put(false));
  expect(changes[0]).toEqual({ field: 'webhooks/w0.active', before: true, after: false });
  expect(changes).toHaveLength(51);
  expect(changes.at(-1)).toEqual({ field: '…', before: null, after: '10 more' });
});

it('names as many rows as possible', async () => {
  const ids = Array.from({ length: 50 }, (_, number) => `w${number}`);
  const changes = await changesAfter(
    (transaction) => ids.forEach((id) => transaction.put(webhooks, webhook(id))),
    (transaction) => ids.forEach((id) => transaction.remove(webhooks, id)),
  );
  expect(changes.slice(0, 50).map(({ field }) => field)).toEqual(ids.map((id) => `webhooks/${id}.name`));
  expect(changes).toHaveLength(51);
});

it('compares a cell with its value before the update', async () => {
  const changes = await changesAfter(
    (transaction) =>
      transaction.write(modeSetting, { isReadOnly: true, message: 'a', setBy: null, setAt: null }),
    (transaction) => {
      transaction.write(modeSetting, { isReadOnly: true, message: 'b', setBy: null, setAt: null });
      transaction.write(modeSetting, { isReadOnly: true, message: 'c', setBy: null, setAt: null });
    },
  );
  expect(changes).toEqual([{ field: 'message', before: 'a', after: 'c' }]);
});

it('does not compare a job with the one before it', async () => {
  const changes = await changesAfter(
    (transaction) => transaction.write(newestJob, job(1, { state: 'failed', reason: 'broken' })),
    (transaction) => transaction.write(newestJob, job(2, { state: 'in_progress' })),
  );
  expect(changes).toEqual([
    { field: 'operation', before: null, after: 'upgrade' },
    { field: 'from', before: null, after: '1' },
    { field: 'to', before: null, after: '2' },
    { field: 'state', before: null, after: 'in_progress' },
  ]);
});
