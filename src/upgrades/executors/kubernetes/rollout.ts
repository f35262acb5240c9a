// Whether a workload has come to run with the images it was given, told from its counters, its conditions and its pods.
import type { WorkloadContainer, Workload } from '../../workloads.ts';
import { type ClusterWorkload, pathOf } from './workload.ts';

/** Which images of a workload are meant. */
export type Direction = 'image' | 'formerImage';

/** Of a pod as much as matters. */
export type ClusterPod = {
  readonly name: string;
  readonly uid: string;
  /** The name of what it belongs to. */
  readonly owner: string | undefined;
  /** Of a StatefulSet or DaemonSet: the template it was made from. */
  readonly revision: string | undefined;
  readonly createdAt: number;
  readonly images: ReadonlyMap<string, string>;
  readonly isReady: boolean;
  readonly isLeaving: boolean;
  /** Why no node takes it. */
  readonly unscheduled: string | undefined;
  /** Containers that wait, and what for. */
  readonly waiting: readonly {
    readonly container: string;
    readonly reason: string;
    readonly message: string;
  }[];
};

/** Throws where the images are neither the former nor the new ones: somebody else is at work here. */
export function hasArrived(found: ClusterWorkload, { parts }: Workload, aim: Direction): boolean {
  const path = pathOf(found);
  return parts
    .map((part) => {
      const present = found.containers.find(({ name }) => name === part.container)?.image;
      if (present === undefined) throw new Error(`${path} has no container ${part.container} any more.`);
      if (present !== part.image && present !== part.formerImage)
        throw new Error(
          `${path} has the image ${present} in its container ${part.container}, neither ${part.formerImage ?? 'none'} nor ` +
            `${part.image}: somebody else has changed it.`,
        );
      return present === part[aim];
    })
    .every(Boolean);
}

/** All pods are of the newest template, and none is missing. */
export function isRolledOut(found: ClusterWorkload): boolean {
  return found.isObserved && isHealthy(found);
}

/** By its counters, be they of a moment ago. */
export function isHealthy({ wanted, present, updated, available }: ClusterWorkload): boolean {
  return updated === wanted && present === wanted && available === wanted;
}

/** Pods of a Deployment belong to it through what it makes of each template. */
export function belongs({ owner = '' }: ClusterPod, { kind, name }: ClusterWorkload): boolean {
  return kind === 'Deployment' ? owner.startsWith(`${name}-`) : owner === name;
}

export function formatCounts({ wanted, present, updated, available }: ClusterWorkload): string {
  return `of ${wanted} wanted pods ${updated} are updated and ${available} available, ${present} are there`;
}

/** Changes whenever there is progress. */
export function progressOf(
  { isObserved, present, updated, available }: ClusterWorkload,
  pods: readonly ClusterPod[],
): string {
  return [
    isObserved,
    present,
    updated,
    available,
    ...pods.map(({ uid, isReady }) => uid + String(isReady)),
  ].join(' ');
}

/** Whether the pod has the images of the other template. One that has neither's, because the cluster changes them, does not. */
function isOfFormer({ images }: ClusterPod, parts: readonly WorkloadContainer[], aim: Direction): boolean {
  const other = aim === 'image' ? 'formerImage' : 'image';
  return parts.every((part) => images.get(part.container) === part[other] && part.image !== part.formerImage);
}

const hopeless = ['InvalidImageName', 'ErrImageNeverPull'];
const pulling = ['ErrImagePull', 'ImagePullBackOff', 'RegistryUnavailable', 'ImageInspectError'];

export type ImageError = { readonly text: string; readonly isFinal: boolean };

/** What keeps pods of the template from having their images. What they could not have before this run, they may get in it. */
export function findImageError(
  pods: readonly ClusterPod[],
  parts: readonly WorkloadContainer[],
  aim: Direction,
  runStartedAt: number,
): ImageError | undefined {
  for (const pod of pods.filter((one) => !one.isLeaving && !isOfFormer(one, parts, aim))) {
    for (const { container, reason, message } of pod.waiting) {
      const isFinal = hopeless.includes(reason);
      if (!isFinal && !(pulling.includes(reason) && pod.createdAt >= runStartedAt - 1000)) continue;
      const image = pod.images.get(container) ?? '';
      const detail = message === '' ? '' : `: ${message}`;
      return { text: `the pod ${pod.name} cannot have the image ${image} (${reason}${detail}).`, isFinal };
    }
  }
  return undefined;
}

/** What workload and pods tell of why it is not through. */
export function formatDelay(
  found: ClusterWorkload,
  pods: readonly ClusterPod[],
  parts: readonly WorkloadContainer[],
  aim: Direction,
): string {
  const waiting = pods
    .filter((pod) => !pod.isReady && !isOfFormer(pod, parts, aim))
    .map(({ name, waiting: [first], unscheduled }) => {
      const reason = first?.reason ?? unscheduled;
      return `${name} is not ready${reason === undefined ? '' : ` (${reason})`}`;
    });
  const reasons = [
    ...found.obstacles.map((obstacle) => `it ${obstacle}`),
    ...found.failures,
    ...waiting.slice(0, 3),
  ];
  return [formatCounts(found), ...reasons].join('; ');
}
