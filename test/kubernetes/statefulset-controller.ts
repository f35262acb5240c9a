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

type Counts = { replicas: number; currentReplicas: number; updatedReplicas: number };

export function syncStatefulSet(hands: Hands, set: Workload): void {
  const update = presentRevision(hands, set);
  const current =
    listRevisions(hands, set).find(({ metadata }) => metadata.name === set.status.currentRevision) ?? update;
  const pods = ownedBy<Pod>(hands, podResource, set).sort((a, b) => ordinalOf(a) - ordinalOf(b));
  const count = (isCounted: (pod: Pod) => boolean) => pods.filter(isCounted).length;
  // As the real one, it counts what it finds, and corrects that only for the better part of what it then does.
  const counts: Counts = {
    replicas: pods.length,
    currentReplicas: count((pod) => revisionOf(pod) === current.metadata.name),
    updatedReplicas: count((pod) => revisionOf(pod) === update.metadata.name),
  };
  const readyReplicas = count(isRunningAndReady);
  act(hands, set, pods, { current, update, counts });

  const isRolledOut =
    set.spec.updateStrategy?.type !== 'OnDelete' &&
    counts.updatedReplicas === counts.replicas &&
    readyReplicas === counts.replicas;
  writeStatus(hands, statefulSets, set, {
    observedGeneration: set.metadata.generation ?? 1,
    readyReplicas,
    availableReplicas: count((pod) => isReady(pod) && isAvailable(hands, pod, set.spec.minReadySeconds)),
    ...counts,
    ...(isRolledOut ? { currentReplicas: counts.updatedReplicas } : {}),
    currentRevision: (isRolledOut ? update : current).metadata.name,
    updateRevision: update.metadata.name,
    collisionCount: 0,
  });
}

type Direction = { current: ControllerRevision; update: ControllerRevision; counts: Counts };

function act(hands: Hands, set: Workload, owned: Pod[], { current, update, counts }: Direction): void {
  const { storage, wakeAt } = hands;
  const { replicas = 1, updateStrategy, podManagementPolicy, minReadySeconds } = set.spec;
  const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
  const isInOrder = podManagementPolicy !== 'Parallel';
  const isFit = (pod: Pod) => isRunningAndReady(pod) && isAvailable(hands, pod, minReadySeconds);
  const correct = (revision: string | undefined, by: number) => {
    if (revision === current.metadata.name) counts.currentReplicas += by;
    if (revision === update.metadata.name) counts.updatedReplicas += by;
  };

  for (let ordinal = 0; ordinal < replicas; ordinal += 1) {
    const pod = owned.find((one) => ordinalOf(one) === ordinal);
    if (pod && isActive(pod)) {
      if (isInOrder && !isFit(pod)) return;
      continue;
    }
    if (pod) {
      storage.remove(podResource, pod);
      counts.replicas -= 1;
      correct(revisionOf(pod), -1);
    }
    const revision = ordinal < partition ? current : update;
    if (create(hands, set, ordinal, revision)) {
      counts.replicas += 1;
      correct(revision.metadata.name, 1);
    } else wakeAt(Date.now() + retryMs);
    if (isInOrder) return;
  }

  const firstUnfit = owned.find((pod) => !isRunningAndReady(pod));
  for (const pod of owned.filter((one) => ordinalOf(one) >= replicas).reverse()) {
    if (isInOrder && !isRunningAndReady(pod) && pod !== firstUnfit) return;
    storage.remove(podResource, pod);
    correct(revisionOf(pod), -1);
    if (isInOrder) return;
  }

  if (updateStrategy?.type === 'OnDelete') return;
  for (let ordinal = replicas - 1; ordinal >= partition; ordinal -= 1) {
    const pod = owned.find((one) => ordinalOf(one) === ordinal);
    // It has only just been created.
    if (!pod) return;
    if (revisionOf(pod) !== update.metadata.name) {
      storage.remove(podResource, pod);
      counts.currentReplicas -= 1;
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
