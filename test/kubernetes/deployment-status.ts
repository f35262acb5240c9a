// The status of a Deployment in the fake cluster: counters, and the conditions Available and Progressing.
import { type ControllerContext, writeStatus } from './controller-tools.ts';
import { maxUnavailableOf, replicasOf, sum } from './deployment-sizes.ts';
import { type Condition, type Workload, type WorkloadStatus, seconds } from './objects.ts';
import { resourceOf } from './resources.ts';

const deployments = resourceOf('deployments');

/** The time of the last progress, by uid. Conditions have whole seconds only. */
const progressAt = new Map<string, number>();

const find = (conditions: Condition[] | undefined, type: string) =>
  conditions?.find((condition) => condition.type === type);

function create(
  { now }: ControllerContext,
  type: string,
  status: string,
  reason: string,
  message: string,
): Condition {
  const at = seconds(now());
  return { type, status, lastUpdateTime: at, lastTransitionTime: at, reason, message };
}

/** Replaces the condition of the same type, unless status and reason are equal. */
function put(conditions: Condition[], next: Condition, isForced = false): Condition[] {
  const before = find(conditions, next.type);
  if (!isForced && before?.status === next.status && before.reason === next.reason) return conditions;
  const others = conditions.filter(({ type }) => type !== next.type);
  const since = before?.status === next.status ? before.lastTransitionTime : undefined;
  return [...others, since === undefined ? next : { ...next, lastTransitionTime: since }];
}

/** The highest value means that there is no deadline. */
const hasDeadline = ({ spec }: Workload) =>
  spec.progressDeadlineSeconds !== undefined && spec.progressDeadlineSeconds < 2 ** 31 - 1;

export function recordNewReplicaSet(
  context: ControllerContext,
  deployment: Workload,
  { metadata }: Workload,
): Workload {
  if (!hasDeadline(deployment)) return deployment;
  progressAt.set(deployment.metadata.uid, context.now());
  const message = `Created new replica set "${metadata.name}"`;
  const condition = create(context, 'Progressing', 'True', 'NewReplicaSetCreated', message);
  deployment.status.conditions = put(deployment.status.conditions ?? [], condition);
  return context.storage.replace(deployments, deployment);
}

/** Records in the condition Progressing that the Deployment is paused or resumed. */
export function recordPaused(context: ControllerContext, deployment: Workload): Workload {
  const before = find(deployment.status.conditions, 'Progressing');
  if (!hasDeadline(deployment) || before?.reason === 'ProgressDeadlineExceeded') return deployment;
  const isRecorded = before?.reason === 'DeploymentPaused';
  const isPaused = deployment.spec.paused === true;
  if (isRecorded === isPaused) return deployment;
  const condition = isPaused
    ? create(context, 'Progressing', 'Unknown', 'DeploymentPaused', 'Deployment is paused')
    : create(context, 'Progressing', 'Unknown', 'DeploymentResumed', 'Deployment is resumed');
  progressAt.set(deployment.metadata.uid, context.now());
  deployment.status.conditions = put(deployment.status.conditions ?? [], condition);
  return context.storage.replace(deployments, deployment);
}

/** Writes the status, and returns whether the rollout is complete. */
export function updateStatus(
  context: ControllerContext,
  deployment: Workload,
  sets: Workload[],
  present: Workload | undefined,
): boolean {
  const available = sum(sets, ({ status }) => status.availableReplicas ?? 0);
  const next: WorkloadStatus = {
    observedGeneration: deployment.metadata.generation ?? 1,
    replicas: sum(sets, ({ status }) => status.replicas ?? 0),
    updatedReplicas: present?.status.replicas ?? 0,
    readyReplicas: sum(sets, ({ status }) => status.readyReplicas ?? 0),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, sum(sets, replicasOf) - available),
  };
  const hasEnough = available >= replicasOf(deployment) - maxUnavailableOf(deployment);
  const availability = hasEnough
    ? create(context, 'Available', 'True', 'MinimumReplicasAvailable', 'Deployment has minimum availability.')
    : create(
        context,
        'Available',
        'False',
        'MinimumReplicasUnavailable',
        'Deployment does not have minimum availability.',
      );
  let conditions = put(deployment.status.conditions ?? [], availability);
  if (deployment.spec.paused !== true)
    conditions = updateProgressing(context, deployment, next, conditions, present);
  writeStatus(context, deployments, deployment, { ...next, conditions });
  return isComplete(deployment, next);
}

function isComplete(deployment: Workload, next: WorkloadStatus): boolean {
  const wanted = replicasOf(deployment);
  return [next.updatedReplicas, next.replicas, next.availableReplicas].every((count) => count === wanted);
}

/** Complete, progressing, or deadline exceeded; otherwise the condition stays unchanged. */
function updateProgressing(
  context: ControllerContext,
  deployment: Workload,
  next: WorkloadStatus,
  conditions: Condition[],
  present: Workload | undefined,
): Condition[] {
  if (!hasDeadline(deployment)) return conditions.filter(({ type }) => type !== 'Progressing');
  const { status, metadata, spec } = deployment;
  const before = find(status.conditions, 'Progressing');
  const title = present ? `ReplicaSet "${present.metadata.name}"` : `Deployment "${metadata.name}"`;
  if (before?.reason === 'NewReplicaSetAvailable' && next.replicas === next.updatedReplicas)
    return conditions;
  if (isComplete(deployment, next)) {
    const message = `${title} has successfully progressed.`;
    return put(conditions, create(context, 'Progressing', 'True', 'NewReplicaSetAvailable', message));
  }
  if (isProgress(status, next)) {
    progressAt.set(metadata.uid, context.now());
    const condition = create(context, 'Progressing', 'True', 'ReplicaSetUpdated', `${title} is progressing.`);
    return put(conditions, condition, true);
  }
  if (!before || before.reason === 'NewReplicaSetAvailable') return conditions;
  const idleMs = context.now() - (progressAt.get(metadata.uid) ?? context.now());
  const remainingMs = (spec.progressDeadlineSeconds ?? 0) * 1000 - idleMs;
  if (remainingMs > 0) {
    context.wakeAt(context.now() + remainingMs);
    return conditions;
  }
  const message = `${title} has timed out progressing.`;
  return put(conditions, create(context, 'Progressing', 'False', 'ProgressDeadlineExceeded', message));
}

function isProgress(before: WorkloadStatus, next: WorkloadStatus): boolean {
  const oldReplicas = ({ replicas = 0, updatedReplicas = 0 }: WorkloadStatus) => replicas - updatedReplicas;
  return (
    (next.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    oldReplicas(next) < oldReplicas(before) ||
    (next.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (next.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  );
}
