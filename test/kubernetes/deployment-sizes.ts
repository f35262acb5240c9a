// How many pods a Deployment of the fake cluster may have during a rollout, above and below the wanted number.
import { shareOf } from './controller-tools.ts';
import type { Workload } from './objects.ts';

export const replicasOf = ({ spec }: Workload): number => spec.replicas ?? 1;

export const sum = <T>(items: T[], numberOf: (item: T) => number): number =>
  items.reduce((total, item) => total + numberOf(item), 0);

export function surgeOf(deployment: Workload): number {
  const rolling = deployment.spec.strategy?.rollingUpdate;
  return rolling === undefined ? 0 : shareOf(rolling.maxSurge, replicasOf(deployment), 'up');
}

export function maxUnavailableOf(deployment: Workload): number {
  const replicas = replicasOf(deployment);
  const rolling = deployment.spec.strategy?.rollingUpdate;
  if (rolling === undefined || replicas === 0) return 0;
  const share = shareOf(rolling.maxUnavailable, replicas, 'down');
  // With neither surge nor unavailable pods a rollout could not start.
  return share === 0 && surgeOf(deployment) === 0 ? 1 : Math.min(share, replicas);
}
