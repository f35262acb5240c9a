// Claims whose processes were declared dead, or whose answers were lost, are released.
import { Client } from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { createDatabase, withLimits } from '../kit/postgres.ts';
import { connect } from './steward.ts';
import {
  claimOne,
  closeAfterTest,
  openPeerStore,
  openStore,
  publishEvent,
  registerWebhook,
} from './store-kit.ts';

const pollOptions = { timeout: 60_000, interval: 50 };

/** Opens two stores and publishes an event. `store` removes dead processes, `dying` never renews its lease. */
async function openDying(limits = {}) {
  const { url } = await createDatabase();
  const dying = closeAfterTest(await openPeerStore(url));
  const store = closeAfterTest(await openStore(withLimits(url, limits)));
  await registerWebhook(dying, 'hook');
  await publishEvent(dying, 'first');
  return { url, dying, store, query: await connect(url) };
}

type Query = Awaited<ReturnType<typeof connect>>;

const expectClaimable = (store: Store) =>
  expect
    .poll(async () => (await claimOne(store)).map(({ event }) => event.id), pollOptions)
    .toEqual(['first']);

it('a process that was declared dead claims nothing', async () => {
  const { dying, store, query } = await openDying();
  // The process was suspended, and the others have removed it.
  await query('delete from processes where id = $1', [dying.self]);
  expect(await claimOne(dying)).toEqual([]);
  await expectClaimable(store);
});

it('a process whose lease has expired loses its claims', async () => {
  const { dying, store, query } = await openDying();
  const [claimed] = await claimOne(dying);
  expect(claimed?.event.id).toBe('first');
  // The process is suspended until its lease has expired.
  await query('update processes set alive_until = clock_timestamp() where id = $1', [dying.self]);
  await expectClaimable(store);
  await publishEvent(store, 'second');
  expect(await claimOne(dying)).toEqual([]);
  if (claimed)
    expect(await dying.deliveries.complete(claimed, () => ({ delivery: claimed }))).toBeUndefined();
  expect(await query('select claimed_by as process from queue order by number')).toEqual([
    { process: store.self },
    { process: null },
  ]);
});

it('a claim is released although the process that removed its holder died before', async () => {
  const { dying, store, query } = await openDying();
  const [claimed] = await claimOne(dying);
  expect(claimed?.event.id).toBe('first');
  await query('delete from processes where id = $1', [dying.self]);
  await expectClaimable(store);
  if (claimed)
    expect(await dying.deliveries.complete(claimed, () => ({ delivery: claimed }))).toBeUndefined();
  expect(await query('select claimed_by as process from queue')).toEqual([{ process: store.self }]);
});

/** Makes claims of the process last until it is removed. Returns a function that waits until one has begun. */
async function slowDownClaims(query: Query, { self }: Store): Promise<() => Promise<void>> {
  await query(`create function wait_in_claim() returns trigger language plpgsql as $$ begin
    while exists (select from processes where id = new.claimed_by and id = '${self}') loop
      perform pg_sleep(0.01);
    end loop;
    return new;
  end $$`);
  await query(
    'create trigger wait_in_claim before update on queue for each row execute function wait_in_claim()',
  );
  const sleeping = () =>
    query(`select from pg_stat_activity where wait_event = 'PgSleep' and query like 'with due as%'`);
  return () => expect.poll(sleeping, pollOptions).not.toEqual([]);
}

it('a claim is released that is committed after its process was removed', async () => {
  const { dying, store, query } = await openDying();
  const hasBegun = await slowDownClaims(query, dying);
  const claiming = claimOne(dying);
  await hasBegun();
  // What the other processes do when the lease has ended.
  await query(
    `with removed as (delete from processes where id = $1)
     update queue set claimed_by = null, claim = null where claimed_by = $1`,
    [dying.self],
  );
  const [claimed] = await claiming;
  expect(claimed?.event.id).toBe('first');
  await expectClaimable(store);
});

async function connectLocker(url: string): Promise<Client> {
  const locker = new Client({ connectionString: url });
  await locker.connect();
  onTestFinished(() => locker.end());
  return locker;
}

it('the claims of a dead process are released although a delivery was locked at first', async () => {
  const { url, dying, store, query } = await openDying({ lock_timeout: 1_000 });
  expect(await claimOne(dying)).toHaveLength(1);
  const locker = await connectLocker(url);
  const {
    rows: [backend],
  } = await locker.query<{ pid: number }>('select pg_backend_pid() as pid');
  await locker.query('begin');
  await locker.query('select from queue for update');
  await query('delete from processes where id = $1', [dying.self]);
  const waiting = () =>
    query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and query like 'update queue set claimed_by%'
         and pg_blocking_pids(pid) @> array[$1::int]`,
      [backend?.pid],
    );
  await expect.poll(waiting, pollOptions).toHaveLength(1);
  // The store gives up when its `lock_timeout` has passed.
  await expect.poll(waiting, pollOptions).toEqual([]);
  await locker.query('rollback');
  await expectClaimable(store);
});
