// A namespace with one Deployment, and executors for it, for tests of outages and of the lock.
import { onTestFinished } from 'vitest';
import type { StepContext } from '../../src/upgrades/executors/executor.ts';
import type { KubernetesOptions } from '../../src/upgrades/executors/kubernetes/kubernetes-executor.ts';
import { openCluster } from './cluster.ts';
import { createTestExecutor } from './executor.ts';

/** The cluster is closed after the test. */
export async function openDeployment() {
  const on = await openCluster();
  onTestFinished(() => on.close());
  await on.createWorkload({
    kind: 'Deployment',
    name: 'a',
    replicas: 1,
    containers: [{ name: 'a', image: 'a:1' }],
  });
  await on.settled('Deployment', 'a');
  return {
    on,
    start: (options: Partial<KubernetesOptions> = {}) => createTestExecutor(on, options),
    patches: () => on.faults.requests.filter((one) => one.method === 'PATCH'),
    image: async () => (await on.read('Deployment', 'a')).spec.template.spec.containers[0]?.image,
  };
}

const startedAt = Date.now();

export const contextOf = (jobId = 'job', fence = 1): StepContext => ({
  jobId,
  fence,
  from: '10.9.1.1234',
  to: '10.9.1.1300',
  runStartedAt: startedAt,
  change: 'change',
  signal: new AbortController().signal,
  assertOwnership: () => Promise.resolve(),
  report: () => undefined,
});

export const workload = {
  name: 'deployment/a',
  component: 'A',
  parts: [{ container: 'a', image: 'a:2', formerImage: 'a:1' }],
};
