// The final check of a job: all moved workloads still have their images, are healthy, and do not crash.
import type { Runtime } from '../../../lib/runtime.ts';
import type { RepairedWorkload, StepContext } from '../executor.ts';
import type { Direction, Workload } from '../workloads.ts';
import { type Cluster, maxListed } from './cluster.ts';
import type { UpgradeLock } from './lock.ts';
import { isPatchedBy } from './patch.ts';
import { countRestarts, findCrash, isRolledOut } from './rollout.ts';
import type { WorkloadMover } from './workload-mover.ts';
import { type ClusterWorkload, pathOf } from './workload.ts';

/** For programs that have crashed before this run: whether they still do. */
const crashLoopMs = 10_000;

type Check = {
  readonly workloads: readonly Workload[];
  readonly which: Direction;
  readonly context: StepContext;
  /** With it, workloads that differ are repaired first. */
  readonly repaired: RepairedWorkload[] | undefined;
};

export class FinalCheck {
  readonly #runtime: Pick<Runtime, 'sleep'>;
  readonly #mover: WorkloadMover;
  readonly #lock: UpgradeLock;

  constructor({ runtime }: { runtime: Pick<Runtime, 'sleep'> }, mover: WorkloadMover, lock: UpgradeLock) {
    this.#runtime = runtime;
    this.#mover = mover;
    this.#lock = lock;
  }

  async run(cluster: Cluster, { workloads, which, context, repaired }: Check): Promise<void> {
    const moveOf = (workload: Workload) => ({ cluster, workload, direction: which, context });
    const waitedFor = new Set<Workload>();
    for (let looks = 1; ; looks += 1) {
      await this.#lock.renew(cluster, context);
      const found = await checkWorkloads(cluster, workloads, which, context);
      if (looks === 1 && repaired) {
        repaired.push(...found.patched.map((workload) => ({ workload, isPatched: true })));
        for (const { workload } of found.deviations) {
          const isPatched = await this.#mover.moveToEnd(moveOf(workload));
          repaired.push({ workload, isPatched });
        }
        if (found.deviations.length > 0) continue;
      }
      if (found.deviations.length > 0) throw deviationError(found.deviations);
      const pods = await cluster.listPods();
      const present = countRestarts(pods);
      let mayCrashAgain = false;
      for (const workload of workloads) {
        const known = this.#mover.restartsAtCompletion(workload, present, context);
        const crash = findCrash(workload, pods, which, known ?? present);
        if (crash !== undefined) throw new Error(crash);
        mayCrashAgain ||= !known && findCrash(workload, pods, which, new Map()) !== undefined;
      }
      if (mayCrashAgain) {
        await this.#runtime.sleep(crashLoopMs, context.signal);
        continue;
      }
      // Each is waited for once: in a cluster that always changes, some workload is always unhealthy.
      const next = found.unhealthy.filter((workload) => !waitedFor.has(workload));
      if (next.length === 0) return;
      for (const workload of next) {
        await this.#mover.waitForHealth(moveOf(workload));
        waitedFor.add(workload);
      }
    }
  }
}

const maxDeviations = 20;

type Deviation = {
  readonly problem: string;
  /** The images that the workload has now take the place of those that it should not have. */
  readonly workload: Workload;
};

/** The final check: which workloads have other images than those that the job has set, and which are not healthy. */
async function checkWorkloads(
  cluster: Cluster,
  workloads: readonly Workload[],
  which: Direction,
  context: StepContext,
) {
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
    /** This step has given them their images, in this process or in one that it has replaced. */
    patched: select((found) => isPatchedBy(found, which, context) && !deviating.has(pathOf(found))),
    /** Pods are missing, or the controller has not observed a change. */
    unhealthy: select((found) => !isRolledOut(found)),
  };
}

function deviationError(deviations: readonly Deviation[]): Error {
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
