// The fields of a pod that the executor uses, parsed from the API object.
import type { V1Pod } from '@kubernetes/client-node';

export type ClusterPod = {
  readonly name: string;
  readonly uid: string;
  /** The name of the controlling object: a ReplicaSet, StatefulSet or DaemonSet. */
  readonly owner: string | undefined;
  /** For a StatefulSet or DaemonSet: the revision of the template that the pod was created from. */
  readonly revision: string | undefined;
  readonly createdAt: number;
  /** By container. */
  readonly images: ReadonlyMap<string, string>;
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  /** Why the scheduler finds no node for it. */
  readonly unscheduled: string | undefined;
  /** Containers in the state `waiting`. */
  readonly waiting: readonly {
    readonly container: string;
    readonly reason: string;
    readonly message: string;
  }[];
};

export function parsePod({ metadata, spec, status }: V1Pod): ClusterPod {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const conditions = status?.conditions ?? [];
  return {
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    owner: metadata?.ownerReferences?.find(({ controller }) => controller)?.name,
    revision: metadata?.labels?.['controller-revision-hash'],
    createdAt: metadata?.creationTimestamp?.getTime() ?? 0,
    images: new Map(containers.map(({ name, image }) => [name, image ?? ''])),
    isReady: conditions.some((one) => one.type === 'Ready' && one.status === 'True'),
    isTerminating: metadata?.deletionTimestamp !== undefined,
    unscheduled: conditions.find((one) => one.type === 'PodScheduled' && one.status === 'False')?.message,
    waiting: statuses.flatMap(({ name, state }) =>
      state?.waiting?.reason === undefined
        ? []
        : { container: name, reason: state.waiting.reason, message: state.waiting.message ?? '' },
    ),
  };
}
