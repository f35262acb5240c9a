// The next version of the program changes the schema while processes of this version run. After a migration that
// only adds, processes of both versions work side by side. After a migration that starts with the comment `--
// contract`, processes of this version write nothing more, and say why.
import { expect, it } from 'vitest';
import { filesWith } from './built-files.ts';
import { type Start, listFolders, startFleet, startFolderClient, startPublishers } from './fleet.ts';
import { changeSettings, expectDelivered, register, startReceiver, webhooksPath } from './receiver.ts';
import {
  type InProcessSteward,
  type Steward,
  connect,
  createSeededDatabase,
  signInEverywhere,
  startInProcess,
} from './steward.ts';

const settled = { timeout: 60_000, interval: 100 };
/** How often the servers of this version are checked after they have noticed the migration. */
const checks = 10;

/** Part of every text that says why a process of this version does not write. */
const reason = /schema|newer version/;

/**
 * Adds a column to every table. It takes all locks or none, because it would otherwise wait for processes that wait
 * for it.
 */
const expanding = `
do $$
declare name text;
begin
  loop
    begin
      for name in select tablename from pg_tables where schemaname = current_schema() loop
        execute format('lock table %I in access exclusive mode nowait', name);
      end loop;
      exit;
    exception when lock_not_available then
      perform pg_sleep(0.005);
    end;
  end loop;
  for name in select tablename from pg_tables where schemaname = current_schema() loop
    execute format('alter table %I add column added_by_test text not null default ''added''', name);
  end loop;
end $$;
`;

const contracting = `-- contract
create table added_by_contract (key text primary key);
`;

async function startLoadedFleet(url: string, mayRepeat: boolean) {
  const fleet = await startFleet(startInProcess, url, 2);
  const token = await signInEverywhere(fleet.running());
  await changeSettings(fleet.at(0), token, { notificationElapsedTimeInSeconds: '1' });
  const receivers = await Promise.all([startReceiver(), startReceiver()]);
  for (const receiver of receivers) await register(fleet.running(), token, receiver, 'Tested');
  const publishers = startPublishers(fleet, token, {
    changeType: 'Tested',
    deliveries: receivers.length,
    clients: 3,
    pauseMs: 30,
    mayRepeat,
  });
  const folders = startFolderClient(fleet, token, mayRepeat);

  return {
    fleet,
    token,
    /** Resolves when another event and another folder are acknowledged. */
    async continues(): Promise<void> {
      const counts = () => [publishers.acknowledged.length, folders.acknowledged.length] as const;
      const [events, created] = counts();
      await expect.poll(() => counts()[0], settled).toBeGreaterThan(events);
      await expect.poll(() => counts()[1], settled).toBeGreaterThan(created);
    },
    /**
     * Stops the load and checks at the process that it has everything that was acknowledged, once, and nothing
     * else. A process that stops does not wait for ever for its attempts, so these may be repeated.
     */
    async expectIntact(steward: Steward, maxDuplicates: number): Promise<void> {
      await Promise.all([publishers.stop(), folders.stop()]);
      expect(await listFolders(steward, token)).toEqual([...folders.acknowledged].sort());
      for (const receiver of receivers) {
        await expectDelivered(steward, token, receiver, publishers.acknowledged);
        expect(receiver.duplicates()).toBeLessThanOrEqual(maxDuplicates);
      }
      expect(folders.acknowledged.length).toBeGreaterThan(5);
      expect(publishers.acknowledged.length).toBeGreaterThan(20);
      // A process of this version may log why it writes nothing more, and the entries of the audit trail that it
      // could not store.
      const expected = new RegExp(`${reason.source}|an entry of the audit trail could not be stored`);
      expect(fleet.loggedErrors().filter((line) => !expected.test(line))).toEqual([]);
    },
  };
}

/** Starts a server of the next version. */
function startWith(migration: string): Start<InProcessSteward> {
  const builtFiles = filesWith(migration);
  return (storeUrl, env) => startInProcess(storeUrl, env, { builtFiles });
}

it('processes of two versions work side by side after a migration that adds', async () => {
  const { url } = await createSeededDatabase();
  const { fleet, ...load } = await startLoadedFleet(url, false);
  const next = startWith(expanding);
  await fleet.replace(1, {}, next);
  await load.continues();
  // A process of this version may restart during the roll.
  await fleet.replace(0);
  await load.continues();
  await fleet.replace(0, {}, next);
  await load.expectIntact(fleet.at(0), 3 * 4);
});

it('a process of this version stops writing after a migration that removes', async () => {
  const { url } = await createSeededDatabase();
  const query = await connect(url);
  const { fleet, token, ...load } = await startLoadedFleet(url, true);
  const old = fleet.running();
  const joined = fleet.join({}, startWith(contracting));
  const isMigrated = async () => (await query(`select to_regclass('added_by_contract') as name`))[0];
  await expect.poll(isMigrated, { timeout: 60_000, interval: 10 }).toEqual({ name: 'added_by_contract' });

  const publish = (steward: Steward, eventId: string) =>
    steward.post(`${webhooksPath}/publish`, { changeType: 'Other', eventId }, token);
  const createFolder = (steward: Steward, folderName: string) =>
    steward.post('/admin/services/createFolder', { folderName }, token);
  const states = () =>
    Promise.all(
      old.map(async (steward, index) => {
        const ready = await steward.ask('/ready');
        const answers = [
          await publish(steward, `other-${index}`),
          await createFolder(steward, `Other${index}`),
        ];
        return { ready: ready.status, writes: answers.map(({ status }) => status) };
      }),
    );
  const stopped = { ready: 503, writes: [503, 503] };
  await expect.poll(states, { timeout: 60_000, interval: 20 }).toEqual([stopped, stopped]);

  for (const steward of old) {
    const { body } = await steward.ask('/ready');
    expect((body.reasons as string[]).join()).toMatch(reason);
    const { body: refusal } = await createFolder(steward, 'Refused');
    expect((refusal.error as { message: string }).message).toMatch(reason);
  }
  const next = await joined;
  for (let check = 0; check < checks; check += 1) {
    // The next version writes, which the others notice.
    await load.continues();
    expect(await states()).toEqual([stopped, stopped]);
    for (const steward of old)
      for (const path of ['/admin', '/admin/services', '/admin/services/webhooks', '/admin/system/upgrades'])
        expect(await steward.get(path, token)).toMatchObject({ status: 200 });
  }
  expect(await publish(next, 'other')).toMatchObject({ status: 200 });
  expect(await createFolder(next, 'Other')).toMatchObject({ status: 200 });

  await expect(startInProcess(url)).rejects.toThrow(reason);
  await Promise.all([fleet.stop(0), fleet.stop(1)]);
  // The attempts that ran at the time of the migration are repeated.
  await load.expectIntact(next, old.length * 4);
});
