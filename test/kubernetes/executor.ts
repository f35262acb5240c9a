// The Kubernetes executor for tests: polls often, and has short timeouts.
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
    hasEnded: () => Promise.resolve(false),
    findJobEnd: () => Promise.resolve('succeeded'),
    hasDatabase: true,
    parallelism: 1,
    imageRegistry: undefined,
    optionalContainers: [],
    imageChecker: undefined,
    stepTemplates: true,
    rolloutTimeoutMs: 20_000,
    stepTimeoutMs: 60_000,
    patienceMs: 30_000,
    pollIntervalMs: isReal ? 100 : 10,
    imageTimeoutMs: 300,
    ...options,
  });
}

/** A runtime whose time passes faster by this factor. */
export function createFastRuntime(factor: number): Pick<Runtime, 'now' | 'sleep'> {
  const start = Date.now();
  return {
    now: () => start + (Date.now() - start) * factor,
    sleep: (ms, signal) => realRuntime.sleep(ms / factor, signal),
  };
}
