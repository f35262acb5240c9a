// The runner carries a job to its end: asks the executor for one step after another, and records each with its messages in one update.
import { isUnavailable } from '../errors.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Tasks } from '../tasks.ts';
import type { World } from '../world.ts';
import type { Executor } from './executors/executor.ts';
import {
  advanceJob,
  beginCancel,
  completeJob,
  continueJob,
  endReverting,
  failJob,
  nextToRevert,
  revertStep,
} from './job.ts';
import { type Job, type TellJob, jobs, newestJob, plans } from './job-record.ts';
import type { Plan, Step } from './plan.ts';

const revertTries = 3;

/** How long after the store has been away it is asked again. */
const tryAgainAfterMs = 500;

export type Runner = {
  /** Takes up a job that was just accepted or resumed. */
  run: (job: Job) => void;
  /** Goes on with a job that an earlier process has left behind, now or as soon as its process is gone. */
  recover: () => Promise<void>;
};

export type RunnerOptions = {
  store: Store;
  world: World;
  tasks: Tasks;
  executor: Executor;
  stepTimeoutMs: number;
  tell: TellJob;
};

export function createRunner({ store, world, tasks, executor, stepTimeoutMs, tell }: RunnerOptions): Runner {
  /** Changes the job unless it has moved on meanwhile, by another's hand or because this had been done already. */
  function change(
    { id, fence, next }: Job,
    rule: (transaction: Transaction, job: Job, at: number) => Job,
  ): Promise<Job | undefined> {
    const at = world.now();
    return store.update((transaction) => {
      const job = transaction.get(jobs, id);
      if (job?.state !== 'in_progress' || job.fence !== fence || job.next !== next) return undefined;
      const changed = rule(transaction, job, at);
      if (changed.state !== 'in_progress') tell(transaction, changed, at);
      return changed;
    });
  }

  function act(step: Step, signal: AbortSignal): Promise<void> {
    const { action, workload } = step;
    return workload === null || action === 'perform'
      ? executor.perform(step.name, signal)
      : executor[action](workload, signal);
  }

  /** Ends when the act ends, at the deadline, or when the process stops; the act is told to stop in the latter two. */
  async function withDeadline(
    work: (signal: AbortSignal) => Promise<void>,
    stopping: AbortSignal,
  ): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, stopping]);
    const deadline = world.sleep(stepTimeoutMs, signal).then(() => {
      throw new Error(`it took longer than ${stepTimeoutMs / 1000} seconds.`);
    });
    deadline.catch(() => undefined);
    try {
      await Promise.race([work(signal), deadline]);
    } finally {
      over.abort();
    }
  }

  async function takeStep(job: Job, step: Step, signal: AbortSignal): Promise<void> {
    let failure: unknown;
    try {
      await withDeadline((within) => act(step, within), signal);
    } catch (error) {
      // Interrupted is not failed: whoever takes the job up again does the step again.
      if (signal.aborted) return;
      failure = error;
    }
    await change(job, (transaction, current, at) =>
      failure === undefined
        ? advanceJob(transaction, current, step, at)
        : failJob(transaction, current, step, (failure as Error).message, at),
    );
  }

  async function revert(job: Job, plan: Plan, signal: AbortSignal): Promise<void> {
    const found = nextToRevert(job, plan);
    const workload = found?.step.workload;
    let failure: string | undefined;
    for (let tries = 1; workload; tries += 1) {
      try {
        await withDeadline((within) => executor.rollback(workload, within), signal);
        failure = undefined;
        break;
      } catch (error) {
        if (signal.aborted) return;
        failure = (error as Error).message;
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

  async function work({ id, fence }: Job, signal: AbortSignal): Promise<void> {
    const plan = store.get(plans, id);
    while (plan) {
      // Steps without any waiting in them must not keep everybody else waiting.
      await world.breathe();
      if (signal.aborted) return;
      const job = store.get(jobs, id);
      if (job?.state !== 'in_progress' || job.fence !== fence) return;
      try {
        await goOn(job, plan, signal);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        await world.sleep(tryAgainAfterMs, signal);
      }
    }
  }

  const run = (job: Job) => tasks.start(`job ${job.id}`, (signal) => work(job, signal));

  async function takeUp(job: Job): Promise<void> {
    const taken = await change(job, (transaction, current, at) =>
      continueJob(transaction, current, store.self, at),
    );
    if (taken) run(taken);
  }

  /** A running job whose process is gone. */
  function findOrphan(): Job | undefined {
    const job = newestJob(store);
    return job?.state === 'in_progress' && !store.isAlive(job.runner) ? job : undefined;
  }

  let isTakingUp = false;
  function lookForOrphan(): void {
    const orphan = isTakingUp ? undefined : findOrphan();
    if (!orphan) return;
    isTakingUp = true;
    tasks.start('take-over', () => takeUp(orphan).finally(() => (isTakingUp = false)));
  }

  return {
    run,
    async recover() {
      const job = newestJob(store);
      // What is this process's own was begun before it started anew on the same store.
      const isOwn = job?.state === 'in_progress' && job.runner === store.self;
      const left = isOwn ? job : findOrphan();
      if (left) await takeUp(left);
      tasks.start('take-over', async (stopping) => {
        const stopListening = store.onUpdate(lookForOrphan);
        await new Promise((resolve) => stopping.addEventListener('abort', resolve));
        stopListening();
      });
    },
  };
}
