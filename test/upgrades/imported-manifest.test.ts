// The imported manifest through the API: import, refusal, deletion, and a manifest sent with an upgrade.
import { describe, expect, it } from 'vitest';
import { type Failure, admin, patch1, upgrades, useJobs } from './jobs-kit.ts';
import { patchOf } from '../kit/versions.ts';

const { server, start, upgrade, get, finish } = useJobs();

describe('the version manifest', () => {
  const importFile = (content: string) =>
    server.postParts(`${upgrades}/importManifest`, { manifestFile: { name: 'm.json', content } }, admin);
  const own = JSON.stringify([
    {
      ...patchOf('pat_own'),
      containers: [{ name: 'MAP_SERVER', image: 'map:1300' }],
    },
  ]);

  it('is replaced by an imported one until the imported one is deleted', async () => {
    await start();
    expect(await get(`${upgrades}/manifestStatus`)).toEqual({
      versionManifestSource: 'built-in',
      importedFrom: null,
      lastImportedTimestamp: null,
    });
    expect((await importFile(own)).json()).toEqual({ status: 'success', reachable: 1 });
    expect(await get(`${upgrades}/manifestStatus`)).toEqual({
      versionManifestSource: 'imported',
      importedFrom: 'request',
      lastImportedTimestamp: server.runtime.now(),
    });
    expect(await get(`${upgrades}/available`)).toMatchObject([
      { id: 'pat_own', installable: true, reasons: [] },
    ]);
    await server.post(`${upgrades}/deleteImportedManifest`, { token: admin });
    expect(await get<unknown[]>(`${upgrades}/available`)).toHaveLength(7);
  });

  it('is refused as a whole, with every problem', async () => {
    await start();
    const response = await importFile(JSON.stringify([{ id: 'x' }, { id: 'y', type: 'release' }]));
    expect(response.statusCode).toBe(400);
    expect(response.json<Failure>().error.details.length).toBeGreaterThan(3);
    expect(response.json<Failure>().error.details[0]).toBe(
      'manifestFile: [0].type: must be release or patch.',
    );
    expect(await get(`${upgrades}/manifestStatus`)).toMatchObject({ versionManifestSource: 'built-in' });
  });

  it('can be sent with an upgrade, and is imported only if the upgrade is accepted', async () => {
    await start();
    const versionManifestFile = { name: 'm.json', content: own };
    expect((await upgrade('nope', { versionManifestFile })).statusCode).toBe(400);
    expect(await get(`${upgrades}/manifestStatus`)).toMatchObject({ versionManifestSource: 'built-in' });
    expect((await upgrade('pat_own', { versionManifestFile })).statusCode).toBe(200);
    await finish();
    expect(await get(`${upgrades}/manifestStatus`)).toMatchObject({ versionManifestSource: 'imported' });
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1300' });
  });

  it('is optional: an empty file part counts as absent', async () => {
    await start();
    const empty = { name: '', content: '' };
    expect((await upgrade(patch1, { versionManifestFile: empty, licenseFile: empty })).statusCode).toBe(200);
  });
});
