// The final check: which workloads have other images than those that the job has set, and which are not healthy.
import type { Workload } from '../../planning/workloads.ts';
import type { StepContext } from '../executor.ts';
import { type Cluster, maxListed } from './cluster.ts';
import { isPatchedBy } from './patch.ts';
import { isRolledOut } from './rollout.ts';
import { type ClusterWorkload, type Direction, pathOf } from './workload.ts';

const maxDeviations = 20;

type Deviation = {
  readonly problem: string;
  /** The images that the workload has now take the place of those that it should not have. */
  readonly workload: Workload;
};

type CheckedWorkloads = {
  readonly deviations: readonly Deviation[];
  /** This step has given them their images, in this process or in one that it has replaced. */
  readonly patched: readonly Workload[];
  /** Pods are missing, or the controller has not observed a change. */
  readonly unhealthy: readonly Workload[];
};

export async function checkWorkloads(
  cluster: Cluster,
  workloads: readonly Workload[],
  which: Direction,
  context: StepContext,
): Promise<CheckedWorkloads> {
  const { workloads: listed, isComplete } = await cluster.listWorkloads();
  if (!isComplete) throw new Error(`the namespace has more than ${maxListed} workloads of a kind.`);
  const byPath = new Map(listed.map((found) => [pathOf(found), found]));
  const select = (isSelected: (found: ClusterWorkload) => boolean) =>
    workloads.filter(({ name }) => {
      const found = byPath.get(name);
      return found && isSelected(found);
    });
  const deviations = workloads.flatMap(
    (workload) => findDeviation(workload, byPath.get(workload.name), which) ?? [],
  );
  const deviating = new Set(deviations.map(({ workload }) => workload.name));
  return {
    deviations,
    patched: select((found) => isPatchedBy(found, which, context) && !deviating.has(pathOf(found))),
    unhealthy: select((found) => !isRolledOut(found)),
  };
}

export function deviationError(deviations: readonly Deviation[]): Error {
  const rest = deviations.length - maxDeviations;
  const texts = deviations.slice(0, maxDeviations).map(({ problem }) => problem);
  return new Error([...texts, ...(rest > 0 ? [`There are ${rest} more.`] : [])].join(' '));
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
