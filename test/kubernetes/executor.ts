// The executor for a cluster of a test, which looks often and does not wait for long.
import {
  type KubernetesOptions,
  connectCluster,
  createKubernetesExecutor,
} from '../../src/upgrades/executors/kubernetes/executor.ts';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { type World, realWorld } from '../../src/runtime.ts';
import type { Cluster } from './cluster.ts';

export function createTestExecutor(
  { kubeconfig, isReal }: Pick<Cluster, 'kubeconfig' | 'isReal'>,
  { world = realWorld, ...options }: Partial<KubernetesOptions> = {},
): Executor {
  return createKubernetesExecutor({
    cluster: connectCluster({ world, kubeconfig, namespace: undefined }),
    world,
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
export function createHastyWorld(factor: number): Pick<World, 'now' | 'sleep'> {
  const start = Date.now();
  return {
    now: () => start + (Date.now() - start) * factor,
    sleep: (ms, signal) => realWorld.sleep(ms / factor, signal),
  };
}
