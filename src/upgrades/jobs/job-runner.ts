// Runs upgrade jobs: decides what a job does next. run-step.ts performs its steps, run-revert.ts reverts its workloads.
//
// The life of a job. A request stores a job in the state `in_progress` together with its plan, and `run` starts a
// background task for it. The task repeats one decision until the job has ended (`#advance`):
//
// - If the job is reverting its workloads, revert the next one; after the last one the job ends as failed or
//   cancelled. If the deadline for reverting has passed, or an administrator has asked to stop, the job ends as
//   failed before that.
// - If an administrator has asked to cancel the job, end the Job of the current step, if it has one, and begin to
//   revert.
// - If a step is left, execute it. A step that announces its start records that first, when its Job has been created. A
//   step that throws fails the job; a failed patch begins to revert.
// - If no step is left, complete the job.
//
// Each decision ends in one update of the store, which moves the job on and appends its messages. While the database is
// unavailable, the runner repeats the decision. So a step may be executed twice, but it is recorded once.
//
// A process that stops or dies leaves its job `in_progress`. Every process watches the store for such orphans: jobs
// whose process (`runner`) is no longer alive, and jobs that this process stored but never started, because the
// answer of the database was lost. One process takes the orphan over: it increments `fence` and continues at the
// first step that is not done. An update with an older fence changes nothing, so a slow process that was taken for
// dead cannot interfere.
//
// An unexpected error, which is a defect and not a failed step, ends the job as failed. Without this, the system
// would stay read-only until the process restarts.
import { retryWhileUnavailable } from '../../lib/async.ts';
import { isUnavailable } from '../../lib/errors.ts';
import type { Tasks } from '../../lib/tasks.ts';
import { type Job, type StoredPlan, newestJob } from './job-table.ts';
import { abortJob, completeJob, takeOverJob } from './job.ts';
import { revertNext, rollBackNext } from './run-revert.ts';
import {
  type JobRule,
  type RunContext,
  type RunningJob,
  cancelStep,
  runStep,
  updateJob,
} from './run-step.ts';
import { WaitRecorder } from './wait-recorder.ts';

type JobRunnerOptions = Omit<RunContext, 'waits'> & { readonly tasks: Tasks };

export class JobRunner {
  readonly #options: JobRunnerOptions & RunContext;
  /** The run that this process has started last. Only the newest job can be in progress. */
  #lastStarted: string | undefined;
  #accepting = 0;
  #isTakingOver = false;

  constructor(options: JobRunnerOptions) {
    this.#options = { ...options, waits: new WaitRecorder(options.store, options.runtime) };
  }

  async run<J extends Job | undefined>(accept: () => Promise<J>): Promise<J> {
    this.#accepting += 1;
    try {
      const job = await accept();
      if (job) {
        this.#lastStarted = runName(job);
        this.#options.tasks.start(`job ${job.id}`, (signal) => this.#runToEnd(job, signal));
      }
      return job;
    } finally {
      this.#accepting -= 1;
      this.#watchForOrphans();
    }
  }

  /** `isOwnJob`: this process ran the job before, so it continues without a takeover. */
  async recover(isOwnJob = false): Promise<void> {
    const orphan = this.#findOrphan();
    if (orphan) await (isOwnJob ? this.run(() => Promise.resolve(orphan)) : this.#takeOver(orphan));
    this.#options.tasks.start('take-over', async (stopping) => {
      const stopListening = this.#options.store.onUpdate(() => this.#watchForOrphans());
      await new Promise((resolve) => stopping.addEventListener('abort', resolve));
      stopListening();
    });
  }

  async #runToEnd(job: Job, signal: AbortSignal): Promise<void> {
    try {
      const retry = <T>(work: () => Promise<T>) => retryWhileUnavailable(work, this.#options.runtime, signal);
      const plan = await retry(() => this.#loadPlan(job));
      let isRunning = plan !== undefined;
      while (plan && isRunning) isRunning = await retry(() => this.#advanceIfOwned(job, plan, signal));
    } finally {
      // A job that is still in progress keeps its lock for the process that takes it over.
      if (this.#findRunning(job.id) === undefined) await this.#options.executor.release(job.id);
    }
  }

  /** Undefined if another process has ended the job, which deletes the plan. */
  async #loadPlan(job: Job): Promise<StoredPlan | undefined> {
    let failure = new Error(`The plan of the job ${job.id} is missing.`);
    try {
      const plan = await this.#options.store.jobs.plan(job.id);
      if (plan) return plan;
    } catch (error) {
      if (isUnavailable(error)) throw error;
      failure = error as Error;
    }
    if (await this.#abort(job, undefined, 'Load the plan')) throw failure;
    return undefined;
  }

  #findRunning(id: string): Job | undefined {
    const job = this.#options.store.read(newestJob);
    return job?.id === id && job.state === 'in_progress' ? job : undefined;
  }

  async #advanceIfOwned({ id, fence }: Job, plan: StoredPlan, signal: AbortSignal): Promise<boolean> {
    // Without this, steps that never wait would block every other request.
    await this.#options.runtime.yieldToEventLoop();
    const job = this.#findRunning(id);
    if (signal.aborted || job?.fence !== fence) return false;
    await this.#advance({ ...this.#options, job, plan, signal });
    return true;
  }

  async #advance(running: RunningJob): Promise<void> {
    const { job, plan, signal } = running;
    const step = plan.steps[job.next];
    try {
      if (job.reverting) await revertNext(running);
      else if (job.cancelledBy !== null) await cancelStep(running, step);
      else if (step?.action === 'rollback') await rollBackNext(running, step);
      else if (step) await runStep(running, step);
      else await this.#update(job, (transaction, current, at) => completeJob(transaction, current, plan, at));
    } catch (error) {
      if (!signal.aborted && !isUnavailable(error)) await this.#abort(job, plan, step?.name ?? 'End');
      throw error;
    }
  }

  #abort(job: Job, plan: StoredPlan | undefined, stepName: string): Promise<Job | undefined> {
    return this.#update(job, (transaction, current, at) =>
      abortJob(transaction, current, plan, stepName, at),
    );
  }

  #takeOver(orphan: Job): Promise<Job | undefined> {
    const { self } = this.#options.store;
    return this.run(() =>
      this.#update(orphan, (transaction, job, at) => takeOverJob(transaction, job, self, at)),
    );
  }

  #update(job: Job, rule: JobRule): Promise<Job | undefined> {
    return updateJob(this.#options, job, rule);
  }

  #findOrphan(): Job | undefined {
    const job = this.#options.store.read(newestJob);
    if (job?.state !== 'in_progress') return undefined;
    const isOwn = job.runner === this.#options.store.self;
    const isRunning = isOwn ? this.#lastStarted === runName(job) : this.#options.store.isAlive(job.runner);
    return isRunning ? undefined : job;
  }

  #watchForOrphans(): void {
    // The store has an accepted job shortly before its run starts. Such a job is no orphan.
    if (this.#isTakingOver || this.#accepting > 0 || !this.#findOrphan()) return;
    this.#isTakingOver = true;
    this.#options.tasks.start('take-over', (signal) => this.#takeOverOrphans(signal));
  }

  async #takeOverOrphans(signal: AbortSignal): Promise<void> {
    const takeOverAll = async () => {
      for (let orphan = this.#findOrphan(); orphan; orphan = this.#findOrphan()) await this.#takeOver(orphan);
    };
    try {
      await retryWhileUnavailable(takeOverAll, this.#options.runtime, signal);
    } finally {
      this.#isTakingOver = false;
    }
  }
}

function runName({ id, fence }: Job): string {
  return `${id} ${fence}`;
}
