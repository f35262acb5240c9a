// Whether the quotas of a namespace leave room for the pods that a rollout needs in addition.
import { type ClusterWorkload, type ClusterContainer, type Quantities, pathOf } from './workload.ts';

/** Those that apply to every pod; quotas with scopes are not looked at. */
export type ClusterQuota = { readonly name: string; readonly hard: Quantities; readonly used: Quantities };

const powers: Readonly<Record<string, number>> = {
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

/** `500m`, `1.5Gi`, `1e3`. */
export function readQuantity(text: string): number {
  const [, number = '', unit = ''] = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)$/.exec(text) ?? [];
  return number === '' ? NaN : Number(number) * (powers[unit] ?? NaN);
}

/** What one pod takes: its containers together, or an init container that takes more. */
function takenByPod(
  containers: readonly ClusterContainer[],
  of: 'requests' | 'limits',
  resource: string,
): number {
  const amount = (container: ClusterContainer) => readQuantity(container[of][resource] ?? '0') || 0;
  const together = containers.filter(({ isInit }) => !isInit).reduce((sum, one) => sum + amount(one), 0);
  return Math.max(together, ...containers.filter(({ isInit }) => isInit).map(amount));
}

function needOf({ surge, containers }: ClusterWorkload, resource: string): number {
  if (resource === 'pods' || resource === 'count/pods') return surge;
  const [, of = 'requests', plain = ''] =
    /^(?:(requests|limits)\.)?(cpu|memory|ephemeral-storage)$/.exec(resource) ?? [];
  return plain === '' ? 0 : surge * takenByPod(containers, of as 'requests' | 'limits', plain);
}

/** Of workloads that cannot be rolled out without another pod beside those they have. */
export function findLackOfRoom(found: ClusterWorkload, quotas: readonly ClusterQuota[]): string[] {
  return quotas.flatMap(({ name, hard, used }) =>
    Object.entries(hard)
      .filter(([resource, limit]) => {
        const need = needOf(found, resource);
        return need > 0 && readQuantity(used[resource] ?? '0') + need > readQuantity(limit);
      })
      .map(
        ([resource, limit]) =>
          `${pathOf(found)}: needs one more pod while it is rolled out, for which the quota ${name} has no room: ` +
          `${resource} is at ${used[resource] ?? '0'} of ${limit}.`,
      ),
  );
}
