// The digest of a plan: an upgrade that names it starts exactly the plan that was read.
import { describe, expect, it } from 'vitest';
import type { Server } from '../kit/server.ts';
import { createTestStore } from '../kit/store.ts';
import { patchOf, releaseOf } from '../kit/versions.ts';
import { type Failure, admin, eleven, patch1, patch2, upgrades, useJobs } from './jobs-kit.ts';

const { server, start, upgrade, get, status } = useJobs();

const patch = (image: string, more: object = {}) => ({
  ...patchOf('pat_own'),
  containers: [{ name: 'MAP_SERVER', image, ...more }],
});
const fileOf = (...versions: object[]) => ({ name: 'm.json', content: JSON.stringify(versions) });
const importVersions = (...versions: object[]) =>
  server.postParts(`${upgrades}/importManifest`, { manifestFile: fileOf(...versions) }, admin);

async function digestOf(id: string, parts: Parameters<Server['postParts']>[1] = {}): Promise<string> {
  const versionManifest = JSON.stringify({ id });
  const response = await server.postParts(`${upgrades}/plan`, { versionManifest, ...parts }, admin);
  return response.json<{ digest: string }>().digest;
}

describe('the digest of a plan', () => {
  it('is the same until the plan changes, also for the next process', async () => {
    await start();
    await importVersions(patch('good:1'));
    const digest = await digestOf('pat_own');
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect(await digestOf('pat_own')).toBe(digest);
    await server.close();
    await start({}, { store: await server.store.reopen() });
    expect(await digestOf('pat_own')).toBe(digest);
    expect(await digestOf('pat_own', { versionManifestFile: fileOf(patch('good:1')) })).toBe(digest);
  });

  it('depends on versions, images, checksums and steps', async () => {
    await start();
    const versions = [
      patch('good:1'),
      patch('evil:0'),
      patch('good:1', { checksum: `sha256:${'0'.repeat(64)}` }),
      patch('good:1', { name: 'MAP_TILES' }),
      { ...patch('good:1'), build: '1301' },
    ];
    const digests = new Set<string>();
    for (const version of versions)
      digests.add(await digestOf('pat_own', { versionManifestFile: fileOf(version) }));
    for (const id of [patch1, patch2]) digests.add(await digestOf(id));
    digests.add(await digestOf(patch1, { updateToLatestPatch: 'true' }));
    // The last one installs both patches, like the one before it.
    expect(digests.size).toBe(versions.length + 2);
  });

  it('depends on the versions of every hop', async () => {
    await start();
    const release = (id: string, build: string, previousReleaseBuild: string) => ({
      ...releaseOf(id, build, previousReleaseBuild),
      containers: [{ name: 'MAP_SERVER', image: 'server:1' }],
    });
    const hop = {
      ...patch('server:2'),
      releaseBuild: '2000',
      previousBuild: '2000',
      isMandatoryUpdate: true,
    };
    const digestWith = (between: object) =>
      digestOf('rel_b', {
        upgradeSettings: '{}',
        versionManifestFile: fileOf(
          release('rel_a', '2000', '1234'),
          between,
          release('rel_b', '3000', '2000'),
        ),
      });
    const digests = new Set<string>();
    for (const changed of [{}, { id: 'pat_zz' }, { build: '2999' }, { version: '10.9.3' }])
      digests.add(await digestWith({ ...hop, build: '2100', version: '10.9.2', ...changed }));
    const checked = { name: 'MAP_SERVER', image: 'server:2', checksum: `sha256:${'0'.repeat(64)}` };
    digests.add(await digestWith({ ...hop, build: '2100', version: '10.9.2', containers: [checked] }));
    expect(digests.size).toBe(5);
    expect([...digests].join(' ')).toMatch(/^[0-9a-f]{64}( [0-9a-f]{64}){4}$/);
  });
});

describe('an upgrade with the digest of a plan', () => {
  it('is refused if a manifest with another image was imported in the meantime', async () => {
    await start();
    await importVersions(patch('good:1'));
    const planDigest = await digestOf('pat_own');
    await importVersions(patch('evil:0'));
    const response = await upgrade('pat_own', { planDigest });
    expect(response.statusCode).toBe(409);
    expect(response.json<Failure>().error).toEqual({
      code: 409,
      message: 'The plan has changed. Read the new plan, then start the upgrade.',
      details: ['planDigest: is not the digest of the present plan.'],
    });
    expect((await status()).status.state).toBe('no_upgrade');
    // Without a digest nothing ties the upgrade to the plan.
    expect((await upgrade('pat_own')).statusCode).toBe(200);
  });

  it('is refused if the manifest is imported between the check and the start of the job', async () => {
    const store = await createTestStore();
    await start({}, { store });
    await importVersions(patch('good:1'));
    const planDigest = await digestOf('pat_own');
    const update = store.update.bind(store);
    let isFirst = true;
    store.update = async (rule) => {
      if (isFirst) {
        isFirst = false;
        await importVersions(patch('evil:0'));
      }
      return update(rule);
    };
    expect((await upgrade('pat_own', { planDigest })).statusCode).toBe(409);
    expect(isFirst).toBe(false);
    expect((await status()).status.state).toBe('no_upgrade');
  });

  it('does not import its manifest if it is refused, and starts if the plan is still the same', async () => {
    await start();
    const planDigest = await digestOf('pat_own', { versionManifestFile: fileOf(patch('good:1')) });
    const send = (image: string) =>
      upgrade('pat_own', { planDigest, versionManifestFile: fileOf(patch(image)) });
    expect((await send('evil:0')).statusCode).toBe(409);
    expect(await get(`${upgrades}/manifestStatus`)).toMatchObject({ versionManifestSource: 'built-in' });
    expect((await send('good:1')).statusCode).toBe(200);
  });

  it('is refused with 400 for a text that is no digest, and for the problems of the plan', async () => {
    await start();
    const response = await upgrade(patch1, { planDigest: 'x' });
    expect(response.statusCode).toBe(400);
    expect(response.json<Failure>().error.details).toEqual([
      'planDigest: must be the digest of a plan: 64 digits of 0 to 9 and a to f.',
    ]);
    expect((await upgrade(eleven, { planDigest: '0'.repeat(64) })).statusCode).toBe(400);
  });
});
