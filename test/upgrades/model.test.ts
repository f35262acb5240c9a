// Random sequences of start, fail, resume, cancel, rollback and restart against a small model of the contract's paragraphs
// on runs, failure and cancelling. A cluster of images stands in for the deployment; every step is let through one by one.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { createMemoryStore } from '../../src/store/memory.ts';
import { createTasks } from '../../src/tasks.ts';
import { builtInManifest, freshRelease } from '../../src/upgrades/built-in.ts';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { requestCancel, resumeJob, startJob } from '../../src/upgrades/job.ts';
import { type Job, jobs, listJobs, messages, newestJob, plans } from '../../src/upgrades/job-record.ts';
import type { Version } from '../../src/upgrades/manifest.ts';
import { prepareRollback, prepareUpgrade } from '../../src/upgrades/preflight.ts';
import { type Deployment, containersOf, deployment, newestInstalled } from '../../src/upgrades/releases.ts';
import { createRunner } from '../../src/upgrades/runner.ts';
import { type Workload, plainSurvey } from '../../src/upgrades/survey.ts';
import { createFakeWorld } from '../kit/world.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 400);

/** A small chain, so that a few steps make a job: two patches of a release, and the release after it. */
const small = (version: Version, names: string[]): Version => ({
  ...version,
  containers: names.map((name) => ({ name, image: `${name}:${version.build}`, checksum: 'N/A' })),
  newContainers: [],
  newLicensesRequired: false,
});
const [patchA, patchB, next] = builtInManifest as [Version, Version, Version];
const start = small(freshRelease, ['A_1', 'A_2', 'B_1']);
const manifest = [
  small(patchA, ['A_1', 'B_1']),
  small(patchB, ['A_1']),
  { ...small(next, ['A_1', 'A_2', 'B_1']), version: '10.9.2' },
];
const targets = [...manifest.map(({ id }) => id), start.id];

type Pending = { go: () => void; fail: (takesEffect: boolean) => void };

type System = ReturnType<typeof createSystem>;

const imagesOf = (present: Deployment) =>
  new Map([...containersOf(present)].map(([name, { image }]) => [name, image]));

/** `parallelism` workloads are on their way at once. */
function createSystem(parallelism: number) {
  const store = createMemoryStore();
  const world = createFakeWorld();
  const survey = { ...plainSurvey, parallelism };
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
    survey: () => Promise.resolve(survey),
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
    const tasks = createTasks(world, (_name, error) => crashes.push(error));
    return {
      tasks,
      runner: createRunner({ store, world, tasks, executor, stepTimeoutMs: 1e9, tell: () => undefined }),
    };
  }
  let booted = boot();
  /** The model: where the deployment stood when the newest job began. */
  let imagesBefore = new Map(cluster);

  const isRunning = () => newestJob(store)?.state === 'in_progress';
  return {
    store,
    world,
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
      const at = world.now();
      const job = await store.update((transaction) => {
        const { problems, to, ...prepared } = isRollback
          ? prepareRollback(transaction, targetId, survey)
          : prepareUpgrade(transaction, targetId, given, manifest, survey);
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

type Command =
  | { kind: 'upgrade' | 'rollback'; target: number }
  | { kind: 'go'; times: number }
  // A failed update may have taken effect all the same.
  | { kind: 'fail'; takesEffect: boolean }
  | { kind: 'cancel' | 'resume' | 'restart' };

const kind = <K extends string>(name: K) => fc.constant(name);
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kind('upgrade'), target: fc.nat({ max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('rollback'), target: fc.nat({ max: 3 }) }) },
  { weight: 6, arbitrary: fc.record({ kind: kind('go'), times: fc.integer({ min: 1, max: 14 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('fail'), takesEffect: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('cancel', 'resume', 'restart') }) },
);

/** What the contract says of a request, told from the newest job alone. */
function isAllowed(system: System, asked: Command): boolean {
  const job = newestJob(system.store);
  const executing = job && system.store.entries(messages, job.id).some(({ code }) => code === 2271);
  if (asked.kind === 'cancel')
    return (
      job?.state === 'in_progress' &&
      !job.reverting &&
      (job.kind === 'patch' || (job.kind === 'release' && !executing))
    );
  if (asked.kind === 'resume') return job?.state === 'failed';
  if (asked.kind !== 'upgrade' && asked.kind !== 'rollback') return true;
  if (job?.state === 'in_progress') return false;
  const target = targets[asked.target];
  const standing = listJobs(system.store).find(({ state }) => state !== 'cancelled');
  const isSame = asked.kind === 'upgrade' && standing?.kind === 'release' && standing.targetId === target;
  return !(standing?.state === 'failed' && standing.kind !== 'patch') || isSame;
}

async function attempt(system: System, asked: Command): Promise<void> {
  const newest = newestJob(system.store);
  switch (asked.kind) {
    case 'upgrade':
    case 'rollback':
      return system.begin(targets[asked.target] ?? '', asked.kind === 'rollback');
    case 'go':
      for (let i = 0; i < asked.times; i += 1) {
        await system.world.advance(7);
        await system.settle();
        system.pending()?.go();
        await system.settle();
      }
      return;
    case 'fail':
      await system.settle();
      system.pending()?.fail(asked.takesEffect);
      return system.settle();
    case 'restart':
      return system.restart();
    case 'cancel':
      return system.store.update((transaction) => {
        const job = newest && transaction.get(jobs, newest.id);
        const plan = newest && transaction.get(plans, newest.id);
        if (!job || !plan) throw new ServiceError('conflict', 'nothing to cancel');
        requestCancel(transaction, job, plan, 'ann');
      });
    case 'resume':
      if (!newest) throw new ServiceError('conflict', 'nothing to resume');
      return system.run(
        await system.store.update((transaction) =>
          resumeJob(transaction, newest, { by: 'ann', runner: system.store.self }, system.world.now()),
        ),
      );
  }
}

function check(system: System): void {
  expect(system.crashes).toEqual([]);
  const job = newestJob(system.store);
  if (!job) return;
  const all = system.store.entries(messages, job.id);
  expect(all.every(({ when }, index) => index === 0 || when >= (all[index - 1]?.when ?? 0))).toBe(true);
  // Runs: from a start or a resume by somebody to the next end of read-only mode.
  const starts = all.flatMap(({ code, message }, index) =>
    code === 2010 || code === 2072 || (code === 2902 && message.includes(' by ')) ? [index] : [],
  );
  for (const [position, from] of starts.entries()) {
    const run = all.slice(from, starts[position + 1]);
    const count = (wanted: number) => run.filter(({ code }) => code === wanted).length;
    const hasEnded = position < starts.length - 1 || job.state !== 'in_progress';
    expect(count(2166)).toBe(hasEnded ? 1 : 0);
    expect(count(2165)).toBeLessThanOrEqual(1);
    if (hasEnded) expect(count(2165)).toBe(1);
    const counts = run.flatMap(({ message }) => /^(\d+) out of/.exec(message)?.slice(1).map(Number) ?? []);
    expect(counts.every((n, index) => index === 0 || n >= (counts[index - 1] ?? 0))).toBe(true);
  }
  if (job.state === 'in_progress') return;
  const now = system.store.read(deployment);
  const label = `${newestInstalled(now).version}.${newestInstalled(now).build}`;
  expect(label).toBe(job.state === 'success' ? job.to : job.from);
  // The cluster: a job that succeeded is wholly there; a patch that did not is wholly gone.
  if (job.state === 'success') expect(imagesOf(now)).toEqual(system.cluster);
  else if (job.kind === 'patch') expect(system.cluster).toEqual(system.imagesBefore());
  expect(all.at(-1)?.code).toBe(job.state === 'success' ? (job.operation === 'upgrade' ? 2012 : 2905) : 2166);
}

it('jobs behave like the model whatever is asked of them, and whenever the process is gone', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat({ max: 2 }),
      fc.array(command, { minLength: 4, maxLength: 25 }),
      async (more, commands) => {
        const system = createSystem(1 + more);
        await system.store.update((transaction) =>
          transaction.write(deployment, { release: start, patches: [] }),
        );
        for (const asked of commands) {
          const allowed = isAllowed(system, asked);
          let refusal: unknown;
          try {
            await attempt(system, asked);
          } catch (error) {
            refusal = error;
          }
          await system.settle();
          if (refusal !== undefined) expect(refusal).toBeInstanceOf(ServiceError);
          // What preflight refuses (no such chain) is not part of this model.
          if ((refusal as ServiceError | undefined)?.kind !== 'invalid')
            expect(refusal === undefined, asked.kind).toBe(allowed);
          check(system);
        }
        // Whatever happened, it can be brought to an end.
        for (let i = 0; i < 200 && system.isRunning(); i += 1)
          await attempt(system, { kind: 'go', times: 1 });
        expect(system.isRunning()).toBe(false);
        check(system);
        await system.stop();
      },
    ),
    { numRuns: runs },
  );
}, 300_000);
