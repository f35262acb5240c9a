// What becomes of a job that cannot go on for a reason nobody thought of.
import { expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import { createMemoryStore } from '../../src/store/memory.ts';
import { createTasks } from '../../src/tasks.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { startJob } from '../../src/upgrades/job.ts';
import { messages, newestJob } from '../../src/upgrades/job-record.ts';
import { prepareUpgrade } from '../../src/upgrades/preflight.ts';
import { createRunner } from '../../src/upgrades/runner.ts';
import { createFakeWorld } from '../kit/world.ts';

it('has failed, and the system is not read-only for ever', async () => {
  const store = createMemoryStore();
  let updates = 0;
  const refusing: Store = {
    ...store,
    update<T>(change: (transaction: Transaction) => T): Promise<T> {
      updates += 1;
      return updates === 5 ? Promise.reject(new TypeError('a refusal')) : store.update(change);
    },
  };
  const world = createFakeWorld();
  const told: unknown[] = [];
  const tasks = createTasks(world, (_name, error) => told.push(error));
  const executor = createSimulatedExecutor({ world, stepMs: 0, failures: new Map() });
  const options = { world, tasks, executor, stepTimeoutMs: 1000, tell: () => undefined };
  const given = { upgradeSettings: undefined, licenseFile: undefined, updateToLatestPatch: undefined };
  await createRunner({ store: refusing, ...options }).run(() =>
    refusing.update((transaction) => {
      const { to, ...prepared } = prepareUpgrade(transaction, 'pat_17022022_1250', {
        ...given,
        findUpload: () => undefined,
      });
      const by = { id: 'job', startedBy: 'ann', runner: store.self, to: to ?? '' };
      return startJob(transaction, { ...prepared, ...by }, world.now());
    }),
  );
  await tasks.idle();
  expect(told).toEqual([new TypeError('a refusal')]);
  expect(newestJob(store)).toMatchObject({
    state: 'failed',
    reason: expect.stringContaining('unexpected') as string,
  });
  expect(store.entries(messages, 'job').map(({ code }) => code)).toEqual([
    2010, 2168, 2165, 2270, 2901, 2166,
  ]);
});
