// Contract of the upload store; every store runs this suite.
import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import type { Upload } from '../../src/uploads/upload.ts';
import { backends, openElsewhere } from './backends.ts';
import { auditEntry, tryToChange, upload } from './definitions.ts';

const unlimited = { bytes: 1e9, count: 1000 };

const add = ({ uploads }: Store, one: Upload, content: Uint8Array | string = 'x', limits = unlimited) =>
  uploads.add(
    { upload: one, bytes: typeof content === 'string' ? Buffer.from(content) : content },
    limits,
    auditEntry(),
  );

/** Converts the bytes to text: comparing large arrays is slow. */
async function contentOf({ uploads }: Store, id: string): Promise<string | undefined> {
  const content = await uploads.content(id);
  if (!content) return undefined;
  expect(content).toBeInstanceOf(Uint8Array);
  return Buffer.from(content).toString('latin1');
}

describe.each(backends)('the upload store of the %s store', (_name, open) => {
  it('is empty at first', async () => {
    const { uploads } = await open();
    expect(await uploads.list()).toEqual([]);
    expect(await uploads.find('u')).toBeUndefined();
    expect(await uploads.content('u')).toBeUndefined();
  });

  it('stores files and returns them, oldest first', async () => {
    const store = await open();
    const described = upload('u1', 3, { date: 5, description: 'with "quotes"', itemName: 'Zürich.json' });
    expect(await add(store, described, 'one')).toBe('stored');
    expect(await add(store, upload('u0', 3, { date: 6 }), 'two')).toBe('stored');
    for (const one of [store, await openElsewhere(store)]) {
      expect(await one.uploads.list()).toEqual([described, upload('u0', 3, { date: 6 })]);
      expect(await one.uploads.find('u1')).toEqual(described);
      expect(await one.uploads.find('unknown')).toBeUndefined();
      expect(await contentOf(one, 'u1')).toBe('one');
      expect(await contentOf(one, 'u0')).toBe('two');
      expect(await contentOf(one, 'unknown')).toBeUndefined();
    }
  });

  it('returns uploads through which the stored ones cannot be changed', async () => {
    const store = await open();
    await add(store, upload('u'));
    for (const one of [await store.uploads.find('u'), ...(await store.uploads.list())])
      tryToChange(one, { size: 0 });
    expect(await store.uploads.find('u')).toEqual(upload('u'));
    expect(await store.uploads.list()).toEqual([upload('u')]);
  });

  it('deletes a file within an update', async () => {
    const store = await open();
    await add(store, upload('u1'));
    await add(store, upload('u2'));
    await store.update((transaction) => {
      transaction.uploads.delete('u1');
      transaction.uploads.delete('unknown');
    });
    expect(await store.uploads.list()).toEqual([upload('u2')]);
    expect(await store.uploads.content('u1')).toBeUndefined();
  });

  it('refuses a file that would exceed the bytes of all uploads together', async () => {
    const store = await open();
    const limits = { bytes: 10, count: 100 };
    expect(await add(store, upload('u1', 11), 'x', limits)).toBe('bytes');
    expect(await add(store, upload('u1', 6), 'x', limits)).toBe('stored');
    expect(await add(store, upload('u2', 5), 'x', limits)).toBe('bytes');
    expect(await add(store, upload('u3', 4), 'x', limits)).toBe('stored');
    expect(await add(store, upload('u4', 1), 'x', limits)).toBe('bytes');
    expect(await add(store, upload('u5', 0), '', limits)).toBe('stored');
    expect((await store.uploads.list()).map(({ itemID }) => itemID)).toEqual(['u1', 'u3', 'u5']);
    expect(await store.uploads.content('u2')).toBeUndefined();
    await store.update((transaction) => transaction.uploads.delete('u1'));
    expect(await add(store, upload('u6', 6), 'x', limits)).toBe('stored');
    expect(await add(store, upload('u7', 1), 'x', limits)).toBe('bytes');
  });

  it('refuses a file that would exceed the number of uploads', async () => {
    const store = await open();
    const limits = { bytes: 100, count: 2 };
    for (const id of ['u1', 'u2']) expect(await add(store, upload(id), 'x', limits)).toBe('stored');
    expect(await add(store, upload('u3'), 'x', limits)).toBe('count');
    await store.update((transaction) => transaction.uploads.delete('u1'));
    expect(await add(store, upload('u3'), 'x', limits)).toBe('stored');
    expect(await add(store, upload('u4'), 'x', limits)).toBe('count');
  });

  it('holds the limits for files of the same moment', async () => {
    const store = await open();
    const results = await Promise.all(
      [1, 2, 3, 4, 5].map((n) => add(store, upload(`u${n}`, 4), 'four', { bytes: 10, count: 100 })),
    );
    expect(results.filter((result) => result === 'stored')).toHaveLength(2);
    expect(results.filter((result) => result === 'bytes')).toHaveLength(3);
    expect(await store.uploads.list()).toHaveLength(2);
  });

  it.each([
    ['no bytes', new Uint8Array()],
    ['a zero byte', Uint8Array.of(0)],
    ['every byte value', Uint8Array.from({ length: 256 }, (_, byte) => byte)],
    ['text that looks like hexadecimal', Buffer.from('\\x00ff')],
    ['a view of a larger buffer', Buffer.from('before within after').subarray(7, 13)],
  ])('returns the same bytes: %s', async (_which, bytes) => {
    const store = await open();
    await add(store, upload('u', bytes.length), bytes);
    const kept = Buffer.from(bytes).toString('latin1');
    expect(await contentOf(store, 'u')).toBe(kept);
    expect(await contentOf(await openElsewhere(store), 'u')).toBe(kept);
  });

  it('stores large files', async () => {
    const store = await open();
    const bytes = randomBytes(5 * 1024 * 1024);
    const digest = (of: Uint8Array | undefined) =>
      createHash('sha256')
        .update(of ?? '')
        .digest('hex');
    await add(store, upload('u', bytes.length), bytes);
    for (const one of [store, await openElsewhere(store)]) {
      const kept = await one.uploads.content('u');
      expect(kept?.length).toBe(bytes.length);
      expect(digest(kept)).toBe(digest(bytes));
    }
  });
});
