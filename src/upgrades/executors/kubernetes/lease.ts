// A lease, which is what a lock is in a cluster, as it is kept there.
import { type V1Lease, V1MicroTime } from '@kubernetes/client-node';

export type Lease = {
  readonly resourceVersion: string | undefined;
  /** Nobody's where it is undefined. */
  readonly holder: string | undefined;
  readonly renewedAt: number;
  readonly acquiredAt: number;
  readonly seconds: number;
  readonly transitions: number;
};

export function readLease({ metadata, spec }: V1Lease): Lease {
  return {
    resourceVersion: metadata?.resourceVersion,
    holder: spec?.holderIdentity || undefined,
    renewedAt: readTime(spec?.renewTime),
    acquiredAt: readTime(spec?.acquireTime),
    seconds: spec?.leaseDurationSeconds ?? 0,
    transitions: spec?.leaseTransitions ?? 0,
  };
}

/** The library calls it a date, and answers the text that came. */
function readTime(time: unknown): number {
  return time === undefined ? 0 : new Date(time as string | Date).getTime();
}

export function writeLease(name: string, { resourceVersion, holder, ...lease }: Lease): V1Lease {
  return {
    metadata: { name, ...(resourceVersion !== undefined && { resourceVersion }) },
    spec: {
      ...(holder !== undefined && { holderIdentity: holder }),
      // A Date of the language is written with too few decimals.
      renewTime: new V1MicroTime(lease.renewedAt),
      acquireTime: new V1MicroTime(lease.acquiredAt),
      leaseDurationSeconds: lease.seconds,
      leaseTransitions: lease.transitions,
    },
  };
}
