// Refused upgrades, and plans, which start nothing.
import { describe, expect, it } from 'vitest';
import { prepareUpgrade } from '../../src/upgrades/starting/preflight.ts';
import type { Inventory } from '../../src/upgrades/executors/workloads.ts';
import { simulatedInventory } from '../../src/upgrades/executors/simulated.ts';
import { freshRelease } from '../kit/sample-manifest.ts';
import { type Failure, admin, eleven, patch2, upgrades, useJobs } from './jobs-kit.ts';
import { codesOfPatch } from './message-codes.ts';

const { server, start, upgrade, get, status } = useJobs();

describe('a refused upgrade', () => {
  it('leaves no job, no message and no read-only mode, and reports every problem', async () => {
    await start();
    const response = await upgrade(eleven);
    expect(response.statusCode).toBe(400);
    expect(response.json<Failure>().error.details).toEqual([
      'upgradeSettings: is required for a release to 11.0.0.',
      'upgradeSettings: licenseUpload needs the id of an upload, or send licenseFile.',
    ]);
    expect(await status()).toEqual({ status: { state: 'no_upgrade', code: 0, messages: [] } });
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: false });
  });

  it.each([
    ['{"id":"nope"}', 'versionManifest: there is no version with the id nope.'],
    ['{"id":"rel_10092021_1234"}', 'versionManifest: 10.9.1.1234 is installed already.'],
    ['nope', 'versionManifest: there is no version with the id nope.'],
    ['rel_10092021_1234', 'versionManifest: 10.9.1.1234 is installed already.'],
    ['not an id', 'versionManifest: must be a JSON object of the form {"id": "…"}, or an id.'],
    ['{"id":1}', 'versionManifest: must be a JSON object of the form {"id": "…"}, or an id.'],
    ['', 'versionManifest: is required.'],
  ])('reports versionManifest=%s', async (versionManifest, problem) => {
    await start();
    const response = await server.post(`${upgrades}/upgrade`, { token: admin, versionManifest });
    expect(response.statusCode).toBe(400);
    expect(response.json<Failure>().error.details).toContain(problem);
  });

  it('is reported by plan, which starts nothing', async () => {
    await start();
    const plan = async (id: string, more = {}) =>
      (
        await server.post(`${upgrades}/plan`, {
          token: admin,
          versionManifest: JSON.stringify({ id }),
          ...more,
        })
      ).json<{
        from: string;
        to: string | null;
        steps: { seqNum: number; name: string; codes: number[] }[];
        problems: string[];
      }>();
    const patch = await plan(patch2);
    expect(patch).toMatchObject({ from: '10.9.1.1234', to: '10.9.1.1260', problems: [] });
    expect(patch.steps.flatMap(({ codes }) => codes)).toEqual(codesOfPatch(9).slice(1, -3));
    expect(patch.steps.map(({ seqNum }) => seqNum)).toEqual(patch.steps.map((_, index) => index));
    expect(await plan('nope')).toEqual({
      from: '10.9.1.1234',
      to: null,
      digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      steps: [],
      problems: ['versionManifest: there is no version with the id nope.'],
      notices: [],
    });
    expect((await plan(eleven)).problems).toHaveLength(2);
    expect((await server.post(`${upgrades}/plan`, { token: admin })).statusCode).toBe(400);
    expect((await status()).status.state).toBe('no_upgrade');
  });

  it('is reported together with every other problem of the request', async () => {
    await start();
    const bad = { updateToLatestPatch: 'maybe', versionManifestFile: { name: 'm.json', content: 'garbage' } };
    const both = (await upgrade('nope', bad)).json<Failure>().error.details;
    expect(both.map((detail) => detail.split(':')[0])).toEqual([
      'updateToLatestPatch',
      'versionManifestFile',
    ]);
    const unknown = (await upgrade('nope', { updateToLatestPatch: 'maybe' })).json<Failure>().error.details;
    expect(unknown).toEqual([
      'updateToLatestPatch: must be true or false.',
      'versionManifest: there is no version with the id nope.',
    ]);
  });
});

it.each([
  [10_000, []],
  [10_001, ['needs more than 10000 updates of workloads, which is the limit of one job.']],
])('a repair of %i workloads has the limit of every job', async (count, messages) => {
  await start();
  const workload = { name: 'a', component: 'a', parts: [] };
  const repair = { problems: [], notices: [], drift: 'All of them differ.', isKnown: true };
  const workloads = [Array.from({ length: count }, () => workload)];
  const inventory: Inventory = { ...simulatedInventory, planRepair: () => ({ ...repair, workloads }) };
  const given = { upgradeSettings: undefined, licenseFile: undefined, updateToLatestPatch: undefined };
  const submitted = { ...given, findUpload: () => undefined };
  const prepared = prepareUpgrade(server.store, freshRelease.id, submitted, undefined, inventory);
  expect(prepared.problems.map(({ message }) => message)).toEqual(messages);
  expect(prepared.plan.steps.length > 0).toBe(messages.length === 0);
});
