// A cluster for a test, with its own namespace: the fake one, or the real one of STEWARD_TEST_KUBECONFIG.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApi } from './api-server.ts';
import type { Rule } from './authorizer.ts';
import { startFaults } from './faults.ts';
import { startKubelet } from './kubelet.ts';
import type { Fields, Kind, Pod, Workload } from './objects.ts';
import { connectFake, connectReal } from './upstream.ts';
import { type NewWorkload, workloadObject, isRolledOut, nodeLabel, pathOf } from './workloads.ts';

export type { Kind, Pod, Workload } from './objects.ts';
export type { NewContainer, NewWorkload } from './workloads.ts';
export type { Rule } from './authorizer.ts';

/** An error response; `code` is the HTTP status. */
export class RequestError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const strategicMerge = 'application/strategic-merge-patch+json';
const isMissing = (error: unknown) => error instanceof RequestError && error.code === 404;
const settleMs = 15_000;

export type Cluster = Awaited<ReturnType<typeof openCluster>>;

export async function openCluster() {
  const given = process.env.STEWARD_TEST_KUBECONFIG ?? '';
  const isReal = given !== '';
  const api = isReal ? undefined : createApi();
  const upstream = api ? connectFake(api) : await connectReal(given);
  const pollMs = isReal ? 100 : 5;

  async function send<T>(method: string, path: string, body: unknown, user?: string): Promise<T> {
    const contentType = method === 'PATCH' ? strategicMerge : 'application/json';
    const payload = body === undefined ? '' : JSON.stringify(body);
    const answer = await upstream.send({ method, path, body: payload, contentType, user });
    const parsed = parse(answer.body);
    if (answer.code < 400) return parsed as T;
    throw new RequestError(answer.code, (parsed as { message?: string } | undefined)?.message ?? answer.body);
  }

  /** Bypasses the proxy, and has all permissions. A patch is a strategic merge. */
  const request = <T = Fields>(method: string, path: string, body?: unknown) => send<T>(method, path, body);

  const namespace = `steward-test-${randomBytes(4).toString('hex')}`;
  const own = `/api/v1/namespaces/${namespace}`;
  const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  await request('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
  await until('the default ServiceAccount', async () => {
    const found = await request('GET', `${own}/serviceaccounts/default`).catch((error: unknown) => error);
    return isMissing(found) ? undefined : found;
  });

  const faults = await startFaults(upstream);
  const kubelet = startKubelet(request, namespace, isReal ? pollMs : 1_000);
  api?.storage.onChange(({ resource }) => resource.name === 'pods' && kubelet.wake());
  const folder = mkdtempSync(join(tmpdir(), 'steward-test-'));
  const kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(kubeconfig, formatKubeconfig(faults.url, namespace));

  /** Polls until there is a result. The error of a timeout contains the last state. */
  async function until<T>(
    what: string,
    poll: () => Promise<T | undefined>,
    lastState?: () => unknown,
  ): Promise<T> {
    for (const end = Date.now() + settleMs; ; await sleep(pollMs)) {
      const found = await poll();
      if (found !== undefined) return found;
      if (Date.now() > end)
        throw new Error(`${what}: not within ${settleMs} ms: ${JSON.stringify(lastState?.())}`);
    }
  }

  let users = 0;
  let hasNode = false;

  async function createNode(): Promise<void> {
    if (hasNode) return;
    hasNode = true;
    const metadata = { name: namespace, labels: { [nodeLabel]: namespace } };
    await request('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata });
  }

  const read = (kind: Kind, name: string) => request<Workload>('GET', pathOf(namespace, kind, name));

  async function pods(kind: Kind, name: string): Promise<Pod[]> {
    const { spec } = await read(kind, name);
    const labels = Object.entries(spec.selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
    const query = `labelSelector=${encodeURIComponent(labels.join(','))}`;
    return (await request<{ items: Pod[] }>('GET', `${own}/pods?${query}`)).items;
  }

  return {
    isReal,
    namespace,
    /** The path of a file that points to the proxy. */
    kubeconfig,
    faults,
    kubelet,
    /** The controller of Deployments notices nothing for this time. A real cluster ignores it. */
    pauseDeployments: (ms: number) => api?.controllers.pauseDeployments(ms),
    /** The controllers see this time pass. A real cluster takes it. */
    passTime: (ms: number) => (api ? api.controllers.skip(ms) : sleep(ms)),
    request,
    /** The node of the pod is lost: its status does not change, and it does not end when it is deleted. */
    async loseNode(podName: string): Promise<void> {
      kubelet.loseNode(podName);
      const metadata = { finalizers: ['steward-test/lost-node'] };
      await request('PATCH', `${own}/pods/${podName}`, { metadata });
      const conditions = [{ type: 'Ready', status: 'False' }];
      await request('PATCH', `${own}/pods/${podName}/status`, { status: { conditions } });
    },
    read,
    pods,
    async createWorkload(workload: NewWorkload): Promise<Workload> {
      if (workload.kind === 'DaemonSet') await createNode();
      return request('POST', pathOf(namespace, workload.kind), workloadObject(workload, namespace));
    },
    /** `body` is a strategic merge patch. */
    patch: (kind: Kind, name: string, body: unknown) =>
      request<Workload>('PATCH', pathOf(namespace, kind, name), body),
    /** Resolves when the counters of the workload show that it is rolled out. */
    async settled(kind: Kind, name: string): Promise<Workload> {
      let last: Workload | undefined;
      const poll = async () => {
        last = await read(kind, name);
        return isRolledOut(last) ? last : undefined;
      };
      return until(`${kind} ${name} is rolled out`, poll, () => last?.status);
    },
    /** From now on requests through the proxy have only these permissions, and only in the namespace. */
    async allow(rules: Rule[]): Promise<void> {
      const user = `${namespace}-user-${(users += 1)}`;
      const metadata = { name: user };
      await request('POST', `${roles}/roles`, { metadata, rules });
      await request('POST', `${roles}/rolebindings`, {
        metadata,
        subjects: [{ kind: 'User', name: user, apiGroup: 'rbac.authorization.k8s.io' }],
        roleRef: { kind: 'Role', name: user, apiGroup: 'rbac.authorization.k8s.io' },
      });
      await until('the permissions', async () => {
        const answers = await Promise.all(rules.map((rule) => mayDo(user, rule)));
        return answers.every(Boolean) ? true : undefined;
      });
      faults.user = user;
    },
    async close(): Promise<void> {
      await kubelet.close();
      await faults.close();
      if (isReal) {
        await request('DELETE', own);
        if (hasNode) await request('DELETE', `/api/v1/nodes/${namespace}`);
      }
      upstream.close();
      rmSync(folder, { recursive: true });
    },
  };

  /** A real server needs a moment until a new Role has an effect. */
  async function mayDo(user: string, rule: Rule): Promise<boolean> {
    const [resource = '', subresource = ''] = rule.resources?.[0]?.split('/') ?? [];
    const access = {
      namespace,
      verb: rule.verbs[0],
      group: rule.apiGroups?.[0],
      resource,
      subresource,
      name: rule.resourceNames?.[0] ?? '',
    };
    const { status } = await send<{ status: { allowed: boolean } }>(
      'POST',
      '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: access },
      },
      user,
    );
    return status.allowed;
  }
}

function formatKubeconfig(server: string, namespace: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    preferences: {},
    clusters: [{ name: 'test', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'nobody', user: {} }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'nobody', namespace } }],
  });
}

function parse(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}
