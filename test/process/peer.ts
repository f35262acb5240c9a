// A simulated process: a store and a job runner of its own, which can be halted at a chosen point and declared
// dead. It does not use the clock, so that every death happens at an exact point and the next one can follow at
// once.
import { ServiceError } from '../../src/lib/errors.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import { createTasks } from '../../src/lib/tasks.ts';
import type { Store } from '../../src/store/store.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { JobRunner } from '../../src/upgrades/jobs/job-runner.ts';
import { simulatedInventory } from '../../src/upgrades/executors/simulated.ts';
import { openPeerStore } from './store-kit.ts';

/**
 * Where the process halts: after it has taken the job over and before it reads the plan, while the executor works,
 * before the step is recorded, or after it but before the runner gets the answer.
 */
export type HaltPoint = 'before the plan' | 'in the step' | 'before the record' | 'after the record';

/** What happens to the next update when the database becomes unavailable. */
export type Outage = 'nothing is stored' | 'the answer is lost';

export type PeerOptions = {
  fails?: ((workload: string) => boolean) | undefined;
  /** Does the work of the steps. Default: nothing. */
  executor?: Executor | undefined;
};

export async function startPeer(url: string, { fails = () => false, executor: worker }: PeerOptions = {}) {
  const store = await openPeerStore(url);
  const runtime = realRuntime;
  const crashes: unknown[] = [];
  const tasks = createTasks(runtime, (_name, error) => crashes.push(error));
  let haltPoint: HaltPoint | undefined;
  let isTakingOver = false;
  let outage: Outage | undefined;
  let wake: (() => void) | undefined;
  let onHalted: () => void = () => undefined;
  /**
   * While the process is declared dead: the answers of the store to its runner, and the runner's calls of the
   * executor.
   */
  const whileDead = { answers: [] as unknown[], calls: 0 };
  let isDead = false;
  /** How many runs have found that their job has ended. */
  let ends = 0;

  async function halt(at: HaltPoint): Promise<void> {
    if (haltPoint !== at) return;
    haltPoint = undefined;
    await new Promise<void>((resolve) => {
      wake = resolve;
      onHalted();
    });
  }

  /** Calls of the executor and updates that have not ended. */
  const pending = new Set<Promise<unknown>>();

  async function track<T>(work: Promise<T>): Promise<T> {
    pending.add(work);
    try {
      return await work;
    } finally {
      pending.delete(work);
    }
  }

  async function call<T>(work: () => Promise<T> | undefined, fallback: T): Promise<T> {
    if (isDead) whileDead.calls += 1;
    return (await track(halt('in the step').then(work))) ?? fallback;
  }
  const executor: Executor = {
    checkImages: () => Promise.resolve(undefined),
    inventory: () => Promise.resolve(simulatedInventory),
    release: () => {
      ends += 1;
      return Promise.resolve();
    },
    perform: (...given) => call(() => worker?.perform(...given), undefined),
    verify: (...given) => call(() => worker?.verify(...given), undefined),
    beginRollback: (...given) => call(() => worker?.beginRollback(...given), undefined),
    rollback: (...given) => call(() => worker?.rollback(...given), { isPatched: true }),
    startTemplate: async (...given) => track(Promise.resolve(worker?.startTemplate(...given))),
    runTemplate: (...given) => call(() => worker?.runTemplate(...given), {}),
    stopTemplate: (...given) => call(() => worker?.stopTemplate(...given), undefined),
    check: (...given) => call(() => worker?.check(...given), undefined),
    apply: (...given) =>
      call(
        () =>
          fails(given[0].name) ? Promise.reject(new Error('the update fails.')) : worker?.apply(...given),
        { isPatched: true },
      ),
  };

  async function record<T>(rule: (transaction: Transaction) => T): Promise<T> {
    await halt('before the record');
    const answer = await store.update(rule);
    if (isDead) whileDead.answers.push(answer);
    await halt('after the record');
    return answer;
  }

  const watched: Store = {
    ...store,
    jobs: {
      find: (id) => store.jobs.find(id),
      page: (below, start, num) => store.jobs.page(below, start, num),
      findInstalling: (versionId) => store.jobs.findInstalling(versionId),
      messages: (jobId, after) => store.jobs.messages(jobId, after),
      async plan(jobId) {
        await halt('before the plan');
        return store.jobs.plan(jobId);
      },
    },
    async update<T>(rule: (transaction: Transaction) => T): Promise<T> {
      if (outage) {
        if (outage === 'the answer is lost') await store.update(rule);
        outage = undefined;
        throw new ServiceError('unavailable', 'The database cannot be reached.');
      }
      if (isTakingOver) {
        isTakingOver = false;
        return store.update(rule);
      }
      return track(record(rule));
    },
  };
  const jobRunner = new JobRunner({
    store: watched,
    runtime,
    tasks,
    executor,
    stepTimeoutMs: 600_000,
    revertTimeoutMs: 900_000,
    notify: () => undefined,
  });
  await jobRunner.recover();

  return {
    store,
    crashes,
    ends: () => ends,
    /** Halts at the given point after this process has taken the job over; resolves when it has halted. */
    haltAt: (next: HaltPoint) =>
      new Promise<'halted'>((resolve) => {
        haltPoint = next;
        isTakingOver = true;
        onHalted = () => resolve('halted');
      }),
    /** Halts no more. */
    runFreely: () => void (haltPoint = undefined),
    failNextUpdate: (next: Outage) => void (outage = next),
    /** From now on the process counts as dead. It stays halted. */
    die: () => void (isDead = true),
    /** Continues as if the process had only been slow; returns what it has done since its death. */
    async wakeUp() {
      // An empty update brings the replica up to date, and waits for updates that were made before.
      await store.update(() => undefined);
      wake?.();
      wake = undefined;
      for (let turn = 0; turn < 3; turn += 1) {
        await Promise.allSettled(pending);
        await store.update(() => undefined);
      }
      isDead = false;
      return { calls: whileDead.calls, answers: whileDead.answers.splice(0) };
    },
    async close() {
      wake?.();
      await tasks.stop();
      await store.close();
    },
  };
}
