// Contract of the audit trail; every store runs this suite.
import { describe, expect, it } from 'vitest';
import type { AuditEntry, AuditFilter } from '../../src/store/audit-entry.ts';
import type { Store } from '../../src/store/store.ts';
import { backends, onStore, openElsewhere, openMemory, openTwice } from './backends.ts';
import { auditEntry, row, rows, tryToChange } from './definitions.ts';

const minuteMs = 60_000;

const refusal = (traits: Partial<AuditEntry> = {}) =>
  auditEntry({ outcome: 'refused', code: 403, changes: [], ...traits });

async function entriesOf({ audit }: Store, filter: AuditFilter = {}): Promise<readonly AuditEntry[]> {
  return (await audit.page(filter, 0, 1000)).entries;
}

const idsOf = async (store: Store, filter?: AuditFilter) =>
  (await entriesOf(store, filter)).map(({ id }) => id);

async function readAll({ audit }: Store, filter: AuditFilter, start = 0): Promise<string[]> {
  const ids: string[] = [];
  for await (const entries of audit.read(filter, start)) ids.push(...entries.map(({ id }) => id));
  return ids;
}

/** Stores each entry with an update of its own. */
async function recordEach(store: Store, entries: readonly AuditEntry[]): Promise<void> {
  for (const entry of entries) await store.update((transaction) => transaction.audit.record(entry));
}

const filters: [string, AuditFilter, string[]][] = [
  ['a first moment', { from: 3 }, ['e', 'd', 'c']],
  ['a last moment', { to: 3 }, ['c', 'b', 'a']],
  ['both', { from: 2, to: 4 }, ['d', 'c', 'b']],
  ['a user, ignoring case', { user: 'BOB' }, ['d', 'b']],
  ['an operation', { operation: 'services/webhooks/{webhook}/delete' }, ['c']],
  ['the beginning of an operation', { operation: 'services/webhooks' }, ['c', 'b']],
  ['the end of an operation', { operation: 'delete' }, ['c', 'a']],
  ['the middle of an operation', { operation: 'webhooks' }, ['c', 'b']],
  ['no part of a segment', { operation: 'web' }, []],
  ['no pattern', { operation: '%' }, []],
  ['an outcome', { outcome: 'failed' }, ['e']],
  ['several conditions', { user: 'bob', operation: 'create', to: 3 }, ['b']],
  ['nothing that exists', { user: 'nobody' }, []],
];

describe.each(backends)('the audit trail of the %s store', (_name, open) => {
  const it = onStore(open);

  it('returns entries as they were recorded, also if a reader changes them', async ({ store }) => {
    expect(await store.audit.page({}, 0, 10)).toEqual({ entries: [], total: 0 });
    expect(await readAll(store, {})).toEqual([]);
    await store.audit.removeBefore(1e15);
    const changes = [
      { field: 'name', before: null, after: 'Ünï "→" \n 😀' },
      { field: 'active', before: true, after: false },
      { field: 'size', before: 1, after: 2.5 },
    ];
    const full = auditEntry({ at: 2, key: 'pipeline', changes });
    const server = auditEntry({ at: 1, user: null, role: null, address: null, target: null, code: null });
    await recordEach(store, [server, full]);
    tryToChange((await entriesOf(store))[0], { user: 'mallory' });
    expect(await entriesOf(store)).toEqual([full, server]);
    expect(await entriesOf(await openElsewhere(store))).toEqual([full, server]);
  });

  it('lists the newest first, in the order of recording if the time is equal', async ({ store }) => {
    await recordEach(store, [
      auditEntry({ id: 'a', at: 5 }),
      auditEntry({ id: 'b', at: 7 }),
      auditEntry({ id: 'c', at: 5 }),
      auditEntry({ id: 'd', at: 6 }),
    ]);
    expect(await idsOf(store)).toEqual(['b', 'd', 'c', 'a']);
    const { entries, total } = await store.audit.page({}, 1, 2);
    expect([entries.map(({ id }) => id), total]).toEqual([['d', 'c'], 4]);
  });

  it('finds entries by every condition', async ({ store }) => {
    await recordEach(store, [
      auditEntry({ id: 'a', at: 1, operation: 'uploads/{itemID}/delete' }),
      auditEntry({ id: 'b', at: 2, user: 'Bob', operation: 'services/webhooks/create' }),
      auditEntry({ id: 'c', at: 3, operation: 'services/webhooks/{webhook}/delete' }),
      auditEntry({ id: 'd', at: 4, user: 'bob', operation: 'mode/update' }),
      auditEntry({ id: 'e', at: 5, user: null, operation: 'system/jobs/{job}/end', outcome: 'failed' }),
    ]);
    for (const [what, filter, ids] of filters) {
      expect(await idsOf(store, filter), what).toEqual(ids);
      expect((await store.audit.page(filter, 0, 1)).total, what).toBe(ids.length);
      expect(await readAll(store, filter), what).toEqual(ids);
      expect(await readAll(store, filter, 1), what).toEqual(ids.slice(1));
    }
  });

  it('reads more entries than one portion, each once, also if entries are added meanwhile', async ({
    store,
  }) => {
    const many = Array.from({ length: 2500 }, (_, index) =>
      auditEntry({ id: `e${index}`, at: Math.floor(index / 3) }),
    );
    await store.update((transaction) => {
      for (const entry of many) transaction.audit.record(entry);
    });
    const ids: string[] = [];
    for await (const entries of store.audit.read({}, 0)) {
      expect(entries.length).toBeLessThanOrEqual(500);
      ids.push(...entries.map(({ id }) => id));
      await recordEach(store, [auditEntry({ at: 1e9 })]);
    }
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.sort()).toEqual(many.map(({ id }) => id).sort());
  });

  it('records the entry of an update together with its change', async ({ store }) => {
    const entry = auditEntry();
    await store.update((transaction) => {
      transaction.put(rows, row('a', 1));
      transaction.audit.record(entry);
    });
    const refused = store.update((transaction) => {
      transaction.put(rows, row('b', 1));
      transaction.audit.record(auditEntry());
      throw new Error('refused');
    });
    await expect(refused).rejects.toThrow('refused');
    expect(await entriesOf(store)).toEqual([entry]);
    expect(store.get(rows, 'b')).toBeUndefined();
  });

  it('stores a failure without a change, unless its id is stored already', async ({ store }) => {
    const success = auditEntry({ id: 'one' });
    const failure = auditEntry({ id: 'two', outcome: 'failed', code: 500 });
    await recordEach(store, [success]);
    await store.audit.add(failure);
    await store.audit.add({ ...failure, id: 'one' });
    await store.audit.add({ ...failure, count: 2 });
    expect(await entriesOf(store)).toEqual([failure, success]);
  });

  it('counts equal refusals within a minute in one entry', async ({ store }) => {
    expect(await store.audit.count(refusal({ id: 'first', at: 10, target: 'a' }))).toBe('first');
    expect(await store.audit.count(refusal({ user: 'ANN', at: 20, target: 'b' }))).toBe('first');
    expect(await store.audit.count(refusal({ at: 9 + minuteMs }))).toBe('first');
    expect(await store.audit.count(refusal({ id: 'second', at: 10 + minuteMs }))).toBe('second');
    expect(await store.audit.count(refusal({ at: 11 + minuteMs }))).toBe('second');
    expect(await entriesOf(store)).toMatchObject([
      { id: 'second', at: 10 + minuteMs, count: 2 },
      { id: 'first', at: 10, count: 3, target: 'a' },
    ]);
  });

  it('keeps refusals apart that differ in user, operation, code or address', async ({ store }) => {
    await store.audit.count(refusal({ id: 'one' }));
    const others: Partial<AuditEntry>[] = [
      { user: 'Bob' },
      { user: null },
      { operation: 'mode/update' },
      { code: 404 },
      { address: '192.0.2.2' },
      { address: '2001:db8::1' },
      { address: null },
    ];
    for (const [index, traits] of others.entries())
      expect(await store.audit.count(refusal({ id: `other-${index}`, ...traits }))).toBe(`other-${index}`);
    expect(await idsOf(store)).toHaveLength(8);
  });

  it('counts refusals of one client together, and those beyond a limit of one network', async ({ store }) => {
    const count = (id: string, address: string, code = 403) =>
      store.audit.count(refusal({ id, address, code }));
    expect(await count('a', '2001:db8::1')).toBe('a');
    expect(await count('b', '2001:db8::ffff')).toBe('a');
    expect(await count('c', '2001:db8:0:1::1')).toBe('c');
    expect(await count('d', '2001:db8::1', 429)).toBe('d');
    expect(await count('e', '2001:db8:0:1::1', 429)).toBe('d');
    expect(await count('f', '2001:db8:1::1', 429)).toBe('f');
  });

  it('counts refusals that arrive at the same time', async ({ store }) => {
    const users = ['ann', 'bob', 'eve'];
    const many = Array.from({ length: 60 }, (_, index) => refusal({ user: users[index % 3] ?? '' }));
    const ids = await Promise.all(many.map((entry) => store.audit.count(entry)));
    expect(new Set(ids).size).toBe(3);
    expect((await entriesOf(store)).map(({ count }) => count)).toEqual([20, 20, 20]);
  });

  it('removes entries older than a moment', async ({ store }) => {
    await recordEach(store, [auditEntry({ id: 'a', at: 1 }), auditEntry({ id: 'b', at: 2 })]);
    await store.audit.count(refusal({ id: 'c', at: 1 }));
    await store.audit.removeBefore(2);
    expect(await idsOf(store)).toEqual(['b']);
    expect(await store.audit.count(refusal({ id: 'd', at: 3 }))).toBe('d');
    expect(await entriesOf(store, { outcome: 'refused' })).toMatchObject([{ id: 'd', count: 1 }]);
  });
});

it('processes that share a database count equal refusals in one entry', async () => {
  const [one, other] = await openTwice();
  const record = (_: unknown, index: number) =>
    (index % 2 === 0 ? one : other).audit.count(refusal({ at: index }));
  const ids = await Promise.all(Array.from({ length: 40 }, record));
  expect(new Set(ids).size).toBe(1);
  expect(await entriesOf(other)).toMatchObject([{ id: ids[0], count: 40 }]);
});

describe('the memory store', () => {
  it('keeps 10,000 successes and the newest 2,000 other entries, which push out no success', async () => {
    const store = await openMemory();
    await store.update((transaction) => {
      for (let at = 0; at < 10_010; at += 1) transaction.audit.record(auditEntry({ id: `s${at}`, at }));
    });
    for (let code = 0; code < 2_010; code += 1)
      await store.audit.count(refusal({ id: `${code}`, at: 20_000, code }));
    const successes = await readAll(store, { outcome: 'success' });
    expect([successes.length, successes[0], successes.at(-1)]).toEqual([10_000, 's10009', 's10']);
    const others = await readAll(store, { outcome: 'refused' });
    expect([others.length, others[0], others.at(-1)]).toEqual([2_000, '2009', '10']);
  });

  it('keeps the newest entries also after old ones were removed', async () => {
    const store = await openMemory();
    for (let at = 0; at < 2_500; at += 1) await store.audit.count(refusal({ id: `${at}`, at, code: at }));
    await store.audit.removeBefore(1_000);
    for (let at = 2_500; at < 3_200; at += 1) await store.audit.count(refusal({ id: `${at}`, at, code: at }));
    const ids = await readAll(store, {});
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([2_000, '3199', '1200']);
  });
});
