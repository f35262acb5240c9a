// Contract of values: the store returns them exactly as they were written, also in another process; every store runs this suite.
import { describe, expect, it } from 'vitest';
import { backends, openElsewhere } from './backends.ts';
import {
  type Keepsake,
  type Visit,
  diary,
  dueKeepsakes,
  keepsakes,
  notebook,
  visits,
} from './definitions.ts';
import { unlimited } from './tickets.ts';

const texts = [
  '',
  ' ',
  '  blanks  ',
  'NULL',
  'null',
  'undefined',
  'true',
  '0',
  '007',
  '1e3',
  `'`,
  `''`,
  '"',
  '""',
  '\\',
  '\\\\',
  `C:\\new\\table\\'`,
  '\\x41',
  '\\N',
  '\\.',
  '$1',
  '%s',
  '?',
  '; --',
  '{}',
  '{a,b}',
  '{"a",NULL}',
  '[]',
  '(1,2)',
  '("a")',
  ',',
  ',,',
  '[null]',
  '{"a":"b"}',
  'Zürich',
  '東京',
  '🚀👩‍👩‍👧',
  'e\u0301',
  '\u00a0\u2028\ufeff',
  'a\tb\nc\rd\r\n',
  '\u0001\u001f\u007f',
  'long '.repeat(20_000),
];
const numbers = [
  0,
  1,
  -1,
  1000,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 32,
  1_767_225_600_000,
  Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER,
];
const data = [
  {},
  [],
  [[]],
  [null],
  [[], [null, []]],
  { a: null },
  { a: { b: [{ c: null }, []] } },
  '',
  'text',
  '"',
  '\\',
  '\u0000',
  'a\u0000b',
  { 'a\u0000': '\u0000' },
  '\\u0000',
  '\ud83d',
  '🚀',
  0,
  -1.5,
  1e300,
  Number.MAX_SAFE_INTEGER,
  true,
  false,
  [1, '1', true],
  { '': 1, 'a b': 2, '"': 3 },
  'null',
  '{"a":1}',
  '[1]',
  texts,
];
const secrets = [
  'secret',
  ...texts,
  texts,
  [],
  ['a', 'b'],
  [{ key: `"k"`, until: 5 }],
  { a: null },
  0,
  false,
];

const nothing = { words: null, order: null, isSet: null, data: null, signatureID: null };
const kept = (of: Exclude<keyof Keepsake, 'id'>, values: readonly unknown[]) =>
  values.map((value, index): Keepsake => ({ id: `${of} ${index}`, ...nothing, [of]: value }));

const all: Keepsake[] = [
  { id: 'nothing', ...nothing },
  { id: 'something', words: 'w', order: 1, isSet: true, data: { a: 1 }, signatureID: 's' },
  ...kept('words', texts),
  ...kept('order', numbers),
  ...kept('isSet', [true, false]),
  ...kept('data', data),
  ...kept('signatureID', secrets),
  // The texts as keys.
  ...texts.filter((text) => text.length < 1000).map((id) => ({ id, ...nothing, words: 'under its key' })),
];
const byId = (rows: Iterable<Keepsake>) => new Map([...rows].map((row) => [row.id, row]));

describe.each(backends)('the %s store returns values unchanged', (_name, open) => {
  it('from tables', async () => {
    const store = await open();
    await store.update((transaction) => all.forEach((one) => transaction.put(keepsakes, one)));
    const elsewhere = await openElsewhere(store);
    expect(byId(elsewhere.all(keepsakes))).toStrictEqual(byId(all));
    expect(byId(store.all(keepsakes))).toStrictEqual(byId(all));
    for (const one of all) expect(elsewhere.get(keepsakes, one.id)).toStrictEqual(one);
    await elsewhere.update((transaction) => all.forEach(({ id }) => transaction.remove(keepsakes, id)));
    expect([...(await openElsewhere(store)).all(keepsakes)]).toEqual([]);
  });

  it('from tables, after they replaced other values', async () => {
    const store = await open();
    await store.update((transaction) => all.forEach((one) => transaction.put(keepsakes, one)));
    const turned = all.map((one, index) => ({ ...one, ...all[all.length - 1 - index], id: one.id }));
    await store.update((transaction) => turned.forEach((one) => transaction.put(keepsakes, one)));
    expect(byId((await openElsewhere(store)).all(keepsakes))).toStrictEqual(byId(turned));
  });

  it('from cells', async () => {
    const store = await open();
    for (const value of [...data, ...texts, null]) {
      await store.update((transaction) => transaction.write(notebook, { data: value }));
      expect(store.read(notebook)).toStrictEqual({ data: value });
    }
    await store.update((transaction) => transaction.write(notebook, { data: [...data, ...texts, null] }));
    expect((await openElsewhere(store)).read(notebook)).toStrictEqual({ data: [...data, ...texts, null] });
  });

  it('from logs', async () => {
    const store = await open();
    await store.update((transaction) => transaction.append(diary, 'all', all));
    await store.update((transaction) =>
      texts.slice(0, -1).forEach((text) => transaction.append(diary, text, all.slice(0, 3))),
    );
    const elsewhere = await openElsewhere(store);
    expect(elsewhere.entries(diary, 'all')).toStrictEqual(all);
    for (const text of texts.slice(0, -1))
      expect(elsewhere.entries(diary, text)).toStrictEqual(all.slice(0, 3));
  });

  it('from queues', async () => {
    const store = await open();
    await store.update((transaction) => all.forEach((one) => transaction.enqueue(dueKeepsakes, one)));
    const { rows: listed } = await store.page(dueKeepsakes, 'all', 0, 1000);
    expect([...listed].reverse()).toStrictEqual(all);
    const { rows: claimed } = await store.claim(dueKeepsakes, { at: 1, most: 1000, ...unlimited });
    expect(byId(claimed)).toStrictEqual(byId(all));
    const turned = claimed.map((one, index) => ({ ...one, ...all[index], id: one.id }));
    await store.update((transaction) =>
      claimed.forEach((one, index) => transaction.settle(dueKeepsakes, one, turned[index] ?? one)),
    );
    for (const one of turned) expect(await store.find(dueKeepsakes, one.id)).toStrictEqual(one);
    await store.update((transaction) =>
      transaction.amend(dueKeepsakes, 'all', (row) => byId(all).get(row.id) ?? row),
    );
    const { rows: amended } = await (await openElsewhere(store)).page(dueKeepsakes, 'all', 0, 1000);
    expect([...amended].reverse()).toStrictEqual(all);
  });

  it('from lists in queues, and as owners', async () => {
    const store = await open();
    const tries = [...texts, null].map((note, index) => ({ n: numbers[index % numbers.length] ?? 0, note }));
    const hosts = texts.slice(0, -1);
    const visit = (host: string, index: number): Visit => ({ id: `v${index}`, host, due: 1, tries });
    await store.update((transaction) =>
      hosts.forEach((host, n) => transaction.enqueue(visits, visit(host, n))),
    );
    const elsewhere = await openElsewhere(store);
    for (const [n, host] of hosts.entries()) {
      const page = await elsewhere.page(visits, host, 0, 10);
      expect(page).toStrictEqual({ rows: [visit(host, n)], total: 1 });
    }
    const { rows: claimed } = await elsewhere.claim(visits, { at: 1, most: 1000, ...unlimited });
    expect(claimed.map(({ host }) => host).sort()).toEqual([...hosts].sort());
  });
});
