// The decisions that are made from counters, conditions, pods and strategies.
import type { V1ContainerState } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import { formatPermissions } from '../../src/upgrades/executors/kubernetes/namespace.ts';
import {
  RolloutMonitor,
  countRestarts,
  findCrash,
  findImageError,
  hasTargetImages,
  isRolledOut,
} from '../../src/upgrades/executors/kubernetes/rollout.ts';
import {
  type ClusterPod,
  type WorkloadObject,
  type Kind,
  parsePod,
  parseWorkload,
} from '../../src/upgrades/executors/kubernetes/workload.ts';
import { found } from './workload.ts';

describe('a workload', () => {
  const counts = (
    kind: Kind,
    status: WorkloadObject['status'],
    spec: WorkloadObject['spec'] = { replicas: 3 },
  ) =>
    isRolledOut(
      parseWorkload(kind, {
        metadata: { generation: 2 },
        spec,
        status: { observedGeneration: 2, ...status },
      }),
    );
  const all = { replicas: 3, updatedReplicas: 3, availableReplicas: 3, readyReplicas: 3 };
  const scheduled = {
    desiredNumberScheduled: 2,
    currentNumberScheduled: 2,
    updatedNumberScheduled: 2,
    numberAvailable: 2,
  };

  it.each<[string, boolean, boolean]>([
    ['a Deployment with all its pods', counts('Deployment', all), true],
    ['a Deployment that is not observed yet', counts('Deployment', { ...all, observedGeneration: 1 }), false],
    ['a Deployment with an old pod', counts('Deployment', { ...all, replicas: 4 }), false],
    [
      'a Deployment with a pod of the old template',
      counts('Deployment', { ...all, updatedReplicas: 2 }),
      false,
    ],
    [
      'a Deployment with a pod that is not available',
      counts('Deployment', { ...all, availableReplicas: 2 }),
      false,
    ],
    ['a Deployment with no replicas', counts('Deployment', {}, { replicas: 0 }), true],
    ['a StatefulSet with all its pods', counts('StatefulSet', all), true],
    [
      'a StatefulSet of an old server',
      counts('StatefulSet', { replicas: 3, updatedReplicas: 3, readyReplicas: 3 }),
      true,
    ],
    ['a StatefulSet that is partly updated', counts('StatefulSet', { ...all, updatedReplicas: 1 }), false],
    ['a DaemonSet with all its pods', counts('DaemonSet', scheduled), true],
    [
      'a DaemonSet that is partly updated',
      counts('DaemonSet', { ...scheduled, updatedNumberScheduled: 1 }),
      false,
    ],
    ['a DaemonSet without a node', counts('DaemonSet', {}), true],
  ])('%s is rolled out or not', (_what, isComplete, expected) => {
    expect(isComplete).toBe(expected);
  });

  it('with an image that is neither the former nor the new one was changed by another client', () => {
    const running = (image: string) => found({ name: 'a', containers: { a: image } });
    expect(hasTargetImages(running('a:2'), workload, 'image')).toBe(true);
    expect(hasTargetImages(running('a:1'), workload, 'image')).toBe(false);
    expect(hasTargetImages(running('a:1'), workload, 'formerImage')).toBe(true);
    expect(() => hasTargetImages(running('a:7'), workload, 'image')).toThrow(
      'deployment/a has the image a:7 in its container a, neither a:1 nor a:2: another client or a policy has changed it.',
    );
    expect(() => hasTargetImages(found({ name: 'a', containers: { b: 'a:1' } }), workload, 'image')).toThrow(
      'deployment/a no longer has the container a.',
    );
  });

  it('has an image error only if pods of its new template have one', () => {
    const { parts } = workload;
    const pod = (image: string, reason: string) => ({
      revision: undefined,
      createdAt: 1000,
      unscheduled: undefined,
      lostNode: undefined,
      name: 'a-1',
      uid: '1',
      owner: 'a',
      images: new Map([['a', image]]),
      isReady: false,
      isTerminating: false,
      isPending: false,
      isAtWork: true,
      hasEnded: false,
      hasSucceeded: false,
      graceMs: 0,
      unready: [],
      waiting: [{ container: 'a', reason, message: 'not found' }],
      ends: [],
      terminationMessage: undefined,
    });
    expect(findImageError([pod('a:1', 'ImagePullBackOff')], parts, 'image', 0)).toBeUndefined();
    expect(findImageError([pod('a:2', 'CrashLoopBackOff')], parts, 'image', 0)).toBeUndefined();
    expect(
      findImageError([{ ...pod('a:2', 'ImagePullBackOff'), isTerminating: true }], parts, 'image', 0),
    ).toBeUndefined();
    expect(findImageError([pod('a:2', 'ImagePullBackOff')], parts, 'image', 0)).toEqual({
      text: 'the pod a-1 cannot pull the image a:2 (ImagePullBackOff: not found).',
      isFinal: false,
      isOlderThanRun: false,
    });
    expect(findImageError([pod('a:2', 'InvalidImageName')], parts, 'image', 0)?.isFinal).toBe(true);
    // Some clusters rewrite the images of pods.
    expect(findImageError([pod('mirror/a:2', 'ImagePullBackOff')], parts, 'image', 0)).toBeDefined();
    const older = pod('a:2', 'ImagePullBackOff');
    expect(findImageError([older], parts, 'image', 60_000)?.isOlderThanRun).toBe(true);
    const newer = { ...pod('a:2', 'ErrImagePull'), name: 'a-2', createdAt: 60_000 };
    expect(findImageError([older, newer], parts, 'image', 60_000)).toMatchObject({
      text: 'the pod a-2 cannot pull the image a:2 (ErrImagePull: not found).',
      isOlderThanRun: false,
    });
  });

  it.each<[Kind, NonNullable<WorkloadObject['spec']>, string[]]>([
    ['Deployment', { paused: true }, ['is paused']],
    ['StatefulSet', { updateStrategy: { type: 'OnDelete' } }, ['has the update strategy OnDelete']],
    ['DaemonSet', { updateStrategy: { type: 'OnDelete' } }, ['has the update strategy OnDelete']],
    [
      'StatefulSet',
      { updateStrategy: { rollingUpdate: { partition: 2 } } },
      ['has the partition 2, which excludes pods with lower ordinals'],
    ],
    ['Deployment', {}, []],
  ])('%s with %j has the obstacles %j', (kind, spec, obstacles) => {
    expect(parseWorkload(kind, { spec }).obstacles).toEqual(obstacles);
  });

  it('selects its pods by its whole selector', () => {
    const selector = {
      matchLabels: { app: 'a' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['x', 'y'] },
        { key: 'old', operator: 'NotIn', values: ['z'] },
        { key: 'here', operator: 'Exists' },
        { key: 'gone', operator: 'DoesNotExist' },
      ],
    };
    expect(parseWorkload('Deployment', { spec: { selector } }).selector).toBe(
      'app=a,tier in (x,y),old notin (z),here,!gone',
    );
  });
});

it('missing permissions are grouped by resource', () => {
  expect(
    formatPermissions([
      { verb: 'get', group: 'apps', resource: 'deployments' },
      { verb: 'patch', group: 'apps', resource: 'deployments' },
      { verb: 'delete', group: '', resource: 'pods' },
    ]),
  ).toBe('get, patch deployments.apps; delete pods');
});

it('long messages of nodes and controllers are cut', () => {
  const message = 'x'.repeat(100_000);
  const waiting = { reason: 'ErrImagePull', message };
  const pod = parsePod({
    status: {
      conditions: [{ type: 'PodScheduled', status: 'False', message }],
      containerStatuses: [
        { name: 'a', image: 'a', imageID: '', ready: false, restartCount: 0, state: { waiting } },
      ],
    },
  });
  const workload = parseWorkload('Deployment', {
    status: { conditions: [{ type: 'ReplicaFailure', status: 'True', message }] },
  });
  expect(
    [pod.unscheduled, pod.waiting[0]?.message, ...workload.failures].map((text) => text?.length),
  ).toEqual([500, 500, 500]);
});

const workload = {
  name: 'deployment/a',
  component: 'A',
  parts: [{ container: 'a', image: 'a:2', formerImage: 'a:1' }],
};
const moved = found({ name: 'a', containers: { a: 'a:2' } });

const monitorOf = (runStartedAt: number, rolloutTimeoutMs = 60_000) =>
  new RolloutMonitor({
    workload,
    direction: 'image',
    runStartedAt,
    rolloutTimeoutMs,
    imageTimeoutMs: 30_000,
  });

describe('a container that has ended', () => {
  const state: V1ContainerState = { terminated: { exitCode: 1, reason: 'Error' } };
  const podOf = (
    restartCount: number,
    {
      metadata = {},
      image = 'a:2',
      isDown = false,
      phase = 'Running',
      isForgotten = false,
      last = state,
    } = {},
  ) => {
    const ended = {
      name: 'a',
      image,
      imageID: '',
      ready: true,
      restartCount,
      lastState: isForgotten ? {} : last,
    };
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'a-x', uid: '2', controller: true };
    const labels = { 'pod-template-hash': 'x' };
    return parsePod({
      metadata: { name: 'a-x-1', uid: '1', labels, ownerReferences: [owner], ...metadata },
      spec: { containers: [{ name: 'a', image }] },
      status: {
        containerStatuses: [{ ...ended, state: isDown ? state : { running: {} } }],
        initContainerStatuses: [{ ...ended, restartCount: 9, state }],
        phase,
      },
    });
  };
  const crashIn = (pod: ClusterPod) => findCrash(workload, [pod], 'image', countRestarts([podOf(1)]));

  it('since the rollout was complete is a crash, in a newer pod or one that is down too', () => {
    const crash =
      'deployment/a: the container a of the pod a-x-1 has ended since the rollout (Error, exit code 1).';
    expect(crashIn(podOf(2))).toBe(crash);
    expect(crashIn(podOf(1, { metadata: { uid: '3' } }))).toBe(crash);
    expect(crashIn(podOf(1, { isDown: true }))).toBe(crash);
    // The node does not say how it has ended.
    expect(crashIn(podOf(2, { isForgotten: true }))).toContain('since the rollout (no reason given)');
    const last = { terminated: { exitCode: 1 } };
    expect(crashIn(podOf(2, { last }))).toContain('since the rollout (no reason given, exit code 1)');
  });

  it.each<[string, ClusterPod]>([
    ['before the rollout was complete', podOf(1)],
    ['never', podOf(0, { isForgotten: true })],
    ['in a pod of the template before', podOf(2, { image: 'a:1' })],
    ['in a pod that ends', podOf(2, { metadata: { deletionTimestamp: new Date() } })],
    ['in a pod that was evicted', podOf(2, { phase: 'Failed' })],
    ['in a pod of another workload', podOf(2, { metadata: { labels: { 'pod-template-hash': '' } } })],
  ])('%s is no crash', (_when, pod) => {
    expect(crashIn(pod)).toBeUndefined();
  });
});

describe('an image that cannot be pulled', () => {
  const runStartedAt = 1_000_000;
  const failsAfter = (createdAt: number) => {
    const monitor = monitorOf(runStartedAt, 600_000);
    const state = { waiting: { reason: 'ImagePullBackOff', message: 'not found' } };
    const status = { name: 'a', image: 'a:2', imageID: '', ready: false, restartCount: 0, state };
    const pod = parsePod({
      metadata: { name: 'a-1', uid: '1', creationTimestamp: new Date(createdAt) },
      spec: { containers: [{ name: 'a', image: 'a:2' }] },
      status: { containerStatuses: [status] },
    });
    for (let at = runStartedAt; ; at += 5_000) {
      const result = monitor.check(moved, [pod], at);
      if (result.state === 'failed') return { seconds: (at - runStartedAt) / 1000, cause: result.cause };
    }
  };
  const cause = 'the pod a-1 cannot pull the image a:2 (ImagePullBackOff: not found).';

  it('fails the rollout after 30 seconds', () => {
    expect(failsAfter(runStartedAt)).toEqual({ seconds: 30, cause });
  });

  it('fails a resumed run too, after the longest pause of a node between two tries', () => {
    expect(failsAfter(runStartedAt - 60_000)).toEqual({ seconds: 330, cause });
  });
});

describe('a rollout without progress', () => {
  it('fails when the time is over', () => {
    const monitor = monitorOf(0);
    for (let at = 0; at < 60_000; at += 5_000) expect(monitor.check(moved, [], at).state).toBe('running');
    expect(monitor.check(moved, [], 60_000).state).toBe('failed');
  });

  it.each([
    [{}, /0 exist; its controller has not observed its newest change\.$/],
    [{ isObserved: true }, /0 exist; its events say why pods are missing\.$/],
    [{ isObserved: true, obstacles: ['is being deleted'] }, /0 exist; it is being deleted\.$/],
  ])('and with %j says so', (change, cause) => {
    const monitor = monitorOf(0, 0);
    const result = monitor.check({ ...moved, isObserved: false, ...change }, [], 0);
    expect(result).toMatchObject({ state: 'failed', cause: expect.stringMatching(cause) as string });
  });

  it('has all its time again after an outage of the API server', () => {
    const monitor = monitorOf(0);
    for (let at = 0; at <= 55_000; at += 5_000) monitor.check(moved, [], at);
    for (let at = 255_000; at < 315_000; at += 5_000)
      expect(monitor.check(moved, [], at).state).toBe('running');
    expect(monitor.check(moved, [], 315_000).state).toBe('failed');
  });
});
