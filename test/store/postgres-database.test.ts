// Tests the PostgreSQL database itself: encryption of secrets, migrations, and values that PostgreSQL rejects.
import { Client } from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { tables } from '../../src/app/backends.ts';
import { isUnavailable } from '../../src/lib/errors.ts';
import type { Store } from '../../src/store/store.ts';
import { webhooks } from '../../src/webhooks/webhook.ts';
import { impatientAddress, withLimits } from '../kit/postgres.ts';
import { timelessRuntime } from '../kit/runtime.ts';
import { migrations } from '../kit/store.ts';
import { type TestDatabase, createTestDatabase } from './backends.ts';
import { type Keepsake, cell, keepsakes, row, rows, webhook } from './definitions.ts';
import { delivery, enqueue, list, publish } from './deliveries.ts';

const soon = { interval: 10 };
const keepsake = (id: string, data: unknown, signatureID: unknown = null): Keepsake => ({
  id,
  data,
  signatureID,
});

/** The content of all tables as text. */
async function dump({ ask }: TestDatabase): Promise<string> {
  const names = await ask('select tablename as name from pg_tables where schemaname = current_schema()');
  expect(names.length).toBeGreaterThan(5);
  const texts = await Promise.all(
    names.map(({ name }) => ask(`select t::text as text from "${String(name)}" t`)),
  );
  return texts.flatMap((found) => found.map(({ text }) => String(text))).join('\n');
}

describe('secrets in PostgreSQL', () => {
  const put = (store: Store, ...all: Keepsake[]) =>
    store.update((transaction) => all.forEach((one) => transaction.put(keepsakes, one)));

  it('are not readable in the database if a secret key is configured', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ secretKey: 'one key' });
    const given = keepsake('a', 'readable', ['unreadable', { inner: 'neither' }]);
    await put(store, given);
    const text = await dump(database);
    expect(text).toContain('readable');
    expect(text).not.toMatch(/unreadable|neither/);
    const again = await database.open({ secretKey: 'one key' });
    expect(again.get(keepsakes, 'a')).toEqual(given);
  });

  it('have different ciphertexts for equal values, and cannot be moved to another row', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ secretKey: 'one key' });
    await put(store, keepsake('a', null, 'same'), keepsake('b', null, 'same'));
    await store.close();
    const kept = await database.ask(
      `select distinct value ->> 'signatureID' as sealed from state where kind = 'keepsakes'`,
    );
    expect(kept).toHaveLength(2);
    await database.ask(`update state set value = (select value from state where kind = 'keepsakes' and key = 'a')
      where kind = 'keepsakes' and key = 'b'`);
    await expect(database.open({ secretKey: 'one key' })).rejects.toThrow('SECRET_KEY');
  });

  it.each([
    ['another key', { secretKey: 'another key' }],
    ['no key', { secretKey: undefined }],
    ['another key, and yet another one', { secretKey: 'another key', previousSecretKey: 'a third key' }],
  ])('make the start fail with a message that names SECRET_KEY: %s', async (_which, keys) => {
    const database = await createTestDatabase();
    const store = await database.open({ secretKey: 'one key' });
    await put(store, keepsake('a', null, 'secret'));
    await expect(database.open(keys)).rejects.toThrow('SECRET_KEY');
    expect((await database.open({ secretKey: 'one key' })).get(keepsakes, 'a')?.signatureID).toBe('secret');
  });

  it('are encrypted as soon as a secret key is configured', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ secretKey: undefined });
    const given = [keepsake('a', null, 'unreadable'), keepsake('b', null, ['unreadable'])];
    await put(store, ...given);
    await store.close();
    expect(await dump(database)).toContain('unreadable');
    const next = await database.open({ secretKey: 'one key' });
    expect(await dump(database)).not.toContain('unreadable');
    expect([...next.all(keepsakes)]).toEqual(given);
  });

  it('are encrypted with a new key, which processes with the previous one can read', async () => {
    const database = await createTestDatabase();
    const [old, next] = ['the old key', 'the new key'];
    await put(await database.open({ secretKey: old }), keepsake('a', null, 'before'));
    // First, all processes learn to read the new key. Then they encrypt with it.
    const reading = await database.open({ secretKey: old, previousSecretKey: next });
    await put(reading, keepsake('b', null, 'between'));
    const writing = await database.open({ secretKey: next, previousSecretKey: old });
    expect([...writing.all(keepsakes)].map(({ signatureID }) => signatureID).sort()).toEqual([
      'before',
      'between',
    ]);
    await put(writing, keepsake('c', null, 'after'));
    await expect.poll(() => reading.get(keepsakes, 'c')?.signatureID, soon).toBe('after');
    await put(reading, keepsake('d', null, 'late'));
    await expect.poll(() => writing.get(keepsakes, 'd')?.signatureID, soon).toBe('late');
    await reading.close();
    await writing.close();
    const last = await database.open({ secretKey: next, previousSecretKey: old });
    await last.close();
    const only = await database.open({ secretKey: next });
    expect([...only.all(keepsakes)].map(({ id }) => id).sort()).toEqual(['a', 'b', 'c', 'd']);
    await expect(database.open({ secretKey: old })).rejects.toThrow('SECRET_KEY');
  });

  it('include the signature keys and header values of webhooks', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ tables, secretKey: 'one key' });
    await store.update((transaction) => transaction.put(webhooks, webhook('w', { name: 'readable' })));
    const text = await dump(database);
    expect(text).toContain('readable');
    expect(text).not.toContain('whsec_');
    expect(text).not.toContain('a secret value');
    const again = await database.open({ tables, secretKey: 'one key' });
    expect(again.get(webhooks, 'w')).toEqual(webhook('w', { name: 'readable' }));
  });
});

describe('migrations of PostgreSQL', () => {
  it('run once when several processes start together', async () => {
    const database = await createTestDatabase();
    const stores = await Promise.all([database.open(), database.open(), database.open()]);
    await Promise.all(
      stores.map((store) =>
        store.update((transaction) => transaction.write(cell, { n: transaction.read(cell).n + 1 })),
      ),
    );
    for (const store of stores) await expect.poll(() => store.read(cell), soon).toEqual({ n: 3 });
    const applied = await database.ask('select number from steward_migrations order by number');
    expect(applied.map(({ number }) => Number(number))).toEqual(migrations.map((_, index) => index + 1));
  });

  it('apply only the missing ones, with which an older process starts unless they contract', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await store.update((transaction) => transaction.put(rows, row('a', 1)));
    const expanded = [...migrations, 'create table more (key text)'];
    const next = await database.open({ migrations: expanded });
    expect(next.get(rows, 'a')).toEqual(row('a', 1));
    expect(await database.ask('select * from more')).toEqual([]);
    const older = await database.open();
    await older.update((transaction) => transaction.put(rows, row('b', 1)));
    await expect.poll(() => next.get(rows, 'b'), soon).toEqual(row('b', 1));
    await database.open({ migrations: [...expanded, '-- contract\ncreate table last (key text)'] });
    const [newest, own] = [migrations.length + 2, migrations.length];
    await expect(database.open()).rejects.toThrow(new RegExp(`\\b${newest}\\b.*\\b${own}\\b`, 's'));
  });

  it.each([
    ['other tables', 'create table migrations (number bigint); create table clock (version bigint)'],
    [
      'another first migration, whose hash is not kept',
      `create table steward_migrations (number bigint primary key, applied_at timestamptz not null default now());
       insert into steward_migrations (number) values (1); create table clock (version bigint)`,
    ],
    [
      'another first migration',
      `create table steward_migrations (number bigint primary key, hash text, applied_at timestamptz not null default now());
       insert into steward_migrations (number, hash) values (1, repeat('0', 64)); create table clock (version bigint)`,
    ],
  ])('refuse the database of an earlier build, which has %s', async (_what, former) => {
    const database = await createTestDatabase();
    await database.ask(former);
    await expect(database.open()).rejects.toThrow(
      'The database was created by an earlier build, which this version cannot read. Use an empty database or another schema.',
    );
    await expect(database.ask('select * from state')).rejects.toThrow('does not exist');
  });

  it('change nothing if one of them fails', async () => {
    const database = await createTestDatabase();
    const failing = [...migrations.slice(0, 1), 'create table half (key text); create nonsense'];
    await expect(database.open({ migrations: failing })).rejects.toThrow('nonsense');
    await expect(database.ask('select * from half')).rejects.toThrow('does not exist');
    const store = await database.open();
    expect([...store.all(rows)]).toEqual([]);
  });
});

it('prepares no statement for a search, because there are thousands of them', async () => {
  const database = await createTestDatabase();
  const store = await database.open();
  const names: unknown[] = [];
  const spy = vi.spyOn(Client.prototype, 'query');
  onTestFinished(() => spy.mockRestore());
  await store.deliveries.page({ webhookId: 'a', states: ['failed', 'missed'] }, 0, 10);
  await store.deliveries.find('a');
  for (const [config] of spy.mock.calls)
    if (/d\.state = 'failed'|q\.id = \$1/.test(JSON.stringify(config)))
      names.push((config as { name?: string }).name);
  expect(names.filter((name) => name === undefined)).toHaveLength(2);
  expect(names.filter((name) => name !== undefined)).toHaveLength(1);
});

it('refuses a call that waits too long for a connection, and stays available', async () => {
  const database = await createTestDatabase();
  const url = withLimits(impatientAddress(database.url), { max_connections: 1 });
  const store = await database.open({ url, runtime: timelessRuntime });
  const blocker = new Client({ connectionString: database.url });
  await blocker.connect();
  onTestFinished(() => blocker.end());
  await blocker.query('begin; lock table finished');
  // The only connection is idle at the moment of both calls.
  const calls = await Promise.allSettled([store.deliveries.eventTypes(), store.deliveries.find('a1')]);
  expect(calls).toMatchObject(Array(2).fill({ reason: { message: 'The database is busy.' } }));
  expect(store.problems()).toEqual([]);
});

describe('an update that PostgreSQL rejects', () => {
  const messages = (message: string) => [{ code: 1, message, when: 1 }];

  it('fails alone: the other updates of the same moment succeed', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    const texts = ['one', 'nul\0', 'three', 'four', '\0', 'six'];
    const outcomes = await Promise.allSettled(
      texts.map((text, n) =>
        store.update((transaction) => {
          transaction.put(rows, row(`r${n}`));
          transaction.jobs.appendMessages(`job-${n}`, 0, messages(text));
          transaction.deliveries.enqueue([delivery(`a${n}`, 1)]);
        }),
      ),
    );
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual([
      true,
      false,
      true,
      true,
      false,
      true,
    ]);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(isUnavailable(outcome.reason)).toBe(false);
    expect(store.problems()).toEqual([]);
    for (const one of [store, await database.open()]) {
      expect([...one.all(rows)].map(({ id }) => id).sort()).toEqual(['r0', 'r2', 'r3', 'r5']);
      expect((await list(one, 'a')).sort()).toEqual(['a0', 'a2', 'a3', 'a5']);
      await expect.poll(() => one.deliveries.pending().count, soon).toBe(4);
    }
  });

  it('changes nothing', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await publish(store, delivery('a1', 1));
    const version = store.version(rows);
    const refused = store.update((transaction) => {
      transaction.put(rows, row('a', 1));
      transaction.write(cell, { n: 1 });
      transaction.jobs.appendMessages('job', 0, messages('\0'));
      transaction.deliveries.deleteAll('a');
    });
    await expect(refused).rejects.toThrow();
    await expect(enqueue(store, delivery('a\0', 2))).rejects.toThrow();
    expect(store.deliveries.pending().count).toBe(1);
    expect(store.get(rows, 'a')).toBeUndefined();
    expect(store.read(cell)).toEqual({ n: 0 });
    expect(store.version(rows)).toBe(version);
    expect(await store.deliveries.find('a1')).toEqual(delivery('a1', 1));
    await store.update((transaction) => transaction.put(rows, row('a', 2)));
    expect(store.get(rows, 'a')).toEqual(row('a', 2));
  });

  it('fails alone, if it is an event: the other events of the same moment are stored', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    const types = ['One', 'Nul\0', 'Three', 'Four'];
    const outcomes = await Promise.allSettled(
      types.map((type, n) =>
        publish(store, delivery(`a${n}`, 1, { event: { ...delivery(`a${n}`, 1).event, type } })),
      ),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    expect((await list(store, 'a')).sort()).toEqual(['a0', 'a2', 'a3']);
    expect(store.deliveries.pending().count).toBe(3);
    expect(store.problems()).toEqual([]);
  });
});

it('events with very many deliveries are stored in statements of their own', async () => {
  const { open, ask } = await createTestDatabase();
  const store = await open();
  const deliveriesOf = (webhookId: string) =>
    Array.from({ length: 6_000 }, (_, n) => delivery(`${webhookId}${n}`, 1));
  await Promise.all(['a', 'b', 'c'].map((webhookId) => publish(store, ...deliveriesOf(webhookId))));
  // Each statement commits by itself.
  expect(await ask('select count(distinct xmin::text)::int as statements, count(*)::int from queue')).toEqual(
    [{ statements: 3, count: 18_000 }],
  );
});
