// Runs upgrade jobs: asks the executor for one step after another, and records each step with its messages in one update.
//
// The life of a job. A request stores a job in the state `in_progress` together with its plan, and `run` starts a background
// task for it. The task repeats one decision until the job has ended (`#advance`):
//
// - If the job is reverting its workloads, revert the next one; after the last one the job ends as failed or cancelled. If the deadline
//   for reverting has passed, or an administrator has asked to stop, the job ends as failed before that.
// - If an administrator has asked to cancel the job, end the Job of the current step, if it has one, and begin to revert.
// - If the Job of the current step has exceeded its time, end it; then the job fails.
// - If a step is left, execute it. A step that announces its start records that first. A step that throws fails the job; a failed
//   patch begins to revert. The final check of a resumed job repairs one workload at a time.
// - If no step is left, complete the job.
//
// Each decision ends in one update of the store, which moves the job on and appends its messages. While the database is
// unavailable, the runner repeats the decision. So a step may be executed twice, but it is recorded once.
//
// A process that stops or dies leaves its job `in_progress`. Every process watches the store for such orphans: jobs whose
// process (`runner`) is no longer alive, and jobs that this process stored but never started, because the answer of the
// database was lost. One process takes the orphan over: it increments `fence` and continues at the first step that is not
// done. An update with an older fence changes nothing, so a slow process that was taken for dead cannot interfere.
//
// An unexpected error, which is a defect and not a failed step, ends the job as failed. Without this, the system would stay
// read-only until the process restarts.
import { isUnavailable } from '../errors.ts';
import { TimeoutError, retryWhileUnavailable, withTimeout } from '../lib/async.ts';
import { toXmlText, truncate } from '../lib/text.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Tasks } from '../tasks.ts';
import type { Deviation, Executor, StepContext, TemplateRun } from './executors/executor.ts';
import { type OnJobChange, abortJob, completeJob, failJob, takeOverJob } from './job.ts';
import {
  type AppliedStep,
  beginCancel,
  finishReverting,
  nextToRevert,
  revertStep,
  stopReverting,
} from './job-reverting.ts';
import {
  type StepOutcome,
  advanceJob,
  attemptOf,
  beginStep,
  needsBegin,
  recordRepair,
  stopStep,
} from './job-steps.ts';
import { type Job, type StoredPlan, newestJob } from './job-table.ts';
import { nameOfStepJob } from './performers.ts';
import { type Plan, type Step, movedWorkloads } from './plan.ts';
import { completePlan } from './stored-plan.ts';

/** The job keeps the text, and every later step stores the job again. */
const maxFailure = 4000;

const maxDeviations = 20;

export type JobRunnerOptions = {
  store: Store;
  runtime: Runtime;
  tasks: Tasks;
  executor: Executor;
  stepTimeoutMs: number;
  revertTimeoutMs: number;
  notify: OnJobChange;
};

export class JobRunner {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #tasks: Tasks;
  readonly #executor: Executor;
  readonly #stepTimeoutMs: number;
  readonly #revertTimeoutMs: number;
  readonly #notify: OnJobChange;
  readonly #started = new Set<string>();
  #accepting = 0;
  #isTakingOver = false;

  constructor({ store, runtime, tasks, executor, stepTimeoutMs, revertTimeoutMs, notify }: JobRunnerOptions) {
    this.#store = store;
    this.#runtime = runtime;
    this.#tasks = tasks;
    this.#executor = executor;
    this.#stepTimeoutMs = stepTimeoutMs;
    this.#revertTimeoutMs = revertTimeoutMs;
    this.#notify = notify;
  }

  async run<J extends Job | undefined>(accept: () => Promise<J>): Promise<J> {
    this.#accepting += 1;
    try {
      const job = await accept();
      if (job) {
        this.#started.add(runName(job));
        this.#tasks.start(`job ${job.id}`, (signal) => this.#runToEnd(job, signal));
      }
      return job;
    } finally {
      this.#accepting -= 1;
    }
  }

  /** `isOwnJob`: this process ran the job before, so it continues without a takeover. */
  async recover(isOwnJob = false): Promise<void> {
    const orphan = this.#findOrphan();
    if (orphan) await (isOwnJob ? this.run(() => Promise.resolve(orphan)) : this.#takeOver(orphan));
    this.#tasks.start('take-over', async (stopping) => {
      const stopListening = this.#store.onUpdate(() => this.#watchForOrphans());
      await new Promise((resolve) => stopping.addEventListener('abort', resolve));
      stopListening();
    });
  }

  async #runToEnd(job: Job, signal: AbortSignal): Promise<void> {
    try {
      const plan = await retryWhileUnavailable(() => this.#loadPlan(job), this.#runtime, signal);
      while (
        plan &&
        (await retryWhileUnavailable(() => this.#advanceIfOwned(job, plan, signal), this.#runtime, signal))
      );
    } finally {
      // A job that is still in progress keeps its lock for the process that takes it over.
      if (this.#findRunning(job.id) === undefined) await this.#executor.release(job.id);
    }
  }

  /** Undefined if another process has ended the job, which deletes the plan. */
  async #loadPlan(job: Job): Promise<StoredPlan | undefined> {
    let failure = new Error(`The plan of the job ${job.id} is missing.`);
    try {
      const plan = await this.#store.jobs.plan(job.id);
      if (plan) return completePlan(plan);
    } catch (error) {
      if (isUnavailable(error)) throw error;
      failure = error as Error;
    }
    if (await this.#abort(job, 'Load the plan')) throw failure;
    return undefined;
  }

  #findRunning(id: string): Job | undefined {
    const job = this.#store.read(newestJob);
    return job?.id === id && job.state === 'in_progress' ? job : undefined;
  }

  async #advanceIfOwned({ id, fence }: Job, plan: StoredPlan, signal: AbortSignal): Promise<boolean> {
    // Without this, steps that never wait would block every other request.
    await this.#runtime.yieldToEventLoop();
    const job = this.#findRunning(id);
    if (signal.aborted || job?.fence !== fence) return false;
    await this.#advance(job, plan, signal);
    return true;
  }

  async #advance(job: Job, plan: StoredPlan, signal: AbortSignal): Promise<void> {
    const step = plan.steps[job.next];
    try {
      if (job.reverting) await this.#revert(job, plan, signal);
      else if (job.cancelledBy !== null) await this.#cancel(job, plan, step, signal);
      else if (step && job.stopping) await this.#stopStep(job, plan, step, job.stopping, signal);
      else if (step && needsBegin(job, step)) await this.#begin(job, step);
      else if (step) await this.#runStep(job, plan, step, signal);
      else await this.#complete(job, plan);
    } catch (error) {
      if (!signal.aborted && !isUnavailable(error)) await this.#abort(job, step?.name ?? 'End');
      throw error;
    }
  }

  async #begin(job: Job, step: Step): Promise<void> {
    await this.#update(job, (transaction, current, at) => beginStep(transaction, current, step, at));
  }

  async #runStep(job: Job, plan: StoredPlan, step: Step, signal: AbortSignal): Promise<void> {
    let outcome: StepOutcome = {};
    let failure: string | undefined;
    const hasJob = mayHaveJob(step);
    const interruption = this.#interruptOnCancel(job, hasJob, signal);
    try {
      if (!step.isSkipped)
        outcome = await this.#execute(
          job,
          (context) => this.#perform(job, plan, step, context),
          interruption.signal,
        );
    } catch (error) {
      // An interrupted step has not failed: the process that takes the job over repeats it.
      if (signal.aborted) return;
      // The next decision cancels the job.
      if (interruption.signal.aborted) return;
      if (isUnavailable(error)) throw error;
      failure = errorText(error);
      if (hasJob && error instanceof TimeoutError) {
        const cause = failure;
        await this.#update(job, (transaction, current) => stopStep(transaction, current, cause));
        return;
      }
    } finally {
      interruption.end();
    }
    const { repair } = outcome;
    await this.#update(job, (transaction, current, at) => {
      if (failure !== undefined) return failJob(transaction, current, step, failure, at);
      if (repair) return recordRepair(transaction, current, repair, at);
      return advanceJob(transaction, current, plan, step, outcome, at);
    });
  }

  async #perform(job: Job, plan: StoredPlan, step: Step, context: StepContext): Promise<StepOutcome> {
    const { id, action, workload } = step;
    if (action === 'run-template') {
      const { result } = await this.#executor.runTemplate(templateRun(job, plan, step), context);
      return result === undefined ? {} : { databases: toXmlText(result) };
    }
    if (action === 'check') return this.#checkWorkloads(job, plan, step, context);
    if (action === 'apply' && workload) return this.#executor.apply(workload, context);
    if (action === 'verify' && workload) await this.#executor.verify(workload, context);
    else if (action === 'rollback' && workload) await this.#executor.rollback(workload, context);
    else await this.#executor.perform(id, context);
    return {};
  }

  /**
   * A resumed job repairs the next workload that differs, and then checks again. A patch has reverted its workloads, so its steps have
   * moved them again.
   */
  async #checkWorkloads(job: Job, plan: StoredPlan, step: Step, context: StepContext): Promise<StepOutcome> {
    const which = job.operation === 'rollback' ? 'formerImage' : 'image';
    const moved = movedWorkloads(plan);
    const deviations = await this.#executor.check(moved, which, context);
    if (deviations.length === 0) return {};
    const byName = new Map(deviations.map((deviation) => [deviation.workload.name, deviation]));
    const index = moved.findIndex(({ name }, at) => at >= (job.repaired ?? 0) && byName.has(name));
    const next = byName.get(moved[index]?.name ?? '');
    if (!next || job.kind === 'patch' || attemptOf(job, step) === 1) throw deviationError(deviations);
    const isPatched = await this.#repair(job, next, context);
    return { repair: { workload: next.workload, isPatched, repaired: index + 1 } };
  }

  /** Returns whether it has changed the images. */
  async #repair(
    { operation }: Job,
    { workload, hasImages }: Deviation,
    context: StepContext,
  ): Promise<boolean> {
    if (operation === 'rollback') {
      await this.#executor.rollback(workload, context);
      return !hasImages;
    }
    const { isPatched } = await this.#executor.apply(workload, context);
    await this.#executor.verify(workload, context);
    // A workload that an earlier step of this job has patched counts as patched.
    return isPatched && !hasImages;
  }

  /** A Job may take long, so a cancelled job does not wait for its end, unlike for that of other steps. */
  #interruptOnCancel({ id, fence }: Job, hasJob: boolean, stopping: AbortSignal) {
    const interrupted = new AbortController();
    const abort = () => interrupted.abort();
    const abortIfCancelled = () => {
      const newest = this.#store.read(newestJob);
      if (newest?.id === id && newest.fence === fence && newest.cancelledBy !== null) abort();
    };
    stopping.addEventListener('abort', abort);
    const stopListening = hasJob ? this.#store.onUpdate(abortIfCancelled) : () => undefined;
    if (stopping.aborted) abort();
    return {
      signal: interrupted.signal,
      end: () => {
        stopping.removeEventListener('abort', abort);
        stopListening();
      },
    };
  }

  async #cancel(job: Job, plan: StoredPlan, step: Step | undefined, signal: AbortSignal): Promise<void> {
    const failure = step && (await this.#endJobOf(job, plan, step, signal));
    if (signal.aborted) return;
    await this.#update(job, (transaction, current, at) =>
      step && failure !== undefined
        ? failJob(transaction, current, step, failure, at)
        : beginCancel(transaction, current, at),
    );
  }

  async #stopStep(job: Job, plan: StoredPlan, step: Step, cause: string, signal: AbortSignal): Promise<void> {
    const failure = await this.#endJobOf(job, plan, step, signal);
    if (signal.aborted) return;
    const causes = [cause, ...(failure === undefined ? [] : [failure])].join(' ');
    await this.#update(job, (transaction, current, at) => failJob(transaction, current, step, causes, at));
  }

  /** Returns why the Job could not be ended. */
  async #endJobOf(job: Job, plan: StoredPlan, step: Step, signal: AbortSignal): Promise<string | undefined> {
    if (!mayHaveJob(step)) return undefined;
    const run = templateRun(job, plan, step);
    try {
      await this.#execute(job, (context) => this.#executor.stopTemplate(run, context), signal);
      return undefined;
    } catch (error) {
      if (isUnavailable(error)) throw error;
      return `The Job ${run.jobName} could not be deleted: ${errorText(error)}`;
    }
  }

  async #revert(job: Job, plan: StoredPlan, signal: AbortSignal): Promise<void> {
    const applied = nextToRevert(job, plan);
    const why = this.#reasonToStopReverting(job);
    if (!applied) await this.#update(job, finishReverting);
    else if (why !== undefined)
      await this.#update(job, (transaction, current, at) =>
        stopReverting(transaction, current, plan, why, at),
      );
    else await this.#revertNext(job, plan, applied, signal);
  }

  /** Tries each workload once: the executor retries what may succeed later, and the other workloads must not wait for this one. */
  async #revertNext(job: Job, plan: StoredPlan, applied: AppliedStep, signal: AbortSignal): Promise<void> {
    const { workload } = applied.step;
    const remainingMs = this.#revertDeadline(job) - this.#runtime.now();
    let failure: string | undefined;
    try {
      if (workload)
        await this.#execute(
          job,
          (context) => this.#executor.rollback(workload, context),
          signal,
          Math.min(this.#stepTimeoutMs, remainingMs),
        );
    } catch (error) {
      // The next decision stops the job at its deadline, and then this workload is one of those that are left.
      if (signal.aborted || this.#runtime.now() >= this.#revertDeadline(job)) return;
      if (isUnavailable(error)) throw error;
      failure = errorText(error);
    }
    await this.#update(job, (transaction, current, at) =>
      revertStep(transaction, current, plan, { ...applied, failure }, at),
    );
  }

  #revertDeadline({ reverting }: Job): number {
    return (reverting?.since ?? Infinity) + this.#revertTimeoutMs;
  }

  #reasonToStopReverting(job: Job): string | undefined {
    const stoppedBy = job.reverting?.stoppedBy;
    if (stoppedBy !== undefined) return `${stoppedBy} stopped it.`;
    return this.#runtime.now() >= this.#revertDeadline(job)
      ? `it took longer than ${this.#revertTimeoutMs / 1000} seconds.`
      : undefined;
  }

  async #complete(job: Job, plan: StoredPlan): Promise<void> {
    await this.#update(job, (transaction, current, at) => completeJob(transaction, current, plan, at));
  }

  #abort(job: Job, stepName: string): Promise<Job | undefined> {
    return this.#update(job, (transaction, current, at) => abortJob(transaction, current, stepName, at));
  }

  #execute<T>(
    { id: jobId, fence, runStartedAt }: Job,
    call: (context: StepContext) => Promise<T>,
    stopping: AbortSignal,
    timeoutMs = this.#stepTimeoutMs,
  ): Promise<T> {
    const assertOwnership = async () => {
      await this.#store.refresh();
      const newest = this.#store.read(newestJob);
      if (newest?.id !== jobId || newest.fence !== fence)
        throw new Error('another process has taken over the job.');
    };
    return withTimeout(
      this.#runtime,
      (signal) => call({ jobId, fence, runStartedAt, assertOwnership, signal }),
      {
        ms: timeoutMs,
        message: `it took longer than ${timeoutMs / 1000} seconds.`,
        stopping,
      },
    );
  }

  /**
   * Does nothing if the job has changed since `seen` was read: another process has taken it over, or an earlier call stored the
   * same update and only the answer of the database was lost.
   */
  #update(
    seen: Job,
    rule: (transaction: Transaction, job: Job, at: number) => Job,
  ): Promise<Job | undefined> {
    const at = this.#runtime.now();
    return this.#store.update((transaction) => {
      const job = transaction.read(newestJob);
      if (job?.id !== seen.id || job.state !== 'in_progress' || job.fence !== seen.fence) return undefined;
      if (job.next !== seen.next || job.isBegun !== seen.isBegun || job.stopping !== seen.stopping)
        return undefined;
      if (job.reverting?.before !== seen.reverting?.before || job.repaired !== seen.repaired)
        return undefined;
      const changed = rule(transaction, job, at);
      if (changed.state !== 'in_progress') this.#notify(transaction, changed, at);
      return changed;
    });
  }

  #takeOver(orphan: Job): Promise<Job | undefined> {
    return this.run(() =>
      this.#update(orphan, (transaction, job, at) => takeOverJob(transaction, job, this.#store.self, at)),
    );
  }

  #findOrphan(): Job | undefined {
    const job = this.#store.read(newestJob);
    if (job?.state !== 'in_progress') return undefined;
    const isOwn = job.runner === this.#store.self;
    const isRunning = isOwn ? this.#started.has(runName(job)) : this.#store.isAlive(job.runner);
    return isRunning ? undefined : job;
  }

  #watchForOrphans(): void {
    // The store has an accepted job shortly before its run starts. Such a job is no orphan.
    if (this.#isTakingOver || this.#accepting > 0 || !this.#findOrphan()) return;
    this.#isTakingOver = true;
    this.#tasks.start('take-over', (signal) => this.#takeOverOrphans(signal));
  }

  async #takeOverOrphans(signal: AbortSignal): Promise<void> {
    const takeOverNext = async () => {
      const orphan = this.#findOrphan();
      if (orphan) await this.#takeOver(orphan);
      return orphan !== undefined;
    };
    try {
      while (await retryWhileUnavailable(takeOverNext, this.#runtime, signal));
    } finally {
      this.#isTakingOver = false;
    }
  }
}

function mayHaveJob({ action, isSkipped }: Step): boolean {
  return action === 'run-template' && !isSkipped;
}

function templateRun(job: Job, plan: Plan, step: Step): TemplateRun {
  const { id, template, seqNum } = step;
  const jobName = nameOfStepJob(job.id, seqNum, attemptOf(job, step));
  const { from, to } = plan.hops?.[step.hop ?? 0] ?? job;
  return { step: id, template, jobName, from, to };
}

function deviationError(deviations: readonly Deviation[]): Error {
  const rest = deviations.length - maxDeviations;
  const texts = deviations.slice(0, maxDeviations).map(({ problem }) => problem);
  return new Error([...texts, ...(rest > 0 ? [`There are ${rest} more.`] : [])].join(' '));
}

function runName({ id, fence }: Job): string {
  return `${id} ${fence}`;
}

/** The text comes from the executor and may hold characters that neither XML nor the database accepts. */
function errorText(error: unknown): string {
  return toXmlText(truncate((error as Error).message, maxFailure));
}
