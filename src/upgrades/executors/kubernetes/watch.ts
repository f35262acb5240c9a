// Looks at a workload on its way to other images, again and again, and tells when it is there or will not get there.
import type { World } from '../../../world.ts';
import type { Workload } from '../../survey.ts';
import type { Errand } from '../executor.ts';
import { ClusterError } from './calls.ts';
import type { Cluster } from './cluster.ts';
import { type Found, pathOf } from './found.ts';
import { annotations } from './patch.ts';
import {
  type Aim,
  type FoundPod,
  describeCounts,
  describePods,
  findImageError,
  isOfTemplate,
  isRolledOut,
  progressOf,
} from './rollout.ts';

export type WatchOptions = {
  readonly world: Pick<World, 'now'>;
  readonly rolloutMs: number;
  readonly imageMs: number;
};

/** A controller with this deadline has none. */
const noDeadlineMs = (2 ** 31 - 1) * 1000;

/** Resolves to whether it is there; rejects where it will not get there. */
export type Look = (cluster: Cluster, found: Found) => Promise<boolean>;

export function createWatch({ world, rolloutMs, imageMs }: WatchOptions) {
  return ({ parts }: Workload, aim: Aim, errand: Errand): Look => {
    let progress: { text: string; at: number } | undefined;
    let imageErrorSince: number | undefined;

    return async (cluster, found) => {
      if (isRolledOut(found)) return true;
      const at = world.now();
      const pods = await cluster.pods(found.selector);

      const text = progressOf(found, pods);
      if (text !== progress?.text) progress = { text, at };
      const imageError = findImageError(pods, parts, aim);
      imageErrorSince = imageError && (imageErrorSince ?? at);

      const because = `${describeCounts(found)}${describePods(pods, parts, aim)}`;
      if (imageError && (imageError.isFinal || at - (imageErrorSince ?? at) >= imageMs))
        throw new Error(`${pathOf(found)}: ${imageError.text}`);
      if (hasGivenUp(found, errand))
        throw new Error(`${pathOf(found)}: the rollout exceeded its progress deadline: ${because}.`);
      if (at - progress.at >= deadlineOf(found))
        throw new Error(
          `${pathOf(found)}: no progress for ${Math.round((at - progress.at) / 1000)} seconds: ${because}.`,
        );
      if (aim === 'formerImage' && found.isObserved)
        for (const pod of findStuck(found, pods)) await remove(cluster, pod);
      return false;
    };

    /** A StatefulSet waits for each pod, also for one that cannot become ready any more. */
    function findStuck({ kind, name }: Found, pods: readonly FoundPod[]): FoundPod[] {
      if (kind !== 'StatefulSet') return [];
      return pods.filter(
        (pod) => pod.owner === name && !pod.isReady && !pod.isLeaving && !isOfTemplate(pod, parts, aim),
      );
    }
  };

  /** The controller's own deadline where it is longer. */
  function deadlineOf({ deadlineMs = 0 }: Found): number {
    return deadlineMs >= noDeadlineMs ? rolloutMs : Math.max(rolloutMs, deadlineMs);
  }
}

/** Said of this template and in this run; what was said before stays in the status until there is progress. */
function hasGivenUp({ isObserved, exceeded, annotations: noted }: Found, { runStartedAt }: Errand): boolean {
  if (!isObserved || !exceeded || exceeded.at === noted[annotations.exceededBefore]) return false;
  return Date.parse(exceeded.at) >= runStartedAt - 1000;
}

async function remove(cluster: Cluster, pod: FoundPod): Promise<void> {
  try {
    await cluster.deletePod(pod);
  } catch (error) {
    // It is gone, or another has its name.
    if (!(error instanceof ClusterError && (error.code === 404 || error.code === 409))) throw error;
  }
}
