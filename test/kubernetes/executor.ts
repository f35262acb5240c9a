// The executor for a cluster of a test, which looks often and does not wait for long.
import {
  type KubernetesOptions,
  connectCluster,
  createKubernetesExecutor,
} from '../../src/upgrades/executors/kubernetes/executor.ts';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { type Runtime, realRuntime } from '../../src/runtime.ts';
import type { Cluster } from './cluster.ts';

export function createTestExecutor(
  { kubeconfig, isReal }: Pick<Cluster, 'kubeconfig' | 'isReal'>,
  { runtime = realRuntime, ...options }: Partial<KubernetesOptions> = {},
): Executor {
  return createKubernetesExecutor({
    cluster: connectCluster({ runtime, kubeconfig, namespace: undefined }),
    runtime,
    hasEnded: () => false,
    parallelism: 1,
    imageRegistry: undefined,
    optionalContainers: [],
    rolloutMs: 20_000,
    pollMs: isReal ? 100 : 10,
    imageMs: 300,
    ...options,
  });
}

/** Where time flies so many times as fast. */
export function createHastyWorld(factor: number): Pick<Runtime, 'now' | 'sleep'> {
  const start = Date.now();
  return {
    now: () => start + (Date.now() - start) * factor,
    sleep: (ms, signal) => realRuntime.sleep(ms / factor, signal),
  };
}
