// A workload of the cluster as the executor sees it: what all kinds have in common, read from what the API server answers.

export const kinds = ['Deployment', 'StatefulSet', 'DaemonSet'] as const;
export type Kind = (typeof kinds)[number];

export type ClusterWorkload = {
  readonly kind: Kind;
  readonly name: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly containers: readonly ClusterContainer[];
  /** Of its pods, as a list of them is asked for. */
  readonly selector: string;
  /** Whether the status is about the specification as it is now. */
  readonly isObserved: boolean;
  /** Pods: how many are wanted, are there, are of the newest template, can be used. */
  readonly wanted: number;
  readonly present: number;
  readonly updated: number;
  readonly available: number;
  /** Why a change of its template would not reach all its pods. */
  readonly obstacles: readonly string[];
  /** Pods that must come before one may go. */
  readonly surge: number;
  /** That the controller has given up on the newest template, and when it said so. */
  readonly exceeded: { readonly at: string } | undefined;
  /** How long the controller itself lets a rollout make no progress. */
  readonly deadlineMs: number | undefined;
  /** How long a pod must be ready before it counts. */
  readonly minReadyMs: number;
  /** Why the controller cannot make pods. */
  readonly failures: readonly string[];
  /** Of a StatefulSet: the template that its pods are to have. */
  readonly revision: string | undefined;
};

export type ClusterContainer = {
  readonly name: string;
  readonly image: string;
  readonly isInit: boolean;
  readonly requests: Quantities;
  readonly limits: Quantities;
};

export type Quantities = Readonly<Record<string, string>>;

type Selector = {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
};
type IntOrString = number | string;
type Bounds = { maxSurge?: IntOrString; maxUnavailable?: IntOrString; partition?: number };
type Template = {
  name: string;
  image?: string;
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
};

/** As much as is read of what the API server answers. */
export type Answered = {
  metadata?: {
    name?: string;
    resourceVersion?: string;
    generation?: number;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec?: {
    replicas?: number;
    paused?: boolean;
    progressDeadlineSeconds?: number;
    minReadySeconds?: number;
    selector?: Selector;
    strategy?: { type?: string; rollingUpdate?: Bounds };
    updateStrategy?: { type?: string; rollingUpdate?: Bounds };
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
      lastUpdateTime?: Date | string;
    }[];
  };
};

export function readWorkload(
  kind: Kind,
  { metadata = {}, spec = {}, status = {} }: Answered,
): ClusterWorkload {
  const { containers = [], initContainers = [] } = spec.template?.spec ?? {};
  const read = (isInit: boolean) => (container: Template) => ({
    name: container.name,
    image: container.image ?? '',
    isInit,
    requests: container.resources?.requests ?? {},
    limits: container.resources?.limits ?? {},
  });
  return {
    kind,
    name: metadata.name ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    containers: [...initContainers.map(read(true)), ...containers.map(read(false))],
    selector: writeSelector(spec.selector ?? {}),
    isObserved: (status.observedGeneration ?? 0) >= (metadata.generation ?? 0),
    ...countPods(kind, spec, status),
    obstacles: findObstacles(kind, spec),
    surge: surgeNeeded(kind, spec),
    exceeded: findExceeded(status),
    minReadyMs: (spec.minReadySeconds ?? 0) * 1000,
    failures: (status.conditions ?? []).flatMap(({ type, status: is, message }) =>
      type === 'ReplicaFailure' && is === 'True' && message !== undefined ? message : [],
    ),
    revision: status.updateRevision,
    deadlineMs:
      kind === 'Deployment' && spec.progressDeadlineSeconds !== undefined
        ? spec.progressDeadlineSeconds * 1000
        : undefined,
  };
}

type Spec = NonNullable<Answered['spec']>;
type Status = NonNullable<Answered['status']>;

/** Counters that are zero are left out of a status. */
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
  // Before 1.22 a StatefulSet told only how many are ready.
  const available = kind === 'StatefulSet' ? (availableReplicas ?? readyReplicas) : (availableReplicas ?? 0);
  return { wanted: spec.replicas ?? 1, present: replicas, updated: updatedReplicas, available };
}

function findObstacles(kind: Kind, { paused, updateStrategy }: Spec): string[] {
  const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
  return [
    ...(paused === true ? ['is paused'] : []),
    ...(updateStrategy?.type === 'OnDelete' ? ['has the update strategy OnDelete'] : []),
    ...(kind === 'StatefulSet' && partition > 0 ? [`keeps pods below ${partition} back by a partition`] : []),
  ];
}

function writeSelector({ matchLabels = {}, matchExpressions = [] }: Selector): string {
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => {
    if (operator === 'Exists') return key;
    if (operator === 'DoesNotExist') return `!${key}`;
    return `${key} ${operator.toLowerCase()} (${values.join(',')})`;
  });
  return [...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`), ...expressions].join(',');
}

/** Where no pod may be missing, another must come before one goes. */
function surgeNeeded(kind: Kind, { replicas = 1, strategy, updateStrategy }: Spec): number {
  if (kind === 'Deployment') {
    if (strategy?.type === 'Recreate' || replicas === 0) return 0;
    const { maxUnavailable = '25%', maxSurge = '25%' } = strategy?.rollingUpdate ?? {};
    const canMiss = share(maxUnavailable, replicas, Math.floor);
    return canMiss === 0 && share(maxSurge, replicas, Math.ceil) > 0 ? 1 : 0;
  }
  const { maxUnavailable = 1, maxSurge = 0 } = updateStrategy?.rollingUpdate ?? {};
  return kind === 'DaemonSet' && isNone(maxUnavailable) && !isNone(maxSurge) ? 1 : 0;
}

function share(bound: IntOrString, of: number, round: (value: number) => number): number {
  return typeof bound === 'string' && bound.endsWith('%')
    ? round((Number.parseFloat(bound) * of) / 100)
    : Number(bound);
}

const isNone = (bound: IntOrString) => Number.parseFloat(String(bound)) === 0;

function findExceeded({ conditions = [] }: Status): ClusterWorkload['exceeded'] {
  const condition = conditions.find(
    ({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded',
  );
  if (condition?.status !== 'False') return undefined;
  return { at: timeOf(condition.lastUpdateTime) };
}

/** Whole seconds, as the API server writes them. */
function timeOf(time: Date | string | undefined): string {
  return time === undefined ? '' : new Date(time).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** As people name it, and as the command line of a cluster takes it. */
export function pathOf({ kind, name }: { kind: Kind; name: string }): string {
  return `${kind.toLowerCase()}/${name}`;
}

export function readPath(path: string): { kind: Kind; name: string } {
  const [prefix, name = ''] = path.split('/', 2);
  const kind = kinds.find((one) => one.toLowerCase() === prefix);
  if (!kind) throw new Error(`${path} is no workload of a cluster.`);
  return { kind, name };
}
