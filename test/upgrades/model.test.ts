// Random sequences of upgrade, rollback, failure, cancel, resume and restart, checked against a small model of the
// rules for runs, failures and cancelling. A map of images stands in for the deployment; the test lets every step
// continue one by one.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ServiceError } from '../../src/lib/errors.ts';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { requestCancel, resumeJob } from '../../src/upgrades/jobs/job.ts';
import type { Message } from '../../src/upgrades/planning/messages.ts';
import {
  type Deployment,
  deployment,
  newestInstalled,
  readDeployment,
} from '../../src/upgrades/versions/deployment.ts';
import { findPath } from '../../src/upgrades/versions/hops.ts';
import { formatVersion } from '../../src/upgrades/versions/manifest.ts';
import { type System, createSystem, imagesOf, manifest, start, targets } from './model-system.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 100);

type Command =
  | { kind: 'upgrade' | 'rollback'; target: number }
  | { kind: 'go'; times: number }
  // An update may take effect although it fails.
  | { kind: 'fail'; takesEffect: boolean }
  | { kind: 'cancel' | 'resume' | 'restart' | 'finish-hop' | 'import' };

const kind = <K extends string>(name: K) => fc.constant(name);
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kind('upgrade'), target: fc.nat({ max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('rollback'), target: fc.nat({ max: 5 }) }) },
  { weight: 6, arbitrary: fc.record({ kind: kind('go'), times: fc.integer({ min: 1, max: 14 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('fail'), takesEffect: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('cancel', 'resume', 'restart') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('finish-hop', 'import') }) },
);

/** A job as the model sees it: what was asked for, and what has become installed since. */
type ModelJob = {
  readonly kind: 'release' | 'patch' | 'rollback';
  readonly target: string;
  /** The version that was installed when it started. */
  readonly from: string;
  readonly path: readonly string[];
  installed: ReadonlySet<string>;
  isBroken: boolean;
  hasSucceeded: boolean;
};

/**
 * A job is broken if it has failed and leaves images of several versions: a release, a rollback, or a patch that
 * has not reverted all workloads. It is repaired when a later job installs the version at which it has failed, or
 * its target.
 */
class Model {
  readonly #jobs: ModelJob[] = [];

  /** Returns a function to call if the request starts a job. */
  prepare({ store, presentManifest }: System, asked: Command): (() => void) | undefined {
    if (asked.kind !== 'upgrade' && asked.kind !== 'rollback') return undefined;
    const target = targets[asked.target] ?? '';
    const versions = findPath(presentManifest(), readDeployment(store), target);
    const isPatch = versions.length === 1 && versions[0]?.type === 'patch';
    const kind = asked.kind === 'rollback' ? 'rollback' : isPatch ? 'patch' : 'release';
    const path = versions.map(({ id }) => id);
    const from = newestInstalled(readDeployment(store)).id;
    const state = { installed: new Set<string>(), isBroken: false, hasSucceeded: false };
    return () => void this.#jobs.push({ kind, target, from, path, ...state });
  }

  observe({ store, installedSince }: System): void {
    const newest = this.#jobs.at(-1);
    const job = store.read(newestJob);
    if (!newest || !job) return;
    newest.installed = installedSince();
    newest.hasSucceeded = job.state === 'success';
    newest.isBroken = job.state === 'failed' && (newest.kind !== 'patch' || job.reverting !== null);
  }

  /**
   * Undefined if several broken jobs are left and only some of them can be repaired so: the rules may accept or
   * refuse it.
   */
  mayStart(target: string, isRollback: boolean): boolean | undefined {
    const newest = this.#jobs.at(-1);
    const broken = newest?.isBroken ? [newest] : this.#broken();
    const repaired = broken.filter((job) =>
      isRollback ? job.kind === 'rollback' && job.target === target : repairTargetsOf(job).includes(target),
    );
    if (repaired.length === broken.length) return true;
    return repaired.length === 0 ? false : undefined;
  }

  hasBroken(): boolean {
    return this.#broken().length > 0;
  }

  #broken(): ModelJob[] {
    return this.#jobs.filter((job, index) => {
      const wanted = [job.target, failedVersionOf(job)];
      const isRepaired = this.#jobs
        .slice(index + 1)
        .some((later) => wanted.some((id) => later.installed.has(id)) || repairsRollback(later, job));
      return job.isBroken && !isRepaired;
    });
  }
}

const failedVersionOf = ({ path, installed, target }: ModelJob) =>
  path.find((id) => !installed.has(id)) ?? target;

/** The same rollback, or an upgrade to the version that it started from. */
function repairsRollback({ kind, target, hasSucceeded }: ModelJob, failed: ModelJob): boolean {
  if (failed.kind !== 'rollback' || !hasSucceeded) return false;
  return target === (kind === 'rollback' ? failed.target : failed.from);
}

function repairTargetsOf(job: ModelJob): string[] {
  if (job.kind === 'rollback') return [job.from];
  if (job.kind !== 'release') return [];
  const failed = manifest.find(({ id }) => id === failedVersionOf(job));
  return [job.target, ...(failed?.type === 'release' ? [failed.id] : [])];
}

/** Whether the request must be accepted. */
async function isAllowed({ store }: System, model: Model, asked: Command): Promise<boolean | undefined> {
  const job = store.read(newestJob);
  const executed = job ? (await store.jobs.messages(job.id)).filter(({ code }) => code === 2271).length : 0;
  // Each hop has its own 2271.
  const executing = executed > (job?.hops.done ?? 0);
  if (asked.kind === 'cancel')
    return job?.state === 'in_progress' && (job.kind === 'patch' || (job.kind === 'release' && !executing));
  if (asked.kind === 'resume') return job?.state === 'failed';
  if (asked.kind !== 'upgrade' && asked.kind !== 'rollback') return true;
  if (job?.state === 'in_progress') return false;
  return model.mayStart(targets[asked.target] ?? '', asked.kind === 'rollback');
}

async function attempt(system: System, asked: Command): Promise<void> {
  const newest = system.store.read(newestJob);
  switch (asked.kind) {
    case 'upgrade':
    case 'rollback':
      return system.begin(targets[asked.target] ?? '', asked.kind === 'rollback');
    case 'finish-hop': {
      const hopsDone = () => system.store.read(newestJob)?.hops.done;
      const before = hopsDone();
      while (system.isRunning() && hopsDone() === before) await attempt(system, { kind: 'go', times: 1 });
      return;
    }
    case 'go':
      for (let i = 0; i < asked.times; i += 1) {
        await system.runtime.advance(7);
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
    case 'import':
      return system.toggleMandatoryPatch();
    case 'cancel': {
      if (!newest) throw new ServiceError('conflict', 'nothing to cancel');
      const plan = await system.store.jobs.plan(newest.id);
      await system.store.update((transaction) =>
        requestCancel(
          transaction,
          transaction.read(newestJob) ?? newest,
          plan,
          { by: 'ann', stops: true },
          system.runtime.now(),
        ),
      );
      return;
    }
    case 'resume':
      if (!newest) throw new ServiceError('conflict', 'nothing to resume');
      return system.run(
        await system.store.update((transaction) =>
          resumeJob(transaction, newest, { by: 'ann', runner: system.store.self }, system.runtime.now()),
        ),
      );
  }
}

/**
 * The images of the containers that the installed versions have. A release may leave out containers of the one
 * before it.
 */
function imagesIn({ cluster }: System, installed: Deployment): Map<string, string | undefined> {
  return new Map([...imagesOf(installed).keys()].map((name) => [name, cluster.get(name)]));
}

/** Progress goes down only with 2904. */
function checkProgress({ store, progressSeen }: System, messages: readonly Message[]): void {
  const seen = progressSeen.filter(({ job }) => job.id === store.read(newestJob)?.id);
  for (const [index, { job, values }] of seen.entries()) {
    const before = seen[index - 1];
    if (!before || values.every((value, at) => value >= (before.values[at] ?? 0))) continue;
    const codes = messages.slice(before.job.messageCount, job.messageCount).map(({ code }) => code);
    expect(codes).toContain(2904);
  }
}

async function check(system: System, model: Model): Promise<void> {
  expect(system.crashes).toEqual([]);
  const { store } = system;
  const job = store.read(newestJob);
  if (!job) return;
  const all = await store.jobs.messages(job.id);
  expect(all).toHaveLength(job.messageCount);
  // A plan exists as long as its job can go on.
  const canGoOn = job.state === 'in_progress' || job.state === 'failed';
  expect(await store.jobs.plan(job.id)).toEqual(canGoOn ? expect.anything() : undefined);
  const earlier = await store.jobs.page(job.number, 0, 100);
  expect(earlier.jobs.map(({ number }) => job.number - number)).toEqual(
    Array.from({ length: job.number - 1 }, (_, index) => index + 1),
  );
  for (const { id, state } of earlier.jobs) {
    expect(state).not.toBe('in_progress');
    expect(await store.jobs.plan(id)).toBeUndefined();
  }
  expect(all.every(({ when }, index) => index === 0 || when >= (all[index - 1]?.when ?? 0))).toBe(true);
  // A run begins with a start or a resume by a user, and ends with the end of read-only mode.
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
  checkProgress(system, all);
  if (job.state === 'in_progress') return;
  const now = readDeployment(store);
  const label = `${newestInstalled(now).version}.${newestInstalled(now).build}`;
  const newestHop = manifest.find(({ id }) => id === Object.keys(job.hops.installedAt).at(-1));
  const reached = newestHop ? formatVersion(newestHop) : job.from;
  expect(label).toBe(job.state === 'success' ? job.to : reached);
  // A successful job has changed every image; a patch without success has changed none, unless it stopped
  // reverting. A job that was cancelled between hops has changed every image, unless an earlier one is still to be
  // repaired.
  if (job.state === 'success' || (job.state === 'cancelled' && newestHop && !model.hasBroken()))
    expect(imagesIn(system, now)).toEqual(imagesOf(now));
  else if (job.kind === 'patch' && !job.reverting) expect(system.cluster).toEqual(system.imagesBefore());
  if (job.reverting) {
    expect(job.state).toBe('failed');
    expect(all.at(-2)?.message).toMatch(
      /^The job failed at the step "Put back the workloads": .* Not put back: \w/,
    );
  }
  expect(all.at(-1)?.code).toBe(job.state === 'success' ? (job.operation === 'upgrade' ? 2012 : 2905) : 2166);
}

it('jobs behave like the model for every sequence of requests, failures and restarts', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat({ max: 2 }),
      fc.array(command, { minLength: 4, maxLength: 25 }),
      async (more, commands) => {
        const system = createSystem(1 + more);
        await system.store.update((transaction) =>
          transaction.write(deployment, { release: start, patches: [] }),
        );
        const model = new Model();
        for (const asked of commands) {
          const allowed = await isAllowed(system, model, asked);
          const accept = model.prepare(system, asked);
          const installed = readDeployment(system.store);
          const images = imagesIn(system, installed);
          let refusal: unknown;
          try {
            await attempt(system, asked);
          } catch (error) {
            refusal = error;
          }
          await system.settle();
          if (refusal !== undefined) expect(refusal).toBeInstanceOf(ServiceError);
          // Preflight is not part of the model.
          if (allowed !== undefined && (refusal as ServiceError | undefined)?.kind !== 'invalid')
            expect(refusal === undefined, asked.kind).toBe(allowed);
          if (refusal === undefined && accept) {
            // Only a job that repairs a broken one may start on images of several versions.
            if (!model.hasBroken()) expect(images).toEqual(imagesOf(installed));
            accept();
          }
          model.observe(system);
          await check(system, model);
        }
        // Every job can be completed.
        for (let i = 0; i < 200 && system.isRunning(); i += 1)
          await attempt(system, { kind: 'go', times: 1 });
        expect(system.isRunning()).toBe(false);
        model.observe(system);
        await check(system, model);
        await system.stop();
      },
    ),
    { numRuns: runs },
  );
}, 300_000);
