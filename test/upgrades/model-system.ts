// What the model of upgrade jobs is held against: a small chain of versions, and jobs over a cluster of images, each step let through one by one.
import { expect } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { createMemoryStore } from '../../src/store/memory.ts';
import { createTasks } from '../../src/tasks.ts';
import { builtInManifest, freshRelease } from '../../src/upgrades/built-in-manifest.ts';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { startJob } from '../../src/upgrades/job.ts';
import { type Job, newestJob } from '../../src/upgrades/job-table.ts';
import type { Version } from '../../src/upgrades/manifest.ts';
import { prepareRollback, prepareUpgrade } from '../../src/upgrades/preflight.ts';
import { type Deployment, installedContainers } from '../../src/upgrades/deployment.ts';
import { JobRunner } from '../../src/upgrades/job-runner.ts';
import { type Workload, simulatedInventory } from '../../src/upgrades/workloads.ts';
import { createFakeRuntime } from '../kit/runtime.ts';

/** A small chain, so that a few steps make a job: two patches of a release, and the release after it. */
const small = (version: Version, names: string[]): Version => ({
  ...version,
  containers: names.map((name) => ({ name, image: `${name}:${version.build}`, checksum: 'N/A' })),
  newContainers: [],
  newLicensesRequired: false,
});
const [patchA, patchB, next] = builtInManifest as [Version, Version, Version];
export const start = small(freshRelease, ['A_1', 'A_2', 'B_1']);
const manifest = [
  small(patchA, ['A_1', 'B_1']),
  small(patchB, ['A_1']),
  { ...small(next, ['A_1', 'A_2', 'B_1']), version: '10.9.2' },
];
export const targets = [...manifest.map(({ id }) => id), start.id];

type Pending = { go: () => void; fail: (takesEffect: boolean) => void };

export type System = ReturnType<typeof createSystem>;

export const imagesOf = (present: Deployment) =>
  new Map([...installedContainers(present)].map(([name, { image }]) => [name, image]));

/** `parallelism` workloads are on their way at once. */
export function createSystem(parallelism: number) {
  const store = createMemoryStore();
  const runtime = createFakeRuntime();
  const inventory = { ...simulatedInventory, parallelism };
  const cluster: Map<string, string> = imagesOf({ release: start, patches: [] });
  const crashes: unknown[] = [];
  let pending: Pending | undefined;
  let ids = 0;

  function gate(signal: AbortSignal, effect: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (act: () => void) => {
        pending = undefined;
        act();
      };
      signal.addEventListener('abort', () => done(() => reject(new Error('stopped'))));
      pending = {
        go: () => done(() => (effect(), resolve())),
        fail: (takesEffect) =>
          done(() => {
            if (takesEffect) effect();
            reject(new Error('it breaks.'));
          }),
      };
    });
  }

  function put({ parts }: Workload, which: 'image' | 'formerImage'): void {
    for (const { container, [which]: image } of parts) {
      if (image === null) cluster.delete(container);
      else cluster.set(container, image);
    }
  }
  const executor: Executor = {
    inventory: () => Promise.resolve(inventory),
    release: () => Promise.resolve(),
    perform: (_step, { signal }) => gate(signal, () => undefined),
    apply: (workload, { signal }) => gate(signal, () => put(workload, 'image')),
    verify: (workload, { signal }) => {
      // Nothing is verified that has been moved on meanwhile.
      const shown = workload.parts.map(({ container }) => cluster.get(container));
      expect(shown).toEqual(workload.parts.map(({ image }) => image));
      return gate(signal, () => undefined);
    },
    rollback: (workload, { signal }) =>
      newestJob(store)?.reverting
        ? Promise.resolve(put(workload, 'formerImage'))
        : gate(signal, () => put(workload, 'formerImage')),
  };

  /** What is gone when the process is. */
  function boot() {
    const tasks = createTasks(runtime, (_name, error) => crashes.push(error));
    return {
      tasks,
      runner: new JobRunner({ store, runtime, tasks, executor, stepTimeoutMs: 1e9, notify: () => undefined }),
    };
  }
  let booted = boot();
  /** The model: where the deployment stood when the newest job began. */
  let imagesBefore = new Map(cluster);

  const isRunning = () => newestJob(store)?.state === 'in_progress';
  return {
    store,
    runtime,
    cluster,
    crashes,
    isRunning,
    imagesBefore: () => imagesBefore,
    pending: () => pending,
    run: (job: Job) => void booted.runner.run(() => Promise.resolve(job)),
    stop: () => booted.tasks.stop(),
    /** Until the runner waits for us, or there is nothing to run. */
    async settle(): Promise<void> {
      for (let i = 0; i < 500 && !pending && isRunning(); i += 1) await new Promise(setImmediate);
    },
    async begin(targetId: string, isRollback: boolean): Promise<void> {
      const none = { licenseFile: undefined, updateToLatestPatch: undefined };
      const given = { upgradeSettings: {}, ...none, findUpload: () => undefined };
      const id = `job-${(ids += 1)}`;
      const at = runtime.now();
      const job = await store.update((transaction) => {
        const { problems, to, ...prepared } = isRollback
          ? prepareRollback(transaction, targetId, inventory)
          : prepareUpgrade(transaction, targetId, given, manifest, inventory);
        if (problems.length > 0 || to === null) throw new ServiceError('invalid', problems.join(' '));
        return startJob(transaction, { ...prepared, id, to, startedBy: 'ann', runner: store.self }, at);
      });
      imagesBefore = new Map(cluster);
      await booted.runner.run(() => Promise.resolve(job));
    },
    async restart(): Promise<void> {
      await booted.tasks.stop();
      pending = undefined;
      booted = boot();
      await booted.runner.recover();
    },
  };
}
