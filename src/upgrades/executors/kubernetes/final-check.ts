// The final check of a workload: whether it has the images that the job has set, and is healthy.
import type { Workload } from '../../workloads.ts';
import type { Deviation } from '../executor.ts';
import { formatCounts, isRolledOut } from './rollout.ts';
import { type ClusterWorkload, type Direction, pathOf } from './workload.ts';

export function findDeviation(
  workload: Workload,
  found: ClusterWorkload | undefined,
  which: Direction,
): Deviation | undefined {
  if (!found) return { workload, hasImages: false, problem: `${workload.name} no longer exists.` };
  const path = pathOf(found);
  const imageOf = (container: string) => found.containers.find(({ name }) => name === container)?.image;
  const wrong = workload.parts.find((part) => imageOf(part.container) !== part[which]);
  if (wrong) {
    const { container, [which]: wanted } = wrong;
    const current = imageOf(container);
    const problem =
      current === undefined
        ? `${path} no longer has the container ${container}.`
        : `${path} has the image ${current} in its container ${container} instead of ${wanted ?? 'none'}.`;
    return { workload: startFrom(workload, imageOf, which), hasImages: false, problem };
  }
  if (isRolledOut(found)) return undefined;
  const unobserved = found.isObserved ? [] : ['its controller has not observed its newest change'];
  const causes = [...unobserved, formatCounts(found), ...found.failures].join('; ');
  return { workload, hasImages: true, problem: `${path} is not healthy: ${causes}.` };
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
