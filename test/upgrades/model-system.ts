// The system under test of model.test.ts: a few versions, a map of images as cluster, and steps that wait until the
// test lets them continue.
import { expect } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { invalid } from '../../src/lib/errors.ts';
import { createTasks } from '../../src/lib/tasks.ts';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { JobRunner } from '../../src/upgrades/jobs/job-runner.ts';
import { jobProgress } from '../../src/upgrades/jobs/job-service.ts';
import { type Job, isJobRunning, newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { startJob } from '../../src/upgrades/jobs/job.ts';
import { prepareRollback, prepareUpgrade } from '../../src/upgrades/starting/preflight.ts';
import type { Workload } from '../../src/upgrades/executors/workloads.ts';
import { simulatedInventory } from '../../src/upgrades/executors/simulated.ts';
import { laterVersions, freshRelease } from '../kit/sample-manifest.ts';
import {
  type Deployment,
  deployment,
  installedContainers,
  installedVersions,
} from '../../src/upgrades/versions/deployment.ts';
import type { Version } from '../../src/upgrades/versions/manifest.ts';
import { createFakeRuntime } from '../kit/runtime.ts';

/**
 * Versions with few containers, so that jobs are short: a release, two patches of it, the next release with a
 * mandatory patch, and the release after that, which is three hops away.
 */
const small = (version: Version, names: string[]): Version => ({
  ...version,
  containers: names.map((name) => ({ name, image: `${name}:${version.build}`, checksum: 'N/A' })),
  newContainers: [],
  newLicensesRequired: false,
});
const [patchA, patchB, next, patchC] = laterVersions as [Version, Version, Version, Version];
export const start = small(freshRelease, ['A_1', 'A_2', 'B_1']);
export const manifest = [
  small(patchA, ['A_1', 'B_1']),
  small(patchB, ['A_1']),
  { ...small(next, ['A_1', 'A_2', 'B_1']), version: '10.9.2' },
  { ...small(patchC, ['A_2']), version: '10.9.2', isMandatoryUpdate: true },
  {
    ...small(next, ['A_1', 'B_1']),
    id: 'rel_last',
    version: '10.9.3',
    build: '9000',
    previousReleaseBuild: next.build,
    containers: ['A_1', 'B_1'].map((name) => ({ name, image: `${name}:9000`, checksum: 'N/A' })),
  },
];
export const targets = [...manifest.map(({ id }) => id), start.id];

type Pending = { go: () => void; fail: (takesEffect: boolean) => void };

/** The values of `progress` that go down only when a workload is put back. */
export type ProgressSeen = { readonly job: Job; readonly values: readonly number[] };

export type System = ReturnType<typeof createSystem>;

export const imagesOf = (present: Deployment) =>
  new Map([...installedContainers(present)].map(([name, { image }]) => [name, image]));

export function createSystem(parallelism: number) {
  const store = createMemoryStore({
    retention: { deliveries: { history: 1, recoverable: 1 }, jobs: 100 },
    maxEventIds: 1,
  });
  const runtime = createFakeRuntime();
  const inventory = { ...simulatedInventory, parallelism };
  const cluster: Map<string, string> = imagesOf({ release: start, patches: [] });
  const crashes: unknown[] = [];
  let pending: Pending | undefined;
  let ids = 0;
  /** While it is mandatory, the first patch is a hop before the next release. */
  let isPatchMandatory = false;
  const presentManifest = () =>
    manifest.map((version) =>
      version.id === patchA.id ? { ...version, isMandatoryUpdate: isPatchMandatory } : version,
    );

  function waitForTest(signal: AbortSignal, effect: () => void): Promise<void> {
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
            // A revert that fails has changed the images, so that the images of a reverted patch can be checked.
            if (takesEffect || store.read(newestJob)?.reverting) effect();
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
    checkImages: () => Promise.resolve(undefined),
    inventory: () => Promise.resolve(inventory),
    release: () => Promise.resolve(),
    perform: (_step, { signal }) => waitForTest(signal, () => undefined),
    startTemplate: () => Promise.resolve(),
    runTemplate: (_run, { signal }) => waitForTest(signal, () => undefined).then(() => ({})),
    stopTemplate: () => Promise.resolve(),
    apply: (workload, { signal }) =>
      waitForTest(signal, () => put(workload, 'image')).then(() => ({ isPatched: true })),
    check: (workloads, which, { signal }) => {
      // Every workload must have the image of its last move.
      const shown = workloads.flatMap(({ parts }) => parts.map(({ container }) => cluster.get(container)));
      expect(shown).toEqual(workloads.flatMap(({ parts }) => parts.map((part) => part[which] ?? undefined)));
      return waitForTest(signal, () => undefined);
    },
    verify: (workload, { signal }) => {
      // A workload must still have the image that its step has applied.
      const shown = workload.parts.map(({ container }) => cluster.get(container));
      expect(shown).toEqual(workload.parts.map(({ image }) => image));
      return waitForTest(signal, () => undefined);
    },
    beginRollback: (workload, { signal }) => waitForTest(signal, () => put(workload, 'formerImage')),
    rollback: (workload, { signal }) =>
      waitForTest(signal, () => put(workload, 'formerImage')).then(() => ({ isPatched: true })),
  };

  /** Creates everything that a restart of the process loses. */
  function boot() {
    const tasks = createTasks(runtime, (_name, error) => crashes.push(error));
    return {
      tasks,
      jobRunner: new JobRunner({
        store,
        runtime,
        tasks,
        executor,
        stepTimeoutMs: 1e9,
        revertTimeoutMs: 60,
        notify: () => undefined,
      }),
    };
  }
  let booted = boot();

  const installedIds = () => installedVersions(store.read(deployment)).map(({ id }) => id);
  /** What was installed when the newest job began, and what was added since. */
  let installedBefore: readonly string[] = [];
  let installedSince = new Set<string>();
  store.onUpdate(() => {
    for (const id of installedIds()) if (!installedBefore.includes(id)) installedSince.add(id);
  });

  const progressSeen: ProgressSeen[] = [];
  store.onUpdate(() => {
    const job = store.read(newestJob);
    if (!job) return;
    const { done, percent, steps } = jobProgress(job, runtime.now());
    progressSeen.push({ job, values: [done, percent, steps.done] });
  });
  /** The images when the newest job began. */
  let imagesBefore = new Map(cluster);

  const isRunning = () => isJobRunning(store);
  return {
    store,
    runtime,
    cluster,
    crashes,
    progressSeen,
    isRunning,
    imagesBefore: () => imagesBefore,
    installedSince: (): ReadonlySet<string> => installedSince,
    presentManifest,
    toggleMandatoryPatch: () => void (isPatchMandatory = !isPatchMandatory),
    pending: () => pending,
    run: (job: Job) => void booted.jobRunner.run(() => Promise.resolve(job)),
    stop: () => booted.tasks.stop(),
    /** Resolves when a step waits for the test, or no job is running. */
    async settle(): Promise<void> {
      for (let i = 0; i < 500 && !pending && isRunning(); i += 1) await new Promise(setImmediate);
    },
    async begin(targetId: string, isRollback: boolean): Promise<void> {
      const submitted = {
        upgradeSettings: {},
        licenseFile: undefined,
        updateToLatestPatch: undefined,
        findUpload: () => undefined,
      };
      const id = `job-${(ids += 1)}`;
      const at = runtime.now();
      const job = await store.update((transaction) => {
        const { problems, to, ...prepared } = isRollback
          ? prepareRollback(transaction, targetId, inventory)
          : prepareUpgrade(transaction, targetId, submitted, presentManifest(), inventory);
        if (problems.length > 0 || to === null) throw invalid(problems);
        return startJob(
          transaction,
          { ...prepared, id, to, startedBy: 'ann', runner: store.self, ignoresWindows: false },
          at,
        );
      });
      imagesBefore = new Map(cluster);
      installedBefore = installedIds();
      installedSince = new Set();
      await booted.jobRunner.run(() => Promise.resolve(job));
    },
    async restart(): Promise<void> {
      await booted.tasks.stop();
      pending = undefined;
      booted = boot();
      await booted.jobRunner.recover();
    },
  };
}
