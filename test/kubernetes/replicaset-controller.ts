// The ReplicaSet controller of the fake cluster: as many pods as are asked for.
import {
  type Hands,
  createPod,
  isActive,
  isAvailable,
  isReady,
  ownedBy,
  podResource,
  retryMs,
  writeStatus,
} from './hands.ts';
import { type Condition, type Pod, type Workload, seconds } from './objects.ts';
import { resourceOf } from './resources.ts';

const replicaSets = resourceOf('replicasets');

export function syncReplicaSet(hands: Hands, set: Workload): void {
  const pods = ownedBy<Pod>(hands, podResource, set).filter(isActive);
  const wanted = set.spec.replicas ?? 1;
  let refusal: string | undefined;
  for (let count = pods.length; count < wanted && refusal === undefined; count += 1) {
    refusal = createPod(hands, set, set.spec.template, { labels: {} });
  }
  if (refusal !== undefined) hands.wakeAt(Date.now() + retryMs);
  for (const pod of leastWanted(pods).slice(0, Math.max(0, pods.length - wanted))) {
    hands.storage.remove(podResource, pod);
  }
  // As the real one, it tells of what it found, not of what it has just done.
  writeStatus(hands, replicaSets, set, {
    replicas: pods.length,
    fullyLabeledReplicas: pods.length,
    readyReplicas: pods.filter(isReady).length,
    availableReplicas: pods.filter((pod) => isAvailable(hands, pod, set.spec.minReadySeconds)).length,
    observedGeneration: set.metadata.generation ?? 1,
    ...(refusal === undefined ? {} : { conditions: [tellRefusal(set, refusal)] }),
  });
}

/** Pending before running, not ready before ready, young before old. */
function leastWanted(pods: Pod[]): Pod[] {
  const rank = (pod: Pod) => (pod.status.phase === 'Pending' ? 0 : 1) + (isReady(pod) ? 1 : 0);
  return [...pods]
    .reverse()
    .sort(
      (a, b) => rank(a) - rank(b) || (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? 1 : -1),
    );
}

function tellRefusal(set: Workload, message: string): Condition {
  const before = set.status.conditions?.[0];
  return {
    type: 'ReplicaFailure',
    status: 'True',
    reason: 'FailedCreate',
    message,
    lastTransitionTime: before?.lastTransitionTime ?? seconds(),
  };
}
