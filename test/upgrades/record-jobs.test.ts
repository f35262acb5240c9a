// Records the jobs in test/upgrades/recorded again, if RECORD_JOBS is set: a simulated job on the fake clock whose
// steps take realistic, uneven times, and a job on the fake cluster with workloads of different sizes.
import { expect, it } from 'vitest';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { isTemplateStepId, simulatedPerformers } from '../../src/upgrades/planning/step-ids.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { startServer } from '../kit/server.ts';
import { openCluster } from '../kubernetes/cluster.ts';
import { createTestExecutor } from '../kubernetes/executor.ts';
import { createTemplate } from '../kubernetes/upgrade-kit.ts';
import { eleven, license } from './jobs-kit.ts';
import { record } from './recording.ts';

/** Numbers between 0 and 1, the same in each run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 16_807) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** Most rollouts take half a minute, one of ten more than a minute; database steps take minutes. */
function createUnevenExecutor(sleep: (ms: number, signal: AbortSignal) => Promise<void>): Executor {
  const random = createRandom(7);
  const around = (ms: number) => Math.round(ms * Math.exp((random() + random() + random() - 1.5) * 0.9));
  const simulated = createSimulatedExecutor({
    runtime: createFakeRuntime(),
    stepMs: 0,
    failures: new Map(),
    performers: simulatedPerformers(),
  });
  return {
    ...simulated,
    perform: (_step, { signal }) => sleep(around(40), signal),
    async runTemplate({ step }, { signal }) {
      const base = step === 'database-engine' ? 420_000 : isTemplateStepId(step) ? 45_000 : 1000;
      await sleep(around(base), signal);
      return {};
    },
    async apply(_workload, { signal }) {
      await sleep(around(300), signal);
      return { isPatched: true };
    },
    verify: (_workload, { signal }) => sleep(around(random() < 0.1 ? 90_000 : 25_000), signal),
    check: (_workloads, _which, { signal }) => sleep(around(400), signal),
  };
}

it('records a simulated release', { timeout: 60_000 }, async () => {
  let sleep: (ms: number, signal: AbortSignal) => Promise<void> = () => Promise.resolve();
  const server = await startServer({ executor: createUnevenExecutor((ms, signal) => sleep(ms, signal)) });
  sleep = (ms, signal) => server.runtime.sleep(ms, signal);
  const recorder = record(server.store, server.runtime.now);
  const token = server.token('administrator');
  const started = await server.postParts(
    '/admin/system/upgrades/upgrade',
    { versionManifest: `{"id":"${eleven}"}`, upgradeSettings: '{}', licenseFile: license, f: 'json' },
    token,
  );
  expect(started.json()).toMatchObject({ status: { state: 'in_progress' } });
  await server.runtime.advance(3 * 3_600_000);
  const { status } = (await server.get(`/admin/system/upgrades?token=${token}`)).json<{
    status: { state: string };
  }>();
  expect(status.state).toBe('success');
  recorder.save('simulated-release');
  await server.close();
});

it('records a release on the fake cluster', { timeout: 120_000 }, async () => {
  const cluster = await openCluster();
  const names = Array.from({ length: 24 }, (_, index) => `part-${index + 1}`);
  for (const [index, name] of names.entries())
    await cluster.createWorkload({
      kind: index % 5 === 4 ? 'StatefulSet' : 'Deployment',
      name,
      replicas: 1 + (index % 4),
      containers: [{ name, image: `${name}:1` }],
    });
  for (const [index, name] of names.entries())
    await cluster.settled(index % 5 === 4 ? 'StatefulSet' : 'Deployment', name);
  for (const step of ['before', 'database-validate', 'database-engine'])
    await createTemplate(cluster, { step });
  const server = await startServer({ executor: createTestExecutor(cluster) });
  const recorder = record(server.store, () => performance.now());
  const token = server.token('administrator');
  const release = {
    id: 'rel',
    type: 'release',
    version: '10.9.2',
    build: '2000',
    previousReleaseBuild: '1234',
    containers: names.map((name) => ({ name, image: `${name}:2` })),
  };
  const content = JSON.stringify([release]);
  await server.postParts(
    '/admin/system/upgrades/importManifest',
    { manifestFile: { name: 'm.json', content } },
    token,
  );
  await server.post('/admin/system/upgrades/upgrade', {
    token,
    f: 'json',
    versionManifest: '{"id":"rel"}',
    upgradeSettings: '{}',
  });
  const state = async () =>
    (await server.get(`/admin/system/upgrades?token=${token}`)).json<{ status: { state: string } }>().status
      .state;
  await expect.poll(state, { interval: 50, timeout: 100_000 }).toBe('success');
  recorder.save('cluster-release');
  await server.close();
  await cluster.close();
});
