// The requests to a namespace that the executor needs.
import type { CoreV1Event, V1Lease, V1Pod } from '@kubernetes/client-node';
import { ApiClient, type ApiClientOptions, type ApiRequest, type RetryOptions, hasStatus } from './client.ts';
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

const groups = {
  deployments: 'apis/apps/v1',
  statefulsets: 'apis/apps/v1',
  daemonsets: 'apis/apps/v1',
  cronjobs: 'apis/batch/v1',
  jobs: 'apis/batch/v1',
  leases: 'apis/coordination.k8s.io/v1',
  pods: 'api/v1',
  events: 'api/v1',
} as const;

type Resource = keyof typeof groups;

const resourceOf = (kind: Kind) => `${kind.toLowerCase()}s` as Resource;

/** A list is one answer of the API server, which is held in memory as a whole. */
export const maxListed = 5000;

type List<T> = { readonly items: T[]; readonly metadata?: { readonly continue?: string } };

/** A rule of a Role, as the API server lists it. */
export type Rule = {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
};

type RulesReview = { readonly status?: { readonly resourceRules?: Rule[]; readonly incomplete?: boolean } };

export type ClusterConnection = {
  readonly server: string;
  readonly namespace: string;
  readonly withRetry: (retry: RetryOptions) => Cluster;
};

export function connectCluster({
  namespace: given,
  ...options
}: ApiClientOptions & { readonly namespace: string | undefined }): ClusterConnection {
  const client = new ApiClient(options);
  const namespace = given ?? client.namespace;
  return { server: client.server, namespace, withRetry: (retry) => new Cluster(client, namespace, retry) };
}

type Options = { readonly name?: string; readonly body?: object; readonly query?: Record<string, string> };

/** The client repeats requests, so each must be safe to repeat. */
export class Cluster {
  readonly #client: ApiClient;
  readonly #namespace: string;
  readonly #retry: RetryOptions;

  constructor(client: ApiClient, namespace: string, retry: RetryOptions) {
    this.#client = client;
    this.#namespace = namespace;
    this.#retry = retry;
  }

  async readVersion(): Promise<string> {
    const request: ApiRequest = { verb: 'get', object: 'version', path: '/version' };
    return (await this.#client.send<{ gitVersion: string }>(request, this.#retry)).gitVersion;
  }

  /**
   * The permissions of Steward in the namespace. `isComplete` is false if the server has authorizers that cannot
   * list theirs.
   */
  async readRules(): Promise<{ rules: readonly Rule[]; isComplete: boolean }> {
    const object = 'selfsubjectrulesreviews';
    const path = `/apis/authorization.k8s.io/v1/${object}`;
    const body = { spec: { namespace: this.#namespace } };
    const { status } = await this.#client.send<RulesReview>(
      { verb: 'create', object, path, body },
      this.#retry,
    );
    return { rules: status?.resourceRules ?? [], isComplete: status?.incomplete !== true };
  }

  async listWorkloads(): Promise<{ workloads: ClusterWorkload[]; isComplete: boolean }> {
    const lists = await Promise.all(
      kinds.map(async (kind) => {
        const { items, metadata } = await this.#list<WorkloadObject>(resourceOf(kind));
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
    return parseWorkload(kind, await this.#send<WorkloadObject>('get', resourceOf(kind), { name }));
  }

  /** Returns the workload as the API server has stored it. */
  async patchWorkload({ kind, name }: WorkloadRef, body: object): Promise<ClusterWorkload> {
    return parseWorkload(kind, await this.#send<WorkloadObject>('patch', resourceOf(kind), { name, body }));
  }

  async listPods(labelSelector = ''): Promise<ClusterPod[]> {
    const pods: ClusterPod[] = [];
    let next: string | undefined;
    do {
      const page: List<V1Pod> = await this.#list('pods', labelSelector, next);
      pods.push(...page.items.map(parsePod));
      next = page.metadata?.continue;
    } while (next);
    return pods;
  }

  async deletePod({ name, uid }: ClusterPod): Promise<void> {
    await this.#delete('pods', name, { preconditions: { uid } });
  }

  async listCronJobs(labelSelector: string): Promise<CronJobObject[]> {
    return (await this.#list<CronJobObject>('cronjobs', labelSelector)).items;
  }

  async listJobs(labelSelector: string): Promise<StepJob[]> {
    return (await this.#list<JobObject>('jobs', labelSelector)).items.map(parseStepJob);
  }

  async findJob(name: string): Promise<StepJob | undefined> {
    const found = await this.#find<JobObject>('jobs', name);
    return found && parseStepJob(found);
  }

  async createJob(body: object): Promise<void> {
    await this.#send('create', 'jobs', { body });
  }

  /** Without the policy, the API server would leave the pods. */
  async deleteJob({ name, uid }: StepJob): Promise<void> {
    await this.#delete('jobs', name, { propagationPolicy: 'Background', preconditions: { uid } });
  }

  findLease(name: string): Promise<V1Lease | undefined> {
    return this.#find('leases', name);
  }

  createLease(body: object): Promise<V1Lease> {
    return this.#send('create', 'leases', { body });
  }

  replaceLease(name: string, body: object): Promise<V1Lease> {
    return this.#send('update', 'leases', { name, body });
  }

  async createEvent(body: CoreV1Event): Promise<void> {
    await this.#send('create', 'events', { body });
  }

  #list<T>(resource: Resource, labelSelector = '', next = ''): Promise<List<T>> {
    const page = next === '' ? {} : { continue: next };
    const query = { limit: String(maxListed), ...(labelSelector !== '' && { labelSelector }), ...page };
    return this.#send('list', resource, { query });
  }

  async #find<T>(resource: Resource, name: string): Promise<T | undefined> {
    try {
      return await this.#send<T>('get', resource, { name });
    } catch (error) {
      if (hasStatus(error, 404)) return undefined;
      throw error;
    }
  }

  async #delete(resource: Resource, name: string, body: object): Promise<void> {
    try {
      await this.#send('delete', resource, { name, body });
    } catch (error) {
      // 404: the object no longer exists. 409: another one has its name now.
      if (!hasStatus(error, 404, 409)) throw error;
    }
  }

  #send<T>(verb: ApiRequest['verb'], resource: Resource, { name, body, query }: Options): Promise<T> {
    const object = name === undefined ? resource : `${resource}/${name}`;
    const isWrite = ['create', 'patch', 'update'].includes(verb);
    const search = new URLSearchParams(isWrite ? { fieldManager: 'steward' } : query).toString();
    const path = `/${groups[resource]}/namespaces/${this.#namespace}/${object}?${search}`;
    return this.#client.send({ verb, object, path, ...(body && { body }) }, this.#retry);
  }
}
