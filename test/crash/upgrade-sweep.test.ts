// A job whose process dies before it reads the plan, in every step, and before and after each step is recorded: the other process takes
// over each time, and the messages are those of a job without deaths. The dead processes wake up later and change nothing.
import { afterEach, expect, it } from 'vitest';
import { notAudited } from '../../src/audit/value.ts';
import type { Cell } from '../../src/store/state.ts';
import { builtInManifest, freshRelease } from '../../src/upgrades/built-in-manifest.ts';
import { simulatedInventory } from '../../src/upgrades/workloads.ts';
import { startJob } from '../../src/upgrades/job.ts';
import { newestJob } from '../../src/upgrades/job-table.ts';
import type { Version } from '../../src/upgrades/manifest.ts';
import { prepareRollback, prepareUpgrade } from '../../src/upgrades/preflight.ts';
import { deployment } from '../../src/upgrades/deployment.ts';
import { createDatabase } from '../kit/postgres.ts';
import {
  type Message,
  codesOfFailedPatch,
  codesOfPatch,
  codesOfRelease,
  codesOfRollback,
  expectOneRun,
  timesResumed,
} from './messages.ts';
import { type HaltPoint, startPeer } from './peer.ts';
import { connect } from './steward.ts';
import { openPeerStore } from './store-kit.ts';

/** Its updates notify the processes. */
const hint: Cell<number> = { name: 'hint', initial: 0, auditFields: notAudited };

/** Versions with every kind of step and few containers. */
const small = (version: Version, names: string[]): Version => ({
  ...version,
  containers: names.map((name) => ({ name, image: `${name}:${version.build}`, checksum: 'N/A' })),
  newContainers: [],
  newLicensesRequired: false,
});
const byId = (id: string) => builtInManifest.find((version) => version.id === id) as Version;
const start = small(freshRelease, ['A_1', 'A_2', 'B_1']);
const patch = small(byId('pat_17022022_1250'), ['A_1', 'B_1', 'A_2']);
const release = small(byId('rel_14072022_2632'), ['A_1', 'A_2', 'B_1', 'C_1']);
const patchOfRelease = small(byId('pat_22092022_2650'), ['A_1', 'C_1']);
const manifest = [patch, release, patchOfRelease];

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const haltPoints: readonly HaltPoint[] = [
  'before the record',
  'in the step',
  'before the plan',
  'after the record',
];
const pollOptions = { timeout: 20_000, interval: 5 };

async function startPair(fails?: (workload: string) => boolean) {
  const { url } = await createDatabase();
  const query = await connect(url);
  const observer = await openPeerStore(url);
  closing.push(() => observer.close());
  await observer.update((transaction) => transaction.write(deployment, { release: start, patches: [] }));
  const pair = [await startPeer(url, fails), await startPeer(url, fails)] as const;
  closing.push(...pair.map((peer) => () => peer.close()));
  let hints = 0;

  /** Sets the lease of the processes, and makes an update so that every process notices. */
  async function declare(state: 'dead' | 'alive', ...processes: { self: string }[]): Promise<void> {
    const until = state === 'dead' ? `- interval '1 second'` : `+ interval '1 hour'`;
    for (const { self } of processes)
      await query(
        `insert into processes (id, since, alive_until)
         values ($1, clock_timestamp() - interval '1 hour', clock_timestamp() ${until})
         on conflict (id) do update set since = excluded.since, alive_until = excluded.alive_until`,
        [self],
      );
    await observer.update((transaction) => transaction.write(hint, (hints += 1)));
    const areAlive = () => processes.every(({ self }) => [...pair].every(({ store }) => store.isAlive(self)));
    if (state === 'alive') await expect.poll(areAlive, pollOptions).toBe(true);
  }
  await declare('alive', ...pair.map(({ store }) => store));

  const job = () => observer.read(newestJob);
  const isOver = () => job()?.state !== 'in_progress';

  async function begin(operation: 'upgrade' | 'rollback', id: string, toLatest = false): Promise<void> {
    const submitted = { upgradeSettings: {}, licenseFile: undefined, findUpload: () => undefined };
    await declare('alive', observer, ...pair.map(({ store }) => store));
    await observer.update((transaction) => {
      const { problems, to, ...prepared } =
        operation === 'rollback'
          ? prepareRollback(transaction, id, simulatedInventory)
          : prepareUpgrade(
              transaction,
              id,
              { ...submitted, updateToLatestPatch: toLatest },
              manifest,
              simulatedInventory,
            );
      expect(problems).toEqual([]);
      const newJob = {
        ...prepared,
        id: operation + id,
        to: to ?? '',
        startedBy: 'ann',
        runner: observer.self,
      };
      return startJob(transaction, newJob, Date.now());
    });
  }

  const readJob = () =>
    query(
      `select value ->> 'fence' as fence, value ->> 'next' as next, value ->> 'state' as state,
         value ->> 'messageCount' as "messageCount"
       from state where kind = 'cell' and key = 'newestJob'`,
    );

  /** The process that accepted the job dies before it starts, and both others compete for it. Then they die in turn until the job has ended. */
  async function sweep() {
    const over = new Promise<'over'>((resolve) => {
      const stopListening = observer.onUpdate(() => isOver() && resolve('over'));
      closing.push(() => Promise.resolve(stopListening()));
    });
    let deaths = 1;
    const first = haltPoints[0] as HaltPoint;
    const halts = pair.map((peer) => peer.haltAt(first).then(() => peer));
    await declare('dead', observer);
    let owner = await Promise.race(halts);
    for (; ; deaths += 1) {
      const successor = pair[0] === owner ? pair[1] : pair[0];
      const halted = successor.haltAt(haltPoints[deaths % haltPoints.length] as HaltPoint);
      owner.die();
      await declare('dead', owner.store);
      const isEnd = (await Promise.race([halted, over])) === 'over';
      const before = await readJob();
      const { calls, answers } = await owner.wakeUp();
      expect({ calls, answers: answers.filter((answer) => answer !== undefined) }).toEqual({
        calls: 0,
        answers: [],
      });
      expect(await readJob()).toEqual(before);
      if (isEnd) break;
      await declare('alive', owner.store);
      owner = successor;
    }
    for (const { crashes } of pair) expect(crashes).toEqual([]);
    const all = await readMessages();
    expect(timesResumed(all)).toBe(deaths + 1);
    return { messages: all, deaths, state: job()?.state, after: observer.read(deployment) };
  }

  /** Reads the messages from the database, and checks that their numbers have no gap and that the observer reads the same. */
  async function readMessages(): Promise<Message[]> {
    const { id = '', messageCount = 0 } = job() ?? {};
    const rows = await query<Message & { number: number }>(
      `select number::int, code::int, message, "when"::float8 as "when" from messages where job_id = $1 order by number`,
      [id],
    );
    expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: messageCount }, (_, n) => n));
    const messages = rows.map(({ code, message, when }) => ({ code, message, when }));
    expect(await observer.jobs.messages(id)).toEqual(messages);
    return messages;
  }
  return { begin, sweep, pair, observer, declare, isOver, readJob, readMessages };
}

it('a patch succeeds', { timeout: 60_000 }, async () => {
  const { begin, sweep } = await startPair();
  await begin('upgrade', patch.id);
  const { messages, deaths, state, after } = await sweep();
  expect(state).toBe('success');
  expectOneRun(messages, codesOfPatch(3));
  expect(after.patches.map(({ id }) => id)).toEqual([patch.id]);
  // Four deaths at each of its 17 steps, and one before the end.
  expect(deaths).toBeGreaterThanOrEqual(4 * 17 + 1);
});

it('a release with a patch succeeds', { timeout: 60_000 }, async () => {
  const { begin, sweep } = await startPair();
  await begin('upgrade', release.id, true);
  const { messages, deaths, state, after } = await sweep();
  expect(state).toBe('success');
  expectOneRun(messages, codesOfRelease([2, 1, 1], 2));
  expect(after.release.id).toBe(release.id);
  expect(deaths).toBeGreaterThan(100);
});

it.each(['nothing is stored', 'the answer is lost'] as const)(
  'a patch succeeds although the database becomes unavailable during the take-over: %s',
  { timeout: 60_000 },
  async (outage) => {
    const { begin, pair, observer, declare, isOver, readMessages } = await startPair();
    await begin('upgrade', patch.id);
    for (const peer of pair) peer.failNextUpdate(outage);
    await declare('dead', observer);
    await expect.poll(isOver, pollOptions).toBe(true);
    expectOneRun(await readMessages(), codesOfPatch(3));
    for (const { crashes } of pair) expect(crashes).toEqual([]);
  },
);

it('a process that wakes up after the job has ended finds no plan', { timeout: 60_000 }, async () => {
  const { begin, pair, observer, declare, isOver, readJob, readMessages } = await startPair();
  await begin('upgrade', patch.id);
  const halts = pair.map((peer) => peer.haltAt('before the plan').then(() => peer));
  await declare('dead', observer);
  const owner = await Promise.race(halts);
  for (const peer of pair) if (peer !== owner) peer.runFreely();
  owner.die();
  await declare('dead', owner.store);
  await expect.poll(isOver, pollOptions).toBe(true);
  const ended = await readJob();
  expect(ended).toMatchObject([{ state: 'success' }]);
  expect(await observer.jobs.plan(observer.read(newestJob)?.id ?? '')).toBeUndefined();

  await owner.wakeUp();
  await expect.poll(owner.ends, pollOptions).toBe(1);
  expect(await readJob()).toEqual(ended);
  expectOneRun(await readMessages(), codesOfPatch(3));
  for (const { crashes } of pair) expect(crashes).toEqual([]);
});

it('a rollback succeeds', { timeout: 60_000 }, async () => {
  const { begin, sweep } = await startPair();
  await begin('upgrade', patch.id);
  await sweep();
  await begin('rollback', start.id);
  const { messages, state, after } = await sweep();
  expect(state).toBe('success');
  expectOneRun(messages, codesOfRollback(3));
  expect(after.patches).toEqual([]);
});

it('a failing patch reverts its workloads', { timeout: 60_000 }, async () => {
  const { begin, sweep } = await startPair((workload) => workload === 'B_1');
  await begin('upgrade', patch.id);
  const { messages, state, after } = await sweep();
  expect(state).toBe('failed');
  expectOneRun(messages, codesOfFailedPatch(2));
  expect(after.patches).toEqual([]);
});
