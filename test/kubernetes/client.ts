// A cluster for the tests of one file, and the client library connected to it through the proxy.
import {
  ApiException,
  AppsV1Api,
  CoreV1Api,
  KubeConfig,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node';
import { afterAll, beforeAll } from 'vitest';
import { type Cluster, type Kind, openCluster } from './cluster.ts';
import { imageOf } from './workloads.ts';

export const strategic = setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch);

export type Client = Awaited<ReturnType<typeof open>>;

/** One cluster for the whole test file. The properties are set before the tests run. */
export function useClient(): Client {
  const client = {} as Client;
  beforeAll(async () => void Object.assign(client, await open()));
  afterAll(() => client.cluster.close());
  return client;
}

async function open() {
  const cluster: Cluster = await openCluster();
  const config = new KubeConfig();
  config.loadFromFile(cluster.kubeconfig);
  let names = 0;

  return {
    cluster,
    config,
    apps: config.makeApiClient(AppsV1Api),
    core: config.makeApiClient(CoreV1Api),
    /** Creates a workload of the kind, waits until it is rolled out, and returns its name. */
    async settle(kind: Kind, replicas = 2, spec: object = {}): Promise<string> {
      const name = `web-${(names += 1)}`;
      const containers = [{ name: 'web', image: 'web:1' }];
      await cluster.createWorkload({ kind, name, replicas, containers, spec: { ...spec } });
      await cluster.settled(kind, name);
      return name;
    },
    roll: (kind: Kind, name: string, image: string) => cluster.patch(kind, name, imageOf(image)),
    imagesOf: async (kind: Kind, name: string) =>
      (await cluster.pods(kind, name)).map(({ spec }) => spec.containers[0]?.image),
  };
}

/** The error of the API server; throws if the request succeeds. */
export async function refusal(request: Promise<unknown>) {
  const error = await request.then(
    () => new Error('the request was not refused'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiException)) throw error;
  const body: unknown = error.body;
  const { reason, message } = JSON.parse(body as string) as { reason: string; message: string };
  return { code: error.code, reason, message };
}
