// The ReplicaSet controller of the fake cluster: keeps the wanted number of pods.
import {
  type ControllerContext,
  createPod,
  isActive,
  isAvailable,
  isReady,
  ownedBy,
  podResource,
  retryMs,
  writeStatus,
} from './controller-tools.ts';
import type { Pod, Workload } from './objects.ts';
import { resourceOf } from './resources.ts';

const replicaSets = resourceOf('replicasets');

export function syncReplicaSet(context: ControllerContext, set: Workload): void {
  const isPresent = (pod: Pod) => isActive(pod) && pod.metadata.deletionTimestamp === undefined;
  const pods = ownedBy<Pod>(context, podResource, set).filter(isPresent);
  const wanted = set.spec.replicas ?? 1;
  for (let count = pods.length; count < wanted; count += 1) {
    const refusal = createPod(context, set, set.spec.template, { labels: {} });
    if (refusal === undefined) continue;
    context.wakeAt(context.now() + retryMs);
    break;
  }
  for (const pod of inDeletionOrder(pods).slice(0, Math.max(0, pods.length - wanted))) {
    context.storage.remove(podResource, pod);
  }
  // Like the real controller, it reports the pods that it found, without those that it has just created or deleted.
  writeStatus(context, replicaSets, set, {
    replicas: pods.length,
    fullyLabeledReplicas: pods.length,
    readyReplicas: pods.filter(isReady).length,
    availableReplicas: pods.filter((pod) => isAvailable(context, pod, set.spec.minReadySeconds)).length,
    observedGeneration: set.metadata.generation ?? 1,
  });
}

/** Pending before running, not ready before ready, young before old. */
function inDeletionOrder(pods: Pod[]): Pod[] {
  const rank = (pod: Pod) => (pod.status.phase === 'Pending' ? 0 : 1) + (isReady(pod) ? 1 : 0);
  return [...pods]
    .reverse()
    .sort(
      (a, b) => rank(a) - rank(b) || (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? 1 : -1),
    );
}
