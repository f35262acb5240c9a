// The workloads that tests create: their API objects, their paths, and whether they are rolled out.
import type { Fields, Kind, Workload } from './objects.ts';

export type NewContainer = { name: string; image: string } & Fields;

export type NewWorkload = {
  kind: Kind;
  name: string;
  containers: NewContainer[];
  initContainers?: NewContainer[];
  replicas?: number;
  /** For the workload and its pods. */
  labels?: Record<string, string>;
  /** Additional fields of the spec of the workload. */
  spec?: Fields;
  /** Additional fields of the spec of the pods. */
  templateSpec?: Fields;
};

const plurals = { Deployment: 'deployments', StatefulSet: 'statefulsets', DaemonSet: 'daemonsets' };

export const pathOf = (namespace: string, kind: Kind, name?: string): string =>
  `/apis/apps/v1/namespaces/${namespace}/${plurals[kind]}${name === undefined ? '' : `/${name}`}`;

/** The patch of an image. */
export const imageOf = (image: string, container = 'web') => ({
  spec: { template: { spec: { containers: [{ name: container, image }] } } },
});

/** Only the Node that is created for the test has this label. */
export const nodeLabel = 'steward-test/node';

export function workloadObject(given: NewWorkload, node: string): Fields {
  const { kind, name, containers, initContainers, replicas, labels = {}, spec, templateSpec } = given;
  const own = { app: name, 'steward-test/kind': kind.toLowerCase() };
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, labels: { ...labels, ...own } },
    spec: {
      ...(replicas === undefined || kind === 'DaemonSet' ? {} : { replicas }),
      ...(kind === 'StatefulSet' ? { serviceName: name } : {}),
      selector: { matchLabels: own },
      template: {
        metadata: { labels: { ...labels, ...own } },
        spec: {
          // No scheduler has this name, so no real scheduler or kubelet takes the pods.
          schedulerName: 'steward-test',
          terminationGracePeriodSeconds: 0,
          ...(kind === 'DaemonSet'
            ? { nodeSelector: { [nodeLabel]: node }, tolerations: [{ operator: 'Exists' }] }
            : {}),
          containers,
          ...(initContainers === undefined ? {} : { initContainers }),
          ...templateSpec,
        },
      },
      ...spec,
    },
  };
}

export function isRolledOut({ kind, metadata, spec, status }: Workload): boolean {
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) return false;
  const are = (wanted: number, ...counts: (number | undefined)[]) =>
    counts.every((count = 0) => count === wanted);
  if (kind === 'DaemonSet') {
    const { desiredNumberScheduled = 0, updatedNumberScheduled, numberAvailable } = status;
    return desiredNumberScheduled > 0 && are(desiredNumberScheduled, updatedNumberScheduled, numberAvailable);
  }
  const wanted = spec.replicas ?? 1;
  const { replicas, updatedReplicas, readyReplicas, availableReplicas } = status;
  if (kind === 'Deployment') return are(wanted, replicas, updatedReplicas, readyReplicas, availableReplicas);
  const updated = wanted - Math.min(wanted, spec.updateStrategy?.rollingUpdate?.partition ?? 0);
  return are(wanted, replicas, readyReplicas) && (updatedReplicas ?? 0) >= updated;
}
