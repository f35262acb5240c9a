// The requests to a namespace that the executor needs. Only the files that parse or send API objects use the
// Kubernetes library.
import {
  AuthorizationV1Api,
  type ConfigurationOptions,
  CoordinationV1Api,
  CoreV1Api,
  type CoreV1Event,
  CustomObjectsApi,
  KubeConfig,
  type V1Lease,
  type V1PodList,
  VersionApi,
} from '@kubernetes/client-node';
import { delimiter } from 'node:path';
import type { Runtime } from '../../../lib/runtime.ts';
import { ApiClient, type RetryOptions, asStrategicMerge, hasStatus } from './client.ts';
import { type CronJobObject, type JobObject, type StepJob, parseStepJob } from './step-template.ts';
import {
  type ClusterPod,
  type ClusterWorkload,
  type Kind,
  type WorkloadObject,
  type WorkloadRef,
  kinds,
  parsePod,
  parseWorkload,
} from './workload.ts';

const fieldManager = 'steward';

const pluralOf = (kind: Kind) => `${kind.toLowerCase()}s`;

/** A list is one answer of the API server, which is held in memory as a whole. */
export const maxListed = 5000;

type Group = 'apps' | 'batch';

type List<T> = { readonly items: T[]; readonly metadata?: { readonly continue?: string } };

/** A rule of a Role, as the API server lists it. */
export type Rule = {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
};

type ClusterOptions = {
  readonly runtime: Pick<Runtime, 'now' | 'elapsed' | 'sleep'>;
  readonly kubeconfig: string | undefined;
  readonly namespace: string | undefined;
  readonly onRetry?: (message: string) => void;
};

export type ClusterConnection = {
  readonly server: string;
  readonly namespace: string;
  readonly withRetry: (retry: RetryOptions) => Cluster;
};

export function connectCluster({
  runtime,
  kubeconfig,
  namespace: givenNamespace,
  onRetry = () => undefined,
}: ClusterOptions): ClusterConnection {
  const config = loadConfig(kubeconfig);
  const server = config.getCurrentCluster()?.server;
  if (server === undefined) throw new Error('KUBECONFIG names no cluster in its current context.');
  const namespace =
    givenNamespace ?? config.getContextObject(config.getCurrentContext())?.namespace ?? 'default';
  const apis = createApis(config);
  const client = new ApiClient(runtime, onRetry);
  return { server, namespace, withRetry: (retry) => new Cluster(apis, client, namespace, retry) };
}

type Apis = ReturnType<typeof createApis>;

function createApis(config: KubeConfig) {
  return {
    core: config.makeApiClient(CoreV1Api),
    coordination: config.makeApiClient(CoordinationV1Api),
    authorization: config.makeApiClient(AuthorizationV1Api),
    version: config.makeApiClient(VersionApi),
    // For workloads, CronJobs and Jobs, because it passes objects on as they are.
    objects: config.makeApiClient(CustomObjectsApi),
  };
}

/** The client retries requests, so each must be safe to repeat. */
export class Cluster {
  readonly #apis: Apis;
  readonly #client: ApiClient;
  readonly #namespace: string;
  readonly #retry: RetryOptions;

  constructor(apis: Apis, client: ApiClient, namespace: string, retry: RetryOptions) {
    this.#apis = apis;
    this.#client = client;
    this.#namespace = namespace;
    this.#retry = retry;
  }

  async readVersion(): Promise<string> {
    const { gitVersion } = await this.#send('read the version', (options) =>
      this.#apis.version.getCode({}, options),
    );
    return gitVersion;
  }

  /**
   * The permissions of Steward in the namespace. `isComplete` is false if the server has authorizers that cannot
   * list theirs.
   */
  async readRules(): Promise<{ rules: readonly Rule[]; isComplete: boolean }> {
    const body = { spec: { namespace: this.#namespace } };
    const { status } = await this.#send('review the rules', (options) =>
      this.#apis.authorization.createSelfSubjectRulesReview({ body }, options),
    );
    return { rules: status?.resourceRules ?? [], isComplete: status?.incomplete !== true };
  }

  async listWorkloads(): Promise<{ workloads: ClusterWorkload[]; isComplete: boolean }> {
    const lists = await Promise.all(
      kinds.map(async (kind) => {
        const { items, metadata } = await this.#list<WorkloadObject>('apps', pluralOf(kind));
        return {
          workloads: items.map((item) => parseWorkload(kind, item)),
          isComplete: !metadata?.continue,
        };
      }),
    );
    return {
      workloads: lists.flatMap(({ workloads }) => workloads),
      isComplete: lists.every(({ isComplete }) => isComplete),
    };
  }

  async readWorkload({ kind, name }: WorkloadRef): Promise<ClusterWorkload> {
    const request = { ...this.#resource('apps', pluralOf(kind)), name };
    const object = await this.#send<unknown>(`get ${pluralOf(kind)}/${name}`, (options) =>
      this.#apis.objects.getNamespacedCustomObject(request, options),
    );
    return parseWorkload(kind, object as WorkloadObject);
  }

  /** Returns the workload as the API server has stored it. */
  async patchWorkload({ kind, name }: WorkloadRef, body: object): Promise<ClusterWorkload> {
    const request = { ...this.#resource('apps', pluralOf(kind)), name, body, fieldManager };
    const object = await this.#send<unknown>(`patch ${pluralOf(kind)}/${name}`, (options) =>
      this.#apis.objects.patchNamespacedCustomObject(request, asStrategicMerge(options)),
    );
    return parseWorkload(kind, object as WorkloadObject);
  }

  async listPods(labelSelector = ''): Promise<ClusterPod[]> {
    const request = { namespace: this.#namespace, labelSelector, limit: maxListed };
    const pods: ClusterPod[] = [];
    let page: V1PodList | undefined;
    do {
      const _continue = page?.metadata?._continue;
      page = await this.#send('list pods', (options) =>
        this.#apis.core.listNamespacedPod({ ...request, ...(_continue && { _continue }) }, options),
      );
      pods.push(...page.items.map(parsePod));
    } while (page.metadata?._continue);
    return pods;
  }

  async deletePod({ name, uid }: ClusterPod): Promise<void> {
    const request = { namespace: this.#namespace, name, body: { preconditions: { uid } } };
    await this.#delete(`delete pods/${name}`, (options) =>
      this.#apis.core.deleteNamespacedPod(request, options),
    );
  }

  async listCronJobs(labelSelector: string): Promise<CronJobObject[]> {
    return (await this.#list<CronJobObject>('batch', 'cronjobs', labelSelector)).items;
  }

  async listJobs(labelSelector: string): Promise<StepJob[]> {
    return (await this.#list<JobObject>('batch', 'jobs', labelSelector)).items.map(parseStepJob);
  }

  async findJob(name: string): Promise<StepJob | undefined> {
    const request = { ...this.#resource('batch', 'jobs'), name };
    try {
      const found = await this.#send<unknown>(`get jobs/${name}`, (options) =>
        this.#apis.objects.getNamespacedCustomObject(request, options),
      );
      return parseStepJob(found as JobObject);
    } catch (error) {
      if (hasStatus(error, 404)) return undefined;
      throw error;
    }
  }

  async createJob(body: object): Promise<StepJob> {
    const request = { ...this.#resource('batch', 'jobs'), body, fieldManager };
    const created = await this.#send<unknown>('create jobs', (options) =>
      this.#apis.objects.createNamespacedCustomObject(request, options),
    );
    return parseStepJob(created as JobObject);
  }

  /** Without the policy, the API server would leave the pods. */
  async deleteJob({ name, uid }: StepJob): Promise<void> {
    const body = { propagationPolicy: 'Background', preconditions: { uid } };
    const request = { ...this.#resource('batch', 'jobs'), name, body };
    await this.#delete(`delete jobs/${name}`, (options) =>
      this.#apis.objects.deleteNamespacedCustomObject(request, options),
    );
  }

  async #delete(what: string, request: (options: ConfigurationOptions) => Promise<unknown>): Promise<void> {
    try {
      await this.#send(what, request);
    } catch (error) {
      // 404: the object no longer exists. 409: another one has its name now.
      if (!hasStatus(error, 404, 409)) throw error;
    }
  }

  async #list<T>(group: Group, plural: string, labelSelector?: string): Promise<List<T>> {
    const selected = labelSelector === undefined ? {} : { labelSelector };
    const request = { ...this.#resource(group, plural), ...selected, limit: maxListed };
    const list = await this.#send<unknown>(`list ${plural}`, (options) =>
      this.#apis.objects.listNamespacedCustomObject(request, options),
    );
    return list as List<T>;
  }

  #resource(group: Group, plural: string) {
    return { group, version: 'v1', namespace: this.#namespace, plural };
  }

  readLease(name: string): Promise<V1Lease> {
    const request = { namespace: this.#namespace, name };
    return this.#send(`get leases/${name}`, (options) =>
      this.#apis.coordination.readNamespacedLease(request, options),
    );
  }

  createLease(body: V1Lease): Promise<V1Lease> {
    const request = { namespace: this.#namespace, body, fieldManager };
    return this.#send('create leases', (options) =>
      this.#apis.coordination.createNamespacedLease(request, options),
    );
  }

  replaceLease(name: string, body: V1Lease): Promise<V1Lease> {
    const request = { namespace: this.#namespace, name, body, fieldManager };
    return this.#send(`update leases/${name}`, (options) =>
      this.#apis.coordination.replaceNamespacedLease(request, options),
    );
  }

  async createEvent(body: CoreV1Event): Promise<void> {
    const request = { namespace: this.#namespace, body, fieldManager };
    await this.#send('create events', (options) => this.#apis.core.createNamespacedEvent(request, options));
  }

  #send<T>(what: string, request: (options: ConfigurationOptions) => Promise<T>): Promise<T> {
    return this.#client.send(what, request, this.#retry);
  }
}

function loadConfig(kubeconfig: string | undefined): KubeConfig {
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
    // The message of a YAML error quotes the file, which contains tokens. Its reason does not.
    const { reason, message } = error as Error & { reason?: string };
    throw new Error(`KUBECONFIG cannot be read: ${reason ?? message}.`, { cause: error });
  }
  return config;
}
