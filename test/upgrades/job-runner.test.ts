// The job runner when an update fails unexpectedly, and when the answer to an update is lost.
import { expect, it } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import type { Store } from '../../src/store/store.ts';
import type { Table, Transaction } from '../../src/store/transaction.ts';
import { createMemoryStore } from '../../src/store/memory.ts';
import { createTasks } from '../../src/tasks.ts';
import { builtInManifest } from '../../src/upgrades/built-in-manifest.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { startJob } from '../../src/upgrades/job.ts';
import { type Job, jobs, messages, newestJob } from '../../src/upgrades/job-table.ts';
import { prepareUpgrade } from '../../src/upgrades/preflight.ts';
import { simulatedInventory } from '../../src/upgrades/workloads.ts';
import { JobRunner } from '../../src/upgrades/job-runner.ts';
import { createFakeRuntime } from '../kit/runtime.ts';

const patch = 'pat_17022022_1250';
const lastOfPatch = builtInManifest.find(({ id }) => id === patch)?.containers.at(-1)?.name ?? '';

/** Runs the patch on the store until no task is left. */
async function run(store: Store, failures: ReadonlyMap<string, number> = new Map()) {
  const runtime = createFakeRuntime();
  const errors: unknown[] = [];
  const tasks = createTasks(runtime, (_name, error) => errors.push(error));
  const executor = createSimulatedExecutor({ runtime, stepMs: 0, failures: new Map(failures) });
  const options = { runtime, tasks, executor, stepTimeoutMs: 1000, notify: () => undefined };
  const given = { upgradeSettings: undefined, licenseFile: undefined, updateToLatestPatch: undefined };
  await new JobRunner({ store, ...options }).run(() =>
    store.update((transaction) => {
      const { to, ...prepared } = prepareUpgrade(
        transaction,
        patch,
        { ...given, findUpload: () => undefined },
        undefined,
        simulatedInventory,
      );
      const by = { id: 'job', startedBy: 'ann', runner: store.self, to: to ?? '' };
      return startJob(transaction, { ...prepared, ...by }, runtime.now());
    }),
  );
  const over = new AbortController();
  void tasks.idle().then(() => over.abort());
  while (!over.signal.aborted) await runtime.advance(1000);
  return { errors, codes: store.entries(messages, 'job').map(({ code }) => code) };
}

it('a job that meets an unexpected error fails, so that the system does not stay read-only', async () => {
  const store = createMemoryStore();
  let updates = 0;
  const { errors, codes } = await run({
    ...store,
    update<T>(change: (transaction: Transaction) => T): Promise<T> {
      updates += 1;
      return updates === 5 ? Promise.reject(new TypeError('a refusal')) : store.update(change);
    },
  });
  expect(errors).toEqual([new TypeError('a refusal')]);
  expect(newestJob(store)).toMatchObject({
    state: 'failed',
    reason: expect.stringContaining('unexpected') as string,
  });
  expect(codes).toEqual([2010, 2168, 2165, 2270, 2901, 2166]);
});

it.each<[string, (before: Job | undefined, after: Job | undefined) => boolean]>([
  ['a failed step', (before, after) => !before?.reverting && !!after?.reverting],
  [
    'a reverted workload',
    (before, after) => (after?.reverting?.before ?? Infinity) < (before?.reverting?.before ?? 0),
  ],
])('%s is recorded once, even if the answer of the store is lost', async (_what, isLost) => {
  const failures = new Map([[lastOfPatch, 3]]);
  const expected = await run(createMemoryStore(), failures);
  const store = createMemoryStore();
  /** After a lost answer the runner still reads the old job, until the next update. */
  let stale: Job | undefined;
  let losses = 0;
  const { codes } = await run(
    {
      ...store,
      get: <T>(table: Table<T>, key: string) =>
        stale && table.name === jobs.name ? (stale as T) : store.get(table, key),
      async update<T>(change: (transaction: Transaction) => T): Promise<T> {
        stale = undefined;
        const before = store.get(jobs, 'job');
        const result = await store.update(change);
        if (losses > 0 || !isLost(before, store.get(jobs, 'job'))) return result;
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
