// The StatefulSet controller of the fake cluster. In order, it waits for every pod that is not ready, whatever its template: one that
// never gets ready is in the way until somebody deletes it.
import {
  type Hands,
  createPod,
  isActive,
  isAvailable,
  isReady,
  isRunningAndReady,
  ownedBy,
  podResource,
  retryMs,
  writeStatus,
} from './hands.ts';
import type { ControllerRevision, Pod, Workload } from './objects.ts';
import { resourceOf } from './resources.ts';
import { listRevisions, presentRevision, revisionLabel } from './revisions.ts';

const statefulSets = resourceOf('statefulsets');

const ordinalOf = ({ metadata }: Pod) => Number(/-(\d+)$/.exec(metadata.name)?.[1] ?? -1);
const revisionOf = ({ metadata }: Pod) => metadata.labels?.[revisionLabel];

export function syncStatefulSet(hands: Hands, set: Workload): void {
  const update = presentRevision(hands, set);
  const current =
    listRevisions(hands, set).find(({ metadata }) => metadata.name === set.status.currentRevision) ?? update;
  act(hands, set, current, update);
  tellStatus(hands, set, current, update);
}

function act(hands: Hands, set: Workload, current: ControllerRevision, update: ControllerRevision): void {
  const { storage, wakeAt } = hands;
  const { replicas = 1, updateStrategy, podManagementPolicy, minReadySeconds } = set.spec;
  const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
  const isInOrder = podManagementPolicy !== 'Parallel';
  const owned = ownedBy<Pod>(hands, podResource, set).sort((a, b) => ordinalOf(a) - ordinalOf(b));
  const isFit = (pod: Pod) => isRunningAndReady(pod) && isAvailable(hands, pod, minReadySeconds);

  for (let ordinal = 0; ordinal < replicas; ordinal += 1) {
    const pod = owned.find((one) => ordinalOf(one) === ordinal);
    if (pod && isActive(pod)) {
      if (isInOrder && !isFit(pod)) return;
      continue;
    }
    if (pod) storage.remove(podResource, pod);
    if (!create(hands, set, ordinal, ordinal < partition ? current : update)) wakeAt(Date.now() + retryMs);
    if (isInOrder) return;
  }

  const firstUnfit = owned.find((pod) => !isRunningAndReady(pod));
  for (const pod of owned.filter((one) => ordinalOf(one) >= replicas).reverse()) {
    if (isInOrder && !isRunningAndReady(pod) && pod !== firstUnfit) return;
    storage.remove(podResource, pod);
    if (isInOrder) return;
  }

  if (updateStrategy?.type === 'OnDelete') return;
  const rolled = owned.filter((pod) => ordinalOf(pod) < replicas && ordinalOf(pod) >= partition);
  for (const pod of rolled.reverse()) {
    if (revisionOf(pod) !== update.metadata.name) {
      storage.remove(podResource, pod);
      return;
    }
    if (!isFit(pod)) return;
  }
}

function create(
  hands: Hands,
  set: Workload,
  ordinal: number,
  { metadata, data }: ControllerRevision,
): boolean {
  const name = `${set.metadata.name}-${ordinal}`;
  const refusal = createPod(hands, set, data.spec.template, {
    name,
    labels: { 'statefulset.kubernetes.io/pod-name': name, [revisionLabel]: metadata.name },
    spec: { hostname: name },
  });
  return refusal === undefined;
}

function tellStatus(
  hands: Hands,
  set: Workload,
  current: ControllerRevision,
  update: ControllerRevision,
): void {
  const pods = ownedBy<Pod>(hands, podResource, set).filter(isActive);
  const count = (isCounted: (pod: Pod) => boolean) => pods.filter(isCounted).length;
  const of = ({ metadata }: ControllerRevision) => count((pod) => revisionOf(pod) === metadata.name);
  const readyReplicas = count((pod) => isRunningAndReady(pod));
  const isRolledOut =
    set.spec.updateStrategy?.type !== 'OnDelete' &&
    of(update) === pods.length &&
    readyReplicas === pods.length;
  const now = isRolledOut ? update : current;
  writeStatus(hands, statefulSets, set, {
    observedGeneration: set.metadata.generation ?? 1,
    replicas: pods.length,
    readyReplicas,
    availableReplicas: count((pod) => isReady(pod) && isAvailable(hands, pod, set.spec.minReadySeconds)),
    currentReplicas: of(now),
    updatedReplicas: of(update),
    currentRevision: now.metadata.name,
    updateRevision: update.metadata.name,
    collisionCount: 0,
  });
}
