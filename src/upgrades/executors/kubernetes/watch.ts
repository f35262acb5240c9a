// Looks at a workload on its way to other images, again and again, and tells when it is there or will not get there.
import type { Runtime } from '../../../runtime.ts';
import type { Workload } from '../../workloads.ts';
import type { StepContext } from '../executor.ts';
import type { Cluster } from './cluster.ts';
import { type ClusterWorkload, pathOf } from './workload.ts';
import { annotations } from './patch.ts';
import {
  type Direction,
  type ClusterPod,
  belongs,
  formatDelay,
  findImageError,
  isRolledOut,
  progressOf,
} from './rollout.ts';

export type WatchOptions = {
  readonly runtime: Pick<Runtime, 'now'>;
  readonly rolloutMs: number;
  readonly imageMs: number;
};

/** A controller with this deadline has none. */
const noDeadlineMs = (2 ** 31 - 1) * 1000;

/** Whether the workload is there, and the pods that must go before it can be; rejects where it will not get there. */
export type Look = (
  cluster: Cluster,
  found: ClusterWorkload,
) => Promise<{ isThere: boolean; stuck: readonly ClusterPod[] }>;

export function createWatch({ runtime, rolloutMs, imageMs }: WatchOptions) {
  return ({ parts }: Workload, aim: Direction, errand: StepContext): Look => {
    let progress: { text: string; at: number } | undefined;
    let imageErrorSince: number | undefined;

    return async (cluster, found) => {
      if (isRolledOut(found)) return { isThere: true, stuck: [] };
      const at = runtime.now();
      const pods = (await cluster.pods(found.selector)).filter((pod) => belongs(pod, found));

      const text = progressOf(found, pods);
      if (text !== progress?.text) progress = { text, at };
      const imageError = findImageError(pods, parts, aim, errand.runStartedAt);
      imageErrorSince = imageError && (imageErrorSince ?? at);

      const fail = (why: string) => new Error(`${pathOf(found)}: ${why}`);
      const because = formatDelay(found, pods, parts, aim);
      if (imageError && (imageError.isFinal || at - (imageErrorSince ?? at) >= imageMs))
        throw fail(imageError.text);
      if (hasGivenUp(found, errand)) throw fail(`the rollout exceeded its progress deadline: ${because}.`);
      const idleMs = at - progress.at;
      if (idleMs >= deadlineOf(found))
        throw fail(`no progress for ${Math.round(idleMs / 1000)} seconds: ${because}.`);
      return { isThere: false, stuck: findStuck(found, pods, aim) };
    };
  };

  /** The controller's own deadline where it is longer. */
  function deadlineOf({ deadlineMs = 0, minReadyMs }: ClusterWorkload): number {
    return minReadyMs + (deadlineMs >= noDeadlineMs ? rolloutMs : Math.max(rolloutMs, deadlineMs));
  }
}

/** Said of this template and in this run; what was said before stays in the status until there is progress. */
function hasGivenUp(
  { isObserved, exceeded, annotations: noted }: ClusterWorkload,
  { runStartedAt }: StepContext,
): boolean {
  if (!isObserved || !exceeded || exceeded.at === noted[annotations.exceededBefore]) return false;
  return Date.parse(exceeded.at) >= runStartedAt - 1000;
}

/** A StatefulSet waits for each pod, also for one of another template that cannot become ready any more. */
function findStuck(
  { kind, isObserved, revision }: ClusterWorkload,
  pods: readonly ClusterPod[],
  aim: Direction,
): ClusterPod[] {
  if (kind !== 'StatefulSet' || !isObserved || revision === undefined) return [];
  return pods.filter(
    (pod) =>
      pod.revision !== revision &&
      !pod.isReady &&
      !pod.isLeaving &&
      // Going forward, a pod that only takes its time is the controller's concern.
      (aim === 'formerImage' || pod.waiting.length > 0),
  );
}
