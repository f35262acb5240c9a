// Two simulated processes on one database, which die in turn at chosen points while they run a job.
import { expect, onTestFinished } from 'vitest';
import { notAudited } from '../../src/lib/audit-fields.ts';
import type { Cell } from '../../src/store/state.ts';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { startJob } from '../../src/upgrades/jobs/job.ts';
import { prepareRollback, prepareUpgrade } from '../../src/upgrades/starting/preflight.ts';
import type { Inventory } from '../../src/upgrades/executors/workloads.ts';
import { simulatedInventory } from '../../src/upgrades/executors/simulated.ts';
import { deployment, readDeployment } from '../../src/upgrades/versions/deployment.ts';
import type { Version } from '../../src/upgrades/versions/manifest.ts';
import { createDatabase } from '../kit/postgres.ts';
import { type Message, timesResumed } from '../upgrades/message-codes.ts';
import { type HaltPoint, startPeer } from './peer.ts';
import { connect } from './steward.ts';
import { openPeerStore } from './store-kit.ts';

/** Its updates notify the processes. */
const hint: Cell<number> = { name: 'hint', initial: 0, auditFields: notAudited };

const haltPoints: readonly HaltPoint[] = [
  'before the record',
  'in the step',
  'before the plan',
  'after the record',
];
export const pollOptions = { timeout: 60_000, interval: 5 };

export type PairOptions = {
  start: Version;
  manifest: readonly Version[];
  /** Which updates of workloads fail. */
  fails?: (workload: string) => boolean;
  /** Default: an executor that does nothing. */
  createExecutor?: () => Executor;
  inventory?: () => Promise<Inventory>;
};

export async function startPair({
  start,
  manifest,
  fails,
  createExecutor,
  inventory: readInventory = () => Promise.resolve(simulatedInventory),
}: PairOptions) {
  const closing: (() => Promise<void>)[] = [];
  onTestFinished(async () => {
    for (const close of closing.splice(0)) await close();
  });
  const { url } = await createDatabase();
  const query = await connect(url);
  const observer = await openPeerStore(url);
  closing.push(() => observer.close());
  await observer.update((transaction) => transaction.write(deployment, { release: start, patches: [] }));
  const startOne = () => startPeer(url, { fails, executor: createExecutor?.() });
  const pair = [await startOne(), await startOne()] as const;
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
    const inventory = await readInventory();
    const submitted = { upgradeSettings: {}, licenseFile: undefined, findUpload: () => undefined };
    await declare('alive', observer, ...pair.map(({ store }) => store));
    await observer.update((transaction) => {
      const { problems, to, ...prepared } =
        operation === 'rollback'
          ? prepareRollback(transaction, id, inventory)
          : prepareUpgrade(
              transaction,
              id,
              { ...submitted, updateToLatestPatch: toLatest },
              manifest,
              inventory,
            );
      expect(problems).toEqual([]);
      const newJob = {
        ...prepared,
        id: operation + id,
        to: to ?? '',
        startedBy: 'ann',
        runner: observer.self,
      };
      return startJob(transaction, { ...newJob, ignoresWindows: false }, Date.now());
    });
  }

  const readJob = () =>
    query(
      `select value ->> 'fence' as fence, value ->> 'next' as next, value ->> 'state' as state,
         value ->> 'messageCount' as "messageCount"
       from state where kind = 'cell' and key = 'newestJob'`,
    );

  /**
   * The process that accepted the job dies before it starts, and both others compete for it. Then they die in turn
   * until the job has ended.
   */
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
    return { messages: all, deaths, state: job()?.state, after: readDeployment(observer) };
  }

  /**
   * Reads the messages from the database, and checks that their numbers have no gap and that the observer reads the
   * same.
   */
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
