// The executor without a deployment: every step takes a while, and some workloads fail on request.
import type { Runtime } from '../../runtime.ts';
import { simulatedInventory } from '../workloads.ts';
import type { Executor } from './executor.ts';

export type SimulatedOptions = {
  runtime: Pick<Runtime, 'sleep'>;
  stepMs: number;
  /** Container names in capitals, and how often their update fails; Infinity for always. */
  failures: ReadonlyMap<string, number>;
};

export function createSimulatedExecutor({ runtime, stepMs, failures }: SimulatedOptions): Executor {
  const left = new Map(failures);

  async function pause(signal: AbortSignal): Promise<void> {
    if (stepMs > 0) await runtime.sleep(stepMs, signal);
  }

  return {
    inventory: () => Promise.resolve(simulatedInventory),
    perform: (_step, { signal }) => pause(signal),
    verify: (_workload, { signal }) => pause(signal),
    rollback: (_workload, { signal }) => pause(signal),
    release: () => Promise.resolve(),
    async apply({ name }, { signal }) {
      await pause(signal);
      const failing = left.get(name.toUpperCase()) ?? 0;
      if (failing <= 0) return;
      left.set(name.toUpperCase(), failing - 1);
      throw new Error(`the update of ${name} fails by SIMULATED_FAILURES.`);
    },
  };
}
