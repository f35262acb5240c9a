// Runs the Jobs of steps: creates each one once, waits for its end, and deletes Jobs.
import { isUnavailable } from '../../../lib/errors.ts';
import type { Runtime } from '../../../lib/runtime.ts';
import type { StepContext, TemplateResult, TemplateRun } from '../executor.ts';
import { returnsResult } from '../steps.ts';
import { hasStatus } from './client.ts';
import type { Cluster } from './cluster.ts';
import type { UpgradeLock } from './lock.ts';
import { JobStart } from './step-job-start.ts';
import {
  type CronJobObject,
  type StepJob,
  buildStepJob,
  findTerminationMessage,
  formatJobFailure,
  jobLabel,
  parseResult,
  podsOfJob,
  stepLabel,
} from './step-template.ts';
import type { ClusterPod } from './workload.ts';
import type { MoverOptions } from './workload-mover.ts';

/** A Job may run for hours, so the pause between two requests grows up to this multiple of the first one. */
const maxPauseFactor = 10;

/** For pods that end when their time to end is over. */
const endMarginMs = 30_000;

/** Most Jobs of a few seconds have ended then, and their pods are not needed. */
const looksBeforePods = 4;

type StepJobsOptions = Pick<MoverOptions, 'rolloutTimeoutMs' | 'imageTimeoutMs' | 'pollIntervalMs'> & {
  readonly runtime: Pick<Runtime, 'now' | 'elapsed' | 'sleep'>;
  readonly stepTimeoutMs: number;
};

export class StepJobs {
  readonly #options: StepJobsOptions;
  readonly #lock: UpgradeLock;

  constructor(options: StepJobsOptions, lock: UpgradeLock) {
    this.#options = options;
    this.#lock = lock;
  }

  async start(cluster: Cluster, run: TemplateRun, context: StepContext): Promise<void> {
    if (await findJob(cluster, run, context)) return;
    const template = await readTemplate(cluster, run);
    await this.#deleteRunning(cluster, context);
    await this.#assertOwnership(cluster, context);
    const body = buildStepJob(template, run, context.jobId, Math.ceil(this.#options.stepTimeoutMs / 1000));
    try {
      await cluster.createJob(body);
    } catch (error) {
      // The answer to an earlier request was lost, or another process has created the Job meanwhile.
      if (!hasStatus(error, 409) || !(await findJob(cluster, run, context))) throw error;
    }
  }

  async run(cluster: Cluster, run: TemplateRun, context: StepContext): Promise<TemplateResult> {
    const found = await this.#waitForEnd(cluster, run, context);
    if (found.state === 'failed') {
      const message = findTerminationMessage(await this.#readEndedPods(cluster, run, context));
      throw new Error(formatJobFailure(found, message));
    }
    if (!returnsResult(run.step)) return {};
    // The condition says that it is complete: pods of earlier tries may stay, for example on a lost node.
    const pods = await cluster.listPods(podsOfJob(run.jobName));
    const result = parseResult(findTerminationMessage(pods.filter(({ hasSucceeded }) => hasSucceeded)));
    return result === undefined ? {} : { result };
  }

  /**
   * A Job that has exceeded its time has failed before its pods have ended. Nothing is reverted meanwhile, for as long as
   * they have to end: those on a lost node never do.
   */
  async #readEndedPods(cluster: Cluster, run: TemplateRun, context: StepContext): Promise<ClusterPod[]> {
    const { elapsed } = this.#options.runtime;
    const since = elapsed();
    for (let pauses = 0; ; pauses += 1) {
      const pods = await cluster.listPods(podsOfJob(run.jobName));
      const running = pods.filter(({ hasEnded }) => !hasEnded);
      const graceMs = Math.max(0, ...running.map((pod) => pod.graceMs));
      if (running.length === 0 || elapsed() >= since + graceMs + endMarginMs) return pods;
      report(
        run,
        context,
        `the Job ${run.jobName} has failed, and its pod ${running[0]?.name} has not ended`,
      );
      await this.#pause(pauses, cluster, context);
    }
  }

  async #waitForEnd(cluster: Cluster, run: TemplateRun, context: StepContext): Promise<StepJob> {
    let found: StepJob | undefined;
    const start = new JobStart({ ...this.#options, runStartedAt: context.runStartedAt });
    let blocked: string | undefined;
    try {
      for (let pauses = 0; blocked === undefined; pauses += 1) {
        await this.#pause(pauses, cluster, context);
        found = await findJob(cluster, run, context);
        if (found?.state !== 'running') break;
        if (pauses < looksBeforePods) continue;
        const pods = await cluster.listPods(podsOfJob(run.jobName));
        const { hasFailed, reason } = start.check(found, pods, this.#options.runtime.elapsed());
        report(run, context, reason);
        if (hasFailed) blocked = reason;
      }
      if (blocked !== undefined) await this.stop(cluster, run, context);
    } catch (error) {
      if (context.signal.aborted || isUnavailable(error)) throw error;
      const text = `${(error as Error).message} The Job ${run.jobName} may still be running. The next attempt deletes it first.`;
      throw new Error(text, { cause: error });
    }
    if (blocked !== undefined)
      throw new Error(`the Job ${run.jobName} did not start, and was deleted: ${blocked}.`);
    if (!found) throw new Error(`another client has deleted the Job ${run.jobName}.`);
    return found;
  }

  async stop(cluster: Cluster, run: TemplateRun, context: StepContext): Promise<void> {
    let looksWithoutJob = 0;
    for (let pauses = 0; ; pauses += 1) {
      const found = await findJob(cluster, run, context);
      if (found && !found.isTerminating) {
        await this.#assertOwnership(cluster, context);
        await cluster.deleteJob(found);
      }
      // A Job that a finalizer keeps starts no pod any more.
      const pods = await cluster.listPods(podsOfJob(run.jobName));
      const isGone = found
        ? found.isTerminating && pods.every(({ hasEnded }) => hasEnded)
        : pods.length === 0;
      looksWithoutJob = isGone ? looksWithoutJob + 1 : 0;
      // Two looks, because the request that creates the Job may have been on its way when the step was interrupted.
      if (looksWithoutJob === 2) return;
      report(run, context, `the Job ${run.jobName} is being deleted`);
      await this.#pause(pauses, cluster, context);
    }
  }

  /** Deletes what earlier upgrade jobs have left. */
  async deleteOfEarlierJobs(cluster: Cluster, context: StepContext): Promise<void> {
    await this.#delete(cluster, await cluster.listJobs(`${jobLabel},${jobLabel}!=${context.jobId}`), context);
  }

  /** Two Jobs must not run at the same time. An earlier attempt may still run if the API server was unavailable. */
  async #deleteRunning(cluster: Cluster, context: StepContext): Promise<void> {
    const jobs = await cluster.listJobs(jobLabel);
    const running = jobs.filter(({ state }) => state === 'running');
    await this.#delete(cluster, running, context);
  }

  /** Waits until the pods of running Jobs are gone. */
  async #delete(cluster: Cluster, jobs: readonly StepJob[], context: StepContext): Promise<void> {
    if (jobs.length > 0) await this.#assertOwnership(cluster, context);
    for (const job of jobs) await cluster.deleteJob(job);
    for (const { name, state } of jobs)
      for (let pauses = 0; state === 'running' && (await hasPods(cluster, name)); pauses += 1) {
        context.report({
          object: `job/${name}`,
          reason: `the pods of the earlier Job ${name} have not ended`,
        });
        await this.#pause(pauses, cluster, context);
      }
  }

  /** Keeps the lock meanwhile. */
  async #pause(pauses: number, cluster: Cluster, context: StepContext): Promise<void> {
    const { runtime, pollIntervalMs = 500 } = this.#options;
    await runtime.sleep(Math.min(2 ** pauses, maxPauseFactor) * pollIntervalMs, context.signal);
    await this.#lock.renew(cluster, context);
  }

  async #assertOwnership(cluster: Cluster, context: StepContext): Promise<void> {
    await context.assertOwnership();
    await this.#lock.acquire(cluster, context);
  }
}

function report({ jobName }: TemplateRun, context: StepContext, reason: string): void {
  context.report({ object: `job/${jobName}`, reason });
}

async function findJob(
  cluster: Cluster,
  { jobName }: TemplateRun,
  { jobId }: StepContext,
): Promise<StepJob | undefined> {
  const found = await cluster.findJob(jobName);
  if (found && found.upgradeJobId !== jobId)
    throw new Error(`the Job ${jobName} exists, but its label ${jobLabel} does not name this upgrade job.`);
  return found;
}

async function readTemplate(cluster: Cluster, { step, template }: TemplateRun): Promise<CronJobObject> {
  const templates = await cluster.listCronJobs(`${stepLabel}=${step}`);
  const found = templates.find(({ metadata }) => metadata?.name === template);
  if (!found) throw new Error(`the step template cronjob/${template ?? ''} no longer exists.`);
  return found;
}

async function hasPods(cluster: Cluster, jobName: string): Promise<boolean> {
  return (await cluster.listPods(podsOfJob(jobName))).length > 0;
}
