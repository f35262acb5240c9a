// Contract of values: the store returns them exactly as they were written, also in another process; every store
// runs this suite.
import { describe, expect } from 'vitest';
import type { Step } from '../../src/upgrades/planning/plan.ts';
import type { Delivery } from '../../src/webhooks/queue/delivery.ts';
import { uploads } from '../../src/uploads/upload.ts';
import { backends, onStore, openElsewhere } from './backends.ts';
import { type Keepsake, job, keepsakes, notebook, plan, upload } from './definitions.ts';
import { attempted, claim, claimed, complete, delivery, publish } from './deliveries.ts';

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

const numberAt = (index: number) => numbers[index % numbers.length] ?? 0;

const kept = (of: Exclude<keyof Keepsake, 'id'>, values: readonly unknown[]) =>
  values.map((value, index): Keepsake => ({
    id: `${of} ${index}`,
    data: null,
    signatureID: null,
    [of]: value,
  }));

const all: Keepsake[] = [
  { id: 'nothing', data: null, signatureID: null },
  { id: 'something', data: { a: 1 }, signatureID: 's' },
  ...kept('data', [...data, ...texts, ...numbers]),
  ...kept('signatureID', secrets),
  // The texts as keys.
  ...texts
    .filter((text) => text.length < 1000)
    .map((id) => ({ id, data: 'under its key', signatureID: null })),
];
const byId = (rows: Iterable<Keepsake>) => new Map([...rows].map((row) => [row.id, row]));

describe.each(backends)('the %s store returns values unchanged', (_name, open) => {
  const it = onStore(open);

  it('from tables', async ({ store }) => {
    await store.update((transaction) => all.forEach((one) => transaction.put(keepsakes, one)));
    const elsewhere = await openElsewhere(store);
    expect(byId(elsewhere.all(keepsakes))).toStrictEqual(byId(all));
    expect(byId(store.all(keepsakes))).toStrictEqual(byId(all));
    for (const one of all) expect(elsewhere.get(keepsakes, one.id)).toStrictEqual(one);
    // They replace other values.
    const turned = all.map((one, index) => ({ ...one, ...all[all.length - 1 - index], id: one.id }));
    await store.update((transaction) => turned.forEach((one) => transaction.put(keepsakes, one)));
    const again = await openElsewhere(store);
    expect(byId(again.all(keepsakes))).toStrictEqual(byId(turned));
    await again.update((transaction) => all.forEach(({ id }) => transaction.remove(keepsakes, id)));
    expect([...(await openElsewhere(again)).all(keepsakes)]).toEqual([]);
  });

  it('from cells', async ({ store }) => {
    for (const value of [...data, ...texts, null]) {
      await store.update((transaction) => transaction.write(notebook, { data: value }));
      expect(store.read(notebook)).toStrictEqual({ data: value });
    }
    await store.update((transaction) => transaction.write(notebook, { data: [...data, ...texts, null] }));
    expect((await openElsewhere(store)).read(notebook)).toStrictEqual({ data: [...data, ...texts, null] });
  });

  it('from deliveries', async ({ store }) => {
    const given = [...texts, ...data].map((value, index): Delivery => {
      const text = texts[index] ?? '';
      const event = {
        id: text,
        type: text,
        timestamp: numberAt(index),
        service: index % 3 === 0 ? null : text,
        data: JSON.stringify(value),
      };
      return delivery(`a${index}`, 1, { event });
    });
    await publish(store, ...given);
    const elsewhere = await openElsewhere(store);
    const listed = (await elsewhere.deliveries.page({ webhookId: 'a' }, 0, 1000)).deliveries;
    expect([...listed].reverse()).toStrictEqual(given);
    await claim(store, 1, 1000);
    for (const one of given) expect(claimed(store, one.id)).toStrictEqual(one);
  });

  it('from the attempts of deliveries', async ({ store }) => {
    const outcomes = [...texts, '\0', 'a\0b', null];
    await publish(store, ...outcomes.map((_, index) => delivery(`a${index}`, 1)));
    await claim(store, 1, 1000);
    const changed = outcomes.map((text, index) => {
      const one = attempted(claimed(store, `a${index}`), 5);
      const when = numberAt(index);
      return { ...one, attempts: [{ when, durationMs: 0, status: null, error: text, response: text }] };
    });
    await Promise.all(changed.map((one) => complete(store, one.id, { delivery: one })));
    for (const { deliveries } of [store, await openElsewhere(store)])
      for (const one of changed) expect(await deliveries.find(one.id)).toStrictEqual(one);
  });

  it('from ids of webhooks and events', async ({ store }) => {
    const ids = texts.filter((text) => text.length < 1000);
    await publish(store, ...ids.map((webhookId, n) => delivery(`a${n}`, 1, { webhookId })));
    for (const eventId of ids) await store.deliveries.publish(() => [], { eventId, at: 1 });
    const { deliveries } = await openElsewhere(store);
    for (const [n, webhookId] of ids.entries()) {
      const found = await deliveries.page({ webhookId }, 0, 10);
      expect(found).toStrictEqual({
        deliveries: [delivery(`a${n}`, 1, { webhookId })],
        total: 1,
        isTotalExact: true,
      });
    }
    for (const eventId of ids)
      expect(await deliveries.findEvent(eventId, 1)).toStrictEqual({
        eventId,
        deliveries: 0,
        publishedAt: 1,
      });
  });

  it('from jobs, plans and messages', async ({ store }) => {
    const values = [...texts, ...numbers].map(String);
    const jobs = values.map((text, index) =>
      job(index + 1, {
        reason: text,
        targetId: text,
        lastMessageAt: numberAt(index),
        uploads: values.slice(0, 5),
      }),
    );
    const messages = values.map((message, index) => ({
      code: index,
      message,
      when: numberAt(index),
    }));
    const steps = values.map((name) => ({ ...plan('job').steps[0], name })) as Step[];
    await store.update((transaction) => {
      for (const one of jobs) transaction.jobs.archive(one);
      transaction.jobs.savePlan(plan('job', { steps }));
      transaction.jobs.appendMessages('job', 0, messages);
    });
    const elsewhere = await openElsewhere(store);
    for (const one of jobs) expect(await elsewhere.jobs.find(one.id)).toStrictEqual(one);
    expect(await elsewhere.jobs.plan('job')).toStrictEqual(plan('job', { steps }));
    expect(await elsewhere.jobs.messages('job')).toStrictEqual(messages);
  });

  it('from uploads', async ({ store }) => {
    const short = texts.filter((text) => text.length < 1000);
    const described = short.map((value, index) =>
      upload(`u${index}`, 0, { itemName: value, description: value, contentType: value }),
    );
    await store.update((transaction) => described.forEach((one) => transaction.put(uploads, one)));
    const elsewhere = await openElsewhere(store);
    for (const one of described) expect(elsewhere.get(uploads, one.itemID)).toStrictEqual(one);
  });
});
