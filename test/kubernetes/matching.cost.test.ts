// Which containers of a cluster match the containers of a version, and which images they get.
import { describe, expect, it } from 'vitest';
import { findImageProblem, locateImage, pinImage } from '../../src/upgrades/executors/images/image.ts';
import { matchContainers } from '../../src/upgrades/executors/inventory/matching.ts';
import { toFound } from '../../src/upgrades/executors/kubernetes/namespace.ts';
import type { ClusterWorkload } from '../../src/upgrades/executors/kubernetes/workload.ts';
import type { Container } from '../../src/upgrades/versions/manifest.ts';
import { expectCost } from '../kit/cost.ts';
import { found } from './workload.ts';

const digest = `sha256:${'a'.repeat(64)}`;

describe('an image of a version', () => {
  it.each([
    // [image of the version, current image, IMAGE_REGISTRY, expected image]
    ['apps:2', 'apps:1', undefined, 'apps:2'],
    ['apps:2', 'registry.example.com/team/apps:1', undefined, 'registry.example.com/team/apps:2'],
    ['apps:2', 'registry.example.com/team/apps:1', 'other.example.com', 'registry.example.com/team/apps:2'],
    ['apps:2', 'localhost/apps:1', undefined, 'localhost/apps:2'],
    ['apps:2', 'host:5000/apps:1', undefined, 'host:5000/apps:2'],
    ['apps:2', `host:5000/apps@${digest}`, undefined, 'host:5000/apps:2'],
    ['apps:2', 'apps:1', 'other.example.com/product', 'other.example.com/product/apps:2'],
    ['apps:2', 'team/apps:1', undefined, 'team/apps:2'],
    ['apps:2', 'team/apps:1', 'other.example.com', 'other.example.com/apps:2'],
    ['team/apps:2', 'registry.example.com/team/apps:1', undefined, 'registry.example.com/team/apps:2'],
    ['team/apps:2', 'registry.example.com/a/team/apps:1', undefined, 'registry.example.com/a/team/apps:2'],
    ['team/apps:2', 'registry.example.com/apps:1', undefined, 'registry.example.com/team/apps:2'],
    ['team/apps:2', 'team/apps:1', undefined, 'team/apps:2'],
    [
      'own.example.com/apps:2',
      'registry.example.com/team/apps:1',
      'other.example.com',
      'own.example.com/apps:2',
    ],
    ['own:5000/apps:2', 'registry.example.com/team/apps:1', undefined, 'own:5000/apps:2'],
  ])('%s in place of %s with the registry %s is %s', (image, current, registry, expected) => {
    expect(locateImage(image, current, registry)).toBe(expected);
  });

  it.each([
    ['apps:2', digest, `apps:2@${digest}`],
    ['apps:2', 'N/A', 'apps:2'],
    ['apps:2', 'md5:abc', 'apps:2'],
    [`apps@${digest}`, digest, `apps@${digest}`],
  ])('%s with the checksum %s is %s', (image, checksum, expected) => {
    expect(pinImage(image, checksum)).toBe(expected);
  });

  it.each([
    [`apps@${digest}`, digest, undefined],
    ['apps:2', digest, undefined],
    ['apps:2', 'N/A', undefined],
    [`apps@sha256:${'b'.repeat(64)}`, digest, /its image .* and its checksum .* differ\./],
    ['apps:2', digest.toUpperCase(), /is no digest/],
    ['apps:2', 'sha256:abc', /is no digest/],
  ])('%s with the checksum %s has the problem %s', (image, checksum, expected) => {
    const problem = findImageProblem(image, checksum);
    if (expected) expect(problem).toMatch(expected);
    else expect(problem).toBeUndefined();
  });
});

const container = (name: string, image: string, checksum = 'N/A'): Container => ({ name, image, checksum });

describe('a container of a version', () => {
  const match = (wanted: Container[], cluster: ClusterWorkload[]) =>
    matchContainers(
      wanted,
      cluster.map((found) => toFound(found, [])),
      new Map(),
      undefined,
    );
  const moved = (wanted: Container[], cluster: ClusterWorkload[]) =>
    match(wanted, cluster).workloads.map(({ name, parts }) => [
      name,
      ...parts.map((part) => `${part.container} ${part.image}`),
    ]);

  it.each(['MAP_SERVER', 'map-server', 'Map_Server'])('%s matches by the name of a container', (name) => {
    const cluster = [found({ name: 'maps', containers: { 'map-server': 'maps:1', proxy: 'proxy:1' } })];
    expect(moved([container(name, 'maps:2')], cluster)).toEqual([['deployment/maps', 'map-server maps:2']]);
  });

  it('matches by the label of a workload with one container of any name', () => {
    const cluster = [
      found({ name: 'maps', label: 'MAP_SERVER', containers: { main: 'maps:1' }, init: { wait: 'wait:1' } }),
    ];
    expect(moved([container('MAP_SERVER', 'maps:2')], cluster)).toEqual([['deployment/maps', 'main maps:2']]);
  });

  it('matches the container with the same image if only the label matches', () => {
    const containers = { main: 'registry.example.com/maps:1', side: 'side:1' };
    const cluster = [found({ name: 'maps', label: 'map-server', containers })];
    expect(moved([container('MAP_SERVER', 'maps:2')], cluster)).toEqual([
      ['deployment/maps', 'main registry.example.com/maps:2'],
    ]);
    expect(match([container('MAP_SERVER', 'others:2')], cluster).problems).toEqual([
      'deployment/maps: has the label steward/container=MAP_SERVER, but several containers, none of that name.',
    ]);
  });

  it('matches in several workloads, also init containers, and a workload can match several', () => {
    const cluster = [
      found({ name: 'a', containers: { apps: 'apps:1', logs: 'logs:1' }, init: { busybox: 'busybox:1' } }),
      found({ name: 'a', kind: 'StatefulSet', containers: { logs: 'logs:1' } }),
      found({ name: 'b', kind: 'DaemonSet', containers: { other: 'other:1' } }),
    ];
    const wanted = [
      container('LOGS', 'logs:2'),
      container('BUSYBOX', 'busybox:2'),
      container('APPS', 'apps:2'),
    ];
    expect(moved(wanted, cluster)).toEqual([
      ['deployment/a', 'logs logs:2', 'busybox busybox:2', 'apps apps:2'],
      ['statefulset/a', 'logs logs:2'],
    ]);
  });

  it('is unmatched if no workload has it', () => {
    const { unmatched, workloads } = match(
      [container('GONE', 'gone:2')],
      [found({ name: 'a', containers: { b: 'b:1' } })],
    );
    expect({ unmatched, workloads }).toEqual({ unmatched: [container('GONE', 'gone:2')], workloads: [] });
  });

  it('conflicts with another one that matches the same container, unless both have the same image', () => {
    const cluster = [found({ name: 'a', label: 'ONE', containers: { two: 'x:1' } })];
    expect(match([container('ONE', 'x:2'), container('TWO', 'x:3')], cluster).problems).toEqual([
      'deployment/a: ONE and TWO both match the container two.',
    ]);
    expect(match([container('ONE', 'x:2'), container('TWO', 'x:2')], cluster).problems).toEqual([]);
  });

  it('may be repeated thousands of times in a version, and match thousands of workloads', async () => {
    const cluster = Array.from({ length: 2000 }, (_, index) =>
      found({ name: `w${index}`, label: 'a-b', containers: { main: 'x:1' } }),
    );
    const same = Array.from({ length: 5000 }, (_, index) =>
      container(index % 2 === 0 ? 'A_B' : 'a-b', 'x:2'),
    );
    const different = Array.from({ length: 5000 }, (_, index) => container('A_B', `x:${index}`));
    await expectCost(1000, () => {
      expect(match(same, cluster)).toMatchObject({ problems: [], workloads: { length: 2000 } });
      expect(match(different, cluster).problems.length).toBeLessThanOrEqual(2000);
    });
  });
});
