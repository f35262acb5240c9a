// The Job controller of the fake cluster: one pod at a time until one succeeds, too many fail, or the time is up. The
// Job has ended then, but a pod that still runs has its grace period to end.
import {
  type ControllerContext,
  createPod,
  isActive,
  ownedBy,
  podResource,
  retryMs,
} from './controller-tools.ts';
import { type Condition, type Job, type Pod, seconds, textOf } from './objects.ts';
import { resourceOf } from './resources.ts';

const jobs = resourceOf('jobs');

export function syncJob(context: ControllerContext, job: Job): void {
  const { storage, now, wakeAt } = context;
  const { backoffLimit = 6, activeDeadlineSeconds, suspend, template } = job.spec;
  const pods = ownedBy<Pod>(context, podResource, job);
  if (isFinished(job)) for (const pod of pods.filter(isActive)) endPod(context, pod);
  if (suspend === true || isFinished(job) || job.metadata.deletionTimestamp !== undefined) return;
  const startTime = job.status.startTime ?? seconds(now());
  const count = (phase: string) => pods.filter(({ status }) => status.phase === phase).length;
  const failed = count('Failed');
  const deadline = Date.parse(startTime) + (activeDeadlineSeconds ?? Infinity) * 1000;
  const isLate = now() >= deadline;
  const conditions =
    count('Succeeded') > 0
      ? [condition('Complete', 'CompletionsReached', 'Reached expected number of succeeded pods')]
      : failed > backoffLimit
        ? [condition('Failed', 'BackoffLimitExceeded', 'Job has reached the specified backoff limit')]
        : isLate
          ? [condition('Failed', 'DeadlineExceeded', 'Job was active longer than specified deadline')]
          : [];
  if (conditions.length > 0) {
    for (const pod of pods.filter(isActive)) endPod(context, pod);
  } else if (!pods.some(isActive)) {
    const labels = { 'job-name': job.metadata.name, 'batch.kubernetes.io/job-name': job.metadata.name };
    if (createPod(context, job, template, { labels }) !== undefined) wakeAt(now() + retryMs);
  }
  if (Number.isFinite(deadline) && conditions.length === 0) wakeAt(deadline);
  const active = conditions.length > 0 ? 0 : 1;
  const status = { startTime, active, failed, succeeded: count('Succeeded'), conditions };
  if (textOf(status) !== textOf(job.status)) storage.replace(jobs, { ...job, status });
}

/** The container ends at the end of the grace period. */
function endPod({ storage, now, wakeAt }: ControllerContext, pod: Pod): void {
  const { terminationGracePeriodSeconds: graceSeconds = 30 } = pod.spec;
  const end = now() + graceSeconds * 1000;
  const { deletionTimestamp = new Date(end).toISOString() } = pod.metadata;
  const isOver = Date.parse(deletionTimestamp) <= now();
  if (isOver) storage.remove(podResource, pod);
  else if (pod.metadata.deletionTimestamp === undefined)
    storage.replace(podResource, { ...pod, metadata: { ...pod.metadata, deletionTimestamp } });
  if (!isOver) wakeAt(Date.parse(deletionTimestamp));
}

function isFinished({ status }: Job): boolean {
  return status.conditions?.some(({ type }) => type === 'Complete' || type === 'Failed') ?? false;
}

function condition(type: string, reason: string, message: string): Condition {
  return { type, status: 'True', reason, message, lastTransitionTime: seconds() };
}
