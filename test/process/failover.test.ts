// Tests replication: a streaming replica takes over that lacks the last commits of the primary, and one that hangs.
import { expect, it, onTestFinished } from 'vitest';
import { impatientAddress } from '../kit/postgres.ts';
import { startProxy } from './proxy.ts';
import { publish, register, startReceiver } from './receiver.ts';
import { type Client, connect, signInEverywhere, startInProcess, startSeededPostgres } from './steward.ts';

const pollOptions = { timeout: 60_000, interval: 5 };

async function createFolder(steward: Client, token: string, folderName: string): Promise<void> {
  const { status } = await steward.post('/admin/services/createFolder', { folderName }, token);
  expect(status).toBe(200);
}

const foldersOf = async (steward: Client, token: string) => {
  const { body } = await steward.get('/admin/services', token);
  return (body.folders as string[]).toSorted();
};

it('every process shows the state of a promoted replica, whenever it reconnects, and loses no event', async () => {
  const primary = await startSeededPostgres();
  const proxies = [await startProxy(primary.url), await startProxy(primary.url)] as const;
  const [first, second] = [await startInProcess(proxies[0].url), await startInProcess(proxies[1].url)];
  onTestFinished(async () => void (await Promise.all([first.stop(), second.stop()])));
  const token = await signInEverywhere([first, second]);
  const receiver = await startReceiver();
  await register([first, second], token, receiver, 'Tested');

  const replica = await primary.replicate();
  onTestFinished(() => replica.stop());
  const [onPrimary, onReplica] = [await connect(primary.url), await connect(replica.url)];
  const [position] = await onPrimary<{ lsn: string }>('select pg_current_wal_lsn()::text as lsn');
  const hasArrived = () =>
    onReplica<{ done: boolean }>(`select pg_last_wal_replay_lsn() >= $1::pg_lsn as done`, [position?.lsn]);
  await expect.poll(hasArrived, pollOptions).toEqual([{ done: true }]);
  // The replica receives nothing from now on.
  await onReplica(`alter system set primary_conninfo = ''`);
  await onReplica('select pg_reload_conf()');
  await expect.poll(() => onReplica('select from pg_stat_wal_receiver'), pollOptions).toEqual([]);

  const before = await foldersOf(first, token);
  for (let n = 0; n < 5; n += 1) await createFolder(first, token, `Lost${n}`);
  await expect.poll(() => foldersOf(second, token), pollOptions).toHaveLength(before.length + 5);
  await primary.kill();
  await onReplica('select pg_promote()');
  await expect
    .poll(() => onReplica('select pg_is_in_recovery() as standby'), pollOptions)
    .toEqual([{ standby: false }]);

  proxies[0].switchTo(replica.url);
  await expect.poll(first.readiness, pollOptions).toBe(200);
  for (let n = 0; n < 9; n += 1) await createFolder(first, token, `Kept${n}`);
  const other = await startReceiver();
  await register([first], token, other, 'Tested');

  // The second process reconnects now. Whenever it accepts an event, it accepts it for both webhooks.
  proxies[1].switchTo(replica.url);
  const accepted: unknown[] = [];
  for (let n = 0; accepted.length < 5; n += 1) {
    const { status, body } = await publish(second, token, `second-${n}`);
    if (status === 200) accepted.push(body.deliveries);
    else expect(status).toBe(503);
  }
  expect(accepted).toEqual([2, 2, 2, 2, 2]);
  for (let n = 0; n < 5; n += 1)
    expect((await publish(first, token, `first-${n}`)).body).toMatchObject({ deliveries: 2 });
  const folders = await foldersOf(first, token);
  expect(folders).toEqual([...before, ...Array.from({ length: 9 }, (_, n) => `Kept${n}`)].toSorted());
  expect(await foldersOf(second, token)).toEqual(folders);
  const arrived = () => [receiver, other].map(({ arrivals }) => arrivals.size);
  await expect.poll(arrived, pollOptions).toEqual([10, 10]);
  expect([...first.loggedErrors(), ...second.loggedErrors()]).toEqual([]);
});

it('a process opens no more connections while a synchronous replica hangs, and is not ready', async () => {
  const primary = await startSeededPostgres();
  const steward = await startInProcess(impatientAddress(primary.url));
  onTestFinished(() => steward.stop());
  const token = await signInEverywhere([steward]);
  const onPrimary = await connect(primary.url);
  await onPrimary(`alter system set synchronous_standby_names = 'nobody'`);
  await onPrimary('select pg_reload_conf()');
  const hanging = () => onPrimary(`select from pg_stat_activity where wait_event = 'SyncRep'`);
  await expect.poll(hanging, pollOptions).not.toEqual([]);
  await expect.poll(steward.readiness, pollOptions).toBe(503);
  const sessions = async () => {
    const [found] = await onPrimary<{ open: number; ever: number }>(
      `select sessions::int as ever,
         (select count(*)::int from pg_stat_activity where application_name = 'steward') as open
       from pg_stat_database where datname = current_database()`,
    );
    return found ?? { open: 0, ever: 0 };
  };
  // What waits when the replica begins to hang, and one connection to look whether it still does.
  const { ever: before } = await sessions();
  for (let looks = 0; looks < 20;) {
    const { open, ever } = await sessions();
    looks = ever - before;
    expect(open).toBeLessThanOrEqual(12);
    expect(await steward.readiness()).toBe(503);
  }
  await onPrimary('alter system reset synchronous_standby_names');
  await onPrimary('select pg_reload_conf()');
  await expect.poll(steward.readiness, pollOptions).toBe(200);
  await createFolder(steward, token, 'Kept');
});
