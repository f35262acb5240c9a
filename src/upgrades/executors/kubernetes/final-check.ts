// The final check: which workloads have other images than those that the job has set, and which are not healthy.
import type { Workload } from '../../planning/workloads.ts';
import type { CheckResult, Deviation, StepContext } from '../executor.ts';
import { type Cluster, maxListed } from './cluster.ts';
import { isPatchedBy } from './patch.ts';
import { isRolledOut } from './rollout.ts';
import { type ClusterWorkload, type Direction, pathOf } from './workload.ts';

/** Those in `unhealthy` have pods that are missing, or a change that their controllers have not observed. */
export async function checkWorkloads(
  cluster: Cluster,
  workloads: readonly Workload[],
  which: Direction,
  context: StepContext,
): Promise<CheckResult & { readonly unhealthy: readonly Workload[] }> {
  const { workloads: listed, isComplete } = await cluster.listWorkloads();
  if (!isComplete) throw new Error(`the namespace has more than ${maxListed} workloads of a kind.`);
  const byPath = new Map(listed.map((found) => [pathOf(found), found]));
  const select = (isSelected: (found: ClusterWorkload) => boolean) =>
    workloads.filter(({ name }) => {
      const found = byPath.get(name);
      return found && isSelected(found);
    });
  return {
    deviations: workloads.flatMap(
      (workload) => findDeviation(workload, byPath.get(workload.name), which) ?? [],
    ),
    repaired: select((found) => isPatchedBy(found, which, context)).map(({ name }) => name),
    unhealthy: select((found) => !isRolledOut(found)),
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

/**
 * The administrator has read the present images when the job is resumed, so the job may replace them, whatever they
 * are.
 */
function startFrom(
  workload: Workload,
  imageOf: (container: string) => string | undefined,
  which: Direction,
): Workload {
  const other = which === 'image' ? 'formerImage' : 'image';
  const parts = workload.parts.map((part) => ({ ...part, [other]: imageOf(part.container) ?? part[other] }));
  return { ...workload, parts };
}
