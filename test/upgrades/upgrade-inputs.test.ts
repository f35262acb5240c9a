// How often a request for an upgrade reads its inputs: the inventory and the uploads, each once; and what happens if
// another request changes them before the job starts.
import { expect, it } from 'vitest';
import { realRuntime } from '../../src/lib/runtime.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { laterVersions } from '../kit/sample-manifest.ts';
import { deployment } from '../../src/upgrades/versions/deployment.ts';
import { createTestStore } from '../kit/store.ts';
import { releaseOf } from '../kit/versions.ts';
import { type Failure, admin, eleven, license, patch1, upgrades, useJobs } from './jobs-kit.ts';

const { server, start, finish, status } = useJobs();

/** Starts a server with an uploaded license; `count` makes a request and returns what the request read. */
async function startCounting() {
  const reads = { inventories: 0, fetches: [] as string[] };
  const executor = createSimulatedExecutor({ runtime: realRuntime, stepMs: 0, failures: new Map() });
  const inventory = executor.inventory.bind(executor);
  executor.inventory = () => {
    reads.inventories += 1;
    return inventory();
  };
  const store = await createTestStore();
  const content = (id: string) => {
    reads.fetches.push(id);
    return store.uploads.content(id);
  };
  await start({}, { executor, store: { ...store, uploads: { ...store.uploads, content } } });
  const uploaded = await server.postParts('/admin/uploads/upload', { itemFile: license }, admin);
  const { itemID } = uploaded.json<{ item: { itemID: string } }>().item;

  async function count(operation: string, fields: Record<string, string>) {
    reads.inventories = 0;
    reads.fetches = [];
    const { statusCode: status } = await server.post(`${upgrades}/${operation}`, { token: admin, ...fields });
    return { status, inventories: reads.inventories, fetches: [...reads.fetches] };
  }
  return { itemID, count };
}

it.each(['plan', 'upgrade'])('%s reads the inventory once and each upload once', async (operation) => {
  const { itemID, count } = await startCounting();
  const versionManifest = JSON.stringify({ id: eleven });
  const upgradeSettings = JSON.stringify({ userInputs: [{ id: 'licenseUpload', value: itemID }] });
  expect(await count(operation, { versionManifest, upgradeSettings })).toEqual({
    status: 200,
    inventories: 1,
    fetches: [itemID],
  });
});

it('plan reads an upload once, however often the settings name it, and only uploads that must be JSON', async () => {
  const { itemID, count } = await startCounting();
  const other = await server.postParts(
    '/admin/uploads/upload',
    { itemFile: { name: 'a.zip', content: 'x' } },
    admin,
  );
  const { itemID: archive } = other.json<{ item: { itemID: string } }>().item;
  const inputs = Array.from({ length: 50 }, (_, index) => ({
    id: `input_${index}`,
    type: 'File',
    validFileExtensions: index === 0 ? ['zip'] : ['json'],
  }));
  const release = {
    ...releaseOf('rel_own'),
    containers: [],
    userForm: [{ groupInputs: inputs }],
  };
  const manifestFile = { name: 'm.json', content: JSON.stringify([release]) };
  await server.postParts(`${upgrades}/importManifest`, { manifestFile }, admin);
  const userInputs = [
    ...inputs.map(({ id }, index) => ({ id, value: index === 0 ? archive : ` ${itemID} ` })),
    { id: 'unknown', value: archive },
  ];
  const versionManifest = JSON.stringify({ id: 'rel_own' });
  const upgradeSettings = JSON.stringify({ userInputs });
  expect(await count('plan', { versionManifest, upgradeSettings })).toMatchObject({ fetches: [itemID] });
  const tooMany = JSON.stringify({
    userInputs: Array.from({ length: 1001 }, () => ({ id: 'input_1', value: itemID })),
  });
  expect(await count('plan', { versionManifest, upgradeSettings: tooMany })).toMatchObject({ fetches: [] });
});

it('a refused upgrade and a rollback read the inventory once', async () => {
  const { count } = await startCounting();
  const refused = await count('upgrade', { versionManifest: JSON.stringify({ id: eleven }) });
  expect(refused).toEqual({ status: 400, inventories: 1, fetches: [] });
  const installed = await count('upgrade', { versionManifest: JSON.stringify({ id: patch1 }) });
  expect(installed).toEqual({ status: 200, inventories: 1, fetches: [] });
  expect((await finish()).status.state).toBe('success');
  const versionManifest = JSON.stringify({ id: 'rel_10092021_1234' });
  expect(await count('rollback', { versionManifest })).toEqual({ status: 200, inventories: 1, fetches: [] });
});

it.each([
  ['a control character', 'a\u0000b'],
  ['a long text', 'x'.repeat(5000)],
  ['half of a surrogate pair', '\ud800'],
])('an upload is not found by %s', async (_what, value) => {
  const { count } = await startCounting();
  const versionManifest = JSON.stringify({ id: eleven });
  const upgradeSettings = JSON.stringify({ userInputs: [{ id: 'licenseUpload', value }] });
  expect(await count('upgrade', { versionManifest, upgradeSettings })).toMatchObject({ status: 400 });
  const response = await server.post(`${upgrades}/plan`, { token: admin, versionManifest, upgradeSettings });
  expect(response.json<{ problems: string[] }>().problems).toEqual([
    expect.stringMatching(/^upgradeSettings: licenseUpload names the upload .*, which does not exist\.$/),
  ]);
});

/** Starts a server with an uploaded license. `meanwhile` runs between the check of the next upgrade and its start. */
async function startRace(meanwhile: (itemID: string) => Promise<unknown>) {
  const store = await createTestStore();
  await start({}, { store });
  const uploaded = await server.postParts('/admin/uploads/upload', { itemFile: license }, admin);
  const { itemID } = uploaded.json<{ item: { itemID: string } }>().item;
  const update = store.update.bind(store);
  let isFirst = true;
  store.update = async (rule) => {
    if (isFirst) {
      isFirst = false;
      await meanwhile(itemID);
    }
    return update(rule);
  };
  const upgradeSettings = JSON.stringify({ userInputs: [{ id: 'licenseUpload', value: itemID }] });
  const send = () =>
    server.post(`${upgrades}/upgrade`, {
      token: admin,
      versionManifest: `{"id":"${eleven}"}`,
      upgradeSettings,
    });
  return { itemID, send };
}

it('an upgrade is refused if the versions change between its check and its start, and accepted when it is repeated', async () => {
  const { send } = await startRace(() => {
    const manifestFile = { name: 'm.json', content: JSON.stringify(laterVersions) };
    return server.postParts(`${upgrades}/importManifest`, { manifestFile }, admin);
  });
  const refused = await send();
  expect(refused.statusCode).toBe(409);
  expect(refused.json<Failure>().error.message).toBe(
    'The versions have changed meanwhile. Send the request again.',
  );
  expect((await status()).status.state).toBe('no_upgrade');
  expect((await send()).statusCode).toBe(200);
});

it('an upgrade is refused if its upload is deleted between its check and its start', async () => {
  const { itemID, send } = await startRace((id) =>
    server.post(`/admin/uploads/${id}/delete`, { token: admin }),
  );
  const refused = await send();
  expect(refused.statusCode).toBe(400);
  expect(refused.json<Failure>().error.details).toEqual([
    `upgradeSettings: names the upload ${itemID}, which does not exist.`,
  ]);
  expect((await status()).status.state).toBe('no_upgrade');
});

it.each([
  [
    'something else changes',
    () => server.post('/admin/services/createFolder', { token: admin, folderName: 'Other' }),
  ],
  [
    'the store reads the same versions again',
    () =>
      server.store.update((transaction) =>
        transaction.write(deployment, structuredClone(transaction.read(deployment))),
      ),
  ],
])('an upgrade is accepted if %s between its check and its start', async (_what, meanwhile) => {
  const { send } = await startRace(meanwhile);
  expect((await send()).statusCode).toBe(200);
});
