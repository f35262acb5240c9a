// The rules of the hops of a job: what is installed when a hop ends, and where the next one starts.
import type { Transaction } from '../../store/transaction.ts';
import type { Plan, PlannedHop } from '../planning/plan.ts';
import { deployment } from '../versions/deployment.ts';
import type { Job, JobHops } from './job-table.ts';
import { keepMoves } from './timeline.ts';

export function startHops(hops: readonly PlannedHop[], targetId: string): JobHops {
  const all = hops.map(({ isRelease, installs }) => ({
    version: (isRelease ? installs[0] : installs.at(-1)) ?? targetId,
    isRelease,
  }));
  return { all, done: 0, installedAt: {} };
}

/** Whether the step at `index` is the last one of a hop, and another hop follows. The last hop ends with the job. */
export function endsHop({ steps }: Plan, index: number): boolean {
  const [hop, next] = [steps[index]?.hop, steps[index + 1]?.hop];
  return hop !== undefined && next !== undefined && next !== hop;
}

/** The job after the last step of its current hop. */
export function finishHop(transaction: Transaction, job: Job, plan: Plan, at: number): Job {
  const { hops } = job;
  const finished = plan.hops[hops.done];
  if (!finished) return job;
  transaction.write(deployment, finished.after);
  const installedAt = { ...hops.installedAt };
  for (const id of finished.installs) installedAt[id] = at;
  return {
    ...job,
    timeline: keepMoves(job.timeline, plan, job.next),
    hops: { ...hops, done: hops.done + 1, installedAt },
  };
}

/** The steps before it belong to finished hops. */
export function startOfHop({ hops }: Job, { steps }: Plan): number {
  return steps.findIndex(({ hop }) => hop === hops.done);
}
