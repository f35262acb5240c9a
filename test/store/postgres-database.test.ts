// Tests the PostgreSQL database itself: encryption of secrets, migrations, and values that PostgreSQL rejects.
import { describe, expect, it } from 'vitest';
import type { User } from '../../src/auth/user.ts';
import { users } from '../../src/auth/user.ts';
import { folders, services } from '../../src/catalog/catalog.ts';
import { isUnavailable } from '../../src/errors.ts';
import { tables } from '../../src/records.ts';
import type { Store } from '../../src/store/store.ts';
import { jobBefore, newestJob } from '../../src/upgrades/job-table.ts';
import { webhookSettings } from '../../src/webhooks/settings.ts';
import { webhooks } from '../../src/webhooks/webhook.ts';
import { migrations } from '../kit/store.ts';
import { type TestDatabase, createTestDatabase } from './backends.ts';
import {
  auditEntry,
  type Keepsake,
  cell,
  job,
  keepsakes,
  row,
  rows,
  token,
  upload,
  webhook,
} from './definitions.ts';
import { claimAll, claimed, delivery, end, enqueue, list, publish } from './deliveries.ts';

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

  it('have different ciphertexts for equal values', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ secretKey: 'one key' });
    await put(store, keepsake('a', null, 'same'), keepsake('b', null, 'same'));
    const kept = await database.ask(
      `select distinct value ->> 'signatureID' as sealed from state where kind = 'keepsakes'`,
    );
    expect(kept).toHaveLength(2);
  });

  it('cannot be moved to another row', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ secretKey: 'one key' });
    await put(store, keepsake('a', null, 'of a'), keepsake('b', null, 'of b'));
    await store.close();
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

/** Creates the database as an older version left it. */
async function applyFirst(database: TestDatabase, count: number): Promise<void> {
  await database.ask('create table migrations (number bigint primary key, applied_at timestamptz)');
  for (const [index, sql] of migrations.slice(0, count).entries()) {
    await database.ask(sql);
    await database.ask('insert into migrations values ($1, now())', [index + 1]);
  }
}

describe('a database of version 0.1.0', () => {
  /** Inserts a row; the names of the columns are those of the database. */
  const insert = (database: TestDatabase, table: string, columns: Record<string, unknown>) =>
    database.ask(`insert into ${table} select r.* from json_populate_record(null::${table}, $1) r`, [
      JSON.stringify(columns),
    ]);

  async function openMigrated(
    fill: (add: (table: string, columns: Record<string, unknown>) => Promise<unknown>) => Promise<void>,
  ) {
    const database = await createTestDatabase();
    await applyFirst(database, 3);
    await fill((table, columns) => insert(database, table, columns));
    return database.open({ tables, secretKey: undefined });
  }

  it('keeps users, folders, services and cells', async () => {
    const ann: User = {
      username: 'Ann',
      role: 'administrator',
      passwordHash: 'hash',
      credentialId: 'c',
      createdAt: 5,
    };
    const service = {
      folderName: 'Maps',
      serviceName: 'World',
      type: 'MapServer',
      description: 'Ünïcode',
      capabilities: 'Map',
      parentType: '',
      url: null,
      access: 'public',
      createdAt: 1,
      updatedAt: 2,
    } as const;
    const store = await openMigrated(async (add) => {
      await add('users', {
        key: 'ann',
        username: 'Ann',
        role: 'administrator',
        password_hash: 'hash',
        credential_id: 'c',
        created_at: 5,
        last_sign_in: 7,
      });
      await add('folders', { key: 'maps', folder_name: 'Maps', description: 'All' });
      await add('services', {
        key: 'maps/world.mapserver',
        folder_name: 'Maps',
        service_name: 'World',
        type: 'MapServer',
        description: 'Ünïcode',
        capabilities: 'Map',
        parent_type: '',
        url: null,
        access: 'public',
        created_at: 1,
        updated_at: 2,
      });
      await add('cells', {
        key: 'webhookSettings',
        value: { ...webhookSettings.initial, notificationAttempts: 5 },
      });
    });
    expect([...store.all(users)]).toEqual([ann]);
    expect([...store.all(folders)]).toEqual([{ folderName: 'Maps', description: 'All' }]);
    expect([...store.all(services)]).toEqual([service]);
    expect(store.read(webhookSettings).notificationAttempts).toBe(5);
    expect(await store.tokens.lastSignIns()).toEqual(new Map([['ann', 7]]));
  });

  it('keeps tokens and uploads', async () => {
    const binding = { to: 'address', value: '1.2.3.4' } as const;
    const store = await openMigrated(async (add) => {
      await add('tokens', { key: 'h', username: 'Ann', credential_id: 'c', expires: 50, binding });
      for (const [key, date] of Object.entries({ u1: 9, u2: 8 })) {
        await add('uploads', {
          key,
          item_name: `${key}.txt`,
          description: '',
          date,
          committed: true,
          content_type: 'text/plain',
          size: 3,
        });
        await add('upload_contents', { key, bytes: '\\x000102' });
      }
    });
    const migrated = token('h', 0, { id: expect.any(String) as string, expires: 50, binding });
    expect(await store.tokens.find('h')).toEqual({ ...migrated, createdAt: expect.any(Number) as number });
    expect(await store.uploads.list()).toEqual([upload('u2', 3, { date: 8 }), upload('u1', 3, { date: 9 })]);
    expect([...((await store.uploads.content('u1')) ?? [])]).toEqual([0, 1, 2]);
    expect(
      await store.uploads.add(
        { upload: upload('u3', 3), bytes: Buffer.from('abc') },
        { bytes: 8, count: 9 },
        auditEntry(),
      ),
    ).toBe('bytes');
    expect(
      await store.uploads.add(
        { upload: upload('u3', 3), bytes: Buffer.from('abc') },
        { bytes: 9, count: 3 },
        auditEntry(),
      ),
    ).toBe('stored');
  });

  const jobRow = (number: number, state: string) => {
    const all = job(number, { state: 'failed', installs: ['v'], uploads: ['u'] });
    // Version 0.1.0 has a field that later versions do not read.
    const columns = Object.entries({ ...all, state, doneBeforeRun: 0 }).map(([field, value]) => [
      field === 'id' ? 'key' : field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]);
    return Object.fromEntries(columns) as Record<string, unknown>;
  };
  const addJob = async (
    add: (table: string, columns: Record<string, unknown>) => Promise<unknown>,
    number: number,
    state: string,
  ) => {
    await add('jobs', jobRow(number, state));
    await add('plans', { key: `job-${number}`, steps: [], workloads: number, after: {} });
    for (const n of [0, 1]) {
      const text = `message ${n} of ${number}`;
      await add('messages', { key: `job-${number}`, number: n, code: n, message: text, when: n });
    }
  };

  it('keeps jobs and messages, and the plan of a job that can be resumed', async () => {
    const store = await openMigrated(async (add) => {
      await addJob(add, 1, 'success');
      await addJob(add, 2, 'failed');
      await addJob(add, 3, 'cancelled');
      await addJob(add, 4, 'failed');
    });
    const migrated = (number: number, state: 'success' | 'failed' | 'cancelled') => ({
      ...job(number, { state, installs: ['v'], uploads: ['u'], messageCount: 2 }),
      doneBeforeRun: 0,
    });
    expect(store.read(newestJob)).toEqual(migrated(4, 'failed'));
    expect(store.read(jobBefore)).toEqual(migrated(2, 'failed'));
    expect((await store.jobs.page(4, 0, 10)).jobs).toEqual([
      migrated(3, 'cancelled'),
      migrated(2, 'failed'),
      migrated(1, 'success'),
    ]);
    expect(await store.jobs.find('job-4')).toBeUndefined();
    expect((await store.jobs.findInstalling('v'))?.number).toBe(1);
    expect(await store.jobs.messages('job-2')).toEqual([
      { code: 0, message: 'message 0 of 2', when: 0 },
      { code: 1, message: 'message 1 of 2', when: 1 },
    ]);
    expect(await store.jobs.plan('job-4')).toEqual({ jobId: 'job-4', steps: [], workloads: 4, after: {} });
    for (const number of [1, 2, 3]) expect(await store.jobs.plan(`job-${number}`)).toBeUndefined();
    await store.update((transaction) =>
      transaction.jobs.appendMessages('job-4', 2, [{ code: 9, message: 'next', when: 9 }]),
    );
    expect(await store.jobs.messages('job-4')).toHaveLength(3);
  });

  it('has no newest job if there was none', async () => {
    const store = await openMigrated(() => Promise.resolve());
    expect(store.read(newestJob)).toBeNull();
    expect(store.read(jobBefore)).toBeNull();
  });

  it('keeps the plan of a job that an earlier version of 0.1.0 has stored', async () => {
    const database = await createTestDatabase();
    await applyFirst(database, 2);
    await insert(database, 'jobs', jobRow(1, 'failed'));
    const workload = { name: 'MAP_SERVER', image: 'm:2', checksum: 'N/A', formerImage: 'm:1' };
    const steps = [
      { name: 'Launch', workload: null },
      { name: 'Update', workload, counts: null },
    ];
    await insert(database, 'plans', { key: 'job-1', steps, workloads: 1, after: {} });
    const store = await database.open({ tables });
    expect((await store.jobs.plan('job-1'))?.steps).toEqual([
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

  it('keeps webhooks with their keys and failure windows', async () => {
    const store = await openMigrated(async (add) => {
      for (const [key, window] of Object.entries({ w1: { start: 5, count: 2 }, w2: null }))
        await add('webhooks', {
          key,
          name: `webhook ${key}`,
          hook_url: 'https://receiver.test/',
          change_types: ['*'],
          service: null,
          content_type: 'application/json',
          active: true,
          created_at: 1,
          updated_at: 2,
          deactivated_at: null,
          deactivated_by: null,
          deactivations: 0,
          window,
          signature_key: 'plain:"whsec_now"',
          previous_keys: 'plain:[{"key":"whsec_before","until":3}]',
        });
    });
    const byId = (one: { id: string }, other: { id: string }) => (one.id < other.id ? -1 : 1);
    const expected = ['w1', 'w2'].map((id) => webhook(id, { headers: [] }));
    expect([...store.all(webhooks)].sort(byId)).toEqual(expected);
    expect(await store.deliveries.failureWindows()).toEqual(new Map([['w1', { start: 5, count: 2 }]]));
  });

  it('keeps deliveries with their attempts, in the order of their claims', async () => {
    const attempt = { durationMs: 3, status: 500, error: 'no', response: null };
    const store = await openMigrated(async (add) => {
      const addDelivery = (key: string, placed: number, columns: Record<string, unknown>) => {
        const { event, createdAt } = delivery(key, placed);
        const isPending = columns.state === 'pending';
        return add('deliveries', {
          key,
          owner: key.charAt(0),
          event,
          is_ping: false,
          created_at: createdAt,
          ended_at: null,
          due_at: isPending ? 1 : null,
          urgent: false,
          dull: false,
          placed,
          ...columns,
        });
      };
      await addDelivery('a1', 1, { state: 'failed', ended_at: 9, finished: 1 });
      await addDelivery('a2', 2, { state: 'pending' });
      await addDelivery('a3', 3, { state: 'pending', urgent: true, next_attempt_at: 99 });
      await addDelivery('a4', 4, { state: 'pending', is_ping: true, urgent: true });
      await addDelivery('a5', 5, { state: 'discarded', ended_at: 9, dull: true, finished: 2 });
      for (const [number, when] of [20, 40].entries())
        await add('attempts', { key: 'a3', number, when, duration_ms: 3, status: 500, error: 'no' });
      await add('publications', { key: 'e', deliveries: 4, published_at: 7 });
    });
    const expected = [
      delivery('a5', 5, { state: 'discarded', endedAt: 9 }),
      delivery('a4', 4, { isPing: true }),
      delivery('a3', 3, {
        attempts: [
          { when: 20, ...attempt },
          { when: 40, ...attempt },
        ],
      }),
      delivery('a2', 2),
      delivery('a1', 1, { state: 'failed', endedAt: 9 }),
    ];
    expect((await store.deliveries.page({ webhookId: 'a' }, 0, 10)).deliveries).toEqual(expected);
    expect(store.deliveries.pending().count).toBe(3);
    expect(await store.deliveries.findEvent('e', 8)).toEqual({ eventId: 'e', deliveries: 4, publishedAt: 7 });
    expect((await claimAll(store, 53)).ids).toEqual(['a4', 'a3', 'a2']);
    for (const id of ['a4', 'a3', 'a2']) await end(store, id, 60);
    expect(store.deliveries.pending()).toEqual({ count: 0, bytes: 0 });
    expect(claimed(store, 'a3').attempts).toHaveLength(2);
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
    const applied = await database.ask('select number from migrations order by number');
    expect(applied.map(({ number }) => Number(number))).toEqual(migrations.map((_, index) => index + 1));
  });

  it('make the start fail if the database has a newer migration that contracts', async () => {
    const database = await createTestDatabase();
    const next = [...migrations, '-- contract\ncreate table more (key text)'];
    await (await database.open({ migrations: next })).close();
    const known = migrations.length;
    await expect(database.open()).rejects.toThrow(new RegExp(`\\b${known + 1}\\b.*\\b${known}\\b`, 's'));
  });

  it('let the start succeed if the database has a newer migration that expands', async () => {
    const database = await createTestDatabase();
    const next = await database.open({ migrations: [...migrations, 'create table more (key text)'] });
    const store = await database.open();
    await store.update((transaction) => transaction.put(rows, row('a', 1)));
    await expect.poll(() => next.get(rows, 'a'), soon).toEqual(row('a', 1));
  });

  it('apply only the migrations that are missing', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await store.update((transaction) => transaction.put(rows, row('a', 1)));
    const known = migrations.map(() => 'never run again');
    const next = await database.open({ migrations: [...known, 'create table more (key text)'] });
    expect(next.get(rows, 'a')).toEqual(row('a', 1));
    expect(await database.ask('select * from more')).toEqual([]);
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
      void transaction.deliveries.deleteAll('a');
    });
    await expect(refused).rejects.toThrow();
    expect(store.get(rows, 'a')).toBeUndefined();
    expect(store.read(cell)).toEqual({ n: 0 });
    expect(store.version(rows)).toBe(version);
    expect(await store.deliveries.find('a1')).toEqual(delivery('a1', 1));
    await store.update((transaction) => transaction.put(rows, row('a', 2)));
    expect(store.get(rows, 'a')).toEqual(row('a', 2));
  });

  it('is one that enqueues a delivery a second time', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await enqueue(store, delivery('a1', 1));
    await expect(enqueue(store, delivery('a1', 2))).rejects.toThrow();
    expect(await store.deliveries.find('a1')).toEqual(delivery('a1', 1));
    expect(store.deliveries.pending().count).toBe(1);
  });
});

describe('an event that PostgreSQL rejects', () => {
  it('fails alone: the other events of the same moment are stored', async () => {
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
  expect(
    await ask('select count(distinct xmin::text)::int as statements, count(*)::int from deliveries'),
  ).toEqual([{ statements: 3, count: 18_000 }]);
});
