// The types of Kubernetes objects in the fake cluster and the tests, as in JSON: times are strings.

export type Fields = Record<string, unknown>;

export type Kind = 'Deployment' | 'StatefulSet' | 'DaemonSet';

export type OwnerReference = {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
};

export type Metadata = {
  name: string;
  namespace?: string;
  generateName?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  finalizers?: string[];
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
};

export type KubeObject = { apiVersion: string; kind: string; metadata: Metadata };

export type Container = {
  name: string;
  image: string;
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  args?: string[];
  /** `Always` in an init container: a native sidecar. */
  restartPolicy?: string;
  env?: { name: string; value?: string }[];
};

export type PodSpec = {
  restartPolicy?: string;
  terminationGracePeriodSeconds?: number;
  containers: Container[];
  initContainers?: Container[];
  nodeSelector?: Record<string, string>;
  nodeName?: string;
  affinity?: Fields;
  hostname?: string;
};

export type PodTemplate = {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  spec: PodSpec;
};

/** Of a pod or of a workload. */
export type Condition = {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastUpdateTime?: string;
  lastTransitionTime?: string;
};

export type ContainerStatus = {
  name: string;
  image: string;
  ready: boolean;
  restartCount: number;
  state: {
    waiting?: { reason: string; message?: string };
    running?: { startedAt: string };
    terminated?: { reason: string; exitCode: number; message?: string };
  };
  lastState?: { terminated: { reason: string; exitCode: number; finishedAt: string } };
};

export type Pod = KubeObject & {
  spec: PodSpec;
  status: {
    phase: string;
    conditions?: Condition[];
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
  };
};

export type LabelSelector = {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
};

type Share = number | string;

export type WorkloadSpec = {
  selector: LabelSelector;
  template: PodTemplate;
  replicas?: number;
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
  paused?: boolean;
  progressDeadlineSeconds?: number;
  podManagementPolicy?: string;
  strategy?: { type: string; rollingUpdate?: { maxSurge?: Share; maxUnavailable?: Share } };
  updateStrategy?: { type: string; rollingUpdate?: { partition?: number; maxUnavailable?: Share } };
};

/** The counters of all kinds. The server leaves out most counters that are zero. */
export type WorkloadStatus = {
  observedGeneration?: number;
  replicas?: number;
  updatedReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  unavailableReplicas?: number;
  fullyLabeledReplicas?: number;
  currentReplicas?: number;
  currentRevision?: string;
  updateRevision?: string;
  collisionCount?: number;
  currentNumberScheduled?: number;
  desiredNumberScheduled?: number;
  updatedNumberScheduled?: number;
  numberMisscheduled?: number;
  numberReady?: number;
  numberAvailable?: number;
  numberUnavailable?: number;
  conditions?: Condition[];
};

/** A Deployment, ReplicaSet, StatefulSet or DaemonSet. */
export type Workload = KubeObject & { spec: WorkloadSpec; status: WorkloadStatus };

export type JobSpec = {
  template: PodTemplate;
  backoffLimit?: number;
  activeDeadlineSeconds?: number;
  ttlSecondsAfterFinished?: number;
  suspend?: boolean;
};

export type Job = KubeObject & {
  spec: JobSpec;
  status: {
    startTime?: string;
    active?: number;
    failed?: number;
    succeeded?: number;
    conditions?: Condition[];
  };
};

export type ControllerRevision = KubeObject & {
  revision: number;
  data: { spec: { template: PodTemplate } };
};

/** Counters that are in the status even if they are zero. */
export const alwaysReported: Record<string, string[]> = {
  Deployment: [],
  ReplicaSet: ['replicas'],
  StatefulSet: ['replicas', 'availableReplicas'],
  DaemonSet: ['currentNumberScheduled', 'desiredNumberScheduled', 'numberMisscheduled', 'numberReady'],
};

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A deep copy of JSON data; `structuredClone` takes several times as long. */
export function copy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copy) as T;
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, copy(inner)])) as T;
}

/** Removes fields that are null. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isFields(value)) return value;
  const present = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(present.map(([name, inner]) => [name, withoutNulls(inner)]));
}

/** The same text for equal values, independent of the order of keys. */
export const textOf = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    isFields(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );

/** The time in whole seconds, like Kubernetes writes it. */
export const seconds = (at = Date.now()): string => new Date(at).toISOString().replace(/\.\d+/, '');
