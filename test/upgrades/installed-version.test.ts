// What is installed before the first job: INSTALLED_VERSION, adoption, the unknown version, and manifests as vendors ship
// them: a release with cumulative patches and the next release, or only the next release.
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { type BaseManifest, deployment } from '../../src/upgrades/versions/deployment.ts';
import { findDeployment, startingVersions } from '../../src/upgrades/versions/installed-version.ts';
import { type Version, readManifest } from '../../src/upgrades/versions/manifest.ts';
import { freshDeployment } from '../kit/sample-manifest.ts';
import { type Server, type ServerOptions, startServer } from '../kit/server.ts';

const textOf = (name: string) => readFileSync(new URL(`manifests/${name}.json`, import.meta.url), 'utf8');

function manifestOf(name: string): BaseManifest {
  const read = readManifest(Buffer.from(textOf(name)), () => []);
  if ('problems' in read) throw new Error(read.problems.join(' '));
  return { source: 'file', versions: read.versions, digest: name };
}

const whole = manifestOf('manifest-11.5-to-12.0');
const next = manifestOf('manifest-12.0');

const upgrades = '/admin/system/upgrades';

let server: Server;
let opened: Server | undefined;
afterEach(async () => {
  await opened?.close();
  opened = undefined;
});

const start = async (options: ServerOptions) =>
  (server = opened =
    await startServer({ present: null, ...options, env: { UPGRADE_STEP_MS: '0', ...options.env } }));

const startAt = (installedVersion: string, manifest = whole) =>
  start({ manifest, env: { INSTALLED_VERSION: installedVersion } });

const read = async <T>(path: string) =>
  (await server.get(`${path}?token=${server.token('administrator')}`)).json<T>();

const post = (path: string, fields: Record<string, string> = {}) =>
  server.post(`${upgrades}/${path}`, { token: server.token('administrator'), ...fields });

const postManifest = (name: string, fields: Record<string, string> = {}) =>
  server.postParts(
    `${upgrades}/importManifest`,
    { manifestFile: { name: 'm.json', content: textOf(name) }, ...fields },
    server.token('administrator'),
  );

type Listed = { id: string; build: string; installable: boolean; path: string[] };

const available = () => read<Listed[]>(`${upgrades}/available`);

const buildsOf = (list: readonly { build: string }[]) => list.map(({ build }) => build);

describe('an installed version', () => {
  const buildsAt = (manifest: BaseManifest, name: string) => {
    const found = findDeployment(manifest.versions, name);
    return (
      found &&
      [found.release, ...found.patches].map(({ build, isUnlisted }) => (isUnlisted ? `(${build})` : build))
    );
  };

  it.each([
    ['11.5.0.6745', ['6745']],
    ['rel_24062025_6745', ['6745']],
    ['11.5.0.6815', ['6745', '6805', '6815']],
    ['pat_04122025_6835', ['6745', '6805', '6815', '6820', '6825', '6835']],
    ['12.0.0.7286', ['7286']],
    // The file begins after it.
    ['11.4.0.6285', ['(6285)']],
    // A patch that the file does not have.
    ['11.5.0.6840', ['(6745)', '(6840)']],
    ['11.4.0.6290', ['(6285)', '(6290)']],
    // Earlier than the release that 12.0 follows.
    ['11.5.0.6744', undefined],
    // The build of another version.
    ['11.3.0.6285', undefined],
    ['12.0.0.7300', undefined],
    ['6745', undefined],
    ['', undefined],
  ])('%s counts with everything before it', (name, builds) => {
    expect(buildsAt(whole, name)).toEqual(builds);
  });

  it('of a release that only follows is its predecessor, patched or not', () => {
    expect(buildsAt(next, '11.5.0.6745')).toEqual(['(6745)']);
    expect(buildsAt(next, '11.5.0.6835')).toEqual(['(6745)', '(6835)']);
    expect(buildsAt(next, '11.4.0.6285')).toBeUndefined();
  });

  it('is compared by numbers, so that build 10000 is later than 6745', () => {
    expect(buildsAt(next, '11.5.0.10000')).toEqual(['(6745)', '(10000)']);
    expect(buildsAt(next, '11.5.0.999')).toBeUndefined();
  });

  it('may be the patch or the release that patches follow', () => {
    const patches = whole.versions.filter(({ build }) => ['6825', '6835'].includes(build));
    const manifest: BaseManifest = { ...whole, versions: patches };
    expect(buildsAt(manifest, '11.5.0.6820')).toEqual(['(6745)', '(6820)']);
    expect(buildsAt(manifest, '11.5.0.6745')).toEqual(['(6745)']);
    expect(buildsAt(manifest, '11.5.0.6835')).toEqual(['(6745)', '(6820)', '6825', '6835']);
  });

  it('is named if an upgrade can start from it', () => {
    expect(startingVersions(next.versions)).toEqual(['11.5.0.6745']);
    expect(startingVersions(whole.versions)).toEqual([
      '11.4.0.6285',
      '11.5.0.6745',
      '11.5.0.6805',
      '11.5.0.6815',
      '11.5.0.6820',
      '11.5.0.6825',
      '11.5.0.6835',
    ]);
  });

  it('of a manifest with circles is found or not, and the manifest is refused', () => {
    const [release] = next.versions as [Version];
    const circle = [
      { ...release, id: 'a', build: '1', previousReleaseBuild: '2' },
      { ...release, id: 'b', build: '2', previousReleaseBuild: '1' },
    ];
    expect(findDeployment(circle, '12.0.0.1')?.release.id).toBe('a');
    const result = readManifest(Buffer.from(JSON.stringify(circle)), (versions) =>
      findDeployment(versions, '12.0.0.1') ? [] : [],
    );
    expect(result).toMatchObject({ problems: [expect.stringContaining('form a circle')] });
  });
});

describe('INSTALLED_VERSION', () => {
  const patches = ['6805', '6815', '6820', '6825', '6835'];

  it.each([
    ['11.4.0.6285', whole, ['6745', ...patches, '7286']],
    ['11.5.0.6745', whole, [...patches, '7286']],
    ['11.5.0.6805', whole, ['6815', '6820', '6825', '6835', '7286']],
    ['11.5.0.6825', whole, ['6835', '7286']],
    ['11.5.0.6835', next, ['7286']],
  ])('%s leads to 12.0 in one job', async (installed, manifest, builds) => {
    await startAt(installed, manifest);
    const list = await available();
    expect(buildsOf(list)).toEqual(builds);
    expect(await read('/admin')).toMatchObject({ fullVersion: installed });
    const { itemID } = (
      await server.postParts(
        '/admin/uploads/upload',
        { itemFile: { name: 'license.json', content: '{}' } },
        server.token('administrator'),
      )
    ).json<{ item: { itemID: string } }>().item;
    const versionManifest = '{"id":"rel_11122025_7286"}';
    const settings = (await post('getUpgradeSettings', { upgradeId: versionManifest })).json<{
      userInputs: { id: string; type: string; value: unknown; required?: boolean }[];
    }>();
    for (const input of settings.userInputs) if (input.type === 'File') input.value = itemID;
    const fields = { versionManifest, upgradeSettings: JSON.stringify(settings) };
    const plan = (await post('plan', fields)).json<{ from: string; to: string; problems: string[] }>();
    expect(plan).toMatchObject({ from: installed, to: '12.0.0.7286', problems: [] });
    expect((await post('upgrade', fields)).statusCode).toBe(200);
    while ((await read<{ status: { state: string } }>(upgrades)).status.state === 'in_progress')
      await server.runtime.advance(1000);
    expect((await read<{ status: { state: string } }>(upgrades)).status.state).toBe('success');
    expect(await read('/admin')).toMatchObject({ fullVersion: '12.0.0.7286' });
    expect(await available()).toEqual([]);
  });

  it('is recorded with what it was derived from, and shown', async () => {
    await startAt('11.5.0.6815');
    const { entries } = await read<{ entries: object[] }>('/admin/system/audit');
    expect(entries).toMatchObject([
      {
        operation: 'system/upgrades/adopt',
        user: null,
        outcome: 'success',
        changes: expect.arrayContaining([
          { field: 'installedVersion', before: null, after: '11.5.0.6815' },
          { field: 'derivedFrom', before: null, after: 'INSTALLED_VERSION' },
        ]) as unknown,
      },
    ]);
    expect(server.logLines.join('')).toContain('"derivedFrom":"INSTALLED_VERSION","reachable":4');
    for (const page of ['/admin', upgrades])
      expect((await server.get(`${page}?f=html&token=${server.token('administrator')}`)).body).toContain(
        'INSTALLED_VERSION',
      );
    expect(await read(`${upgrades}/manifestStatus`)).toEqual({
      versionManifestSource: 'imported',
      importedFrom: 'file',
      lastImportedTimestamp: null,
    });
  });

  it('is decided once: another value of a later start changes nothing', async () => {
    const { store } = await startAt('11.5.0.6815');
    const other = await startServer({ store, manifest: whole, env: { INSTALLED_VERSION: 'nonsense' } });
    expect(store.read(deployment)?.patches.at(-1)?.build).toBe('6815');
    await other.close();
  });

  it.each(['11.5.0.6744', 'rel_unknown'])(
    '%s refuses the start and names the versions that would do',
    async (name) => {
      await expect(startAt(name)).rejects.toThrow(
        /^INSTALLED_VERSION must be the id of a version .*: 11\.4\.0\.6285, 11\.5\.0\.6745, /,
      );
    },
  );

  it('refuses the start with a manifest that contradicts it', async () => {
    const [release] = next.versions as [Version];
    const orphan = { ...release, id: 'pat', type: 'patch', releaseBuild: '1', previousBuild: '1' } as const;
    const manifest = { ...next, versions: [...next.versions, orphan] };
    await expect(startAt('11.5.0.6745', manifest)).rejects.toThrow(
      'MANIFEST_FILE does not fit the installed version. pat: releaseBuild 1 is no release',
    );
  });

  it('is by default the oldest release of the manifest', async () => {
    await start({ manifest: whole });
    expect(await read('/admin')).toMatchObject({ fullVersion: '11.5.0.6745' });
    expect(server.logLines.join('')).toContain('the oldest release of the manifest');
  });

  it('that nothing follows is a warning of the start', async () => {
    await start({ manifest: next, env: { INSTALLED_VERSION: '12.0.0.7286' } });
    expect(await available()).toEqual([]);
    expect((await server.get(`${upgrades}?f=html&token=${server.token('administrator')}`)).body).toContain(
      'You have the newest version.',
    );
  });

  it('without containers offers no rollback to it', async () => {
    await startAt('11.4.0.6285');
    expect(await read(`${upgrades}/checkRollback`)).toEqual({ updates: [] });
    expect(await read(`${upgrades}/currentVersion`)).toMatchObject({ isUnlisted: true, build: '6285' });
  });
});

describe('adopt', () => {
  it('declares what is installed, with an event and an audit entry', async () => {
    const bodies: string[] = [];
    const receiver = ({ body }: { body: string }) => {
      bodies.push(body);
      return 200;
    };
    await start({ manifest: whole, receiver, env: { INSTALLED_VERSION: '11.4.0.6285' } });
    await server.post('/admin/services/webhooks/create', {
      token: server.token('administrator'),
      name: 'hook',
      hookUrl: 'https://receiver.example.com/',
      changeTypes: 'VersionAdopted',
    });
    expect((await post('adopt', { installedVersion: '11.5.0.6825' })).json()).toEqual({
      status: 'success',
      from: '11.4.0.6285',
      to: '11.5.0.6825',
      reachable: 2,
      drift: [],
    });
    expect(await read('/admin')).toMatchObject({ fullVersion: '11.5.0.6825' });
    await server.runtime.advance(1000);
    expect(JSON.parse(bodies[0] ?? '')).toMatchObject({
      type: 'VersionAdopted',
      data: { from: '11.4.0.6285', to: '11.5.0.6825' },
    });
    const { entries } = await read<{ entries: { changes: object[] }[] }>('/admin/system/audit');
    expect(entries[0]?.changes).toContainEqual({
      field: 'installedVersion',
      before: '11.4.0.6285',
      after: '11.5.0.6825',
    });
    // Once more, it changes nothing.
    await post('adopt', { installedVersion: '11.5.0.6825' });
    await server.runtime.advance(1000);
    expect(bodies).toHaveLength(1);
  });

  it('says when nothing can be reached', async () => {
    await start({ present: freshDeployment });
    const notice =
      'No version of the manifest follows 10.9.1.1234. The manifest begins after 11.5.0.6745. ' +
      'The operation adopt declares another installed version.';
    expect((await postManifest('manifest-12.0')).json()).toEqual({ status: 'success', reachable: 0, notice });
    for (const page of [upgrades, `${upgrades}/available`]) {
      const { body } = await server.get(`${page}?f=html&token=${server.token('administrator')}`);
      expect(body).toContain(notice);
      expect(body).toContain('Adopt a version');
    }
    const form = await server.get(`${upgrades}/adopt?f=html&token=${server.token('administrator')}`);
    expect(form.body).toContain('<option value="11.5.0.6745">');
    expect((await post('adopt', { installedVersion: '11.5.0.6835' })).json()).toMatchObject({ reachable: 1 });
  });

  it('refuses an unknown version, and names those that would do', async () => {
    await startAt('11.4.0.6285');
    const answer = await post('adopt', { installedVersion: '11.3.0.1' });
    expect(answer.statusCode).toBe(400);
    expect(answer.json<{ error: { details: string[] } }>().error.details[0]).toMatch(
      /^installedVersion: there is no such version; it must be the id of a version of the manifest, .*: 11\.4\.0\.6285, 11\.5\.0\.6745/,
    );
  });

  it('is refused while a job is scheduled or runs', async () => {
    await startAt('11.5.0.6745');
    const patch = { versionManifest: '{"id":"pat_12082025_6805"}' };
    const startAtTime = String(server.runtime.now() + 3_600_000);
    expect((await post('upgrade', { ...patch, startAt: startAtTime })).statusCode).toBe(200);
    expect((await post('adopt', { installedVersion: '11.5.0.6825' })).statusCode).toBe(409);
    const withManifest = { installedVersion: '11.5.0.6835' };
    expect((await postManifest('manifest-12.0', withManifest)).statusCode).toBe(409);
    // Both or neither.
    expect(buildsOf(await available())).toContain('6805');
    expect(await read('/admin')).toMatchObject({ fullVersion: '11.5.0.6745' });
  });

  it('comes with an imported manifest, and both or neither are accepted', async () => {
    await start({ present: freshDeployment });
    const refused = await postManifest('manifest-12.0', { installedVersion: '11.4.0.6285' });
    expect(refused.statusCode).toBe(400);
    expect(await read(`${upgrades}/manifestStatus`)).toMatchObject({ versionManifestSource: 'built-in' });
    const accepted = await postManifest('manifest-12.0', { installedVersion: '11.5.0.6835' });
    expect(accepted.json()).toEqual({ status: 'success', reachable: 1 });
    expect(await read('/admin')).toMatchObject({ fullVersion: '11.5.0.6835' });
    // The file that has the unlisted versions replaces them.
    expect((await postManifest('manifest-11.5-to-12.0')).json()).toEqual({ status: 'success', reachable: 1 });
  });
});

describe('an unknown version', () => {
  const empty: BaseManifest = { source: 'file', versions: [], digest: 'empty' };

  it('can be read everywhere, and blocks upgrade, plan and rollback until one is adopted', async () => {
    await start({ manifest: empty });
    expect(await read('/admin')).toMatchObject({ currentVersion: null, fullVersion: null });
    expect(await read(`${upgrades}/installed`)).toEqual({ updates: [] });
    expect(await read(`${upgrades}/currentVersion`)).toEqual({ messages: [] });
    expect(await read(`${upgrades}/checkRollback`)).toEqual({ updates: [] });
    expect(await available()).toEqual([]);
    expect((await server.get('/rest/info')).json()).toMatchObject({ currentVersion: null });
    expect((await server.get('/rest/services')).json()).toMatchObject({ currentVersion: null });
    expect((await server.get('/ready')).statusCode).toBe(200);
    const versionManifest = '{"id":"rel_11122025_7286"}';
    for (const operation of ['upgrade', 'plan', 'rollback']) {
      const answer = await post(operation, { versionManifest, upgradeSettings: '{}' });
      expect([operation, answer.statusCode]).toEqual([operation, 409]);
      expect(answer.json<{ error: { message: string } }>().error.message).toMatch(
        /^The installed version is not known/,
      );
    }
    for (const page of ['/admin', upgrades, `${upgrades}/available`]) {
      const { body } = await server.get(`${page}?f=html&token=${server.token('administrator')}`);
      expect(body).toContain('The installed version is not known');
      expect(body).toContain('Adopt a version');
    }
    await postManifest('manifest-11.5-to-12.0', { installedVersion: '11.5.0.6825' });
    expect(buildsOf(await available())).toEqual(['6835', '7286']);
  });

  it('is decided as soon as a manifest with a release is imported', async () => {
    await start({ manifest: empty });
    expect((await postManifest('manifest-11.5-to-12.0')).json()).toEqual({ status: 'success', reachable: 6 });
    expect(await read('/admin')).toMatchObject({ fullVersion: '11.5.0.6745' });
    const entry = { user: null, operation: 'system/upgrades/adopt' };
    expect((await read<{ entries: object[] }>('/admin/system/audit')).entries[0]).toMatchObject(entry);
  });
});
