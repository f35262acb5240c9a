// Whether a workload has come to run with the images it was given, told from its counters, its conditions and its pods.
import type { Part, Workload } from '../../survey.ts';
import { type Found, pathOf } from './found.ts';

/** Which images of a workload are meant. */
export type Aim = 'image' | 'formerImage';

/** Of a pod as much as matters. */
export type FoundPod = {
  readonly name: string;
  readonly uid: string;
  /** The name of what it belongs to. */
  readonly owner: string | undefined;
  readonly images: ReadonlyMap<string, string>;
  readonly isReady: boolean;
  readonly isLeaving: boolean;
  /** Containers that wait, and what for. */
  readonly waiting: readonly {
    readonly container: string;
    readonly reason: string;
    readonly message: string;
  }[];
};

/** Throws where the images are neither the former nor the new ones: somebody else is at work here. */
export function hasArrived(found: Found, { parts }: Workload, aim: Aim): boolean {
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
export function isRolledOut({ isObserved, wanted, present, updated, available }: Found): boolean {
  return isObserved && updated === wanted && present === wanted && available === wanted;
}

export function describeCounts({ wanted, present, updated, available }: Found): string {
  return `of ${wanted} wanted pods ${updated} are updated and ${available} available, ${present} are there`;
}

/** Changes whenever there is progress. */
export function progressOf(
  { isObserved, present, updated, available }: Found,
  pods: readonly FoundPod[],
): string {
  return [
    isObserved,
    present,
    updated,
    available,
    ...pods.map(({ uid, isReady }) => uid + String(isReady)),
  ].join(' ');
}

export function isOfTemplate({ images }: FoundPod, parts: readonly Part[], aim: Aim): boolean {
  return parts.every((part) => images.get(part.container) === part[aim]);
}

const hopeless = ['InvalidImageName', 'ErrImageNeverPull'];
const pulling = ['ErrImagePull', 'ImagePullBackOff', 'RegistryUnavailable', 'ImageInspectError'];

export type ImageError = { readonly text: string; readonly isFinal: boolean };

/** What keeps pods of the template from having their images. */
export function findImageError(
  pods: readonly FoundPod[],
  parts: readonly Part[],
  aim: Aim,
): ImageError | undefined {
  for (const pod of pods.filter((one) => !one.isLeaving && isOfTemplate(one, parts, aim))) {
    for (const { container, reason, message } of pod.waiting) {
      if (![...hopeless, ...pulling].includes(reason)) continue;
      const image = pod.images.get(container) ?? '';
      const detail = message === '' ? '' : `: ${message}`;
      return {
        text: `the pod ${pod.name} cannot have the image ${image} (${reason}${detail}).`,
        isFinal: hopeless.includes(reason),
      };
    }
  }
  return undefined;
}

/** Why pods of the template are not ready, as far as they tell. */
export function describePods(pods: readonly FoundPod[], parts: readonly Part[], aim: Aim): string {
  const reasons = pods
    .filter((pod) => !pod.isReady && isOfTemplate(pod, parts, aim))
    .map(({ name, waiting }) => `${name} is not ready${waiting[0] ? ` (${waiting[0].reason})` : ''}`);
  return reasons.length === 0 ? '' : `; ${reasons.slice(0, 3).join(', ')}`;
}
