// Whether a Job begins to work. One whose pods cannot start must not wait for the time of its step, but one that works is
// never ended: an init container that copies a database is at work too.
import { LookTime, describeUnready, findImageError } from './rollout.ts';
import type { StepJob } from './step-template.ts';
import type { ClusterPod } from './workload.ts';

/** Why the Job is waited for, and whether it has to be ended because it cannot start. */
export type StartState = { readonly hasFailed: boolean; readonly reason: string };

type JobStartOptions = {
  readonly rolloutTimeoutMs: number;
  readonly imageTimeoutMs?: number;
  readonly runStartedAt: number;
};

export class JobStart {
  readonly #options: JobStartOptions;
  readonly #time = new LookTime();
  #idleSince: number | undefined;
  #imageErrorSince: number | undefined;

  constructor(options: JobStartOptions) {
    this.#options = options;
  }

  check({ name, isSuspended }: StepJob, pods: readonly ClusterPod[], now: number): StartState {
    const { rolloutTimeoutMs, imageTimeoutMs = 30_000, runStartedAt } = this.#options;
    const { at, isAfterOutage } = this.#time.look(now);
    const present = pods.filter(({ hasEnded }) => !hasEnded);
    const isAtWork = present.some((pod) => pod.isAtWork);
    // A pod of an earlier try has begun, unless it has ended without a try of its containers.
    const isIdle = !isSuspended && (present.length > 0 ? present : pods).every(({ isPending }) => isPending);
    this.#idleSince = isIdle && !isAfterOutage ? (this.#idleSince ?? at) : isIdle ? at : undefined;
    const error = isAtWork ? undefined : findImageError(present, [], 'image', runStartedAt);
    this.#imageErrorSince = error && !isAfterOutage ? (this.#imageErrorSince ?? at) : error && at;
    const isLasting = at - (this.#imageErrorSince ?? at) >= imageTimeoutMs;
    if (error) return { hasFailed: error.isFinal || isLasting, reason: error.text.replace(/\.$/, '') };
    if (isSuspended) return { hasFailed: false, reason: `the Job ${name} is suspended (spec.suspend)` };
    if (!isIdle) return { hasFailed: false, reason: `the Job ${name} works` };
    const idleMs = at - (this.#idleSince ?? at);
    const unready = present.slice(0, 3).map(describeUnready);
    const why = unready.length > 0 ? unready.join('; ') : 'it has no pod; its events say why';
    return {
      hasFailed: idleMs >= rolloutTimeoutMs,
      reason: `no pod has begun to work for ${Math.round(idleMs / 1000)} seconds: ${why}`,
    };
  }
}
