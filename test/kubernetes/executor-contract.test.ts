// The contract of executors: one suite for the simulated one and the one for a cluster (a fake one, or that of
// STEWARD_TEST_KUBECONFIG).
import { afterEach, describe, expect, it } from 'vitest';
import { realRuntime } from '../../src/lib/runtime.ts';
import type { StepContext, Executor } from '../../src/upgrades/executors/executor.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import type { Workload } from '../../src/upgrades/executors/workloads.ts';
import { movesBetween } from '../../src/upgrades/versions/moves.ts';
import { laterVersions, freshRelease } from '../kit/sample-manifest.ts';
import type { Deployment } from '../../src/upgrades/versions/deployment.ts';
import type { Container, Version } from '../../src/upgrades/versions/manifest.ts';
import { openCluster } from './cluster.ts';
import { createTestExecutor } from './executor.ts';
import { contextOf } from './single-deployment.ts';
import { createTemplate } from './upgrade-kit.ts';

/** A deployment, and executors that share nothing, like those of different processes. */
type Bench = {
  start: () => Executor;
  /** The images that run, by container; undefined for a simulation. */
  images?: () => Promise<Record<string, string>>;
  close: () => Promise<void>;
};

const container = (name: string, tag: string): Container => ({
  name,
  image: `${name.toLowerCase().replaceAll('_', '-')}:${tag}`,
  checksum: 'N/A',
});
const version = (of: Version | undefined, tag: string, ...names: string[]): Version => ({
  ...(of ?? freshRelease),
  containers: names.map((name) => container(name, tag)),
  newContainers: [],
});
const [first, second] = laterVersions;
const installed = version(freshRelease, '1', 'MAP_SERVER', 'STORE_QUEUE', 'LOG_AGENT');
const patch = version(first, '2', 'MAP_SERVER', 'STORE_QUEUE', 'LOG_AGENT');
const later = version(second, '3', 'MAP_SERVER');
const missing = version(first, '2-missing', 'STORE_QUEUE');
const present: Deployment = { release: installed, patches: [] };

function simulate(): Promise<Bench> {
  const create = (failures: Map<string, number>) =>
    createSimulatedExecutor({ runtime: realRuntime, stepMs: 1, failures });
  const start = (): Executor => {
    const good = create(new Map());
    const bad = create(new Map([['STORE_QUEUE', Infinity]]));
    // In a cluster the image decides what fails; here the configuration does.
    const isBad = ({ parts }: Workload) => parts.some(({ image }) => image.includes('missing'));
    return { ...good, apply: (workload, context) => (isBad(workload) ? bad : good).apply(workload, context) };
  };
  return Promise.resolve({ start, close: () => Promise.resolve() });
}

async function openNamespace(): Promise<Bench> {
  const cluster = await openCluster();
  const all = [
    { kind: 'Deployment', name: 'map-server', replicas: 2 },
    { kind: 'StatefulSet', name: 'store-queue', replicas: 2 },
    { kind: 'DaemonSet', name: 'log-agent' },
  ] as const;
  for (const workload of all)
    await cluster.createWorkload({
      ...workload,
      containers: [{ name: workload.name, image: `${workload.name}:1` }],
    });
  await Promise.all(all.map(({ kind, name }) => cluster.settled(kind, name)));
  await createTemplate(cluster, { step: 'logging' });
  return {
    start: () => createTestExecutor(cluster),
    async images() {
      const pods = await Promise.all(all.map(({ kind, name }) => cluster.pods(kind, name)));
      const containers = pods.flat().flatMap(({ spec }) => spec.containers);
      return Object.fromEntries(containers.map(({ name, image }) => [name, image]));
    },
    close: () => cluster.close(),
  };
}

const context = (signal = new AbortController().signal, jobId = 'job'): StepContext => ({
  ...contextOf(jobId),
  signal,
});

describe.each([
  { name: 'the simulated executor', open: simulate },
  { name: 'the executor for a cluster', open: openNamespace },
])('$name', ({ open }) => {
  let bench: Bench | undefined;
  afterEach(async () => {
    await bench?.close();
    bench = undefined;
  });

  async function begin(...versions: Version[]) {
    bench = await open();
    const executor = bench.start();
    const { workloads, problems, notices } = (await executor.inventory()).planMoves(versions, present);
    expect({ problems, notices }).toEqual({ problems: [], notices: [] });
    const shows = async (expected: Record<string, string>) => {
      if (bench?.images) expect(await bench.images()).toMatchObject(expected);
    };
    return { bench, executor, workloads, shows };
  }

  async function move(executor: Executor, workloads: readonly Workload[]): Promise<void> {
    for (const workload of workloads) {
      await executor.apply(workload, context());
      await executor.verify(workload, context());
    }
  }

  it('plans the containers of versions in order, each version from the images of the one before', async () => {
    const { workloads } = await begin(patch, later);
    const components = workloads.map((list) => list.map(({ component }) => component));
    expect(components).toEqual([['MAP', 'STORE', 'LOG'], ['MAP']]);
    const parts = (index: number) => workloads[index]?.flatMap((workload) => workload.parts) ?? [];
    const images = parts(0).map(({ image, formerImage }) => [formerImage, image]);
    expect(images).toEqual([
      ['map-server:1', 'map-server:2'],
      ['store-queue:1', 'store-queue:2'],
      ['log-agent:1', 'log-agent:2'],
    ]);
    expect(parts(1)).toMatchObject([{ formerImage: 'map-server:2', image: 'map-server:3' }]);
  });

  it('updates workloads, and rolls them back', async () => {
    const { executor, workloads, shows } = await begin(patch);
    await executor.perform('launch', context());
    await move(executor, workloads.flat());
    await shows({ 'map-server': 'map-server:2', 'store-queue': 'store-queue:2', 'log-agent': 'log-agent:2' });
    for (const workload of workloads.flat()) await executor.beginRollback(workload, context());
    for (const workload of workloads.flat().reverse())
      expect(await executor.rollback(workload, context())).toEqual({ isPatched: true });
    await shows({ 'map-server': 'map-server:1', 'store-queue': 'store-queue:1', 'log-agent': 'log-agent:1' });
    await executor.release('job');
  });

  it('ends the same way if another process repeats a step', async () => {
    const { bench: on, executor, workloads, shows } = await begin(patch);
    const [workload] = workloads.flat() as [Workload];
    await executor.apply(workload, context());
    const successor = on.start();
    await successor.apply(workload, context());
    await successor.verify(workload, context());
    await on.start().verify(workload, context());
    await shows({ 'map-server': 'map-server:2' });
    await successor.rollback(workload, context());
    await on.start().rollback(workload, context());
    await shows({ 'map-server': 'map-server:1' });
  });

  it('rolls back several versions at once', async () => {
    const { bench: on, executor, workloads, shows } = await begin(patch, later);
    await move(executor, workloads.flat());
    await shows({ 'map-server': 'map-server:3', 'store-queue': 'store-queue:2' });
    const now = { release: installed, patches: [patch, later] };
    const moves = movesBetween(now, present);
    const { workloads: back } = (await on.start().inventory()).planReverts(moves, '10.9.1.1234', now);
    for (const workload of back.flat()) await executor.rollback(workload, context());
    await shows({ 'map-server': 'map-server:1', 'store-queue': 'store-queue:1', 'log-agent': 'log-agent:1' });
  });

  it('rejects for a workload whose rollout fails, and can roll it back', async () => {
    const { executor, workloads, shows } = await begin(missing);
    const [workload] = workloads.flat() as [Workload];
    await expect(move(executor, [workload])).rejects.toThrow(/store.queue/i);
    await executor.rollback(workload, context());
    await shows({ 'store-queue': 'store-queue:1' });
  });

  it('stops when its signal is aborted', async () => {
    const { executor, workloads } = await begin(missing);
    const [workload] = workloads.flat() as [Workload];
    const over = new AbortController();
    const steps = [
      executor.perform('launch', context(over.signal)),
      executor.verify(workload, context(over.signal)),
      executor.rollback(workload, context(over.signal)),
    ];
    over.abort();
    const ends = await Promise.allSettled(steps);
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  });

  it('runs a step by its template once, and ends it', async () => {
    const { bench: on, executor } = await begin(patch);
    const { templates } = (await executor.inventory()).performers;
    const run = {
      step: 'logging',
      template: templates.get('logging') ?? null,
      jobName: 'steward-job-1-1',
      from: '10.9.1.1234',
      to: '10.9.1.1250',
    } as const;
    await executor.startTemplate(run, context());
    await on.start().startTemplate(run, context());
    expect(await executor.runTemplate(run, context())).toEqual({});
    expect(await on.start().runTemplate(run, context())).toEqual({});
    await executor.stopTemplate(run, context());
    await on.start().stopTemplate(run, context());
  });

  it('finds no deviation of workloads that it has moved', async () => {
    const { executor, workloads } = await begin(patch);
    await move(executor, workloads.flat());
    await executor.check(workloads.flat(), 'image', context());
  });

  it('releases a job whether it holds something for it or not, and accepts the next', async () => {
    const { executor, workloads } = await begin(patch);
    const [workload] = workloads.flat() as [Workload];
    await executor.release('job');
    await executor.perform('launch', context());
    await executor.release('job');
    await executor.release('job');
    await executor.apply(workload, context(undefined, 'the next'));
  });
});
