// ResourceQuotas of the fake cluster: counts what the pods of a namespace use, and refuses pods that exceed a quota.
import type { Container, KubeObject, Pod } from './objects.ts';
import { resourceOf } from './resources.ts';
import { forbidden } from './status-error.ts';
import type { Storage } from './storage.ts';

const pods = resourceOf('pods');
const quotas = resourceOf('resourcequotas');

export type ResourceQuota = KubeObject & {
  spec?: { hard?: Record<string, string> };
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
};

const factors: Record<string, number> = {
  m: 0.001,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

const parseQuantity = (text: string): number => {
  const [, number = '0', unit = ''] = /^([\d.]+)(\w*)$/.exec(text) ?? [];
  return Number(number) * (factors[unit] ?? 1);
};

const writeQuantity = (value: number): string =>
  Number.isInteger(value) ? String(value) : `${Math.round(value * 1000)}m`;

const valueOf = (container: Container, name: string) =>
  container.resources?.requests?.[name] ?? container.resources?.limits?.[name];

function usedBy({ spec }: Pod, counted: string): number {
  if (counted === 'pods' || counted === 'count/pods') return 1;
  const name = counted.replace(/^requests\./, '');
  return spec.containers.reduce((sum, container) => sum + parseQuantity(valueOf(container, name) ?? '0'), 0);
}

const hasEnded = ({ status }: Pod) => status.phase === 'Succeeded' || status.phase === 'Failed';

function usage(storage: Storage, namespace: string | undefined, counted: string): number {
  return (storage.peek(pods, namespace) as Pod[])
    .filter((pod) => counted === 'count/pods' || !hasEnded(pod))
    .reduce((sum, pod) => sum + usedBy(pod, counted), 0);
}

const isCounted = (name: string) => /^((count\/)?pods|(requests\.)?(cpu|memory))$/.test(name);

/** The quota with its current status. */
export function withUsage(storage: Storage, quota: ResourceQuota): ResourceQuota {
  const hard = quota.spec?.hard ?? {};
  const used = Object.keys(hard).map((name) => [
    name,
    isCounted(name) ? writeQuantity(usage(storage, quota.metadata.namespace, name)) : '0',
  ]);
  return { ...quota, status: { hard, used: Object.fromEntries(used) as Record<string, string> } };
}

/** Throws if the new pod exceeds a quota. */
export function checkQuota(storage: Storage, pod: Pod): void {
  const { namespace, name, generateName } = pod.metadata;
  const title = (name as string | undefined) ?? `${generateName ?? ''}?`;
  for (const quota of storage.list<ResourceQuota>(quotas, namespace)) {
    const { hard = {}, used = {} } = withUsage(storage, quota).status ?? {};
    const counted = Object.keys(hard).filter(isCounted);
    const unspecified = counted
      .filter((one) => !one.includes('pods'))
      .filter((one) =>
        pod.spec.containers.some((c) => valueOf(c, one.replace(/^requests\./, '')) === undefined),
      );
    if (unspecified.length > 0) {
      throw forbidden(
        pods,
        title,
        `failed quota: ${quota.metadata.name}: must specify ${unspecified.join(',')}`,
      );
    }
    const over = counted.filter(
      (one) => parseQuantity(used[one] ?? '0') + usedBy(pod, one) > parseQuantity(hard[one] ?? '0'),
    );
    if (over.length === 0) continue;
    const format = (values: (one: string) => string) => over.map((one) => `${one}=${values(one)}`).join(',');
    throw forbidden(
      pods,
      title,
      `exceeded quota: ${quota.metadata.name}, requested: ${format((one) => writeQuantity(usedBy(pod, one)))}, ` +
        `used: ${format((one) => used[one] ?? '0')}, limited: ${format((one) => hard[one] ?? '0')}`,
    );
  }
}
