// Starts a scheduled job when its time has come. Every process tries; the transaction lets one of them start it.
//
// A process that was down at that time starts the job later, within the time of grace and while a maintenance window
// is open. After that, the job ends as failed: it has missed its start.
import { EarliestTimer, retryAfterMs, retryWhileUnavailable } from '../../lib/async.ts';
import { formatProblem, isUnavailable } from '../../lib/errors.ts';
import type { Tasks } from '../../lib/tasks.ts';
import { truncate } from '../../lib/text.ts';
import { digestPlan } from '../planning/plan.ts';
import {
  type PreparedJob,
  hasSameBasis,
  mayPass,
  prepareCheckedRollback,
  prepareRequest,
} from './preflight.ts';
import { maintenanceWindows, windowsAt } from '../schedule/windows.ts';
import type { JobRunner } from '../jobs/job-runner.ts';
import { failScheduled, startScheduled } from '../jobs/job-schedule.ts';
import { type Job, type ScheduledRequest, newestJob } from '../jobs/job-table.ts';
import { type JobRule, type RunContext, maxFailure, updateJob } from '../jobs/run-step.ts';

type SchedulerOptions = Pick<RunContext, 'store' | 'runtime' | 'executor' | 'notify'> & {
  readonly tasks: Tasks;
  readonly jobRunner: JobRunner;
  readonly graceMs: number;
};

/** The clock may be set, so the scheduler looks at it at least this often. */
const maxWaitMs = 60_000;

/** The pause before a preflight whose problems may pass is repeated: it reads the cluster and asks the registries. */
const repeatMs = 15_000;

/** A timer may be late by this much on a busy machine. */
const punctualMs = 1000;

type ScheduledJob = Job & { readonly startAt: number };

export class JobScheduler {
  readonly #options: SchedulerOptions;
  readonly #timer: EarliestTimer;
  #isStarting = false;
  /** When a preflight whose problems may pass is due again. */
  #repeatAt = 0;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#timer = new EarliestTimer(options.runtime, () => this.#look());
  }

  start(): void {
    const { store, tasks } = this.#options;
    tasks.start('schedule', async (stopping) => {
      const stopListening = store.onUpdate(() => this.#look());
      this.#look();
      await new Promise((resolve) => stopping.addEventListener('abort', resolve));
      stopListening();
      this.#timer.cancel();
    });
  }

  #look(): void {
    const job = this.#findScheduled();
    if (!job || this.#isStarting) return;
    const { runtime, tasks } = this.#options;
    const at = runtime.now();
    const dueAt = Math.max(this.#dueAt(job, at), this.#repeatAt);
    if (dueAt > at) return this.#timer.fireAt(Math.min(dueAt, at + maxWaitMs));
    this.#isStarting = true;
    return tasks.start('scheduled start', async (signal) => {
      try {
        await retryWhileUnavailable(() => this.#startDue(signal), runtime, signal);
      } finally {
        this.#isStarting = false;
        this.#timer.fireAt(runtime.now() + retryAfterMs);
      }
    });
  }

  #findScheduled(): ScheduledJob | undefined {
    const job = this.#options.store.read(newestJob);
    return job?.state === 'scheduled' && job.startAt !== null ? { ...job, startAt: job.startAt } : undefined;
  }

  /** When to start the job, or to give it up. */
  #dueAt(job: ScheduledJob, at: number): number {
    const { startAt, ignoresWindows } = job;
    if (at < startAt || this.#hasMissed(job, at) || ignoresWindows) return startAt;
    const windows = windowsAt(this.#options.store.read(maintenanceWindows), at);
    const end = startAt + this.#options.graceMs + punctualMs + 1;
    return windows.open ? startAt : Math.min(windows.opensAt ?? end, end);
  }

  #hasMissed({ startAt }: ScheduledJob, at: number): boolean {
    return at > startAt + this.#options.graceMs + punctualMs;
  }

  async #startDue(signal: AbortSignal): Promise<void> {
    // Reads the time of the database too: the clock of the machine may just have been set.
    await this.#options.store.refresh();
    const job = this.#findScheduled();
    const at = this.#options.runtime.now();
    if (!job || signal.aborted || this.#dueAt(job, at) > at) return;
    if (this.#hasMissed(job, at)) {
      await updateJob(
        this.#options,
        job,
        failure(`it missed its start at ${new Date(job.startAt).toISOString()}.`, true),
      );
      return;
    }
    try {
      const request = (await this.#options.store.jobs.plan(job.id))?.request;
      // Usually another process has started or ended the job meanwhile. Then this changes nothing.
      if (!request) return void (await updateJob(this.#options, job, failure('its plan is missing.')));
      const prepared = await this.#prepare(job, request);
      await this.#options.jobRunner.run(() => this.#startIfUnchanged(job, request.digest, prepared));
    } catch (error) {
      if (isUnavailable(error)) throw error;
      await updateJob(this.#options, job, failure('an unexpected error occurred; see the log.'));
      throw error;
    }
  }

  async #prepare({ operation }: Job, request: ScheduledRequest): Promise<PreparedJob> {
    const { store, executor } = this.#options;
    return operation === 'rollback'
      ? prepareCheckedRollback(store, executor, request.versionManifest)
      : prepareRequest(store, executor, request);
  }

  /** Returns the job only if it has started. */
  async #startIfUnchanged(
    seen: ScheduledJob,
    acceptedDigest: string,
    prepared: PreparedJob,
  ): Promise<Job | undefined> {
    const { runtime, graceMs } = this.#options;
    if (mayPass(prepared)) this.#repeatAt = runtime.now() + repeatMs;
    const job = await updateJob(this.#options, seen, (transaction, current, at) => {
      // The preflight may have taken a minute. A job that it has made late starts nevertheless.
      const window = windowsAt(transaction.read(maintenanceWindows), at);
      if (!window.open && !seen.ignoresWindows) return undefined;
      if (!hasSameBasis(transaction, prepared)) return undefined;
      const closesAt = window.open && !seen.ignoresWindows ? (window.closesAt ?? Infinity) : Infinity;
      if (mayPass(prepared) && at + repeatMs < Math.min(seen.startAt + graceMs, closesAt)) return undefined;
      const problems = prepared.problems.map(formatProblem);
      if (problems.length > 0)
        return failure(`the preflight failed. ${problems.join(' ')}`)(transaction, current, at);
      if (digestPlan(prepared) !== acceptedDigest)
        return failure('the plan has changed since the job was accepted.')(transaction, current, at);
      return startScheduled(transaction, current, this.#options.store.self, at);
    });
    return job?.state === 'in_progress' ? job : undefined;
  }
}

function failure(cause: string, hasMissedStart = false): JobRule {
  return (transaction, job, at) =>
    failScheduled(transaction, job, { cause: truncate(cause, maxFailure), hasMissedStart }, at);
}
