// The lock on a namespace: the Lease `upgrade-lock`, which one job of one Steward holds at a time.
//
// The holder is written as `<job id>/<fence>`. It renews the Lease every 10 seconds; the Lease is valid for 30
// seconds after that.
//
// A job takes the Lease at once if
// - the Lease does not exist or has no holder,
// - the holder is the same job with a lower fence: this process has taken over the job from that one,
// - the holder is a job of this Steward that has ended, or
// - the Lease was not renewed for 10 minutes.
//
// Otherwise the job watches the Lease for as long as it is valid. If the Lease stays the same, its holder is gone,
// and the job takes it. If the Lease changes, its holder is alive, and the step fails. Watching makes no use of the
// times in the Lease, because the clocks of two machines differ.
//
// A process that held the Lease and finds another holder, or none, was replaced in the meantime: its step fails.
// While the API server is unavailable the Lease expires, but no other job can take it then. Afterwards the job
// continues, unless another Steward was faster.
//
// A Lease is not a fence: the API server accepts changes from processes that do not hold it. Therefore the executor
// reads the Lease before it changes images or deletes a pod (`acquire`). Other steps only keep the Lease valid
// (`renew`).
import type { V1Lease } from '@kubernetes/client-node';
import type { Runtime } from '../../../lib/runtime.ts';
import { RefusedError, type StepContext } from '../executor.ts';
import { hasStatus } from './client.ts';
import type { Cluster } from './cluster.ts';
import { parseTime } from './workload.ts';

/** The only Lease that Steward uses. */
export const leaseName = 'upgrade-lock';

const leaseSeconds = 30;
const renewMs = 10_000;
const pollIntervalMs = 1_000;

/** Longer than the clocks of two machines differ. */
const abandonedMs = 10 * 60_000;

type Lease = {
  readonly resourceVersion: string | undefined;
  readonly holder: string | undefined;
  readonly renewedAt: number;
  readonly acquiredAt: number;
  readonly seconds: number;
  readonly transitions: number;
};

/** `renewed` is when this process has written it, on its monotonic clock. */
type HeldLease = { readonly lease: Lease; readonly renewed: number };

export type LockOptions = {
  readonly runtime: Pick<Runtime, 'now' | 'elapsed' | 'sleep'>;
  /** False for a job of another Steward, whose state is not known here. */
  readonly hasEnded: (jobId: string) => Promise<boolean>;
};

export class UpgradeLock {
  readonly #options: LockOptions;
  readonly #held = new Map<string, HeldLease>();
  /** The Lease that `findConflict` has found last. */
  #seen: { readonly lease: Lease; readonly since: number } | undefined;

  constructor(options: LockOptions) {
    this.#options = options;
  }

  async acquire(cluster: Cluster, context: StepContext): Promise<void> {
    const { jobId, fence, signal } = context;
    const holder = `${jobId}/${fence}`;
    let watched: { lease: Lease; since: number } | undefined;
    for (; ; await this.#options.runtime.sleep(pollIntervalMs, signal)) {
      const at = this.#options.runtime.now();
      const elapsed = this.#options.runtime.elapsed();
      const lease = await findLease(cluster);
      const isOurs = lease?.holder === holder;
      const held = this.#held.get(jobId);
      const isHeld = held?.lease.holder === holder;
      if (isOurs && isHeld && elapsed - held.renewed < renewMs) return;
      if (lease && !isOurs && isHeld) throw lockedError(lease);
      const isFree = lease === undefined || isOurs || (await this.#mayTakeAtOnce(lease, context, at));
      if (!isFree && watched && !isSame(watched.lease, lease)) throw lockedError(lease);
      watched ??= lease && { lease, since: elapsed };
      const isExpired = watched !== undefined && elapsed - watched.since >= watched.lease.seconds * 1000;
      if (!isFree && !isExpired) {
        context.report({ object: 'lease', reason: formatHolder(lease) });
        continue;
      }
      const written = await writeLease(cluster, {
        resourceVersion: lease?.resourceVersion,
        holder,
        renewedAt: at,
        acquiredAt: isOurs ? lease.acquiredAt : at,
        seconds: leaseSeconds,
        transitions: (lease?.transitions ?? 0) + (isOurs ? 0 : 1),
      });
      if (written) {
        this.#held.set(jobId, { lease: written, renewed: elapsed });
        return;
      }
      watched = undefined;
    }
  }

  /** Sends a request only if a renewal is due, so that the executor can call it often. */
  async renew(cluster: Cluster, context: StepContext): Promise<void> {
    const { jobId, fence } = context;
    const held = this.#held.get(jobId);
    const elapsed = this.#options.runtime.elapsed();
    if (held?.lease.holder !== `${jobId}/${fence}`) return this.acquire(cluster, context);
    if (elapsed - held.renewed < renewMs) return;
    const lease = await writeLease(cluster, { ...held.lease, renewedAt: this.#options.runtime.now() });
    if (lease) this.#held.set(jobId, { lease, renewed: elapsed });
    else await this.acquire(cluster, context);
  }

  async release(cluster: Cluster, jobId: string): Promise<void> {
    const held = this.#held.get(jobId);
    if (!held) return;
    this.#held.delete(jobId);
    const lease = await findLease(cluster);
    if (lease && lease.holder === held.lease.holder)
      await writeLease(cluster, { ...lease, holder: undefined });
  }

  /**
   * Trusts the clock that wrote the Lease, because watching the Lease would take 30 seconds, and a caller waits for the
   * response. A time in the future counts from the first look.
   */
  async findConflict(cluster: Cluster): Promise<string | undefined> {
    const lease = await findLease(cluster);
    const holder = lease && parseHolder(lease);
    if (!holder || (await this.#options.hasEnded(holder.jobId))) return undefined;
    const at = this.#options.runtime.now();
    if (!this.#seen || !isSame(this.#seen.lease, lease)) this.#seen = { lease, since: at };
    const expiresInMs = Math.min(lease.renewedAt, this.#seen.since) + lease.seconds * 1000 - at;
    return expiresInMs <= 0
      ? undefined
      : `${formatHolder(lease)}, which expires in ${Math.ceil(expiresInMs / 1000)} seconds unless it is renewed.`;
  }

  async #mayTakeAtOnce(lease: Lease, { jobId, fence }: StepContext, at: number): Promise<boolean> {
    const holder = parseHolder(lease);
    if (holder === undefined || at - lease.renewedAt > abandonedMs) return true;
    return holder.jobId === jobId ? holder.fence < fence : this.#options.hasEnded(holder.jobId);
  }
}

async function findLease(cluster: Cluster): Promise<Lease | undefined> {
  const found = await cluster.findLease(leaseName);
  return found && parseLease(found);
}

/** Returns undefined if another process changed the Lease first. */
async function writeLease(cluster: Cluster, lease: Lease): Promise<Lease | undefined> {
  const isNew = lease.resourceVersion === undefined;
  const body = toLeaseObject(lease);
  try {
    const { metadata } = await (isNew ? cluster.createLease(body) : cluster.replaceLease(leaseName, body));
    return { ...lease, resourceVersion: metadata?.resourceVersion };
  } catch (error) {
    if (hasStatus(error, 409) || (hasStatus(error, 404) && !isNew)) return undefined;
    throw error;
  }
}

function parseLease({ metadata, spec }: V1Lease): Lease {
  return {
    resourceVersion: metadata?.resourceVersion,
    holder: spec?.holderIdentity || undefined,
    renewedAt: parseTime(spec?.renewTime),
    acquiredAt: parseTime(spec?.acquireTime),
    seconds: spec?.leaseDurationSeconds ?? 0,
    transitions: spec?.leaseTransitions ?? 0,
  };
}

/** The API server refuses a time without six decimals. */
const formatTime = (at: number) => new Date(at).toISOString().replace('Z', '000Z');

function toLeaseObject({ resourceVersion, holder, ...lease }: Lease): object {
  return {
    metadata: { name: leaseName, ...(resourceVersion !== undefined && { resourceVersion }) },
    spec: {
      ...(holder !== undefined && { holderIdentity: holder }),
      renewTime: formatTime(lease.renewedAt),
      acquireTime: formatTime(lease.acquiredAt),
      leaseDurationSeconds: lease.seconds,
      leaseTransitions: lease.transitions,
    },
  };
}

function parseHolder({ holder }: Lease): { jobId: string; fence: number } | undefined {
  if (holder === undefined) return undefined;
  const [, jobId = holder, fence] = /^([^/]*)\/([0-9]+)$/.exec(holder) ?? [];
  return { jobId, fence: Number(fence) };
}

function isSame(a: Lease, b: Lease | undefined): boolean {
  return a.holder === b?.holder && a.renewedAt === b?.renewedAt && a.transitions === b.transitions;
}

function lockedError(lease: Lease | undefined): Error {
  return new RefusedError(
    lease?.holder === undefined
      ? `another process has held the Lease ${leaseName} in the meantime.`
      : `${formatHolder(lease)}.`,
  );
}

function formatHolder({ holder = '' }: Lease): string {
  return `another Steward is upgrading the namespace: its job ${holder} holds the Lease ${leaseName}`;
}
