// Decides how far the rollout of a workload is, from its counters, its conditions and its pods.
//
// A rollout starts with a patch of the images in the template of a workload. From then on it is in one of three states:
//
// - complete: the controller has observed the newest generation, and as many pods as wanted exist, are updated
//   and are available.
// - failed: the step ends with an error that names the cause.
// - running: everything else. The executor reads the workload again after a pause.
//
// A rollout changes from running to failed for one of two causes:
//
// 1. A pod of the target template cannot get an image. A few reasons are final (the name of the image is
//    invalid); others must persist for `imageTimeoutMs`, because a node tries again and registries have short
//    outages. A pod that is older than the run gets longer: the cause may be corrected, but the node waits up to
//    five minutes before its next try.
// 2. There was no progress for the deadline of the Deployment, or for `rolloutTimeoutMs` if the workload has none. Any
//    change of the counters or of the pods is progress. The report of the controller (ProgressDeadlineExceeded) is not
//    used: after a patch, the condition still holds the report on the template before.
//
// Both times start again after an outage of the API server. While it is slow, they pass more slowly.
//
// While the rollout of a StatefulSet is running, it can be blocked by a pod of another revision. The controller
// waits until each pod is ready and never replaces one that cannot become ready. Such pods are returned as
// `blockingPods`; the executor deletes them.
import { truncate } from '../../../lib/text.ts';
import type { Direction, Workload, WorkloadContainer } from '../workloads.ts';
import { type ClusterPod, type ClusterWorkload, pathOf } from './workload.ts';

type RolloutOptions = {
  readonly workload: Pick<Workload, 'parts'>;
  readonly direction: Direction;
  readonly runStartedAt: number;
  readonly rolloutTimeoutMs: number;
  /** The default covers the first two attempts of a node. */
  readonly imageTimeoutMs?: number;
};

type RolloutState =
  | { readonly state: 'running'; readonly blockingPods: readonly ClusterPod[]; readonly reason: string }
  | { readonly state: 'failed'; readonly cause: string };

/**
 * The API server writes times in whole seconds, so an event of this run may seem to be this much older than the
 * run.
 */
const clockResolutionMs = 1000;

/** Several looks: a pod that becomes ready at last must not be deleted. At most half of the time of a rollout. */
const stuckMs = 30_000;

/** For each pod. */
const maxCause = 200;

/** The longest pause of a node between two tries to pull an image. */
const maxPullPauseMs = 300_000;

/** The time that counts between two looks at most: an API server that is slow delays the controllers too. */
const maxGapMs = 10_000;

/** After a longer time, the API server was unavailable, to the controllers too. */
const outageMs = 60_000;

/** The time that has passed while the deployment was looked at. */
export class LookTime {
  #lastAt: number | undefined;
  #at = 0;

  look(now: number): { readonly at: number; readonly isAfterOutage: boolean } {
    const gap = now - (this.#lastAt ?? now);
    this.#lastAt = now;
    this.#at += Math.min(gap, maxGapMs);
    return { at: this.#at, isAfterOutage: gap > outageMs };
  }
}

export class RolloutMonitor {
  readonly #options: RolloutOptions;
  readonly #time = new LookTime();
  #progress: { readonly fingerprint: string; readonly at: number } | undefined;
  #imageErrorSince: number | undefined;

  constructor(options: RolloutOptions) {
    this.#options = options;
  }

  check(found: ClusterWorkload, pods: readonly ClusterPod[], now: number): RolloutState {
    const { at, isAfterOutage } = this.#time.look(now);
    if (isAfterOutage) {
      this.#progress = undefined;
      this.#imageErrorSince = undefined;
    }
    const cause = this.#checkImages(pods, at) ?? this.#checkProgress(found, pods, at);
    return cause === undefined
      ? {
          state: 'running',
          blockingPods: findBlockingPods(found, pods, (pod) => this.#isStuck(pod, found, at)),
          reason: this.#formatDelay(found, pods),
        }
      : { state: 'failed', cause };
  }

  /**
   * During an update, a pod without an error may still be starting, so the executor does not delete it. One that is older
   * than the run had its time before, and gets as long again as it takes to be available.
   */
  #isStuck(
    { waiting, createdAt, isAtWork }: ClusterPod,
    { minReadyMs }: ClusterWorkload,
    at: number,
  ): boolean {
    const { direction, runStartedAt, rolloutTimeoutMs } = this.#options;
    const isOld = createdAt < runStartedAt - clockResolutionMs;
    return (
      direction === 'formerImage' ||
      waiting.some(isError) ||
      (isOld &&
        isAtWork &&
        at - (this.#progress?.at ?? at) >= minReadyMs + Math.min(stuckMs, rolloutTimeoutMs / 2))
    );
  }

  #checkImages(pods: readonly ClusterPod[], at: number): string | undefined {
    const { workload, direction, runStartedAt, imageTimeoutMs = 30_000 } = this.#options;
    const error = findImageError(pods, workload.parts, direction, runStartedAt);
    this.#imageErrorSince = error && (this.#imageErrorSince ?? at);
    const timeoutMs = error?.isOlderThanRun ? imageTimeoutMs + maxPullPauseMs : imageTimeoutMs;
    const isLasting = at - (this.#imageErrorSince ?? at) >= timeoutMs;
    return error && (error.isFinal || isLasting) ? error.text : undefined;
  }

  #checkProgress(found: ClusterWorkload, pods: readonly ClusterPod[], at: number): string | undefined {
    const fingerprint = fingerprintOf(found, pods);
    if (fingerprint !== this.#progress?.fingerprint) this.#progress = { fingerprint, at };
    const idleMs = at - this.#progress.at;
    if (idleMs < found.minReadyMs + (found.deadlineMs ?? this.#options.rolloutTimeoutMs)) return undefined;
    return `no progress for ${Math.round(idleMs / 1000)} seconds: ${this.#formatDelay(found, pods)}.`;
  }

  #formatDelay(found: ClusterWorkload, pods: readonly ClusterPod[]): string {
    const { workload, direction } = this.#options;
    const isNew = (pod: ClusterPod) => !isOfOtherTemplate(pod, workload.parts, direction);
    const remaining = pods.filter((pod) => !isNew(pod) || pod.isTerminating);
    const unready = [
      ...pods.filter((pod) => !pod.isReady && isNew(pod) && !pod.isTerminating).map(describeUnready),
      ...remaining.map(describeRemaining),
    ];
    const reasons = [
      ...(found.isObserved ? [] : ['its controller has not observed its newest change']),
      ...found.obstacles.map((obstacle) => `it ${obstacle}`),
      ...found.failures,
      ...unready.slice(0, 3),
    ];
    const hint = found.present < found.wanted ? ['its events say why pods are missing'] : [];
    return [formatCounts(found), ...(reasons.length > 0 ? reasons : hint)].join('; ');
  }
}

export function hasTargetImages(found: ClusterWorkload, { parts }: Workload, direction: Direction): boolean {
  const path = pathOf(found);
  return parts
    .map((part) => {
      const current = found.containers.find(({ name }) => name === part.container)?.image;
      if (current === undefined) throw new Error(`${path} no longer has the container ${part.container}.`);
      if (current !== part.image && current !== part.formerImage)
        throw new Error(
          `${path} has the image ${current} in its container ${part.container}, neither ${part.formerImage ?? 'none'} nor ` +
            `${part.image}: another client or a policy has changed it.`,
        );
      return current === part[direction];
    })
    .every(Boolean);
}

/** `stored` is the answer to the patch, so no other client has changed it. */
export function findRewritten(
  stored: ClusterWorkload,
  { name, parts }: Workload,
  direction: Direction,
): string | undefined {
  for (const { container, [direction]: wanted } of parts) {
    const image = stored.containers.find((one) => one.name === container)?.image ?? 'none';
    if (image !== wanted)
      return `the API server has set the image ${image} in the container ${container} of ${name} instead of ${wanted ?? 'none'}: a policy of the cluster changes images.`;
  }
  return undefined;
}

export function isRolledOut(found: ClusterWorkload): boolean {
  return found.isObserved && isHealthy(found);
}

export function isHealthy({ wanted, present, updated, available }: ClusterWorkload): boolean {
  return updated === wanted && present === wanted && available === wanted;
}

function formatCounts({ wanted, present, updated, available }: ClusterWorkload): string {
  // Then the available ones may be others than the updated ones.
  const former = present > wanted && present > updated ? `, ${present - updated} of them not updated` : '';
  return `of ${wanted} wanted pods ${updated} are updated and ${available} available, ${present} exist${former}`;
}

/** Undefined if the workload is healthy. The pods are those of the namespace. */
export function describeIllness(found: ClusterWorkload, pods: readonly ClusterPod[]): string | undefined {
  if (isHealthy(found)) return undefined;
  const { wanted, updated, available, failures } = found;
  const what = Math.min(updated, available) > wanted ? 'has pods that are to end' : 'is not healthy';
  const unready = unreadyOf(pathOf(found), pods).slice(0, 3).map(describeUnready);
  return `${what}: ${[formatCounts(found), ...failures, ...unready].join('; ')}`;
}

function unreadyOf(path: string, pods: readonly ClusterPod[]): ClusterPod[] {
  return pods.filter(({ owner, isReady, hasEnded }) => owner === path && !isReady && !hasEnded);
}

/** The containers because of which the workload is not healthy. Empty if another image would not help. */
export function findSick(path: string, pods: readonly ClusterPod[]): string[] {
  const unready = unreadyOf(path, pods);
  const isOtherCause = ({ isTerminating, unready, unscheduled, waiting }: ClusterPod) =>
    isTerminating ||
    unscheduled !== undefined ||
    unready.length === 0 ||
    waiting.some((one) => one.reason === 'ContainerCreating');
  if (unready.some(isOtherCause)) return [];
  return [...new Set(unready.flatMap((pod) => pod.unready))];
}

/** With the cause, because reverting takes the pod away, with its log and its events. */
export function describeUnready({
  name,
  images,
  waiting: [wait],
  ends,
  unscheduled,
  lostNode,
}: ClusterPod): string {
  const end = ends.find(({ isDown }) => isDown);
  const container = wait?.container ?? end?.container;
  const isOnly = images.size <= 1 || container === undefined;
  const causes = [
    wait && `${wait.reason}${wait.message === '' ? '' : `: ${truncate(wait.message, maxCause)}`}`,
    end && end.reason !== wait?.reason && `it has ended: ${end.reason}`,
    !wait && !end && unscheduled,
    lostNode !== undefined && `its node ${lostNode} does not report`,
  ].filter(Boolean);
  if (causes.length === 0) return `${name} is not ready`;
  return `${name} is not ready (${isOnly ? '' : `${container}: `}${causes.join('; ')})`;
}

export function describeRemaining({ name, isTerminating, isReady }: ClusterPod): string {
  if (isTerminating) return `${name} has not ended`;
  return `${name} of the former template ${isReady ? 'still runs' : 'is not ready'}`;
}

function fingerprintOf(
  { isObserved, wanted, present, updated, available }: ClusterWorkload,
  pods: readonly ClusterPod[],
): string {
  const readiness = pods.map(({ uid, isReady }) => uid + String(isReady));
  return [isObserved, wanted, present, updated, available, ...readiness].join(' ');
}

/** A pod with images of neither template counts as new, because some clusters rewrite images. A Job has one template. */
function isOfOtherTemplate(
  { images }: ClusterPod,
  parts: readonly WorkloadContainer[],
  direction: Direction,
): boolean {
  const other = direction === 'image' ? 'formerImage' : 'image';
  return (
    parts.length > 0 &&
    parts.every((part) => images.get(part.container) === part[other] && part.image !== part.formerImage)
  );
}

const finalReasons = ['InvalidImageName', 'ErrImageNeverPull'];
const pullReasons = ['ErrImagePull', 'ImagePullBackOff', 'RegistryUnavailable', 'ImageInspectError'];

type ImageError = {
  readonly text: string;
  readonly isFinal: boolean;
  readonly isOlderThanRun: boolean;
};

/** The error of a pod of this run comes first. */
export function findImageError(
  pods: readonly ClusterPod[],
  parts: readonly WorkloadContainer[],
  direction: Direction,
  runStartedAt: number,
): ImageError | undefined {
  const own = pods.filter((one) => !one.isTerminating && !isOfOtherTemplate(one, parts, direction));
  for (const pod of own.toSorted((a, b) => b.createdAt - a.createdAt)) {
    for (const { container, reason, message } of pod.waiting) {
      const isFinal = finalReasons.includes(reason);
      if (!isFinal && !pullReasons.includes(reason)) continue;
      const image = pod.images.get(container) ?? '';
      const detail = message === '' ? '' : `: ${message}`;
      return {
        text: `the pod ${pod.name} cannot pull the image ${image} (${reason}${detail}).`,
        isFinal,
        isOlderThanRun: pod.createdAt < runStartedAt - clockResolutionMs,
      };
    }
  }
  return undefined;
}

/** How often containers of pods were restarted. Times of nodes would not help: their clocks differ from ours. */
export type Restarts = ReadonlyMap<string, number>;

export function countRestarts(pods: readonly ClusterPod[]): Restarts {
  return new Map(pods.flatMap(({ ends }) => ends.map(({ id, restarts }) => [id, restarts])));
}

/**
 * A container that has ended since a rollout was complete: without a readiness probe its pod is ready for a moment after
 * every crash.
 */
export function findCrash(
  { name, parts }: Workload,
  pods: readonly ClusterPod[],
  direction: Direction,
  atCompletion: Restarts,
): string | undefined {
  for (const pod of pods) {
    const isRunning = !pod.isTerminating && !pod.hasEnded;
    if (pod.owner !== name || !isRunning || isOfOtherTemplate(pod, parts, direction)) continue;
    const end = pod.ends.find(({ id, restarts, isDown }) => isDown || restarts > (atCompletion.get(id) ?? 0));
    if (end)
      return `${name}: the container ${end.container} of the pod ${pod.name} has ended since the rollout (${end.reason}).`;
  }
  return undefined;
}

/** Reasons of containers that do not become ready without help. Others, such as ContainerCreating, are those of a start. */
const isError = ({ reason }: ClusterPod['waiting'][number]) =>
  /^Err|Error$|BackOff$/.test(reason) || [...finalReasons, ...pullReasons].includes(reason);

function findBlockingPods(
  { kind, isObserved, revision }: ClusterWorkload,
  pods: readonly ClusterPod[],
  isStuck: (pod: ClusterPod) => boolean,
): ClusterPod[] {
  if (kind !== 'StatefulSet' || !isObserved || revision === undefined) return [];
  return pods.filter(
    (pod) => pod.revision !== revision && !pod.isReady && !pod.isTerminating && isStuck(pod),
  );
}
