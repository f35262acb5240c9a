// The fields of workloads and pods that the executor uses, parsed from the API objects. Workloads of all kinds have one
// shape.
import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import { truncate } from '../../../lib/text.ts';
import type { FoundContainer } from '../inventory/found.ts';

export const kinds = ['Deployment', 'StatefulSet', 'DaemonSet'] as const;
export type Kind = (typeof kinds)[number];

export type WorkloadRef = { readonly kind: Kind; readonly name: string };

export type ClusterWorkload = WorkloadRef & {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly containers: readonly FoundContainer[];
  readonly selector: string;
  readonly isObserved: boolean;
  readonly wanted: number;
  readonly present: number;
  readonly updated: number;
  readonly available: number;
  /** Settings that keep a new template from reaching all pods. */
  readonly obstacles: readonly string[];
  /** Only a Deployment has one. */
  readonly deadlineMs: number | undefined;
  readonly minReadyMs: number;
  readonly failures: readonly string[];
  /** Only the status of a StatefulSet has one. */
  readonly revision: string | undefined;
};

type Selector = {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
};
type Template = { name: string; image?: string };

export type WorkloadObject = {
  metadata?: {
    name?: string;
    uid?: string;
    resourceVersion?: string;
    generation?: number;
    deletionTimestamp?: Date | string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec?: {
    replicas?: number;
    paused?: boolean;
    progressDeadlineSeconds?: number;
    minReadySeconds?: number;
    selector?: Selector;
    updateStrategy?: { type?: string; rollingUpdate?: { partition?: number; maxSurge?: unknown } };
    template?: { spec?: { containers?: Template[]; initContainers?: Template[] } };
  };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    updatedReplicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    desiredNumberScheduled?: number;
    currentNumberScheduled?: number;
    updatedNumberScheduled?: number;
    numberAvailable?: number;
    updateRevision?: string;
    conditions?: {
      type: string;
      status: string;
      reason?: string;
      message?: string;
    }[];
  };
};

/** The highest number of seconds means that the controller has no deadline. */
const noDeadline = 2 ** 31 - 1;

export const beingDeleted = 'is being deleted';

export function parseWorkload(
  kind: Kind,
  { metadata = {}, spec = {}, status = {} }: WorkloadObject,
): ClusterWorkload {
  const { containers = [], initContainers = [] } = spec.template?.spec ?? {};
  const deadline = spec.progressDeadlineSeconds ?? noDeadline;
  const parseContainer = (isInit: boolean) => (container: Template) => ({
    name: container.name,
    image: container.image ?? '',
    isInit,
  });
  return {
    kind,
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    containers: [...initContainers.map(parseContainer(true)), ...containers.map(parseContainer(false))],
    selector: formatSelector(spec.selector ?? {}),
    isObserved: (status.observedGeneration ?? 0) >= (metadata.generation ?? 0),
    ...countPods(kind, spec, status),
    obstacles: [...(metadata.deletionTimestamp ? [beingDeleted] : []), ...findObstacles(kind, spec)],
    minReadyMs: (spec.minReadySeconds ?? 0) * 1000,
    failures: (status.conditions ?? []).flatMap(({ type, status: is, message }) =>
      type === 'ReplicaFailure' && is === 'True' ? (cutMessage(message) ?? []) : [],
    ),
    revision: status.updateRevision,
    deadlineMs: deadline < noDeadline ? deadline * 1000 : undefined,
  };
}

/** Controllers and nodes write these messages; some contain the whole answer of a registry. */
export function cutMessage(message: string | undefined): string | undefined {
  return message === undefined ? undefined : truncate(message, 500);
}

type Spec = NonNullable<WorkloadObject['spec']>;
type Status = NonNullable<WorkloadObject['status']>;

/** The API server leaves out counters that are zero. */
function countPods(kind: Kind, spec: Spec, status: Status) {
  if (kind === 'DaemonSet') {
    const { desiredNumberScheduled = 0, currentNumberScheduled = 0 } = status;
    const { updatedNumberScheduled = 0, numberAvailable = 0 } = status;
    return {
      wanted: desiredNumberScheduled,
      present: currentNumberScheduled,
      updated: updatedNumberScheduled,
      available: numberAvailable,
    };
  }
  const { replicas = 0, updatedReplicas = 0, readyReplicas = 0, availableReplicas } = status;
  // Before Kubernetes 1.22 the status of a StatefulSet has no availableReplicas.
  const available = kind === 'StatefulSet' ? (availableReplicas ?? readyReplicas) : (availableReplicas ?? 0);
  return { wanted: spec.replicas ?? 1, present: replicas, updated: updatedReplicas, available };
}

function findObstacles(kind: Kind, { paused, updateStrategy }: Spec): string[] {
  const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
  return [
    ...(paused === true ? ['is paused'] : []),
    ...(updateStrategy?.type === 'OnDelete' ? ['has the update strategy OnDelete'] : []),
    ...(kind === 'StatefulSet' && partition > 0
      ? [`has the partition ${partition}, which excludes pods with lower ordinals`]
      : []),
  ];
}

function formatSelector({ matchLabels = {}, matchExpressions = [] }: Selector): string {
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => {
    if (operator === 'Exists') return key;
    if (operator === 'DoesNotExist') return `!${key}`;
    return `${key} ${operator.toLowerCase()} (${values.join(',')})`;
  });
  return [...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`), ...expressions].join(',');
}

/** The form that kubectl accepts. */
export function pathOf({ kind, name }: WorkloadRef): string {
  return `${kind.toLowerCase()}/${name}`;
}

export function parsePath(path: string): WorkloadRef {
  const [prefix, name = ''] = path.split('/', 2);
  const kind = kinds.find((one) => one.toLowerCase() === prefix);
  if (!kind) throw new Error(`${path} is not the path of a workload.`);
  return { kind, name };
}

export type ClusterPod = {
  readonly name: string;
  readonly uid: string;
  /** The path of the workload or the Job that the pod belongs to. */
  readonly owner: string | undefined;
  /** Only pods of a StatefulSet or DaemonSet have one. */
  readonly revision: string | undefined;
  readonly createdAt: number;
  readonly images: ReadonlyMap<string, string>;
  readonly isReady: boolean;
  /** Its node does not report: the control plane has set it to not ready, and its containers are ready. */
  readonly lostNode: string | undefined;
  readonly isTerminating: boolean;
  /** None of its containers has started, not even an init container. */
  readonly isPending: boolean;
  /** One of its containers is running, other than a sidecar that starts before the others. */
  readonly isAtWork: boolean;
  /** All its containers have ended, and none starts again. */
  readonly hasEnded: boolean;
  readonly hasSucceeded: boolean;
  /** How long it has to end. */
  readonly graceMs: number;
  /** The containers that are not ready, without those that wait for an init container. */
  readonly unready: readonly string[];
  readonly unscheduled: string | undefined;
  readonly waiting: readonly {
    readonly container: string;
    readonly reason: string;
    readonly message: string;
  }[];
  /** Its containers that have ended once, without init containers that are expected to end. */
  readonly ends: readonly {
    /** Of the container in its pod. */
    readonly id: string;
    readonly container: string;
    readonly restarts: number;
    /** It has not been started again. */
    readonly isDown: boolean;
    readonly reason: string;
  }[];
  /** Of the first container that has one; of an init container only if no other has one. */
  readonly terminationMessage: string | undefined;
};

export function parsePod({ metadata, spec, status }: V1Pod): ClusterPod {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const inOrderOfMessages = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  const conditions = status?.conditions ?? [];
  const ready = conditions.find(({ type }) => type === 'Ready');
  const isLost =
    ready?.status === 'False' &&
    ready.reason !== 'ReadinessGatesNotReady' &&
    (status?.containerStatuses ?? []).length > 0 &&
    status?.containerStatuses?.every((one) => one.ready);
  const isSidecar = ({ name }: { name: string }) =>
    spec?.initContainers?.some((one) => one.name === name && one.restartPolicy === 'Always') ?? false;
  const hasBegun = ({ state, restartCount }: V1ContainerStatus) =>
    state?.running !== undefined || state?.terminated !== undefined || restartCount > 0;
  const lasting = [
    ...(status?.initContainerStatuses ?? []).filter(isSidecar),
    ...(status?.containerStatuses ?? []),
  ];
  return {
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    owner: findOwner(metadata),
    revision: metadata?.labels?.['controller-revision-hash'],
    createdAt: parseTime(metadata?.creationTimestamp),
    images: new Map(containers.map(({ name, image }) => [name, image ?? ''])),
    isReady: ready?.status === 'True',
    lostNode: isLost ? spec?.nodeName : undefined,
    isTerminating: metadata?.deletionTimestamp !== undefined,
    isPending: status?.phase === 'Pending' && !statuses.some((one) => !isSidecar(one) && hasBegun(one)),
    isAtWork: statuses.some((one) => !isSidecar(one) && one.state?.running !== undefined),
    hasEnded: status?.phase === 'Succeeded' || status?.phase === 'Failed',
    hasSucceeded: status?.phase === 'Succeeded',
    graceMs: (metadata?.deletionGracePeriodSeconds ?? spec?.terminationGracePeriodSeconds ?? 30) * 1000,
    unready: [
      ...(status?.initContainerStatuses ?? []).filter(({ state }) => state?.waiting?.reason !== undefined),
      ...(status?.containerStatuses ?? []).filter(({ ready }) => !ready),
    ].flatMap(({ name, state }) => (state?.waiting?.reason === 'PodInitializing' ? [] : name)),
    unscheduled: cutMessage(
      conditions.find((one) => one.type === 'PodScheduled' && one.status === 'False')?.message,
    ),
    waiting: statuses.flatMap(({ name: container, state: { waiting } = {} }) => {
      if (waiting?.reason === undefined) return [];
      return { container, reason: truncate(waiting.reason), message: cutMessage(waiting.message) ?? '' };
    }),
    ends: lasting.flatMap(({ name: container, restartCount, state, lastState }) => {
      const end = state?.terminated ?? lastState?.terminated;
      const waiting = state?.waiting?.reason;
      const isLooping = waiting === 'CrashLoopBackOff';
      if (!end && !isLooping && restartCount === 0) return [];
      // Some nodes forget how a container has ended.
      const why = end?.reason ?? waiting ?? 'no reason given';
      const reason = end ? `${why}, exit code ${end.exitCode}` : why;
      const isDown = isLooping || !state?.running;
      return { id: `${metadata?.uid} ${container}`, container, restarts: restartCount, isDown, reason };
    }),
    terminationMessage: inOrderOfMessages
      .map(({ state, lastState }) => state?.terminated?.message || lastState?.terminated?.message)
      .find(Boolean),
  };
}

/** In JSON it is text, although the library declares a Date. */
export function parseTime(time: Date | undefined): number {
  return time === undefined ? 0 : new Date(time).getTime();
}

/** A Deployment owns its pods through ReplicaSets, whose names end with the hash of their template. */
function findOwner(metadata: V1Pod['metadata']): string | undefined {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller);
  const hash = metadata?.labels?.['pod-template-hash'];
  return owner?.kind === 'ReplicaSet' && owner.name.endsWith(`-${hash}`)
    ? `deployment/${owner.name.slice(0, -`-${hash}`.length)}`
    : owner && `${owner.kind.toLowerCase()}/${owner.name}`;
}
