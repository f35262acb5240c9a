// What a step waits for, in the progress of its job, and the durations of a slow or busy API server.
import { describe, expect, it } from 'vitest';
import { RolloutMonitor, describeUnready } from '../../src/upgrades/executors/kubernetes/rollout.ts';
import { UpgradeLock } from '../../src/upgrades/executors/kubernetes/lock.ts';
import { connectCluster } from '../../src/upgrades/executors/kubernetes/cluster.ts';
import { parsePod, parseWorkload } from '../../src/upgrades/executors/kubernetes/workload.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { createTestExecutor, fast } from './executor.ts';
import { contextOf, openDeployment, workload as moved } from './single-deployment.ts';
import { createTemplate, openSteward, openUpgrade, openWorkloads, patch, textsOf } from './upgrade-kit.ts';

describe('progress says what a step waits for', () => {
  it('a rollout, by its workload, with the pods that are not ready or remain', async () => {
    const stuck = { ...patch, containers: [{ name: 'MAP_SERVER', image: 'map-server:2-stuck' }] };
    const { server, start, ask, waitForCode } = await openSteward(await openWorkloads(), [stuck], {
      rolloutTimeoutMs: 600_000,
    });
    await start('upgrade', 'pat');
    await waitForCode(2038);
    const look = async () => {
      await server.runtime.advance(10_000);
      return (await ask('upgrades')).progress?.waitingFor;
    };
    await expect
      .poll(async () => (await look())?.reason)
      .toMatch(
        /^of 1 wanted pods .*; map-server-\S+ is not ready; map-server-\S+ of the former template still runs$/,
      );
    expect(await look()).toMatchObject({
      step: 'Verify module deployment/map-server',
      object: 'deployment/map-server',
      isLate: false,
    });
  });

  it('a Job whose pod waits, by its name in the cluster', async () => {
    const { cluster, start, end, waitForReason } = await openUpgrade([
      { step: 'before', image: 'task:1-stuck' },
    ]);
    await start('upgrade', 'pat');
    const waitingFor = await waitForReason(/^the Job steward-\S+-5-1 works$/);
    expect(waitingFor).toMatchObject({ isLate: false });
    expect(waitingFor?.object).toMatch(/^job\/steward-\S+-5-1$/);
    cluster.kubelet.heal('stuck');
    expect((await end()).state).toBe('success');
  });

  it('an API server that does not answer', async () => {
    const { cluster, start, end, waitForReason } = await openUpgrade([], {
      ...fast(),
      patienceMs: 100_000_000,
    });
    const available = cluster.faults.inject({
      method: 'PATCH',
      times: Infinity,
      act: { status: 503 },
    });
    await start('upgrade', 'pat');
    const waitingFor = await waitForReason(/503/);
    expect(waitingFor?.object).toBe('api server');
    available();
    expect((await end()).state).toBe('success');
  });
});

describe('a rollout on a slow API server', () => {
  const workload = { parts: [{ container: 'db', image: 'db:2', formerImage: 'db:1' }] };
  const set = parseWorkload('StatefulSet', {
    metadata: { name: 'db', generation: 2 },
    spec: { replicas: 2, template: { spec: { containers: [{ name: 'db', image: 'db:2' }] } } },
    status: {
      observedGeneration: 2,
      replicas: 2,
      updatedReplicas: 1,
      availableReplicas: 1,
      updateRevision: 'new',
    },
  });
  const monitorOf = (runStartedAt = 0, rolloutTimeoutMs = 600_000) =>
    new RolloutMonitor({ workload, direction: 'image', runStartedAt, rolloutTimeoutMs });

  it.each([9_500, 10_500, 30_000])('with a look every %s milliseconds fails at last', (ms) => {
    const monitor = monitorOf();
    let at = 0;
    while (monitor.check(set, [], at).state === 'running') {
      at += ms;
      expect(at).toBeLessThan(2_000_000);
    }
    expect(at).toBeGreaterThanOrEqual(600_000);
  });

  const podOf = (state: object, createdAt = 0) =>
    parsePod({
      metadata: {
        name: 'db-0',
        uid: 'u',
        creationTimestamp: new Date(createdAt),
        labels: { 'controller-revision-hash': 'old' },
      },
      spec: { containers: [{ name: 'db', image: 'db:1' }] },
      status: {
        phase: 'Pending',
        containerStatuses: [{ name: 'db', image: 'db:1', imageID: '', ready: false, restartCount: 0, state }],
      },
    });
  type Given = { createdAt?: number; runStartedAt?: number; rolloutTimeoutMs?: number };
  const blockedBy = (state: object, looksMs: number[], given: Given = {}) => {
    const { createdAt = 0, runStartedAt, rolloutTimeoutMs } = given;
    const monitor = monitorOf(runStartedAt, rolloutTimeoutMs);
    const results = looksMs.map((at) => monitor.check(set, [podOf(state, createdAt)], at));
    return results.flatMap((one) => (one.state === 'running' ? one.blockingPods.length : []));
  };
  const waiting = (reason: string) => ({ waiting: { reason } });

  it.each(['ContainerCreating', 'PodInitializing'])(
    'does not delete a former pod that starts: %s',
    (reason) => {
      expect(blockedBy(waiting(reason), [0, 10_000, 60_000], { runStartedAt: 90_000 })).toEqual([0, 0, 0]);
    },
  );

  it.each(['ImagePullBackOff', 'CrashLoopBackOff', 'CreateContainerConfigError', 'ErrImagePull'])(
    'deletes a former pod that really blocks: %s',
    (reason) => {
      expect(blockedBy(waiting(reason), [0])).toEqual([1]);
    },
  );

  it('deletes a former pod that runs and never becomes ready, if it is older than the run', () => {
    const looks = [0, 10_000, 20_000, 29_000, 31_000];
    expect(blockedBy({ running: {} }, looks, { runStartedAt: 90_000 })).toEqual([0, 0, 0, 0, 1]);
    expect(blockedBy({ running: {} }, looks, { createdAt: 95_000, runStartedAt: 90_000 })).toEqual([
      0, 0, 0, 0, 0,
    ]);
    // Otherwise a rollout with less time would fail before.
    const brief = { runStartedAt: 90_000, rolloutTimeoutMs: 12_000 };
    expect(blockedBy({ running: {} }, [0, 5_000, 6_000], brief)).toEqual([0, 0, 1]);
  });

  it('names the cause of a pod that is not ready', () => {
    const message = 'secret "database-password" not found';
    expect(describeUnready(podOf({ waiting: { reason: 'CreateContainerConfigError', message } }))).toBe(
      `db-0 is not ready (CreateContainerConfigError: ${message})`,
    );
    const killed = { reason: 'OOMKilled', exitCode: 137 };
    const pod = parsePod({
      metadata: { name: 'a-1' },
      spec: {
        containers: [
          { name: 'a', image: 'a:1' },
          { name: 'b', image: 'b:1' },
        ],
      },
      status: {
        containerStatuses: [
          {
            name: 'b',
            image: 'b:1',
            imageID: '',
            ready: false,
            restartCount: 2,
            state: waiting('CrashLoopBackOff'),
            lastState: { terminated: killed },
          },
        ],
      },
    });
    expect(describeUnready(pod)).toBe(
      'a-1 is not ready (b: CrashLoopBackOff; it has ended: OOMKilled, exit code 137)',
    );
    expect(describeUnready(podOf({ running: {} }))).toBe('db-0 is not ready');
  });
});

describe('a clock that jumps', () => {
  it('back by an hour does not stop the renewal of the Lease', async () => {
    const { on } = await openDeployment();
    const runtime = createFakeRuntime(Date.now());
    const lock = new UpgradeLock({ runtime, hasEnded: () => Promise.resolve(false) });
    const cluster = connectCluster({ runtime, kubeconfig: on.kubeconfig, namespace: undefined }).withRetry({
      retryMs: 0,
    });
    const writes = () =>
      on.faults.requests.filter(({ method, path }) => method !== 'GET' && path.includes('/leases')).length;
    await lock.acquire(cluster, contextOf('A'));
    runtime.jump(-3_600_000);
    for (let seconds = 0; seconds < 60; seconds += 10) {
      await runtime.advance(10_000);
      await lock.renew(cluster, contextOf('A'));
    }
    expect(writes()).toBe(7);
  });
});

it('an admission webhook of 13 seconds does not fail a patch, and is called once', async () => {
  const { on } = await openDeployment();
  const options = fast();
  const executor = createTestExecutor(on, options);
  on.faults.inject({ method: 'PATCH', act: () => options.runtime.sleep(13_000) });
  await executor.apply(moved, contextOf());
  expect(on.faults.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(1);
});

it('a conflict that lasts is not repeated all the time', async () => {
  const { on } = await openDeployment();
  const options = fast();
  const executor = createTestExecutor(on, options);
  const removeFault = on.faults.inject({ method: 'PATCH', times: Infinity, act: { status: 409 } });
  const applied = executor.apply(moved, contextOf());
  await options.runtime.sleep(60_000);
  const tries = on.faults.requests.filter(({ method }) => method === 'PATCH').length;
  expect(tries).toBeGreaterThan(5);
  expect(tries).toBeLessThan(60);
  removeFault();
  expect((await applied).isPatched).toBe(true);
});

it('a step template that was replaced gives the plan another digest', async () => {
  const { cluster, start } = await openUpgrade([{ step: 'before', name: 'backup', image: 'backup:1' }]);
  const { digest } = await start('plan', 'pat');
  expect((await start('plan', 'pat')).digest).toBe(digest);
  await cluster.request('DELETE', `/apis/batch/v1/namespaces/${cluster.namespace}/cronjobs/backup`);
  await createTemplate(cluster, { step: 'before', name: 'backup', image: 'do-nothing:1' });
  const { error } = await start('upgrade', 'pat', { planDigest: digest });
  expect(error?.code).toBe(409);
});

it('a native sidecar that crashes after the rollout fails the job', async () => {
  const { cluster, start, end } = await openUpgrade([]);
  await cluster.patch('Deployment', 'map-server', {
    spec: {
      template: {
        spec: { initContainers: [{ name: 'proxy', image: 'proxy:1-flap', restartPolicy: 'Always' }] },
      },
    },
  });
  await cluster.settled('Deployment', 'map-server');
  cluster.faults.inject({
    method: 'PATCH',
    path: /map-tiles\?/,
    act: () => {
      cluster.kubelet.crash('flap');
      return Promise.resolve();
    },
  });
  await start('upgrade', 'pat');
  const { state, messages } = await end();
  expect(state).toBe('failed');
  expect(textsOf(messages, 2901)[0]).toMatch(
    /the container proxy of the pod \S+ has ended since the rollout/,
  );
});
