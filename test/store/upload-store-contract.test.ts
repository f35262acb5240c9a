// Contract of the contents of uploads, and the rules of uploads in the state; every store runs this suite.
import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ServiceError } from '../../src/lib/errors.ts';
import type { Store } from '../../src/store/store.ts';
import { type Upload, addUpload, listUploads, uploads } from '../../src/uploads/upload.ts';
import { backends, onStore, createTestDatabase, openElsewhere } from './backends.ts';
import { upload } from './definitions.ts';

/** Converts the bytes to text: comparing large arrays is slow. */
async function contentOf(store: Store, id: string): Promise<string | undefined> {
  const content = await store.uploads.content(id);
  if (!content) return undefined;
  expect(content).toBeInstanceOf(Uint8Array);
  return Buffer.from(content).toString('latin1');
}

/** The problem that refuses the upload; undefined if it is added. */
async function add(store: Store, one: Upload, maxTotalBytes = 1e9): Promise<string | undefined> {
  try {
    await store.update((transaction) => addUpload(transaction, one, maxTotalBytes));
    return undefined;
  } catch (error) {
    return (error as ServiceError).problems[0]?.message;
  }
}

const noRoom = 'all uploads together must be at most 10 bytes; delete some first.';
const idsOf = (store: Store) => listUploads(store).map(({ itemID }) => itemID);

describe.each(backends)('the uploads of the %s store', (_name, open) => {
  const it = onStore(open);

  it('have contents, which are added and removed', async ({ store }) => {
    expect(await contentOf(store, 'u1')).toBeUndefined();
    await store.uploads.add('u1', Buffer.from('one'));
    await store.uploads.add('u2', Buffer.from('two'));
    const other = await openElsewhere(store);
    for (const one of [store, other])
      expect([await contentOf(one, 'u1'), await contentOf(one, 'u2')]).toEqual(['one', 'two']);
    await store.uploads.remove('u1');
    await store.uploads.remove('unknown');
    for (const one of [store, other])
      expect([await contentOf(one, 'u1'), await contentOf(one, 'u2')]).toEqual([undefined, 'two']);
  });

  it('are listed, oldest first', async ({ store }) => {
    const described = upload('u1', 3, { date: 5, description: 'with "quotes"', itemName: 'Zürich.json' });
    const later = [upload('u0', 3, { date: 6 }), upload('u2', 3, { date: 6 })];
    for (const one of [...later.toReversed(), described]) expect(await add(store, one)).toBeUndefined();
    for (const one of [store, await openElsewhere(store)])
      expect(listUploads(one)).toEqual([described, ...later]);
  });

  it('refuse a file that would exceed the bytes of all uploads together', async ({ store }) => {
    expect(await add(store, upload('u1', 11), 10)).toBe(noRoom);
    expect(await add(store, upload('u1', 6), 10)).toBeUndefined();
    expect(await add(store, upload('u2', 5), 10)).toBe(noRoom);
    expect(await add(store, upload('u3', 4), 10)).toBeUndefined();
    expect(await add(store, upload('u4', 1), 10)).toBe(noRoom);
    expect(await add(store, upload('u5', 0), 10)).toBeUndefined();
    expect(idsOf(store)).toEqual(['u1', 'u3', 'u5']);
    await store.update((transaction) => transaction.remove(uploads, 'u1'));
    expect(await add(store, upload('u6', 6), 10)).toBeUndefined();
    expect(await add(store, upload('u7', 1), 10)).toBe(noRoom);
  });

  it('hold the limit for files of the same moment, in all processes', async ({ store }) => {
    const other = await openElsewhere(store);
    const results = await Promise.all(
      [1, 2, 3, 4, 5].map((n) => add(n % 2 === 0 ? store : other, upload(`u${n}`, 4), 10)),
    );
    expect(results.filter((problem) => problem === noRoom)).toHaveLength(3);
    await store.refresh();
    expect(idsOf(store)).toHaveLength(2);
  });

  it.each([
    ['no bytes', new Uint8Array()],
    ['a zero byte', Uint8Array.of(0)],
    ['every byte value', Uint8Array.from({ length: 256 }, (_, byte) => byte)],
    ['text that looks like hexadecimal', Buffer.from('\\x00ff')],
    ['a view of a larger buffer', Buffer.from('before within after').subarray(7, 13)],
  ])('return the same bytes: %s', async (_which, bytes) => {
    const store = await open();
    await store.uploads.add('u', bytes);
    const kept = Buffer.from(bytes).toString('latin1');
    expect(await contentOf(store, 'u')).toBe(kept);
    expect(await contentOf(await openElsewhere(store), 'u')).toBe(kept);
  });

  it('have large contents', async ({ store }) => {
    const bytes = randomBytes(5 * 1024 * 1024);
    const digest = (of: Uint8Array | undefined) =>
      createHash('sha256')
        .update(of ?? '')
        .digest('hex');
    await store.uploads.add('u', bytes);
    for (const one of [store, await openElsewhere(store)]) {
      const kept = await one.uploads.content('u');
      expect(kept?.length).toBe(bytes.length);
      expect(digest(kept)).toBe(digest(bytes));
    }
  });
});

it('PostgreSQL loses the contents that have no upload after an hour', async () => {
  const database = await createTestDatabase();
  const store = await database.open();
  for (const id of ['used', 'left', 'deleted', 'new']) await store.uploads.add(id, Buffer.from('x'));
  for (const id of ['used', 'deleted']) await add(store, upload(id));
  await store.update((transaction) => transaction.remove(uploads, 'deleted'));
  await database.ask(
    `update upload_contents set stored_at = stored_at - interval '61 minutes' where id <> 'new'`,
  );
  // A process removes them when it starts, and every minute.
  await database.open();
  const kept = async () =>
    (await database.ask('select id from upload_contents order by id')).map(({ id }) => id);
  await expect.poll(kept).toEqual(['new', 'used']);
});
