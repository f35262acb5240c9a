// Checks whether the quotas of a namespace leave room for the pod that a rollout adds.
import { type ClusterWorkload, type ClusterContainer, type Quantities, pathOf } from './workload.ts';

export type ClusterQuota = { readonly name: string; readonly hard: Quantities; readonly used: Quantities };

const factors: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

export function parseQuantity(text: string): number {
  const [, number = '', unit = ''] = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)$/.exec(text) ?? [];
  return number === '' ? NaN : Number(number) * (factors[unit] ?? NaN);
}

/** The containers of a pod run together. Its init containers run before them, one at a time. */
function usageOfPod(
  containers: readonly ClusterContainer[],
  of: 'requests' | 'limits',
  resource: string,
): number {
  const amount = (container: ClusterContainer) => parseQuantity(container[of][resource] ?? '0') || 0;
  const sum = containers.filter(({ isInit }) => !isInit).reduce((total, one) => total + amount(one), 0);
  return Math.max(sum, ...containers.filter(({ isInit }) => isInit).map(amount));
}

function additionalUsage({ surge, containers }: ClusterWorkload, resource: string): number {
  if (resource === 'pods' || resource === 'count/pods') return surge;
  const [, of = 'requests', plain = ''] =
    /^(?:(requests|limits)\.)?(cpu|memory|ephemeral-storage)$/.exec(resource) ?? [];
  return plain === '' ? 0 : surge * usageOfPod(containers, of as 'requests' | 'limits', plain);
}

export function findExceededQuotas(found: ClusterWorkload, quotas: readonly ClusterQuota[]): string[] {
  return quotas.flatMap(({ name, hard, used }) =>
    Object.entries(hard)
      .filter(([resource, limit]) => {
        const need = additionalUsage(found, resource);
        return need > 0 && parseQuantity(used[resource] ?? '0') + need > parseQuantity(limit);
      })
      .map(
        ([resource, limit]) =>
          `${pathOf(found)}: needs one more pod while it is rolled out, for which the quota ${name} has no room: ` +
          `${resource} is at ${used[resource] ?? '0'} of ${limit}.`,
      ),
  );
}
