// The Kubernetes executor for tests: polls often, and has short timeouts.
import { onTestFinished } from 'vitest';
import { type Runtime, realRuntime } from '../../src/lib/runtime.ts';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import {
  type KubernetesOptions,
  connectCluster,
  KubernetesExecutor,
} from '../../src/upgrades/executors/kubernetes/kubernetes-executor.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import type { Cluster } from './cluster.ts';

export function createTestExecutor(
  { kubeconfig, isReal }: Pick<Cluster, 'kubeconfig' | 'isReal'>,
  { runtime = isReal ? realRuntime : createFastRuntime(1), ...options }: Partial<KubernetesOptions> = {},
): Executor {
  return new KubernetesExecutor({
    cluster: connectCluster({ runtime, kubeconfig, namespace: undefined }),
    runtime,
    hasEnded: () => Promise.resolve(false),
    findJobEnd: () => Promise.resolve({ state: 'succeeded', from: '' }),
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
    imageTimeoutMs: isReal ? 300 : 50,
    ...options,
  });
}

/**
 * With a factor of 100, the 30 seconds for which a Lease is valid take less than half a second. A rollout has 20 seconds
 * with every factor, and a look at it 10 seconds. A real API server may need half a second for an answer.
 */
export const fast = (factor = process.env.STEWARD_TEST_KUBECONFIG === undefined ? 100 : 10) => ({
  runtime: createFastRuntime(factor),
  pollIntervalMs: 10 * factor,
  imageTimeoutMs: 50 * factor,
  rolloutTimeoutMs: 20_000 * factor,
});

const tickMs = 1;

/**
 * The most time that passes in one turn of the event loop with a small factor: longer stalls of the machine do not
 * count.
 */
const maxStepMs = 25;

/**
 * A runtime whose time passes faster by this factor, and only while the event loop of this process turns. The API
 * server of the tests runs in the same process, so that a busy machine delays it and the executor alike, and no
 * request seems slow.
 */
function createFastRuntime(factor: number): Pick<Runtime, 'now' | 'elapsed' | 'sleep'> {
  const runtime = createFakeRuntime(Date.now());
  let isFinished = false;
  onTestFinished(() => {
    isFinished = true;
  });
  const maxTickMs = Math.max(tickMs, maxStepMs / factor);
  const run = async () => {
    for (let before = Date.now(); !isFinished;) {
      await realRuntime.sleep(tickMs);
      const at = Date.now();
      await runtime.advance(Math.min(Math.max(tickMs, at - before), maxTickMs) * factor);
      before = at;
    }
  };
  void run();
  return runtime;
}
