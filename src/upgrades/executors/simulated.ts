// An executor without a deployment: every step takes a configured time, and the configured containers and steps fail.
import { formatDuration } from '../../lib/format.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { installedContainers } from '../versions/deployment.ts';
import { listDeployments } from '../versions/installed-version.ts';
import { type Performers, simulatedPerformers } from './steps.ts';
import { type Inventory, type Workload, componentOf } from './workloads.ts';
import type { Executor, StepContext } from './executor.ts';

type SimulatedOptions = {
  runtime: Pick<Runtime, 'sleep'>;
  stepMs: number;
  /** By container name in capitals, or by `@` and the id of a step. Infinity means always. The executor counts them down. */
  failures: Map<string, number>;
  performers?: Performers;
};

export function createSimulatedExecutor({
  runtime,
  stepMs,
  failures,
  performers = simulatedPerformers(),
}: SimulatedOptions): Executor {
  function failIfConfigured(key: string, what: string): void {
    const remaining = failures.get(key) ?? 0;
    if (remaining <= 0) return;
    failures.set(key, remaining - 1);
    throw new Error(`${what} fails by SIMULATED_FAILURES.`);
  }

  async function simulate(step: string, { signal, report }: StepContext): Promise<void> {
    // Nobody reads about a shorter one in time.
    if (stepMs >= 1000)
      report({ object: 'simulation', reason: `the simulated step pauses for ${formatDuration(stepMs)}` });
    if (stepMs > 0) await runtime.sleep(stepMs, signal);
    failIfConfigured(`@${step}`, `the step ${step}`);
  }

  return {
    inventory: () => Promise.resolve({ ...simulatedInventory, performers }),
    checkImages: () => Promise.resolve(undefined),
    perform: simulate,
    startTemplate: () => Promise.resolve(),
    async runTemplate({ step }, context) {
      await simulate(step, context);
      return {};
    },
    stopTemplate: () => Promise.resolve(),
    async apply(workload, context) {
      await simulate('update', context);
      const { name } = workload;
      failIfConfigured(name.toUpperCase(), `the update of ${name}`);
      return { isPatched: changesImages(workload) };
    },
    verify: (_workload, context) => simulate('verify', context),
    beginRollback: () => Promise.resolve(),
    async rollback(workload, context) {
      await simulate('revert', context);
      return { isPatched: changesImages(workload) };
    },
    check: (_workloads, _which, context) => simulate('final-check', context),
    release: () => Promise.resolve(),
  };
}

function changesImages({ parts }: Workload): boolean {
  return parts.some(({ image, formerImage }) => image !== formerImage);
}

export const simulatedInventory: Inventory = {
  parallelism: 1,
  performers: simulatedPerformers(),
  templates: [],
  planMoves(versions, present) {
    const images = new Map([...installedContainers(present)].map(([name, { image }]) => [name, image]));
    const workloads = versions.map(({ containers, newContainers }) => {
      const all = [...containers, ...newContainers];
      const found = all.map(({ name, image }) => createWorkload(name, image, images.get(name) ?? null));
      for (const { name, image } of all) images.set(name, image);
      return found;
    });
    return { workloads, problems: [], notices: [] };
  },
  planRepair: () => ({ workloads: [], problems: [], notices: [], drift: undefined, isKnown: true }),
  planReverts: (moves) => ({
    workloads: [moves.map(({ now, then }) => createWorkload(now.name, now.image, then?.image ?? null))],
    problems: [],
    notices: [],
  }),
  recognize(manifest) {
    const oldest = listDeployments(manifest).find(({ patches }) => patches.length === 0);
    return oldest
      ? { present: oldest, from: 'the oldest release of the manifest' }
      : { reason: 'The manifest names no release.' };
  },
};

function createWorkload(name: string, image: string, formerImage: string | null): Workload {
  return { name, component: componentOf(name), parts: [{ container: name, image, formerImage }] };
}
