// The runner carries a job to its end: asks the executor for one step after another, and records each with its messages in one update.
import { withTimeout } from '../lib/async.ts';
import { isUnavailable } from '../errors.ts';
import { retryWhileUnavailable } from '../lib/async.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Tasks } from '../tasks.ts';
import { toXmlText } from '../lib/text.ts';
import type { Runtime } from '../runtime.ts';
import type { StepContext, Executor } from './executors/executor.ts';
import {
  advanceJob,
  beginCancel,
  abortJob,
  completeJob,
  takeOverJob,
  endReverting,
  failJob,
  nextToRevert,
  revertStep,
} from './job.ts';
import { type Job, type OnJobChange, jobs, newestJob, plans } from './job-table.ts';
import type { Plan, Step } from './plan.ts';

const revertTries = 3;

export type JobRunner = {
  /** Runs the job that is accepted or resumed by this; also when the store's answer to that was lost. */
  run: <J extends Job | undefined>(accept: () => Promise<J>) => Promise<J>;
  /** Goes on with a job that an earlier process has left behind, now or as soon as its process is gone. */
  recover: () => Promise<void>;
};

export type JobRunnerOptions = {
  store: Store;
  runtime: Runtime;
  tasks: Tasks;
  executor: Executor;
  stepTimeoutMs: number;
  tell: OnJobChange;
};

export function createJobRunner({
  store,
  runtime,
  tasks,
  executor,
  stepTimeoutMs,
  tell,
}: JobRunnerOptions): JobRunner {
  /** Changes the job unless it has moved on meanwhile, by another's hand or because this had been done already. */
  function change(
    { id, fence, next, reverting }: Job,
    rule: (transaction: Transaction, job: Job, at: number) => Job,
  ): Promise<Job | undefined> {
    const at = runtime.now();
    return store.update((transaction) => {
      const job = transaction.get(jobs, id);
      if (job?.state !== 'in_progress' || job.fence !== fence || job.next !== next) return undefined;
      if (job.reverting?.before !== reverting?.before) return undefined;
      const changed = rule(transaction, job, at);
      if (changed.state !== 'in_progress') tell(transaction, changed, at);
      return changed;
    });
  }

  function act(step: Step, context: StepContext): Promise<void> {
    const { action, workload } = step;
    return workload === null || action === 'perform'
      ? executor.perform(step.name, context)
      : executor[action](workload, context);
  }

  function carryOut(
    { id: jobId, fence, runStartedAt }: Job,
    work: (context: StepContext) => Promise<void>,
    stopping: AbortSignal,
  ): Promise<void> {
    const assertOwnership = async () => {
      await store.refresh();
      if (store.get(jobs, jobId)?.fence !== fence) throw new Error('another process has taken the job up.');
    };
    return withTimeout(runtime, (signal) => work({ jobId, fence, runStartedAt, assertOwnership, signal }), {
      ms: stepTimeoutMs,
      message: `it took longer than ${stepTimeoutMs / 1000} seconds.`,
      stopping,
    });
  }

  async function takeStep(job: Job, step: Step, signal: AbortSignal): Promise<void> {
    let failure: unknown;
    try {
      await carryOut(job, (context) => act(step, context), signal);
    } catch (error) {
      // Interrupted is not failed: whoever takes the job up again does the step again.
      if (signal.aborted) return;
      if (isUnavailable(error)) throw error;
      failure = error;
    }
    await change(job, (transaction, current, at) =>
      failure === undefined
        ? advanceJob(transaction, current, step, at)
        : failJob(transaction, current, step, reasonOf(failure), at),
    );
  }

  async function revert(job: Job, plan: Plan, signal: AbortSignal): Promise<void> {
    const found = nextToRevert(job, plan);
    const workload = found?.step.workload;
    let failure: string | undefined;
    for (let tries = 1; workload; tries += 1) {
      try {
        await carryOut(job, (context) => executor.rollback(workload, context), signal);
        failure = undefined;
        break;
      } catch (error) {
        if (signal.aborted) return;
        if (isUnavailable(error)) throw error;
        failure = reasonOf(error);
        if (tries === revertTries) break;
      }
    }
    await change(job, (transaction, current, at) =>
      found
        ? revertStep(transaction, current, { ...found, failure }, at)
        : endReverting(transaction, current, at),
    );
  }

  async function goOn(job: Job, plan: Plan, signal: AbortSignal): Promise<void> {
    const step = plan.steps[job.next];
    if (job.reverting) await revert(job, plan, signal);
    else if (job.cancelledBy !== null) await change(job, beginCancel);
    else if (step) await takeStep(job, step, signal);
    else await change(job, completeJob);
  }

  async function breakOff(job: Job, { steps }: Plan): Promise<void> {
    const name = steps[job.next]?.name ?? 'End';
    await change(job, (transaction, current, at) => abortJob(transaction, current, name, at));
  }

  async function work({ id, fence }: Job, signal: AbortSignal): Promise<void> {
    const plan = store.get(plans, id);
    const goOnOnce = async () => {
      // Steps without any waiting in them must not keep everybody else waiting.
      await runtime.yieldToEventLoop();
      const job = store.get(jobs, id);
      if (!plan || signal.aborted || job?.state !== 'in_progress' || job.fence !== fence) return false;
      await goOn(job, plan, signal).catch(async (error: unknown) => {
        if (!signal.aborted && !isUnavailable(error)) await breakOff(job, plan);
        throw error;
      });
      return true;
    };
    while (await retryWhileUnavailable(goOnOnce, runtime, signal));
  }

  /** What is kept for a job stays with it until it has ended, whoever goes on with it. */
  async function letGo({ id }: Job): Promise<void> {
    if (store.get(jobs, id)?.state !== 'in_progress') await executor.release(id);
  }

  const nameOf = ({ id, fence }: Job) => `${id} ${fence}`;
  const begun = new Set<string>();
  let accepting = 0;

  async function run<J extends Job | undefined>(accept: () => Promise<J>): Promise<J> {
    accepting += 1;
    try {
      const job = await accept();
      if (job) {
        begun.add(nameOf(job));
        tasks.start(`job ${job.id}`, (signal) => work(job, signal).finally(() => letGo(job)));
      }
      return job;
    } finally {
      accepting -= 1;
    }
  }

  const takeUp = (job: Job) =>
    run(() => change(job, (transaction, current, at) => takeOverJob(transaction, current, store.self, at)));

  /** A running job whose process is gone; or that is this one's own, which has never heard of it. */
  function findOrphan(): Job | undefined {
    const job = newestJob(store);
    if (job?.state !== 'in_progress') return undefined;
    const isRun = job.runner === store.self ? begun.has(nameOf(job)) : store.isAlive(job.runner);
    return isRun ? undefined : job;
  }

  async function takeUpOrphans(signal: AbortSignal): Promise<void> {
    const takeUpOne = async () => {
      const orphan = findOrphan();
      if (orphan) await takeUp(orphan);
      return orphan !== undefined;
    };
    while (await retryWhileUnavailable(takeUpOne, runtime, signal));
  }

  let isTakingUp = false;
  function lookForOrphan(): void {
    // What is just being accepted is in the store before it is begun.
    if (isTakingUp || accepting > 0 || !findOrphan()) return;
    isTakingUp = true;
    tasks.start('take-over', (signal) => takeUpOrphans(signal).finally(() => (isTakingUp = false)));
  }

  return {
    run,
    async recover() {
      const left = findOrphan();
      if (left) await takeUp(left);
      tasks.start('take-over', async (stopping) => {
        const stopListening = store.onUpdate(lookForOrphan);
        await new Promise((resolve) => stopping.addEventListener('abort', resolve));
        stopListening();
      });
    },
  };
}

/** It may come from anywhere, and must be fit to be kept. */
function reasonOf(error: unknown): string {
  return toXmlText((error as Error).message);
}
