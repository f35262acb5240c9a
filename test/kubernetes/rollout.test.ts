// What is told from counters, conditions, pods, strategies and quotas, as tables.
import { describe, expect, it } from 'vitest';
import { type Answered, type Kind, readWorkload } from '../../src/upgrades/executors/kubernetes/workload.ts';
import { findLackOfRoom, readQuantity } from '../../src/upgrades/executors/kubernetes/quota.ts';
import { formatMissing } from '../../src/upgrades/executors/kubernetes/permissions.ts';
import { findImageError, hasArrived, isRolledOut } from '../../src/upgrades/executors/kubernetes/rollout.ts';
import { found } from './workload.ts';

describe('a workload', () => {
  const counts = (kind: Kind, status: Answered['status'], spec: Answered['spec'] = { replicas: 3 }) =>
    isRolledOut(
      readWorkload(kind, { metadata: { generation: 2 }, spec, status: { observedGeneration: 2, ...status } }),
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
    ['a Deployment not yet looked at', counts('Deployment', { ...all, observedGeneration: 1 }), false],
    ['a Deployment with an old pod left', counts('Deployment', { ...all, replicas: 4 }), false],
    [
      'a Deployment with a pod of the old template',
      counts('Deployment', { ...all, updatedReplicas: 2 }),
      false,
    ],
    [
      'a Deployment with a pod that cannot be used',
      counts('Deployment', { ...all, availableReplicas: 2 }),
      false,
    ],
    ['a Deployment of none', counts('Deployment', {}, { replicas: 0 }), true],
    ['a StatefulSet with all its pods', counts('StatefulSet', all), true],
    [
      'a StatefulSet of an old server',
      counts('StatefulSet', { replicas: 3, updatedReplicas: 3, readyReplicas: 3 }),
      true,
    ],
    ['a StatefulSet half way', counts('StatefulSet', { ...all, updatedReplicas: 1 }), false],
    ['a DaemonSet with all its pods', counts('DaemonSet', scheduled), true],
    ['a DaemonSet half way', counts('DaemonSet', { ...scheduled, updatedNumberScheduled: 1 }), false],
    ['a DaemonSet without a node', counts('DaemonSet', {}), true],
  ])('%s', (_what, isOut, expected) => {
    expect(isOut).toBe(expected);
  });

  it('with an image that is neither the former nor the new one is somebody else’s', () => {
    const workload = {
      name: 'deployment/a',
      component: 'A',
      parts: [{ container: 'a', image: 'a:2', formerImage: 'a:1' }],
    };
    const showing = (image: string) => found({ name: 'a', containers: { a: image } });
    expect(hasArrived(showing('a:2'), workload, 'image')).toBe(true);
    expect(hasArrived(showing('a:1'), workload, 'image')).toBe(false);
    expect(hasArrived(showing('a:1'), workload, 'formerImage')).toBe(true);
    expect(() => hasArrived(showing('a:7'), workload, 'image')).toThrow(
      'deployment/a has the image a:7 in its container a, neither a:1 nor a:2: somebody else has changed it.',
    );
    expect(() => hasArrived(found({ name: 'a', containers: { b: 'a:1' } }), workload, 'image')).toThrow(
      'deployment/a has no container a any more.',
    );
  });

  it('has an image error only where pods of its new template have one', () => {
    const parts = [{ container: 'a', image: 'a:2', formerImage: 'a:1' }];
    const pod = (image: string, reason: string) => ({
      revision: undefined,
      createdAt: 1000,
      unscheduled: undefined,
      name: 'a-1',
      uid: '1',
      owner: 'a',
      images: new Map([['a', image]]),
      isReady: false,
      isLeaving: false,
      waiting: [{ container: 'a', reason, message: 'not found' }],
    });
    expect(findImageError([pod('a:1', 'ImagePullBackOff')], parts, 'image', 0)).toBeUndefined();
    expect(findImageError([pod('a:2', 'CrashLoopBackOff')], parts, 'image', 0)).toBeUndefined();
    expect(
      findImageError([{ ...pod('a:2', 'ImagePullBackOff'), isLeaving: true }], parts, 'image', 0),
    ).toBeUndefined();
    expect(findImageError([pod('a:2', 'ImagePullBackOff')], parts, 'image', 0)).toEqual({
      text: 'the pod a-1 cannot have the image a:2 (ImagePullBackOff: not found).',
      isFinal: false,
    });
    expect(findImageError([pod('a:2', 'InvalidImageName')], parts, 'image', 0)?.isFinal).toBe(true);
    // Some clusters give pods other images than their template has.
    expect(findImageError([pod('mirror/a:2', 'ImagePullBackOff')], parts, 'image', 0)).toBeDefined();
    // A pod that was there before the run still waits for its next try.
    expect(findImageError([pod('a:2', 'ImagePullBackOff')], parts, 'image', 60_000)).toBeUndefined();
  });

  it.each<[Kind, NonNullable<Answered['spec']>, string[]]>([
    ['Deployment', { paused: true }, ['is paused']],
    ['StatefulSet', { updateStrategy: { type: 'OnDelete' } }, ['has the update strategy OnDelete']],
    ['DaemonSet', { updateStrategy: { type: 'OnDelete' } }, ['has the update strategy OnDelete']],
    [
      'StatefulSet',
      { updateStrategy: { rollingUpdate: { partition: 2 } } },
      ['keeps pods below 2 back by a partition'],
    ],
    ['Deployment', {}, []],
  ])('%s with %j would not come through: %j', (kind, spec, obstacles) => {
    expect(readWorkload(kind, { spec }).obstacles).toEqual(obstacles);
  });

  it('is asked for its pods by its whole selector', () => {
    const selector = {
      matchLabels: { app: 'a' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['x', 'y'] },
        { key: 'old', operator: 'NotIn', values: ['z'] },
        { key: 'here', operator: 'Exists' },
        { key: 'gone', operator: 'DoesNotExist' },
      ],
    };
    expect(readWorkload('Deployment', { spec: { selector } }).selector).toBe(
      'app=a,tier in (x,y),old notin (z),here,!gone',
    );
  });
});

describe('room for a rollout', () => {
  it.each([
    ['500m', 0.5],
    ['1.5Gi', 1.5 * 2 ** 30],
    ['1e3', 1000],
    ['2k', 2000],
    ['3', 3],
  ])('%s is %d', (text, value) => {
    expect(readQuantity(text)).toBe(value);
  });

  const resources = { requests: { cpu: '500m', memory: '1Gi' } };
  const spec = (replicas: number, strategy: object): NonNullable<Answered['spec']> => ({
    replicas,
    strategy,
    template: {
      spec: {
        containers: [{ name: 'a', resources }],
        initContainers: [{ name: 'i', resources: { requests: { cpu: '2' } } }],
      },
    },
  });
  const rolling = (maxUnavailable: number | string, maxSurge: number | string) => ({
    type: 'RollingUpdate',
    rollingUpdate: { maxUnavailable, maxSurge },
  });
  it.each<
    [
      string,
      NonNullable<Answered['spec']>,
      Record<string, string>,
      Record<string, string>,
      RegExp | undefined,
    ]
  >([
    ['no pod left', spec(2, {}), { pods: '2' }, { pods: '2' }, /pods is at 2 of 2/],
    ['a pod left', spec(2, {}), { pods: '3' }, { pods: '2' }, undefined],
    ['a pod may be missing', spec(2, rolling(1, 1)), { pods: '2' }, { pods: '2' }, undefined],
    ['a quarter of four may be missing', spec(4, {}), { pods: '4' }, { pods: '4' }, undefined],
    ['all go first', spec(2, { type: 'Recreate' }), { pods: '2' }, { pods: '2' }, undefined],
    ['nothing runs', spec(0, {}), { pods: '0' }, { pods: '0' }, undefined],
    [
      'too little processor for the init container',
      spec(1, {}),
      { 'requests.cpu': '2' },
      { 'requests.cpu': '500m' },
      /requests.cpu is at 500m of 2/,
    ],
    ['memory to spare', spec(1, {}), { 'requests.memory': '3Gi' }, { 'requests.memory': '1Gi' }, undefined],
    ['limits nobody has', spec(1, {}), { 'limits.cpu': '1' }, { 'limits.cpu': '1' }, undefined],
    ['another resource', spec(1, {}), { services: '1' }, { services: '1' }, undefined],
  ])('%s', (_what, of, hard, used, expected) => {
    const problems = findLackOfRoom(readWorkload('Deployment', { metadata: { name: 'a' }, spec: of }), [
      { name: 'q', hard, used },
    ]);
    if (expected) expect(problems).toEqual([expect.stringMatching(expected)]);
    else expect(problems).toEqual([]);
  });
});

it('missing rights are told together', () => {
  expect(
    formatMissing([
      { verb: 'get', group: 'apps', resource: 'deployments' },
      { verb: 'patch', group: 'apps', resource: 'deployments' },
      { verb: 'delete', group: '', resource: 'pods' },
    ]),
  ).toBe('get, patch deployments.apps; delete pods');
});
