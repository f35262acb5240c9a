// ResourceQuotas of the fake cluster, which limit the number of pods only.
import type { KubeObject, Pod } from './objects.ts';
import { resourceOf } from './resources.ts';
import { forbidden } from './status-error.ts';
import type { Storage } from './storage.ts';

const pods = resourceOf('pods');
const quotas = resourceOf('resourcequotas');

export type ResourceQuota = KubeObject & { spec?: { hard?: { pods?: string } } };

const hasEnded = ({ status }: Pod) => status.phase === 'Succeeded' || status.phase === 'Failed';

const countPods = (storage: Storage, namespace: string | undefined) =>
  (storage.peek(pods, namespace) as Pod[]).filter((pod) => !hasEnded(pod)).length;

/** The quota with its current status. */
export function withUsage(storage: Storage, quota: ResourceQuota): KubeObject & { status: object } {
  const used = { pods: String(countPods(storage, quota.metadata.namespace)) };
  return { ...quota, status: { hard: quota.spec?.hard ?? {}, used } };
}

/** Throws if the new pod exceeds a quota. */
export function checkQuota(storage: Storage, { metadata: { namespace, generateName } }: Pod): void {
  const used = countPods(storage, namespace);
  for (const { metadata, spec } of storage.list<ResourceQuota>(quotas, namespace)) {
    const { pods: limit = 'Infinity' } = spec?.hard ?? {};
    if (used < Number(limit)) continue;
    const why = `exceeded quota: ${metadata.name}, requested: pods=1, used: pods=${used}, limited: pods=${limit}`;
    throw forbidden(pods, `${generateName ?? ''}?`, why);
  }
}
