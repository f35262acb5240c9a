// The job runner when an update fails unexpectedly, and when the answer to an update is lost.
import { expect, it } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { ServiceError } from '../../src/lib/errors.ts';
import { createTasks } from '../../src/lib/tasks.ts';
import type { Cell } from '../../src/store/state.ts';
import type { Store } from '../../src/store/store.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { JobRunner } from '../../src/upgrades/jobs/job-runner.ts';
import { type Job, newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { reasonNotToStart } from '../../src/upgrades/jobs/job-to-repair.ts';
import { startJob } from '../../src/upgrades/jobs/job.ts';
import { prepareUpgrade } from '../../src/upgrades/starting/preflight.ts';
import { simulatedInventory } from '../../src/upgrades/executors/simulated.ts';
import { deployment } from '../../src/upgrades/versions/deployment.ts';
import { freshDeployment, laterVersions } from '../kit/sample-manifest.ts';
import { createFakeRuntime } from '../kit/runtime.ts';

const patch = 'pat_17022022_1250';
const lastOfPatch = laterVersions.find(({ id }) => id === patch)?.containers.at(-1)?.name ?? '';

const createStore = () =>
  createMemoryStore({ retention: { deliveries: { history: 1, recoverable: 1 }, jobs: 1 }, maxEventIds: 1 });

/** Runs the patch on the store until no task is left. */
async function run(
  store: Store,
  failures: ReadonlyMap<string, number> = new Map(),
  begin: (jobRunner: JobRunner, accept: () => Promise<Job>) => Promise<unknown> = (jobRunner, accept) =>
    jobRunner.run(accept),
) {
  const runtime = createFakeRuntime();
  const errors: unknown[] = [];
  const tasks = createTasks(runtime, (_name, error) => errors.push(error));
  const executor = createSimulatedExecutor({ runtime, stepMs: 0, failures: new Map(failures) });
  const options = {
    runtime,
    tasks,
    executor,
    stepTimeoutMs: 1000,
    revertTimeoutMs: 900_000,
    notify: () => undefined,
  };
  const given = { upgradeSettings: undefined, licenseFile: undefined, updateToLatestPatch: undefined };
  const accept = () =>
    store.update((transaction) => {
      transaction.write(deployment, freshDeployment);
      const { to, ...prepared } = prepareUpgrade(
        transaction,
        patch,
        { ...given, findUpload: () => undefined },
        laterVersions,
        simulatedInventory,
      );
      const by = { id: 'job', startedBy: 'ann', runner: store.self, to: to ?? '' };
      return startJob(transaction, { ...prepared, ...by, ignoresWindows: false }, runtime.now());
    });
  await begin(new JobRunner({ store, ...options }), accept);
  const over = new AbortController();
  void tasks.idle().then(() => over.abort());
  while (!over.signal.aborted) await runtime.advance(1000);
  return { errors, codes: (await store.jobs.messages('job')).map(({ code }) => code) };
}

it('a job that meets an unexpected error fails, so that the system does not stay read-only', async () => {
  const store = createStore();
  let updates = 0;
  const { errors, codes } = await run({
    ...store,
    update<T>(change: (transaction: Transaction) => T): Promise<T> {
      updates += 1;
      return updates === 5 ? Promise.reject(new TypeError('a refusal')) : store.update(change);
    },
  });
  expect(errors).toEqual([new TypeError('a refusal')]);
  expect(store.read(newestJob)).toMatchObject({
    state: 'failed',
    reason: expect.stringContaining('unexpected') as string,
  });
  expect(codes).toEqual([2010, 2168, 2165, 2270, 2901, 2166]);
});

it('a job that meets an unexpected error while it reverts can only continue to revert', async () => {
  const store = createStore();
  let isMet = false;
  const { errors, codes } = await run(
    {
      ...store,
      update<T>(change: (transaction: Transaction) => T): Promise<T> {
        const isFirst = !isMet && !!store.read(newestJob)?.reverting;
        isMet ||= isFirst;
        return isFirst ? Promise.reject(new TypeError('a refusal')) : store.update(change);
      },
    },
    new Map([[lastOfPatch, 1]]),
  );
  expect(errors).toEqual([new TypeError('a refusal')]);
  expect(codes.slice(-3)).toEqual([2901, 2901, 2166]);
  expect(store.read(newestJob)).toMatchObject({ state: 'failed', reverting: { then: 'failed' } });
  expect(reasonNotToStart(store, { operation: 'upgrade', targetId: patch })).toBe(
    'The job job to 10.9.1.1250 has not reverted all of its workloads: resume it.',
  );
});

it.each<[string, () => Promise<undefined>, Error]>([
  ['is missing', () => Promise.resolve(undefined), new Error('The plan of the job job is missing.')],
  ['cannot be read', () => Promise.reject(new TypeError('a refusal')), new TypeError('a refusal')],
])('a job whose plan %s fails', async (_why, plan, error) => {
  const store = createStore();
  const { errors, codes } = await run({ ...store, jobs: { ...store.jobs, plan } });
  expect(errors).toEqual([error]);
  expect(store.read(newestJob)).toMatchObject({
    state: 'failed',
    reason: expect.stringContaining('unexpected') as string,
  });
  expect(codes).toEqual([2010, 2165, 2901, 2166]);
});

it('a job waits for its plan while the database is unavailable', async () => {
  const store = createStore();
  const expected = await run(createStore());
  let refusals = 3;
  const plan = (id: string) =>
    refusals-- > 0
      ? Promise.reject(new ServiceError('unavailable', 'The database cannot be reached.'))
      : store.jobs.plan(id);
  const { errors, codes } = await run({ ...store, jobs: { ...store.jobs, plan } });
  expect(errors).toEqual([]);
  expect(codes).toEqual(expected.codes);
});

it.each<[string, (before: Job | null, after: Job | null) => boolean]>([
  ['a failed step', (before, after) => !before?.reverting && !!after?.reverting],
  [
    'a reverted workload',
    (before, after) => (after?.reverting?.left.length ?? Infinity) < (before?.reverting?.left.length ?? 0),
  ],
])('%s is recorded once, even if the answer of the store is lost', async (_what, isLost) => {
  const failures = new Map([[lastOfPatch, 3]]);
  const expected = await run(createStore(), failures);
  const store = createStore();
  /** After a lost answer the runner still reads the old job, until the next update. */
  let stale: Job | null = null;
  let losses = 0;
  const { codes } = await run(
    {
      ...store,
      read: <T>(cell: Cell<T>) => (stale && cell.name === newestJob.name ? (stale as T) : store.read(cell)),
      async update<T>(change: (transaction: Transaction) => T): Promise<T> {
        stale = null;
        const before = store.read(newestJob);
        const result = await store.update(change);
        if (losses > 0 || !isLost(before, store.read(newestJob))) return result;
        losses += 1;
        stale = before;
        throw new ServiceError('unavailable', 'The answer is lost.');
      },
    },
    failures,
  );
  expect(losses).toBe(1);
  expect(codes).toEqual(expected.codes);
});

it('a job whose answer is lost while another request is answered is run after that request', async () => {
  const expected = await run(createStore());
  const { codes } = await run(createStore(), new Map(), async (jobRunner, accept) => {
    const lost = new ServiceError('unavailable', 'The answer is lost.');
    let refuse: () => void = () => undefined;
    const other = jobRunner.run(
      () => new Promise<undefined>((_resolve, reject) => (refuse = () => reject(lost))),
    );
    await expect(jobRunner.run(() => accept().then(() => Promise.reject(lost)))).rejects.toBe(lost);
    refuse();
    await expect(other).rejects.toBe(lost);
  });
  expect(codes).toEqual(expected.codes.toSpliced(1, 0, 2902));
});

it('a patch that meets an unexpected error after it has moved workloads must put them back', async () => {
  const store = createStore();
  let isMet = false;
  await run({
    ...store,
    update<T>(change: (transaction: Transaction) => T): Promise<T> {
      const isFirst = !isMet && (store.read(newestJob)?.workloadsDone ?? 0) > 0;
      isMet ||= isFirst;
      return isFirst ? Promise.reject(new TypeError('a refusal')) : store.update(change);
    },
  });
  expect(store.read(newestJob)).toMatchObject({ state: 'failed', reverting: { then: 'failed' } });
  expect(reasonNotToStart(store, { operation: 'upgrade', targetId: patch })).toMatch(
    /has not reverted all of its workloads: resume it\.$/,
  );
});
