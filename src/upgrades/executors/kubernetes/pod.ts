// The fields of a pod that the executor uses, parsed from the API object.
import type { V1Pod } from '@kubernetes/client-node';
import { truncate } from '../../../lib/text.ts';
import { cutMessage } from './workload.ts';

export type ClusterPod = {
  readonly name: string;
  readonly uid: string;
  readonly owner: string | undefined;
  /** Only pods of a StatefulSet or DaemonSet have one. */
  readonly revision: string | undefined;
  readonly createdAt: number;
  readonly images: ReadonlyMap<string, string>;
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  /** All its containers have ended, and none starts again. */
  readonly hasEnded: boolean;
  readonly unscheduled: string | undefined;
  readonly waiting: readonly {
    readonly container: string;
    readonly reason: string;
    readonly message: string;
  }[];
  /** Of the first container that has one; of an init container only if no other has one. */
  readonly terminationMessage: string | undefined;
};

export function parsePod({ metadata, spec, status }: V1Pod): ClusterPod {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const inOrderOfMessages = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
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
    hasEnded: status?.phase === 'Succeeded' || status?.phase === 'Failed',
    unscheduled: cutMessage(
      conditions.find((one) => one.type === 'PodScheduled' && one.status === 'False')?.message,
    ),
    waiting: statuses.flatMap(({ name, state }) =>
      state?.waiting?.reason === undefined
        ? []
        : {
            container: name,
            reason: truncate(state.waiting.reason),
            message: cutMessage(state.waiting.message) ?? '',
          },
    ),
    terminationMessage: inOrderOfMessages
      .map(({ state, lastState }) => state?.terminated?.message || lastState?.terminated?.message)
      .find(Boolean),
  };
}
