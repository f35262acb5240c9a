// The lock on a namespace: a Lease that one job of one Steward holds. It is no fence, so it is looked at before every change.
import type { Runtime } from '../../../runtime.ts';
import type { StepContext } from '../executor.ts';
import { ClusterError } from './client.ts';
import type { Cluster } from './cluster.ts';
import type { Lease } from './lease.ts';

export const lockName = 'upgrade-lock';
const leaseSeconds = 30;
const renewMs = 10_000;
const lookAgainMs = 1_000;

/** No clock is wrong by so much. */
const longAgoMs = 10 * 60_000;

/** How long the API server may be away while a job runs. */
export const outageMs = leaseSeconds * 1000;

export type Lock = {
  /** Resolves once the job has the lock; rejects where another one that is alive has it. */
  hold: (cluster: Cluster, errand: StepContext) => Promise<void>;
  /** The same, but looks only as often as the lock must be renewed. */
  keep: (cluster: Cluster, errand: StepContext) => Promise<void>;
  release: (cluster: Cluster, jobId: string) => Promise<void>;
};

export type LockOptions = {
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  /** Whether it is a job of this Steward's that has ended. */
  readonly hasEnded: (jobId: string) => boolean;
};

export function createLock({ runtime, hasEnded }: LockOptions): Lock {
  /** When this process last saw its job hold the lock, by job. */
  const seen = new Map<string, { holder: string; renewedAt: number }>();

  async function hold(cluster: Cluster, { jobId, fence, signal }: StepContext): Promise<void> {
    const holder = holderOf(jobId, fence);
    let watched: { lease: Lease; since: number } | undefined;
    for (; ; await runtime.sleep(lookAgainMs, signal)) {
      const at = runtime.now();
      const lease = await find(cluster);
      const isOurs = lease?.holder === holder;
      const known = seen.get(jobId);
      if (isOurs && known?.holder === holder && at - known.renewedAt < renewMs) return;
      // Who had it and finds it given away was not there, or not alive, meanwhile.
      if (lease && !isOurs && known?.holder === holder) throw held(lease);
      const isFree = lease === undefined || isOurs || mayTake(lease, jobId, fence, at);
      if (!isFree && watched && !isSame(watched.lease, lease)) throw held(lease);
      watched ??= lease && { lease, since: at };
      const isForsaken = watched !== undefined && at - watched.since >= watched.lease.seconds * 1000;
      if (!isFree && !isForsaken) continue;
      const taken = {
        resourceVersion: lease?.resourceVersion,
        holder,
        renewedAt: at,
        acquiredAt: isOurs ? lease.acquiredAt : at,
        seconds: leaseSeconds,
        transitions: (lease?.transitions ?? 0) + (isOurs ? 0 : 1),
      };
      if (await write(cluster, taken)) {
        seen.set(jobId, { holder, renewedAt: at });
        return;
      }
      watched = undefined;
    }
  }

  /** Nobody's; that of a process which has lost the same job to this one, or of a job that is over; or long forgotten. */
  function mayTake(lease: Lease, jobId: string, fence: number, at: number): boolean {
    const owner = readHolder(lease);
    if (owner === undefined || at - lease.renewedAt > longAgoMs) return true;
    return owner.jobId === jobId ? owner.fence < fence : hasEnded(owner.jobId);
  }

  return {
    hold,
    async keep(cluster, errand) {
      const known = seen.get(errand.jobId);
      if (known === undefined || runtime.now() - known.renewedAt >= renewMs) await hold(cluster, errand);
    },
    async release(cluster, jobId) {
      const known = seen.get(jobId);
      seen.delete(jobId);
      const lease = known && (await find(cluster));
      if (lease?.holder === known?.holder && lease) await write(cluster, { ...lease, holder: undefined });
    },
  };
}

async function find(cluster: Cluster): Promise<Lease | undefined> {
  try {
    return await cluster.readLease(lockName);
  } catch (error) {
    if (error instanceof ClusterError && error.code === 404) return undefined;
    throw error;
  }
}

/** False where somebody was quicker. */
async function write(cluster: Cluster, lease: Lease): Promise<boolean> {
  const isNew = lease.resourceVersion === undefined;
  try {
    if (isNew) await cluster.createLease(lockName, lease);
    else await cluster.replaceLease(lockName, lease);
    return true;
  } catch (error) {
    if (error instanceof ClusterError && (error.code === 409 || (error.code === 404 && !isNew))) return false;
    throw error;
  }
}

function holderOf(jobId: string, fence: number): string {
  return `${jobId}/${fence}`;
}

function readHolder({ holder = '' }: Lease): { jobId: string; fence: number } | undefined {
  if (holder === '') return undefined;
  const [, jobId = holder, fence] = /^(.*)\/([0-9]+)$/.exec(holder) ?? [];
  return { jobId, fence: Number(fence) };
}

function isSame(a: Lease, b: Lease | undefined): boolean {
  return a.holder === b?.holder && a.renewedAt === b?.renewedAt && a.transitions === b.transitions;
}

function held(lease: Lease | undefined): Error {
  return new Error(
    lease?.holder === undefined
      ? `another process has had the Lease ${lockName} meanwhile.`
      : `another Steward has the namespace: its Lease ${lockName} is held by the job ${lease.holder}.`,
  );
}

/** That somebody else has the lock, as far as the clocks agree. */
export function formatHolder(
  lease: Lease,
  at: number,
  hasEnded: (jobId: string) => boolean,
): string | undefined {
  const owner = readHolder(lease);
  const freeInMs = lease.renewedAt + lease.seconds * 1000 - at;
  if (owner === undefined || freeInMs <= 0 || hasEnded(owner.jobId)) return undefined;
  return (
    `another Steward has the namespace: its Lease ${lockName} is held by the job ${lease.holder ?? ''}, ` +
    `and free in ${Math.ceil(freeInMs / 1000)} seconds unless it is renewed.`
  );
}
