// Contract of archives; every store runs this suite.
import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { backends, openElsewhere } from './backends.ts';
import { type Parcel, parcels, row, rows } from './definitions.ts';

const parcel = (id: string, bytes: Uint8Array | string, label: string | null = null): Parcel => ({
  id,
  label,
  bytes: typeof bytes === 'string' ? Buffer.from(bytes) : bytes,
});
const put = (store: Store, ...all: Parcel[]) =>
  store.update((transaction) => all.forEach((one) => transaction.put(parcels, one)));

/** Converts the bytes to text: comparing large arrays is slow. */
async function fetch(store: Store, id: string) {
  const found = await store.fetch(parcels, id);
  if (!found) return undefined;
  expect(found.bytes).toBeInstanceOf(Uint8Array);
  return { id: found.id, label: found.label, bytes: Buffer.from(found.bytes).toString('latin1') };
}

describe.each(backends)('an archive of the %s store', (_name, open) => {
  it('returns the stored row of a key, and nothing for an unknown key', async () => {
    const store = await open();
    expect(await fetch(store, 'a')).toBeUndefined();
    await put(store, parcel('a', 'one', 'fragile'), parcel('b', 'two'));
    expect(await fetch(store, 'a')).toEqual({ id: 'a', label: 'fragile', bytes: 'one' });
    expect(await fetch(store, 'b')).toEqual({ id: 'b', label: null, bytes: 'two' });
    expect(await fetch(store, 'c')).toBeUndefined();
    const elsewhere = await openElsewhere(store);
    expect(await fetch(elsewhere, 'a')).toEqual({ id: 'a', label: 'fragile', bytes: 'one' });
  });

  it('replaces the row with the same key', async () => {
    const store = await open();
    await put(store, parcel('a', 'one', 'fragile'));
    await put(store, parcel('a', 'other'), parcel('b', 'two'), parcel('b', 'last'));
    expect(await fetch(store, 'a')).toEqual({ id: 'a', label: null, bytes: 'other' });
    expect(await fetch(store, 'b')).toEqual({ id: 'b', label: null, bytes: 'last' });
  });

  it('removes rows', async () => {
    const store = await open();
    await put(store, parcel('a', 'one'), parcel('b', 'two'));
    await store.update((transaction) => {
      transaction.remove(parcels, 'a');
      transaction.remove(parcels, 'never');
      transaction.put(parcels, parcel('c', 'three'));
      transaction.remove(parcels, 'c');
      transaction.remove(parcels, 'd');
      transaction.put(parcels, parcel('d', 'four'));
    });
    expect(await fetch(store, 'a')).toBeUndefined();
    expect(await fetch(store, 'b')).toMatchObject({ bytes: 'two' });
    expect(await fetch(store, 'c')).toBeUndefined();
    expect(await fetch(store, 'd')).toMatchObject({ bytes: 'four' });
  });

  it('stays unchanged if the update throws', async () => {
    const store = await open();
    await put(store, parcel('a', 'one'), parcel('b', 'two'));
    const failed = store.update((transaction) => {
      transaction.put(parcels, parcel('a', 'other'));
      transaction.put(parcels, parcel('c', 'three'));
      transaction.remove(parcels, 'b');
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await fetch(store, 'a')).toMatchObject({ bytes: 'one' });
    expect(await fetch(store, 'b')).toMatchObject({ bytes: 'two' });
    expect(await fetch(store, 'c')).toBeUndefined();
  });

  it('commits together with the other writes of the update', async () => {
    const store = await open();
    await store.update((transaction) => {
      transaction.put(rows, row('a', 3));
      transaction.put(parcels, parcel('a', 'one'));
    });
    const elsewhere = await openElsewhere(store);
    expect(elsewhere.get(rows, 'a')).toEqual(row('a', 3));
    expect(await fetch(elsewhere, 'a')).toMatchObject({ bytes: 'one' });
  });

  it.each([
    ['no bytes', new Uint8Array()],
    ['a zero byte', Uint8Array.of(0)],
    ['every byte value', Uint8Array.from({ length: 256 }, (_, byte) => byte)],
    ['text that looks like hexadecimal', Buffer.from('\\x00ff')],
    ['a view of a larger buffer', Buffer.from('before within after').subarray(7, 13)],
  ])('returns the same bytes: %s', async (_which, bytes) => {
    const store = await open();
    await put(store, parcel('a', bytes));
    const kept = Buffer.from(bytes).toString('latin1');
    expect(await fetch(store, 'a')).toMatchObject({ bytes: kept });
    expect(await fetch(await openElsewhere(store), 'a')).toMatchObject({ bytes: kept });
  });

  it('stores large rows', async () => {
    const store = await open();
    const bytes = randomBytes(5 * 1024 * 1024);
    const digest = (of: Uint8Array | undefined) =>
      createHash('sha256')
        .update(of ?? '')
        .digest('hex');
    await put(store, parcel('a', bytes), parcel('b', 'small'));
    const elsewhere = await openElsewhere(store);
    for (const one of [store, elsewhere]) {
      const kept = await one.fetch(parcels, 'a');
      expect(kept?.bytes.length).toBe(bytes.length);
      expect(digest(kept?.bytes)).toBe(digest(bytes));
    }
    expect(await fetch(elsewhere, 'b')).toMatchObject({ bytes: 'small' });
  });
});
