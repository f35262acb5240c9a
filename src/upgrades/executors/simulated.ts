// An executor without a deployment: every step takes a configured time, and the updates of configured containers fail.
import type { Runtime } from '../../runtime.ts';
import { simulatedInventory } from '../workloads.ts';
import type { Executor } from './executor.ts';

export type SimulatedOptions = {
  runtime: Pick<Runtime, 'sleep'>;
  stepMs: number;
  /** By container name in capitals. Infinity means always. */
  failures: ReadonlyMap<string, number>;
};

export function createSimulatedExecutor({ runtime, stepMs, failures }: SimulatedOptions): Executor {
  const remainingFailures = new Map(failures);

  async function pause(signal: AbortSignal): Promise<void> {
    if (stepMs > 0) await runtime.sleep(stepMs, signal);
  }

  return {
    inventory: () => Promise.resolve(simulatedInventory),
    checkImages: () => Promise.resolve(undefined),
    perform: (_step, { signal }) => pause(signal),
    verify: (_workload, { signal }) => pause(signal),
    rollback: (_workload, { signal }) => pause(signal),
    release: () => Promise.resolve(),
    async apply({ name }, { signal }) {
      await pause(signal);
      const remaining = remainingFailures.get(name.toUpperCase()) ?? 0;
      if (remaining <= 0) return;
      remainingFailures.set(name.toUpperCase(), remaining - 1);
      throw new Error(`the update of ${name} fails by SIMULATED_FAILURES.`);
    },
  };
}
