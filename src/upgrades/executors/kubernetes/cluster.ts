// The namespace of a cluster through the official client: the few things that are asked of it, and nothing else of the library.
import {
  AppsV1Api,
  AuthorizationV1Api,
  CoordinationV1Api,
  CoreV1Api,
  KubeConfig,
  type V1Pod,
  VersionApi,
} from '@kubernetes/client-node';
import { delimiter } from 'node:path';
import type { Runtime } from '../../../runtime.ts';
import { type Patience, asStrategicMerge, createCalls } from './client.ts';
import { type ClusterWorkload, type Kind, kinds, readWorkload } from './workload.ts';
import { type Lease, readLease, writeLease } from './lease.ts';
import type { ClusterQuota } from './quota.ts';
import type { Permission } from './permissions.ts';
import type { ClusterPod } from './rollout.ts';

/** As who a change is kept in the record of an object. */
const fieldManager = 'steward';

export type Place = { readonly kind: Kind; readonly name: string };

/** Everything that is asked may be asked again, and fails with a ClusterError. */
export type Cluster = {
  version: () => Promise<string>;
  isAllowed: (right: Permission) => Promise<boolean>;
  list: () => Promise<ClusterWorkload[]>;
  read: (place: Place) => Promise<ClusterWorkload>;
  /** A strategic merge. */
  patch: (place: Place, body: object) => Promise<ClusterWorkload>;
  pods: (selector: string) => Promise<ClusterPod[]>;
  deletePod: (pod: ClusterPod) => Promise<void>;
  quotas: () => Promise<ClusterQuota[]>;
  readLease: (name: string) => Promise<Lease>;
  createLease: (name: string, lease: Lease) => Promise<void>;
  replaceLease: (name: string, lease: Lease) => Promise<void>;
};

export type OpenCluster = (patience: Patience) => Cluster;

export type ClusterOptions = {
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  /** One file, or several as the command line of a cluster takes them; inside the cluster where there is none. */
  readonly kubeconfig: string | undefined;
  /** That of the configuration where there is none. */
  readonly namespace: string | undefined;
  /** Told of what the server did not answer and is asked again. */
  readonly onTrouble?: (message: string) => void;
};

/** A namespace that can be asked. */
export type Connected = { readonly open: OpenCluster; readonly namespace: string; readonly server: string };

export function connectCluster({
  runtime,
  kubeconfig,
  namespace: given,
  onTrouble = () => undefined,
}: ClusterOptions): Connected {
  const config = readConfig(kubeconfig);
  const server = config.getCurrentCluster()?.server;
  if (server === undefined) throw new Error('KUBECONFIG names no cluster in its current context.');
  const namespace = given ?? config.getContextObject(config.getCurrentContext())?.namespace ?? 'default';
  const apps = config.makeApiClient(AppsV1Api);
  const core = config.makeApiClient(CoreV1Api);
  const coordination = config.makeApiClient(CoordinationV1Api);
  const authorization = config.makeApiClient(AuthorizationV1Api);
  const versions = config.makeApiClient(VersionApi);
  const call = createCalls(runtime, onTrouble);

  const workloads = {
    Deployment: {
      list: apps.listNamespacedDeployment.bind(apps),
      read: apps.readNamespacedDeployment.bind(apps),
      patch: apps.patchNamespacedDeployment.bind(apps),
    },
    StatefulSet: {
      list: apps.listNamespacedStatefulSet.bind(apps),
      read: apps.readNamespacedStatefulSet.bind(apps),
      patch: apps.patchNamespacedStatefulSet.bind(apps),
    },
    DaemonSet: {
      list: apps.listNamespacedDaemonSet.bind(apps),
      read: apps.readNamespacedDaemonSet.bind(apps),
      patch: apps.patchNamespacedDaemonSet.bind(apps),
    },
  };

  const open: OpenCluster = (patience) => ({
    async version() {
      const { gitVersion } = await call((options) => versions.getCode({}, options), patience);
      return gitVersion;
    },
    async isAllowed({ verb, group, resource }) {
      const review = { spec: { resourceAttributes: { namespace, verb, group, resource } } };
      const { status } = await call(
        (options) => authorization.createSelfSubjectAccessReview({ body: review }, options),
        patience,
      );
      return status?.allowed === true;
    },
    async list() {
      const lists = await Promise.all(
        kinds.map(async (kind) => {
          const { items } = await call((options) => workloads[kind].list({ namespace }, options), patience);
          return items.map((item) => readWorkload(kind, item));
        }),
      );
      return lists.flat();
    },
    async read({ kind, name }) {
      return readWorkload(
        kind,
        await call((options) => workloads[kind].read({ namespace, name }, options), patience),
      );
    },
    async patch({ kind, name }, body) {
      const request = { namespace, name, body, fieldManager };
      const answer = await call(
        (options) => workloads[kind].patch(request, asStrategicMerge(options)),
        patience,
      );
      return readWorkload(kind, answer);
    },
    async pods(labelSelector) {
      const { items } = await call(
        (options) => core.listNamespacedPod({ namespace, labelSelector }, options),
        patience,
      );
      return items.map(readPod);
    },
    async deletePod({ name, uid }) {
      const request = { namespace, name, body: { preconditions: { uid } } };
      await call((options) => core.deleteNamespacedPod(request, options), patience);
    },
    async quotas() {
      const { items } = await call(
        (options) => core.listNamespacedResourceQuota({ namespace }, options),
        patience,
      );
      return items
        .filter(({ spec }) => !spec?.scopes?.length && !spec?.scopeSelector)
        .map(({ metadata, status }) => ({
          name: metadata?.name ?? '',
          hard: status?.hard ?? {},
          used: status?.used ?? {},
        }));
    },
    async readLease(name) {
      return readLease(
        await call((options) => coordination.readNamespacedLease({ namespace, name }, options), patience),
      );
    },
    async createLease(name, lease) {
      const request = { namespace, body: writeLease(name, lease), fieldManager };
      await call((options) => coordination.createNamespacedLease(request, options), patience);
    },
    async replaceLease(name, lease) {
      const request = { namespace, name, body: writeLease(name, lease), fieldManager };
      await call((options) => coordination.replaceNamespacedLease(request, options), patience);
    },
  });
  return { open, namespace, server };
}

function readConfig(kubeconfig: string | undefined): KubeConfig {
  const config = new KubeConfig();
  if (kubeconfig === undefined) {
    config.loadFromCluster();
    return config;
  }
  try {
    const [first = '', ...others] = kubeconfig.split(delimiter);
    config.loadFromFile(first);
    for (const file of others) {
      const other = new KubeConfig();
      other.loadFromFile(file);
      config.mergeConfig(other, true);
    }
  } catch (error) {
    // What is said of a bad file may quote it, tokens included.
    const { reason, message } = error as Error & { reason?: string };
    throw new Error(`KUBECONFIG cannot be read: ${reason ?? message}.`, { cause: error });
  }
  return config;
}

function readPod({ metadata, spec, status }: V1Pod): ClusterPod {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return {
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    owner: metadata?.ownerReferences?.find(({ controller }) => controller)?.name,
    revision: metadata?.labels?.['controller-revision-hash'],
    createdAt: metadata?.creationTimestamp?.getTime() ?? 0,
    images: new Map(containers.map(({ name, image }) => [name, image ?? ''])),
    isReady: (status?.conditions ?? []).some((one) => one.type === 'Ready' && one.status === 'True'),
    isLeaving: metadata?.deletionTimestamp !== undefined,
    unscheduled: status?.conditions?.find((one) => one.type === 'PodScheduled' && one.status === 'False')
      ?.message,
    waiting: statuses.flatMap(({ name, state }) =>
      state?.waiting?.reason === undefined
        ? []
        : { container: name, reason: state.waiting.reason, message: state.waiting.message ?? '' },
    ),
  };
}
