// A job whose process dies in the middle of every step and on either side of every record of it: the other one takes it up each
// time, and the whole says what it would have said by itself (contract 6, "Runs"). The dead wake up later and change nothing.
import { afterEach, expect, it } from 'vitest';
import { builtInManifest, freshRelease } from '../../src/upgrades/built-in-manifest.ts';
import { simulatedInventory } from '../../src/upgrades/workloads.ts';
import { startJob } from '../../src/upgrades/job.ts';
import { messages, newestJob } from '../../src/upgrades/job-table.ts';
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
import { type Place, openPeerStore, startPeer } from './peer.ts';
import { connect } from './steward.ts';

/** A chain with every kind of step in it, and few of each. */
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

const places: readonly Place[] = ['before the record', 'in the step', 'after the record'];
const patience = { timeout: 20_000, interval: 5 };

async function startPair(breaks?: (workload: string) => boolean) {
  const { url } = await createDatabase();
  const query = await connect(url);
  const witness = await openPeerStore(url);
  closing.push(() => witness.close());
  await witness.update((transaction) => transaction.write(deployment, { release: start, patches: [] }));
  const pair = [await startPeer(url, breaks), await startPeer(url, breaks)] as const;
  closing.push(...pair.map((peer) => () => peer.close()));
  let hints = 0;

  /** Its lease ends or begins anew, and everybody looks; those who begin are known then. */
  async function declare(state: 'dead' | 'alive', ...processes: { self: string }[]): Promise<void> {
    const until = state === 'dead' ? `- interval '1 second'` : `+ interval '1 hour'`;
    for (const { self } of processes)
      await query(
        `insert into processes (id, since, alive_until)
         values ($1, clock_timestamp() - interval '1 hour', clock_timestamp() ${until})
         on conflict (id) do update set since = excluded.since, alive_until = excluded.alive_until`,
        [self],
      );
    await witness.update((transaction) => transaction.write({ name: 'hint', initial: 0 }, (hints += 1)));
    const areKnown = () => processes.every(({ self }) => [...pair].every(({ store }) => store.isAlive(self)));
    if (state === 'alive') await expect.poll(areKnown, patience).toBe(true);
  }
  await declare('alive', ...pair.map(({ store }) => store));

  const job = () => newestJob(witness);
  const isOver = () => job()?.state !== 'in_progress';

  async function begin(operation: 'upgrade' | 'rollback', id: string, toLatest = false): Promise<void> {
    const given = { upgradeSettings: {}, licenseFile: undefined, findUpload: () => undefined };
    await declare('alive', witness, ...pair.map(({ store }) => store));
    await witness.update((transaction) => {
      const { problems, to, ...prepared } =
        operation === 'rollback'
          ? prepareRollback(transaction, id, simulatedInventory)
          : prepareUpgrade(
              transaction,
              id,
              { ...given, updateToLatestPatch: toLatest },
              manifest,
              simulatedInventory,
            );
      expect(problems).toEqual([]);
      const asked = { ...prepared, id: operation + id, to: to ?? '', startedBy: 'ann', runner: witness.self };
      return startJob(transaction, asked, Date.now());
    });
  }

  const standing = () => query('select fence, next, state from jobs order by number desc limit 1');

  /** Who has accepted the job dies before it has begun, and both want to have it; then one dies after the other. */
  async function sweep() {
    const over = new Promise<'over'>((resolve) => {
      const stopListening = witness.onUpdate(() => isOver() && resolve('over'));
      closing.push(() => Promise.resolve(stopListening()));
    });
    let deaths = 1;
    const first = places[0] as Place;
    const came = pair.map((peer) => peer.haltAt(first).then(() => peer));
    await declare('dead', witness);
    let owner = await Promise.race(came);
    for (; ; deaths += 1) {
      const heir = pair[0] === owner ? pair[1] : pair[0];
      const halted = heir.haltAt(places[deaths % places.length] as Place);
      owner.die();
      await declare('dead', owner.store);
      const isEnd = (await Promise.race([halted, over])) === 'over';
      const before = await standing();
      const { acts, answers } = await owner.awake();
      expect({ acts, answers: answers.filter((answer) => answer !== undefined) }).toEqual({
        acts: 0,
        answers: [],
      });
      expect(await standing()).toEqual(before);
      if (isEnd) break;
      await declare('alive', owner.store);
      owner = heir;
    }
    for (const { crashes } of pair) expect(crashes).toEqual([]);
    const all = await told();
    expect(timesResumed(all)).toBe(deaths + 1);
    return { told: all, deaths, state: job()?.state, after: witness.read(deployment) };
  }

  /** What is in the database; the witness knows the same. */
  async function told(): Promise<Message[]> {
    const { id = '' } = job() ?? {};
    const rows = await query<Message>(
      `select code::int, message, "when"::float8 as "when" from messages where key = $1 order by number`,
      [id],
    );
    expect(witness.entries(messages, id)).toEqual(rows);
    return rows;
  }
  return { begin, sweep, pair, witness, declare, isOver, told };
}

it('a patch', { timeout: 60_000 }, async () => {
  const { begin, sweep } = await startPair();
  await begin('upgrade', patch.id);
  const { told, deaths, state, after } = await sweep();
  expect(state).toBe('success');
  expectOneRun(told, codesOfPatch(3));
  expect(after.patches.map(({ id }) => id)).toEqual([patch.id]);
  // Three at each of its 17 steps, and one when there was nothing left but to end.
  expect(deaths).toBeGreaterThanOrEqual(3 * 17 + 1);
});

it('a release that brings a patch along', { timeout: 60_000 }, async () => {
  const { begin, sweep } = await startPair();
  await begin('upgrade', release.id, true);
  const { told, deaths, state, after } = await sweep();
  expect(state).toBe('success');
  expectOneRun(told, codesOfRelease([2, 1, 1], 2));
  expect(after.release.id).toBe(release.id);
  expect(deaths).toBeGreaterThan(100);
});

it.each(['nothing is done', 'the answer is lost'] as const)(
  'a patch that is taken up just when the database goes away: %s',
  { timeout: 60_000 },
  async (trouble) => {
    const { begin, pair, witness, declare, isOver, told } = await startPair();
    await begin('upgrade', patch.id);
    for (const peer of pair) peer.meet(trouble);
    await declare('dead', witness);
    await expect.poll(isOver, patience).toBe(true);
    expectOneRun(await told(), codesOfPatch(3));
    for (const { crashes } of pair) expect(crashes).toEqual([]);
  },
);

it('a rollback', { timeout: 60_000 }, async () => {
  const { begin, sweep } = await startPair();
  await begin('upgrade', patch.id);
  await sweep();
  await begin('rollback', start.id);
  const { told, state, after } = await sweep();
  expect(state).toBe('success');
  expectOneRun(told, codesOfRollback(3));
  expect(after.patches).toEqual([]);
});

it('a patch that fails and is put back', { timeout: 60_000 }, async () => {
  const { begin, sweep } = await startPair((workload) => workload === 'B_1');
  await begin('upgrade', patch.id);
  const { told, state, after } = await sweep();
  expect(state).toBe('failed');
  expectOneRun(told, codesOfFailedPatch(2));
  expect(after.patches).toEqual([]);
});
