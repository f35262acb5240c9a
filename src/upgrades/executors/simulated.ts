// An executor without a deployment: every step takes a configured time, and the configured containers and steps fail.
import type { Runtime } from '../../lib/runtime.ts';
import { type Performers, simulatedPerformers } from './steps.ts';
import { type Workload, simulatedInventory } from './workloads.ts';
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

  async function simulate(step: string, { signal }: StepContext): Promise<void> {
    if (stepMs > 0) await runtime.sleep(stepMs, signal);
    failIfConfigured(`@${step}`, `the step ${step}`);
  }

  return {
    inventory: () => Promise.resolve({ ...simulatedInventory, performers }),
    checkImages: () => Promise.resolve(undefined),
    perform: simulate,
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
