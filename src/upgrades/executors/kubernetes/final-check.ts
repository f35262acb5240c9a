// The final check: which workloads have other images than those that the job has set, and which are not healthy.
import type { Workload } from '../../workloads.ts';
import type { Deviation } from '../executor.ts';
import { type Cluster, maxListed } from './cluster.ts';
import { isRolledOut } from './rollout.ts';
import { type ClusterWorkload, type Direction, pathOf } from './workload.ts';

export type CheckResult = {
  readonly deviations: readonly Deviation[];
  /** These have the images, but their controllers have not observed a change, or pods are missing. */
  readonly unhealthy: readonly Workload[];
};

export async function checkWorkloads(
  cluster: Cluster,
  workloads: readonly Workload[],
  which: Direction,
): Promise<CheckResult> {
  const { workloads: listed, isComplete } = await cluster.listWorkloads();
  if (!isComplete) throw new Error(`the namespace has more than ${maxListed} workloads of a kind.`);
  const byPath = new Map(listed.map((found) => [pathOf(found), found]));
  return {
    deviations: workloads.flatMap(
      (workload) => findDeviation(workload, byPath.get(workload.name), which) ?? [],
    ),
    unhealthy: workloads.filter(({ name }) => {
      const found = byPath.get(name);
      return found && !isRolledOut(found);
    }),
  };
}

function findDeviation(
  workload: Workload,
  found: ClusterWorkload | undefined,
  which: Direction,
): Deviation | undefined {
  if (!found) return { workload, problem: `${workload.name} no longer exists.` };
  const path = pathOf(found);
  const imageOf = (container: string) => found.containers.find(({ name }) => name === container)?.image;
  const wrong = workload.parts.find((part) => imageOf(part.container) !== part[which]);
  if (!wrong) return undefined;
  const { container, [which]: wanted } = wrong;
  const current = imageOf(container);
  const problem =
    current === undefined
      ? `${path} no longer has the container ${container}.`
      : `${path} has the image ${current} in its container ${container} instead of ${wanted ?? 'none'}.`;
  return { workload: startFrom(workload, imageOf, which), problem };
}

/** The administrator has read the present images when the job is resumed, so the job may replace them, whatever they are. */
function startFrom(
  workload: Workload,
  imageOf: (container: string) => string | undefined,
  which: Direction,
): Workload {
  const other = which === 'image' ? 'formerImage' : 'image';
  const parts = workload.parts.map((part) => ({ ...part, [other]: imageOf(part.container) ?? part[other] }));
  return { ...workload, parts };
}
