// The StatefulSet controller of the fake cluster. It processes pods in order and waits for every pod that is not
// ready, whatever its template: a pod that never becomes ready blocks the rollout until it is deleted.
import {
  type ControllerContext,
  createPod,
  isActive,
  isAvailable,
  isReady,
  isRunningAndReady,
  ownedBy,
  podResource,
  retryMs,
  writeStatus,
} from './controller-tools.ts';
import type { ControllerRevision, Pod, Workload } from './objects.ts';
import { resourceOf } from './resources.ts';
import { listRevisions, currentRevision, revisionLabel } from './revisions.ts';

const statefulSets = resourceOf('statefulsets');

const ordinalOf = ({ metadata }: Pod) => Number(/-(\d+)$/.exec(metadata.name)?.[1] ?? -1);
const revisionOf = ({ metadata }: Pod) => metadata.labels?.[revisionLabel];

type Counts = { replicas: number; currentReplicas: number; updatedReplicas: number };

export function syncStatefulSet(context: ControllerContext, set: Workload): void {
  const update = currentRevision(context, set);
  const current =
    listRevisions(context, set).find(({ metadata }) => metadata.name === set.status.currentRevision) ??
    update;
  const pods = ownedBy<Pod>(context, podResource, set).sort((a, b) => ordinalOf(a) - ordinalOf(b));
  const count = (isCounted: (pod: Pod) => boolean) => pods.filter(isCounted).length;
  // Like the real controller, it counts the pods that it found, and corrects the counts for some of its changes only.
  const counts: Counts = {
    replicas: pods.length,
    currentReplicas: count((pod) => revisionOf(pod) === current.metadata.name),
    updatedReplicas: count((pod) => revisionOf(pod) === update.metadata.name),
  };
  const readyReplicas = count(isRunningAndReady);
  act(context, set, pods, { current, update, counts });

  const isRolledOut =
    set.spec.updateStrategy?.type !== 'OnDelete' &&
    counts.updatedReplicas === counts.replicas &&
    readyReplicas === counts.replicas;
  writeStatus(context, statefulSets, set, {
    observedGeneration: set.metadata.generation ?? 1,
    readyReplicas,
    availableReplicas: count((pod) => isReady(pod) && isAvailable(context, pod, set.spec.minReadySeconds)),
    ...counts,
    ...(isRolledOut ? { currentReplicas: counts.updatedReplicas } : {}),
    currentRevision: (isRolledOut ? update : current).metadata.name,
    updateRevision: update.metadata.name,
    collisionCount: 0,
  });
}

type Direction = { current: ControllerRevision; update: ControllerRevision; counts: Counts };

function act(
  context: ControllerContext,
  set: Workload,
  owned: Pod[],
  { current, update, counts }: Direction,
): void {
  const { storage } = context;
  const { replicas = 1, updateStrategy, podManagementPolicy, minReadySeconds } = set.spec;
  const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
  const isInOrder = podManagementPolicy !== 'Parallel';
  const isPodAvailable = (pod: Pod) => isRunningAndReady(pod) && isAvailable(context, pod, minReadySeconds);
  const correct = (revision: string | undefined, by: number) => {
    if (revision === current.metadata.name) counts.currentReplicas += by;
    if (revision === update.metadata.name) counts.updatedReplicas += by;
  };

  for (let ordinal = 0; ordinal < replicas; ordinal += 1) {
    const pod = owned.find((one) => ordinalOf(one) === ordinal);
    if (pod && isActive(pod)) {
      if (isInOrder && !isPodAvailable(pod)) return;
      continue;
    }
    if (pod) {
      storage.remove(podResource, pod);
      counts.replicas -= 1;
      correct(revisionOf(pod), -1);
    }
    const revision = ordinal < partition ? current : update;
    if (create(context, set, ordinal, revision)) {
      counts.replicas += 1;
      correct(revision.metadata.name, 1);
    } else context.wakeAt(context.now() + retryMs);
    if (isInOrder) return;
  }

  const firstUnready = owned.find((pod) => !isRunningAndReady(pod));
  for (const pod of owned.filter((one) => ordinalOf(one) >= replicas).reverse()) {
    if (isInOrder && !isRunningAndReady(pod) && pod !== firstUnready) return;
    storage.remove(podResource, pod);
    correct(revisionOf(pod), -1);
    if (isInOrder) return;
  }

  if (updateStrategy?.type === 'OnDelete') return;
  for (let ordinal = replicas - 1; ordinal >= partition; ordinal -= 1) {
    const pod = owned.find((one) => ordinalOf(one) === ordinal);
    // The pod was created above, so it is not in the list yet.
    if (!pod) return;
    if (revisionOf(pod) !== update.metadata.name) {
      storage.remove(podResource, pod);
      counts.currentReplicas -= 1;
      return;
    }
    if (!isPodAvailable(pod)) return;
  }
}

function create(
  context: ControllerContext,
  set: Workload,
  ordinal: number,
  { metadata, data }: ControllerRevision,
): boolean {
  const name = `${set.metadata.name}-${ordinal}`;
  const refusal = createPod(context, set, data.spec.template, {
    name,
    labels: { 'statefulset.kubernetes.io/pod-name': name, [revisionLabel]: metadata.name },
    spec: { hostname: name },
  });
  return refusal === undefined;
}
