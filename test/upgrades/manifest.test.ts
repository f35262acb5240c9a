// Version manifests: reading, refusal, and the versions that can be reached.
import { describe, expect, it } from 'vitest';
import { laterVersions, freshRelease } from '../kit/sample-manifest.ts';
import {
  type Deployment,
  afterInstalling,
  installCheck,
  rollbackTargets,
} from '../../src/upgrades/versions/deployment.ts';
import { reachableVersions } from '../../src/upgrades/versions/hops.ts';
import { type Version, readManifest } from '../../src/upgrades/versions/manifest.ts';

const containers = [{ name: 'A', image: 'a:1' }];
const release = (id: string, build: string, previousReleaseBuild: string, extra = {}) => ({
  id,
  type: 'release',
  version: '11.0.0',
  build,
  previousReleaseBuild,
  containers,
  ...extra,
});
const patch = (id: string, build: string, releaseBuild: string, previousBuild: string, extra = {}) => ({
  id,
  type: 'patch',
  version: '11.0.0',
  build,
  releaseBuild,
  previousBuild,
  containers,
  ...extra,
});
const read = (json: unknown) =>
  readManifest(Buffer.from(typeof json === 'string' ? json : JSON.stringify(json)), () => [freshRelease]);
const problemsOf = (json: unknown) => {
  const result = read(json);
  return 'problems' in result ? result.problems : [];
};

describe('a manifest', () => {
  it('is an array or {"versions": […]}; missing flags and checksums get defaults, unknown fields are kept', () => {
    const [version] = (
      read({ versions: [release('r', '2', '1', { mystery: 1 })] }) as { versions: Version[] }
    ).versions;
    expect(version).toMatchObject({
      isMandatoryUpdate: false,
      newLicensesRequired: false,
      newContainers: [],
      mystery: 1,
      containers: [{ name: 'A', image: 'a:1', checksum: 'N/A' }],
    });
  });

  it('may spell the mandatory flag in two ways', () => {
    const result = read([release('r', '2', '1'), patch('p', '3', '2', '2', { ismandatoryUpdate: true })]);
    expect('versions' in result && result.versions[1]?.isMandatoryUpdate).toBe(true);
  });

  it('has at most 500 versions', () => {
    const chain = Array.from({ length: 501 }, (_, n) => release(`r${n}`, String(n + 1), String(n)));
    expect(read(chain.slice(0, 500))).toHaveProperty('versions.499.id', 'r499');
    expect(() => read(chain)).toThrow(
      expect.objectContaining({
        kind: 'too-large',
        problems: [{ message: 'A version manifest must have at most 500 versions.' }],
      }) as Error,
    );
  });

  it('is refused with every problem at once, including broken links', () => {
    const broken = [
      { id: 'q' },
      { id: 'x', type: 'patch', version: '11', build: '1', containers: [{ name: 'A' }] },
      patch('lost', '9', '1234', '8'),
      patch('one', '1300', '1234', '1234'),
      patch('two', '1301', '1234', '1234'),
      1,
    ];
    expect(problemsOf(broken)).toEqual([
      '[0].type: must be release or patch.',
      '[0].version: must have three parts, such as 11.0.0.',
      '[0].build: must be a build: letters, digits or . _ -.',
      '[0].containers: must be an array of containers.',
      '[1].version: must have three parts, such as 11.0.0.',
      '[1].containers[0].image: must be a text of at most 512 characters.',
      '[1].releaseBuild: must be a build: letters, digits or . _ -.',
      '[1].previousBuild: must be a build: letters, digits or . _ -.',
      '[5]: must be a version object.',
      'lost: previousBuild 8 is no patch of its release in the file or installed.',
      'two: has the same previousBuild 1234 as one.',
    ]);
  });

  it.each<[string, unknown, string]>([
    ['invalid JSON', '{', 'is not JSON'],
    ['no array', { a: 1 }, 'must be a JSON array of versions'],
    ['an id twice', [release('r', '2', '1'), release('r', '3', '1')], 'r: occurs more than once.'],
    [
      'a patch of an unknown release',
      [patch('p', '3', '9', '9')],
      'p: releaseBuild 9 is no release in the file or installed.',
    ],
    [
      'a patch after an unknown patch',
      [release('r', '2', '1'), patch('p', '4', '2', '3')],
      'p: previousBuild 3 is no patch of its release in the file or installed.',
    ],
    [
      'two patches after the same build',
      [release('r', '2', '1'), patch('p', '3', '2', '2'), patch('q', '4', '2', '2')],
      'q: has the same previousBuild 2 as p.',
    ],
    [
      'a circle of releases',
      [release('r', '2', '3'), release('s', '3', '2')],
      'r: the versions before it form a circle.',
    ],
    [
      'a circle of patches',
      [release('r', '2', '1'), patch('p', '3', '2', '4'), patch('q', '4', '2', '3')],
      'p: the versions before it form a circle.',
    ],
  ])('is refused for %s', (_what, json, problem) => {
    expect(problemsOf(json)[0]).toContain(problem);
  });

  it('may begin with a release whose predecessor is missing, and several releases may follow one', () => {
    expect(
      problemsOf([release('r', '20', '10'), release('s', '30', '20'), release('t', '31', '20')]),
    ).toEqual([]);
    expect(problemsOf([patch('p', '1300', '1234', '1234')])).toEqual([]);
  });

  it('that is built in has 10.9.1 with two optional patches, 11.0.0 with 48 deployments, its last patch mandatory, 11.1.0, 11.2.0', () => {
    expect(problemsOf(laterVersions)).toEqual([]);
    expect(
      laterVersions.map(({ version, build, type, isMandatoryUpdate }) => [
        version,
        build,
        type,
        isMandatoryUpdate,
      ]),
    ).toEqual([
      ['10.9.1', '1250', 'patch', false],
      ['10.9.1', '1260', 'patch', false],
      ['11.0.0', '2632', 'release', false],
      ['11.0.0', '2650', 'patch', false],
      ['11.0.0', '2670', 'patch', true],
      ['11.1.0', '3923', 'release', false],
      ['11.2.0', '5207', 'release', false],
    ]);
    const eleven = laterVersions[2];
    expect((eleven?.containers.length ?? 0) + (eleven?.newContainers.length ?? 0)).toBe(48);
    expect(eleven?.newLicensesRequired).toBe(true);
  });
});

describe('the links between versions', () => {
  const fresh: Deployment = { release: freshRelease, patches: [] };
  const byId = (id: string) => laterVersions.find((version) => version.id === id) as Version;
  const [patch1, patch2, eleven, eleven1, eleven2, next] = laterVersions.map(({ id }) => byId(id)) as [
    Version,
    Version,
    Version,
    Version,
    Version,
    Version,
  ];

  const reasonsNotToInstall = (version: Version, manifest: readonly Version[], present: Deployment) =>
    installCheck(manifest, present)(version);

  it('lead from the installed version to every later one, in order', () => {
    const reachable = (present: Deployment) =>
      reachableVersions(laterVersions, present).map(({ version }) => version);
    expect(reachable(fresh)).toEqual(laterVersions);
    expect(reachable(afterInstalling(fresh, [patch1]))).toEqual(laterVersions.slice(1));
    expect(reachable(afterInstalling(fresh, [eleven, eleven1]))).toEqual(laterVersions.slice(4));
  });

  it('allow the next release with or without patches, once the mandatory patches are installed', () => {
    expect(reasonsNotToInstall(eleven, laterVersions, fresh)).toEqual([]);
    expect(reasonsNotToInstall(eleven, laterVersions, afterInstalling(fresh, [patch1, patch2]))).toEqual([]);
    expect(reasonsNotToInstall(next, laterVersions, afterInstalling(fresh, [eleven]))).toEqual([
      'The mandatory patch 11.0.0.2670 (pat_08122022_2670) must be installed first.',
    ]);
    expect(
      reasonsNotToInstall(next, laterVersions, afterInstalling(fresh, [eleven, eleven1, eleven2])),
    ).toEqual([]);
    expect(reasonsNotToInstall(next, laterVersions, fresh)).toEqual([
      '11.1.0.3923 follows build 2632; the installed release is 10.9.1.1234.',
    ]);
    expect(reasonsNotToInstall(patch1, laterVersions, afterInstalling(fresh, [patch1]))).toEqual([
      '10.9.1.1250 is installed already.',
    ]);
    expect(reasonsNotToInstall(patch2, laterVersions, fresh)).toEqual([]);
  });

  it('allow a rollback to earlier patches of the installed release, newest first', () => {
    expect(rollbackTargets(fresh)).toEqual([]);
    expect(rollbackTargets(afterInstalling(fresh, [patch1, patch2]))).toEqual([patch1, freshRelease]);
  });
});
