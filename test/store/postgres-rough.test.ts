// Tests the PostgreSQL store where a database is rougher than the default: its settings, few connections, a crash that
// undoes claims, clocks that differ, and webhooks with many deliveries.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { dayMs, realRuntime, withSharedClock } from '../../src/lib/runtime.ts';
import { type Client, Database } from '../../src/store/postgres/database.ts';
import { readLimits } from '../../src/store/postgres/limits.ts';
import type { Store } from '../../src/store/store.ts';
import { hourMs } from '../../src/webhooks/queue/history.ts';
import { redeliveries } from '../../src/webhooks/queue/redelivery.ts';
import { webhooks } from '../../src/webhooks/webhook.ts';
import { allDeliveries } from '../kit/deliveries-sql.ts';
import { impatientAddress, withLimits } from '../kit/postgres.ts';
import { timelessRuntime } from '../kit/runtime.ts';
import { createTestDatabase } from './backends.ts';
import { row, rows, webhook } from './definitions.ts';
import {
  attempted,
  claim,
  claimAll,
  deleteAll,
  delivery,
  discard,
  end,
  ended,
  enqueue,
  list,
  ping,
  publish,
  retry,
} from './deliveries.ts';

const soon = { interval: 20, timeout: 10_000 };

function openDatabase(url: string): Database {
  const database = new Database({
    url: withLimits(url, { max_connections: 2 }),
    knownSchema: 1,
    logger: undefined,
    runtime: realRuntime,
  });
  onTestFinished(() => database.close());
  return database;
}

const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

describe('a connection', () => {
  const shown = async (client: Client) => {
    const { rows: found } = await client.query<{ name: string; setting: string }>(
      `select name, setting from pg_settings where name in ('default_transaction_isolation', 'synchronous_commit',
         'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')`,
    );
    return Object.fromEntries(found.map(({ name, setting }) => [name, setting]));
  };

  it('has its own isolation, durability and timeouts, whatever the defaults of the database are', async () => {
    const { url: plain } = await createTestDatabase();
    const url = new URL(impatientAddress(plain));
    const options = [
      'default_transaction_isolation=serializable',
      'synchronous_commit=off',
      'statement_timeout=200',
      'lock_timeout=100',
      'idle_in_transaction_session_timeout=50',
    ].map((setting) => `-c ${setting}`);
    url.searchParams.set('options', options.join(' '));
    const database = openDatabase(url.href);
    const common = { default_transaction_isolation: 'read committed', synchronous_commit: 'on' };
    expect(await database.use(shown)).toEqual({
      ...common,
      statement_timeout: '5000',
      lock_timeout: '3000',
      idle_in_transaction_session_timeout: '1000',
    });
    // A migration of a large table takes long.
    expect(await database.usePatiently(shown)).toEqual({
      ...common,
      statement_timeout: '0',
      lock_timeout: '0',
      idle_in_transaction_session_timeout: '0',
    });
  });

  it('has the timeouts of the address', async () => {
    const { url: plain } = await createTestDatabase();
    const limits = { statement_timeout: 7000, lock_timeout: 0, idle_in_transaction_session_timeout: 9000 };
    expect(await openDatabase(withLimits(plain, limits)).use(shown)).toMatchObject({
      statement_timeout: '7000',
      lock_timeout: '0',
      idle_in_transaction_session_timeout: '9000',
    });
  });

  it.each([
    ['connect_timeout', '1.5', 'seconds from 0 (no limit) to 2147483.'],
    ['connect_timeout', '2147484', 'seconds from 0 (no limit) to 2147483.'],
    ['query_timeout', '', 'milliseconds from 0 (no limit) to 2147483647.'],
    ['statement_timeout', '5s', 'milliseconds from 0 (no limit) to 2147483647.'],
    ['lock_timeout', '-1', 'milliseconds from 0 (no limit) to 2147483647.'],
    ['idle_in_transaction_session_timeout', '2147483648', 'milliseconds from 0 (no limit) to 2147483647.'],
  ])('is refused with %s=%s in the address', (name, value, allowed) => {
    const url = withLimits('postgres://127.0.0.1/steward', { [name]: value });
    expect(() => openDatabase(url)).toThrow(`${name} in STORE_URL must be an integer of ${allowed}`);
  });

  it.each(['0', '101', 'ten'])('is refused with max_connections=%s in the address', (value) => {
    const url = withLimits('postgres://127.0.0.1/steward', { max_connections: value });
    expect(() => readLimits(url)).toThrow('max_connections in STORE_URL must be an integer from 1 to 100.');
  });
});

describe('a transaction that PostgreSQL aborts', () => {
  it('makes its caller try again later, as that of a process that was frozen', async () => {
    const { url, ask } = await createTestDatabase();
    const database = openDatabase(url);
    const idle = database.use(async (client) => {
      const { rows: pids } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      await client.query('begin; set local idle_in_transaction_session_timeout = 1');
      const sessions = () => ask('select from pg_stat_activity where pid = $1', [pids[0]?.pid]);
      await expect.poll(sessions).toEqual([]);
      await client.query('commit');
    });
    await expect(idle).rejects.toMatchObject({ kind: 'unavailable', message: 'The database is busy.' });
    expect(database.problems).toEqual([]);
  });

  it.each(['53200', '53400'])(
    'for want of memory does not make the database unavailable: %s',
    async (code) => {
      const { url } = await createTestDatabase();
      const database = openDatabase(url);
      const raise = `do $$ begin raise exception using errcode = '${code}'; end $$`;
      await expect(database.ask(raise)).rejects.toMatchObject({ message: 'The database is busy.' });
      expect(database.problems).toEqual([]);
      await expect(database.ask(raise.replace(code, '53100'))).rejects.toMatchObject({ kind: 'unavailable' });
      expect(database.problems).not.toEqual([]);
    },
  );

  it('is repeated if it was an update', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await database.ask('create sequence tries');
    await database.ask(`create function abort() returns trigger language plpgsql as $$
      begin if nextval('tries') < 3 then raise exception using errcode = '40P01'; end if; return new; end $$`);
    await database.ask('create trigger abort before update on clock for each row execute function abort()');
    await store.update((transaction) => transaction.put(rows, row('a', 1)));
    expect(await database.ask('select last_value::int as tries from tries')).toEqual([{ tries: 3 }]);
    expect(store.get(rows, 'a')).toEqual(row('a', 1));
  });
});

describe('a database with few connections', () => {
  /** The user may have five connections, one of them for the connection that listens. */
  async function openLimited() {
    const database = await createTestDatabase();
    const role = `limited_${randomUUID().replaceAll('-', '')}`;
    await database.ask(`create role ${role} login connection limit 5`);
    const [schema] = await database.ask('select current_schema() as name');
    await database.ask(`grant all on schema ${String(schema?.name)} to ${role}`);
    const url = new URL(database.url);
    url.username = role;
    onTestFinished(async () => {
      await database.ask(`drop owned by ${role} cascade`);
      await database.ask(`drop role ${role}`);
    });
    return { store: await database.open({ url: url.href }), database, role };
  }

  async function useMany(store: Store) {
    const writes = numbered('row', 40).map((key) =>
      store.update((transaction) => transaction.put(rows, row(key, 1))),
    );
    const reads = numbered('a', 80).map((id) => store.deliveries.find(id));
    const events = numbered('b', 40).map((id) => publish(store, delivery(id, 1)));
    await Promise.all([...writes, ...reads, ...events]);
    expect(store.problems()).toEqual([]);
    expect(await list(store, 'b')).toHaveLength(40);
  }

  it('serves a process that wants more of them', async () => {
    const { store } = await openLimited();
    await useMany(store);
  });

  it('serves a process with the connections that it has while the role cannot sign in', async () => {
    const { store, database, role } = await openLimited();
    await database.ask(`alter role ${role} nologin`);
    await useMany(store);
  });
});

it('a database of which only reads succeed is unavailable until a write succeeds', async () => {
  const database = await createTestDatabase();
  const store = await database.open({
    leaseMs: 500,
    url: withLimits(database.url, { query_timeout: 2_000 }),
  });
  await database.ask(`create function wait() returns trigger language plpgsql as $$
    begin perform nextval('probes'); perform pg_sleep(4); return null; end $$`);
  await database.ask('create sequence probes');
  await database.ask(
    'create trigger wait before update on processes for each statement execute function wait()',
  );
  const unavailable = ['the database cannot be reached'];
  await expect.poll(() => store.problems()).toEqual(unavailable);
  const countProbes = async () =>
    Number((await database.ask('select last_value as probes from probes'))[0]?.probes);
  for (const before = await countProbes(); (await countProbes()) < before + 3;)
    expect(store.problems()).toEqual(unavailable);
  await database.ask('drop trigger wait on processes');
  await expect.poll(() => store.problems()).toEqual([]);
});

describe('a claim that a crash of the database has undone', () => {
  const undo = `update queue set claimed_by = null, claim = null`;

  it('does not repeat an attempt whose result is known', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await publish(store, delivery('a1', 1), delivery('b1', 1));
    await claim(store, 1);
    await database.ask(undo);
    expect(await end(store, 'a1', 3)).toBeDefined();
    expect(await retry(store, 'b1', 4)).toBeDefined();
    expect(await store.deliveries.find('a1')).toEqual(ended(delivery('a1', 1), 3));
    expect(await store.deliveries.find('b1')).toEqual(attempted(delivery('b1', 1), 4));
    expect((await claim(store, 1_000)).ids).toEqual(['b1']);
  });

  it('stores the result of one attempt, if another process has attempted the delivery since', async () => {
    const database = await createTestDatabase();
    const [one, other] = [await database.open(), await database.open()];
    await publish(one, delivery('a1', 1));
    await claim(one, 1);
    await database.ask(undo);
    expect((await claim(other, 1)).ids).toEqual(['a1']);
    expect(await retry(other, 'a1', 5)).toBeDefined();
    expect(await end(one, 'a1', 6)).toBeUndefined();
    expect(await one.deliveries.find('a1')).toEqual(attempted(delivery('a1', 1), 5));
  });
});

describe('two processes whose clocks differ by three minutes', () => {
  const openTwo = async () => {
    const database = await createTestDatabase();
    const open = async (byMs: number) => {
      const runtime = withSharedClock({ ...realRuntime, now: () => Date.now() + byMs });
      return { store: await database.open({ runtime }), now: runtime.now };
    };
    return [await open(90_000), await open(-90_000)] as const;
  };

  it('use the clock of the database, so a retry is due for both at the same time', async () => {
    const [ahead, behind] = await openTwo();
    await expect.poll(() => Math.abs(ahead.now() - behind.now())).toBeLessThan(1_000);
    await publish(ahead.store, delivery('a1', ahead.now()));
    await claim(ahead.store, ahead.now());
    await retry(ahead.store, 'a1', ahead.now());
    await ahead.store.close();
    const wait = { retryWaitMs: 3_600_000 };
    const now = behind.now();
    const { ids, nextAt = 0 } = await claimAll(behind.store, now, wait);
    expect(ids).toEqual([]);
    expect(nextAt - now).toBeGreaterThan(3_540_000);
    expect((await claimAll(behind.store, now + 3_660_000, wait)).ids).toEqual(['a1']);
  });
});

it('the counts of an hour that is over become one row, and are deleted after 35 days', async () => {
  const database = await createTestDatabase();
  const store = await database.open();
  const now = Date.now();
  const missedAt = async (id: string, at: number) =>
    publish(store, delivery(id, at, { state: 'missed', endedAt: at }));
  for (const at of [now, now - 2 * hourMs, now - 34 * dayMs, now - 36 * dayMs]) await missedAt(`a${at}`, at);
  await enqueue(
    store,
    delivery('a9', now, { state: 'missed', endedAt: now - 2 * hourMs, createdAt: now - 2 * hourMs }),
  );
  await store.close();
  const other = await database.open();
  const kept = () => database.ask('select at::float8, missed::int, lane from delivery_hours order by at');
  await expect.poll(kept).toMatchObject([
    { missed: 1, lane: -1 },
    { missed: 2, lane: -1 },
    { at: now - (now % hourMs), missed: 1 },
  ]);
  const { hours } = await other.deliveries.history({ from: now - 40 * dayMs, to: now });
  expect(hours.map(({ missed }) => missed)).toEqual([1, 2, 1]);
});

describe('many webhooks that wait', () => {
  const webhookIds = numbered('w', 300);

  it('cost a claim no more than few', async () => {
    const store = await (await createTestDatabase()).open();
    const all = webhookIds.map((webhookId, n) => delivery(`a${n}`, 1, { webhookId }));
    await publish(store, ...all);
    await claim(store, 1, 4);
    const sent = vi.spyOn(pg.Client.prototype, 'query');
    onTestFinished(() => sent.mockRestore());
    const { ids } = await claim(store, 1, 4);
    expect(ids).toHaveLength(4);
    const lengths = sent.mock.calls.flatMap(([query]) =>
      ((query as { values?: unknown[] }).values ?? []).map((value) =>
        Array.isArray(value) ? value.length : 1,
      ),
    );
    expect(Math.max(...lengths)).toBeLessThanOrEqual(8);
    sent.mockRestore();
    const rest = await claimAll(store, 1);
    expect(rest.ids).toHaveLength(webhookIds.length - 8);
  });

  it('are not hidden by those that cannot be claimed', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ runtime: timelessRuntime });
    await publish(store, ...webhookIds.map((webhookId, n) => delivery(`a${n}`, 1, { webhookId })));
    const [, ...others] = webhookIds;
    await database.ask(
      `insert into emptied (webhook_id, up_to, discarded_at) select unnest($1::text[]), 999, 5`,
      [others],
    );
    let claimed: string[] = [];
    for (let n = 0; claimed.length === 0 && n <= webhookIds.length / 100; n += 1)
      ({ ids: claimed } = await claim(store, 1, 100));
    expect(claimed).toEqual(['a0']);
  });
});

describe('an event', () => {
  const large = delivery('a0', 1).event;
  const toMany = (ids: readonly string[]) => ids.map((id) => delivery(id, 1, { event: large }));

  it('is stored once for all its deliveries and redeliveries, until the last of them is removed', async () => {
    const { ask, open } = await createTestDatabase();
    const store = await open({
      leaseMs: 500,
      retention: { deliveries: { history: 1, recoverable: 9 }, jobs: 9 },
    });
    const events = () => ask('select id from events');
    await publish(store, ...toMany(['a1', 'b1', 'c1']));
    await claim(store, 1);
    for (const id of ['a1', 'b1', 'c1']) await end(store, id, 2, id === 'c1' ? 'failed' : 'delivered');
    const request = { id: 'r', webhookId: 'c', filter: {}, requestedAt: 5 };
    await store.update((transaction) => {
      transaction.put(webhooks, webhook('c'));
      transaction.put(redeliveries, request);
    });
    await store.deliveries.redeliver(request, { most: 9, at: 6, newId: () => 'c2' });
    expect(await events()).toEqual([{ id: large.id }]);
    expect((await store.deliveries.page({ eventId: large.id }, 0, 9)).deliveries.map(({ id }) => id)).toEqual(
      ['c2', 'c1', 'b1', 'a1'],
    );
    for (const webhookId of ['a', 'b']) await deleteAll(store, webhookId);
    await publish(store, delivery('d1', 9));
    await deleteAll(store, 'd');
    // The other event is removed, and this one has deliveries left.
    await expect.poll(events, soon).toEqual([{ id: large.id }]);
    await deleteAll(store, 'c');
    await expect.poll(events, soon).toEqual([]);
  });

  it('that a killed process has left without deliveries is removed', async () => {
    const { ask, open } = await createTestDatabase();
    await open();
    await ask(`insert into events (number, id, type, at, data) values (1, 'left', 'Tested', 1, '{}')`);
    await open();
    await expect.poll(() => ask('select from events'), soon).toEqual([]);
  });

  it('of the server itself is one row until the commit, and any process adds its deliveries, once', async () => {
    const { ask, open } = await createTestDatabase();
    const [one, other] = [await open({ leaseMs: 500 }), await open({ leaseMs: 500 })];
    const announce = () => one.update((transaction) => transaction.deliveries.announce(large, {}));
    await announce();
    const announced = `select from events where announced is not null`;
    expect(await ask(announced)).toHaveLength(1);
    let ids = 0;
    const rule = () => toMany(numbered(`a${(ids += 1)}-`, 10));
    other.deliveries.distributeWith(rule);
    await expect.poll(() => ask('select from queue'), soon).toHaveLength(10);
    one.deliveries.distributeWith(rule);
    await Promise.all([announce(), announce(), announce()]);
    await expect.poll(() => ask(announced), soon).toEqual([]);
    expect(await ask('select from queue')).toHaveLength(40);
    await expect.poll(() => one.deliveries.pending().count, soon).toBe(40);
  });
});

describe('a webhook with many deliveries', () => {
  const many = 2_500;
  const publishMany = (store: Store) => publish(store, ...numbered('a', many).map((id) => delivery(id, 1)));

  it('is emptied in batches, and the result counts all of them', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await publishMany(store);
    expect(await store.deliveries.pendingOf(['a'])).toBe(many);
    await discard(store, 'a', 5);
    // The update itself changes none of the deliveries: each batch commits by itself.
    const discarded = await database.ask('select distinct xmin::text from finished');
    expect(discarded.length).toBeGreaterThanOrEqual(3);
    expect(store.deliveries.pending()).toEqual({ count: 0, bytes: 0 });
    expect((await store.deliveries.page({ states: ['discarded'] }, 0, 1)).total).toBe(many);
    await deleteAll(store, 'a');
    expect(await database.ask('select from finished')).toEqual([]);
    await expect.poll(() => database.ask('select from events'), soon).toEqual([]);
  });

  it('leaves the rest to others if the process is stopped while it empties it, and logs no error', async () => {
    const database = await createTestDatabase();
    const errors: unknown[] = [];
    const logger = {
      info: () => undefined,
      warn: () => undefined,
      error: (entry: unknown) => errors.push(entry),
    };
    let clock = Date.now();
    let endPause: () => void = () => undefined;
    // Each look at the clock is a second later. Pauses between two batches last until the test ends them.
    const runtime = {
      ...timelessRuntime,
      now: () => (clock += 1_000),
      sleep: (ms: number, signal?: AbortSignal) =>
        signal ? timelessRuntime.sleep(ms, signal) : new Promise<void>((resolve) => (endPause = resolve)),
    };
    const store = await database.open({ logger, runtime });
    await publishMany(store);
    // The update waits for a second only.
    await discard(store, 'a', 5);
    await store.close();
    const left = await database.ask('select from queue');
    expect(left.length).toBeGreaterThan(0);
    expect(left.length).toBeLessThan(many);
    // The next batch of the process would begin now.
    endPause();
    await realRuntime.yieldToEventLoop();
    expect(errors).toEqual([]);
    expect(await database.ask('select from queue')).toHaveLength(left.length);
    // Nobody claims them any more. If the webhook is activated again, its new events wait until it is emptied.
    const other = await database.open({ runtime: timelessRuntime });
    await publish(other, delivery('a9999', 9), ping('a10000', 9), delivery('b1', 9));
    expect((await claimAll(other, 9)).ids.sort()).toEqual(['a10000', 'b1']);
    await end(other, 'a10000', 9);
    await end(other, 'b1', 9);
    // What has not been discarded yet counts as undelivered, but the number is not known.
    const matching = { webhooks: [{ id: 'a' }], filter: { states: ['discarded' as const] }, most: 1e6 };
    const countDiscarded = () => other.deliveries.countMatched({ ...matching, requestedAt: 9 });
    expect(await countDiscarded()).toEqual({ counts: new Map([['a', many - left.length]]), isWhole: false });
    const redelivery = { id: 'r', webhookId: 'a', filter: { states: ['failed' as const] }, requestedAt: 9 };
    await other.update((transaction) => {
      transaction.put(webhooks, webhook('a'));
      transaction.put(redeliveries, redelivery);
    });
    const redeliver = () =>
      other.deliveries.redeliver(redelivery, { most: 1, at: 9, newId: realRuntime.newId });
    expect(await redeliver()).toEqual({ created: 0, isDone: false });
    await database.open({ leaseMs: 500 });
    await expect.poll(() => database.ask('select from emptied')).toEqual([]);
    expect(await countDiscarded()).toEqual({ counts: new Map([['a', many]]), isWhole: true });
    expect(await redeliver()).toEqual({ created: 0, isDone: true });
    expect((await claimAll(other, 9)).ids).toEqual(['a9999']);
    expect((await other.deliveries.page({ states: ['discarded'] }, 0, 1)).total).toBe(many);
  });

  it('keeps the newest discarded deliveries', async () => {
    const database = await createTestDatabase();
    const store = await database.open({
      retention: { deliveries: { history: 10, recoverable: 10 }, jobs: 10 },
    });
    await publish(store, ...numbered('a', 1_200).map((id, n) => delivery(id, n)));
    await discard(store, 'a', 5_000);
    await expect.poll(() => list(store, 'a')).toEqual(numbered('a', 1_200).slice(-10).reverse());
    expect(store.deliveries.evicted()).toBe(1_190);
  });

  it('loses what exceeds a limit that is lower after a restart, also without new deliveries', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await store.update((transaction) => transaction.put(webhooks, webhook('a')));
    await publish(store, ...numbered('a', 30).map((id) => delivery(id, 1)));
    await discard(store, 'a', 5);
    await store.close();
    const other = await database.open({ retention: { deliveries: { history: 1, recoverable: 2 }, jobs: 1 } });
    await expect.poll(() => list(other, 'a')).toHaveLength(2);
  });

  it('rejects no event because it cannot be trimmed, and logs why', async () => {
    const database = await createTestDatabase();
    const errors: unknown[] = [];
    const error = (entry: unknown) => errors.push(entry);
    const logger = { info: () => undefined, warn: () => undefined, error };
    const retention = { deliveries: { history: 1, recoverable: 1 }, jobs: 1 };
    const store = await database.open({ logger, retention });
    await database.ask(`create function refuse() returns trigger language plpgsql as $$
      begin raise exception 'the index is corrupt' using errcode = 'XX002'; end $$`);
    await database.ask('create trigger refuse before delete on finished execute function refuse()');
    const missed = numbered('a', 5).map((id) => delivery(id, 1, { state: 'missed', endedAt: 1 }));
    await Promise.all(missed.map((one) => publish(store, one)));
    expect(await list(store, 'a')).toHaveLength(5);
    await expect.poll(() => errors).not.toEqual([]);
    expect(store.problems()).toEqual([]);
  });

  it('leaves no delivery if the process that deletes it is killed', async () => {
    const database = await createTestDatabase();
    const store = await database.open({ leaseMs: 500 });
    await publish(store, ...numbered('a', 3).map((id) => delivery(id, 1)), delivery('b1', 1));
    await claim(store, 1, 3);
    await end(store, 'a0', 2);
    await end(store, 'b1', 2);
    // The commit of the killed process.
    await database.ask(`insert into emptied (webhook_id, up_to) values ('a', 9)`);
    await expect.poll(() => database.ask(`select id from ${allDeliveries} d`)).toEqual([{ id: 'b1' }]);
    // An event may have been published at the same moment.
    await store.deliveries.publish(() => [delivery('a5', 4, { state: 'missed', endedAt: 4 })]);
    await database.ask(`update emptied set up_to = 1, noted_at = noted_at - interval '2 minutes'`);
    await expect.poll(() => database.ask('select from emptied')).toEqual([]);
    expect(await database.ask(`select id from ${allDeliveries} d`)).toEqual([{ id: 'b1' }]);
  });
});
