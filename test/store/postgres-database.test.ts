// Tests the PostgreSQL database itself: encryption of secrets, migrations, and values that PostgreSQL rejects.
import { describe, expect, it } from 'vitest';
import { tokens } from '../../src/auth/token.ts';
import { isUnavailable } from '../../src/errors.ts';
import { records } from '../../src/records.ts';
import { deliveries } from '../../src/webhooks/delivery.ts';
import { plans } from '../../src/upgrades/job-table.ts';
import { type Webhook, webhooks } from '../../src/webhooks/webhook.ts';
import { migrations } from '../kit/store.ts';
import { type TestDatabase, createTestDatabase, readMigration } from './backends.ts';
import { type Keepsake, cell, tickets, keepsakes, log, row, rows } from './definitions.ts';
import { enqueue, ticket } from './tickets.ts';

const keepsake = (id: string, words: string | null, signatureID: unknown = null): Keepsake => ({
  id,
  words,
  order: null,
  isSet: null,
  data: null,
  signatureID,
});

/** The content of all tables as text. */
async function dump({ ask }: TestDatabase): Promise<string> {
  const tables = await ask('select tablename as name from pg_tables where schemaname = current_schema()');
  expect(tables.length).toBeGreaterThan(5);
  const texts = await Promise.all(
    tables.map(({ name }) => ask(`select t::text as text from "${String(name)}" t`)),
  );
  return texts.flatMap((rows) => rows.map(({ text }) => String(text))).join('\n');
}

describe('secrets in PostgreSQL', () => {
  it('are not readable in the database if a secret key is configured', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ secretKey: 'one key' });
    const given = keepsake('a', 'readable', ['unreadable', { inner: 'neither' }]);
    await store.update((transaction) => transaction.put(keepsakes, given));
    const text = await dump(database);
    expect(text).toContain('readable');
    expect(text).not.toMatch(/unreadable|neither/);
    const again = await database.open({ secretKey: 'one key' });
    expect(again.get(keepsakes, 'a')).toEqual(given);
  });

  it('have different ciphertexts for equal values', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ secretKey: 'one key' });
    await store.update((transaction) =>
      ['a', 'b'].forEach((id) => transaction.put(keepsakes, keepsake(id, null, 'same'))),
    );
    const kept = await database.ask('select distinct signature_id from keepsakes');
    expect(kept).toHaveLength(2);
  });

  it.each([
    ['another key', 'another key'],
    ['no key', undefined],
  ])('make the start fail with a message that names SECRET_KEY: %s', async (_which, secretKey) => {
    const database = await createTestDatabase();
    const store = await database.open({ secretKey: 'one key' });
    await store.update((transaction) => transaction.put(keepsakes, keepsake('a', null, 'secret')));
    await expect(database.open({ secretKey })).rejects.toThrow('SECRET_KEY');
    expect((await database.open({ secretKey: 'one key' })).get(keepsakes, 'a')?.signatureID).toBe('secret');
  });

  it('are encrypted as soon as a secret key is configured', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ secretKey: undefined });
    const given = [keepsake('a', null, 'unreadable'), keepsake('b', null, ['unreadable'])];
    await store.update((transaction) => given.forEach((one) => transaction.put(keepsakes, one)));
    await store.close();
    expect(await dump(database)).toContain('unreadable');
    const next = await database.open({ secretKey: 'one key' });
    expect(await dump(database)).not.toContain('unreadable');
    expect([...next.all(keepsakes)]).toEqual(given);
  });

  it('include the signature keys of webhooks', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ records, migrations, secretKey: 'one key' });
    const webhook: Webhook = {
      id: 'w',
      name: 'readable',
      hookUrl: 'https://receiver.test/',
      changeTypes: ['*'],
      service: null,
      contentType: 'application/json',
      active: true,
      createdAt: 1,
      updatedAt: 2,
      deactivatedAt: null,
      deactivatedBy: null,
      deactivations: 0,
      window: null,
      signatureKey: 'whsec_now',
      previousKeys: [{ key: 'whsec_before', until: 3 }],
    };
    await store.update((transaction) => transaction.put(webhooks, webhook));
    const text = await dump(database);
    expect(text).toContain('readable');
    expect(text).not.toContain('whsec_');
    const again = await database.open({ records, migrations, secretKey: 'one key' });
    expect(again.get(webhooks, 'w')).toEqual(webhook);
  });
});

describe('migrations of PostgreSQL', () => {
  /** Creates the database as an older version left it. */
  async function applyFirst(database: TestDatabase, count: number): Promise<void> {
    await database.ask('create table migrations (number bigint primary key, applied_at timestamptz)');
    for (const [index, sql] of migrations.slice(0, count).entries()) {
      await database.ask(sql);
      await database.ask('insert into migrations values ($1, now())', [index + 1]);
    }
  }

  it('keep the tokens of users', async () => {
    const database = await createTestDatabase();
    await applyFirst(database, 3);
    const token = { hash: 'h', username: 'ann', credentialId: 'c', expires: 5, binding: null };
    await database.ask(
      `insert into tokens (key, username, credential_id, expires) values ('h', 'ann', 'c', 5)`,
    );
    const store = await database.open({ records, migrations });
    expect(store.get(tokens, 'h')).toEqual({ ...token, createdAt: null });
  });

  it('count the bytes of pending deliveries that an older version has stored', async () => {
    const database = await createTestDatabase();
    await applyFirst(database, 3);
    const insert = (key: string, data: string, dueAt: number | null) =>
      database.ask(
        `insert into deliveries (key, owner, event, is_ping, state, created_at, due_at, urgent, dull, placed)
         values ($1, 'w', $2, false, 'pending', 1, $3, false, false, 1)`,
        [key, JSON.stringify({ id: 'e', type: 'T', timestamp: 1, service: null, data }), dueAt],
      );
    await insert('a', '{"é":"\\u0000"}', 1);
    await insert('b', '{}', 1);
    await insert('c', '{"finished":true}', null);
    await database.ask(`insert into queues (name, unfinished) values ('deliveries', 2)`);
    const store = await database.open({ records, migrations });
    expect([store.waiting(deliveries), store.waitingBytes(deliveries)]).toEqual([2, 17]);
    await store.update((transaction) => transaction.drop(deliveries, 'w'));
    expect([store.waiting(deliveries), store.waitingBytes(deliveries)]).toEqual([0, 0]);
  });

  it('keep the plans of jobs that an older version has stored', async () => {
    const database = await createTestDatabase();
    await applyFirst(database, 2);
    const workload = { name: 'MAP_SERVER', image: 'm:2', checksum: 'N/A', formerImage: 'm:1' };
    const steps = [
      { name: 'Launch', workload: null },
      { name: 'Update', workload, counts: null },
    ];
    await database.ask('alter table plans drop constraint plans_key_fkey');
    await database.ask(
      `insert into plans (key, steps, workloads, after) values ('job', '${JSON.stringify(steps)}', 1, '{}')`,
    );
    const store = await database.open({ records, migrations });
    expect(store.get(plans, 'job')?.steps).toEqual([
      { name: 'Launch', workload: null },
      {
        name: 'Update',
        workload: {
          name: 'MAP_SERVER',
          component: 'MAP',
          parts: [{ container: 'MAP_SERVER', image: 'm:2', formerImage: 'm:1' }],
        },
        counts: null,
      },
    ]);
  });

  it('run once when several processes start together', async () => {
    const database = await createTestDatabase();
    const stores = await Promise.all([database.open(), database.open(), database.open()]);
    await Promise.all(
      stores.map((store) =>
        store.update((transaction) => transaction.write(cell, { n: transaction.read(cell).n + 1 })),
      ),
    );
    for (const store of stores)
      await expect.poll(() => store.read(cell), { timeout: 1_000 }).toEqual({ n: 3 });
    const applied = await database.ask('select number from migrations order by number');
    expect(applied.map(({ number }) => Number(number))).toEqual([1, 2, 3]);
  });

  it('make the start fail if the database has a newer migration', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await store.close();
    await database.ask(
      'insert into migrations (number, applied_at) select 97, applied_at from migrations limit 1',
    );
    await expect(database.open()).rejects.toThrow(/\b97\b.*\b3\b|\b3\b.*\b97\b/s);
  });

  it('apply only the migrations that are missing', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await store.update((transaction) => transaction.put(rows, row('a', 1)));
    const known = Array<string>(3).fill('never run again');
    const next = await database.open({ migrations: [...known, 'create table more (key text)'] });
    expect(next.get(rows, 'a')).toEqual(row('a', 1));
    expect(await database.ask('select * from more')).toEqual([]);
  });

  it('change nothing if one of them fails', async () => {
    const database = await createTestDatabase();
    const failing = [readMigration('001-store.sql'), 'create table half (key text); create nonsense'];
    await expect(database.open({ migrations: failing })).rejects.toThrow('nonsense');
    await expect(database.ask('select * from half')).rejects.toThrow('does not exist');
    const store = await database.open();
    expect([...store.all(rows)]).toEqual([]);
  });
});

describe('an update that PostgreSQL rejects', () => {
  it('fails alone: the other updates of the same moment succeed', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    const texts = ['one', 'nul\0', 'three', 'four', '\0', 'six'];
    const outcomes = await Promise.allSettled(
      texts.map((text, n) =>
        store.update((transaction) => {
          transaction.put(keepsakes, keepsake(`k${n}`, text));
          transaction.append(log, 'l', [{ n }]);
          transaction.enqueue(tickets, ticket(`a${n}`, 1));
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
      expect([...one.all(keepsakes)].map(({ words }) => words).sort()).toEqual([
        'four',
        'one',
        'six',
        'three',
      ]);
      expect(one.entries(log, 'l')).toEqual([{ n: 0 }, { n: 2 }, { n: 3 }, { n: 5 }]);
      expect(one.waiting(tickets)).toBe(4);
    }
  });

  it('changes nothing', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await enqueue(store, ticket('a1', 1, 'kept'));
    const version = store.version(rows);
    const refused = store.update((transaction) => {
      transaction.put(rows, row('a', 1));
      transaction.write(cell, { n: 1 });
      transaction.enqueue(tickets, ticket('a2', 1, '\0'));
      transaction.drop(tickets, 'a');
    });
    await expect(refused).rejects.toThrow();
    expect(store.get(rows, 'a')).toBeUndefined();
    expect(store.read(cell)).toEqual({ n: 0 });
    expect(store.version(rows)).toBe(version);
    expect(await store.find(tickets, 'a1')).toEqual(ticket('a1', 1, 'kept'));
    await store.update((transaction) => transaction.put(rows, row('a', 2)));
    expect(store.get(rows, 'a')).toEqual(row('a', 2));
  });

  it('is one that enqueues a key a second time', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await enqueue(store, ticket('a1', 1, 'first'));
    await expect(enqueue(store, ticket('a1', 2, 'second'))).rejects.toThrow();
    expect(await store.find(tickets, 'a1')).toEqual(ticket('a1', 1, 'first'));
    expect(store.waiting(tickets)).toBe(1);
  });
});
