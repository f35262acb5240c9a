// Runs the steps of a job: asks the executor for one step, and records the step with its messages in one update.
import { isUnavailable } from '../../lib/errors.ts';
import { toXmlText } from '../../lib/text.ts';
import type { RepairedWorkload, StepContext, TemplateRun } from '../executors/executor.ts';
import { nameOfStepJob } from '../planning/performers.ts';
import { type Plan, type Step, movedWorkloads } from '../planning/plan.ts';
import { beginCancel } from './job-reverting.ts';
import { type StepOutcome, advanceJob, attemptOf, beginStep, recordRepairs } from './job-steps.ts';
import { type Job, type StoredPlan, newestJob } from './job-table.ts';
import { failJob } from './job.ts';
import { type RunContext, callExecutor, errorText, updateJob } from './running-job.ts';

export async function recordBegin(run: RunContext, job: Job, step: Step): Promise<void> {
  await updateJob(run, job, (transaction, current, at) => beginStep(transaction, current, step, at));
}

export async function runStep(
  run: RunContext,
  job: Job,
  plan: StoredPlan,
  step: Step,
  signal: AbortSignal,
): Promise<void> {
  let outcome: StepOutcome = {};
  let failure: string | undefined;
  const repaired: RepairedWorkload[] = [];
  const hasJob = mayHaveJob(step);
  const interruption = interruptOnCancel(run, job, hasJob, signal);
  try {
    if (!step.isSkipped)
      outcome = await callExecutor(
        run,
        job,
        step,
        (context) => perform(run, job, plan, step, context, repaired),
        { stopping: interruption.signal },
      );
  } catch (error) {
    // An interrupted step has not failed: the process that takes the job over repeats it.
    if (signal.aborted) return;
    // The next decision cancels the job.
    if (interruption.signal.aborted) return;
    if (isUnavailable(error)) throw error;
    failure = errorText(error);
  } finally {
    interruption.end();
  }
  await updateJob(run, job, (transaction, current, at) => {
    const recorded = recordRepairs(transaction, current, repaired, at);
    if (failure !== undefined) return failJob(transaction, recorded, plan, { step, cause: failure }, at);
    return advanceJob(transaction, recorded, plan, step, outcome, at);
  });
}

async function perform(
  run: RunContext,
  job: Job,
  plan: StoredPlan,
  step: Step,
  context: StepContext,
  repaired: RepairedWorkload[],
): Promise<StepOutcome> {
  const { id, action, workload } = step;
  if (action === 'run-template') {
    const { result } = await run.executor.runTemplate(templateRun(job, plan, step), context);
    return result === undefined ? {} : { databases: toXmlText(result) };
  }
  if (action === 'apply' && workload) return run.executor.apply(workload, context);
  if (action === 'rollback' && workload) return run.executor.rollback(workload, context);
  if (action === 'check') {
    const which = job.operation === 'rollback' ? 'formerImage' : 'image';
    // A patch has reverted its workloads, so the steps of a resumed one have moved them again.
    const mayRepair = job.kind !== 'patch' && attemptOf(job, step) > 1;
    await run.executor.check(movedWorkloads(plan), which, context, mayRepair ? repaired : undefined);
  } else if (action === 'verify' && workload) await run.executor.verify(workload, context);
  else await run.executor.perform(id, context);
  return {};
}

/** A Job may take long, so a cancelled job does not wait for its end, unlike for that of other steps. */
function interruptOnCancel(run: RunContext, { id, fence }: Job, hasJob: boolean, stopping: AbortSignal) {
  const interrupted = new AbortController();
  const abort = () => interrupted.abort();
  const abortIfCancelled = () => {
    const newest = run.store.read(newestJob);
    if (newest?.id === id && newest.fence === fence && newest.cancelledBy !== null) abort();
  };
  stopping.addEventListener('abort', abort);
  const stopListening = hasJob ? run.store.onUpdate(abortIfCancelled) : () => undefined;
  if (stopping.aborted) abort();
  return {
    signal: interrupted.signal,
    end: () => {
      stopping.removeEventListener('abort', abort);
      stopListening();
    },
  };
}

export async function cancelStep(
  run: RunContext,
  job: Job,
  plan: StoredPlan,
  step: Step | undefined,
  signal: AbortSignal,
): Promise<void> {
  const failure = step && (await endJobOf(run, job, plan, step, signal));
  if (signal.aborted) return;
  await updateJob(run, job, (transaction, current, at) =>
    step && failure !== undefined
      ? failJob(transaction, current, plan, { step, cause: failure }, at)
      : beginCancel(transaction, current, plan, at),
  );
}

/** Returns why the Job could not be ended. */
async function endJobOf(
  run: RunContext,
  job: Job,
  plan: StoredPlan,
  step: Step,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!mayHaveJob(step)) return undefined;
  const template = templateRun(job, plan, step);
  try {
    await callExecutor(run, job, step, (context) => run.executor.stopTemplate(template, context), {
      stopping: signal,
    });
    return undefined;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    return `The Job ${template.jobName} could not be deleted: ${errorText(error)}`;
  }
}

function mayHaveJob({ action, isSkipped }: Step): boolean {
  return action === 'run-template' && !isSkipped;
}

function templateRun(job: Job, plan: Plan, step: Step): TemplateRun {
  const { id, template, seqNum } = step;
  const jobName = nameOfStepJob(job.id, seqNum, attemptOf(job, step));
  const { from, to } = plan.hops[step.hop ?? 0] ?? job;
  return { step: id, template, jobName, from, to };
}
