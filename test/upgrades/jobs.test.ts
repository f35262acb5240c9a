// Upgrade jobs through the API: what they say, what is closed while they run, how they fail, resume, cancel and go back.
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { codes as allCodes } from '../../src/upgrades/messages.ts';
import { type Server, type ServerOptions, startServer } from '../kit/server.ts';

let server: Server;
const running: Server[] = [];
afterEach(async () => {
  for (const each of running.splice(0)) await each.close();
});

async function start(env: Record<string, string> = {}, options: ServerOptions = {}): Promise<void> {
  server = await startServer({ env: { UPGRADE_STEP_MS: '1000', ...env }, ...options });
  running.push(server);
}

const admin = 'token-of-the-administrator';
const upgrades = '/admin/system/upgrades';
const patch1 = 'pat_17022022_1250';
const patch2 = 'pat_28042022_1260';
const eleven = 'rel_14072022_2632';
const license = { name: 'license.json', content: '{"license":true}' };

type Message = { code: number; message: string; when: number };
type Status = {
  status: { state: string; code: number; messages: Message[] };
  jobId: string;
  messageCount: number;
  progress: { done: number; total: number; percent: number; elapsedMs: number; remainingMs: number | null };
};
type Failure = { error: { code: number; message: string; details: string[] } };

const upgrade = (id: string, parts: Parameters<Server['postParts']>[1] = {}) =>
  server.postParts(`${upgrades}/upgrade`, { versionManifest: JSON.stringify({ id }), ...parts }, admin);
const release = (parts: Parameters<Server['postParts']>[1] = {}) =>
  upgrade(eleven, { upgradeSettings: '{}', licenseFile: license, ...parts });
const get = async <T>(path: string) =>
  (await server.get(`${path}${path.includes('?') ? '&' : '?'}token=${admin}`)).json<T>();
const status = () => get<Status>(upgrades);
const codesOf = ({ status: { messages } }: Status) => messages.map(({ code }) => code);
const hour = 3_600_000;

/** Lets the clock run until the job has ended. */
async function finish(): Promise<Status> {
  await server.world.advance(hour);
  return status();
}

/** Turns [a, b, b, b, c] into "a b×3 c", with runs of several codes written out. */
const deploymentCodes = (count: number) => Array.from({ length: count }, () => [2101, 2038, 2103, 2175]);

describe('a release', () => {
  it('answers at once with the state and one message, and is read-only from then on', async () => {
    await start();
    const response = await release();
    expect(response.statusCode, response.body).toBe(200);
    expect(response.json()).toMatchObject({
      status: {
        state: 'in_progress',
        code: 1,
        messages: [
          {
            code: 2010,
            message: 'Upgrade from 10.9.1.1234 to 11.0.0.2632 started.',
            when: server.world.now(),
          },
        ],
      },
      messageCount: 1,
      progress: { done: 0, total: 48, percent: 0, elapsedMs: 0, remainingMs: null },
    });
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: true, reason: 'upgrade' });
  });

  it('says everything in the contract’s order, ends with 48 out of 48, and the version is the new one', async () => {
    await start();
    await release();
    const done = await finish();
    expect(done.status).toMatchObject({ state: 'success', code: 3 });
    const codes = codesOf(done);
    expect(codes.slice(0, 21)).toEqual([
      ...[2010, 2168, 2165, 2270, 2287, 2094, 2281, 2288, 2271],
      ...[2108, 2087, 2144, 2153, 2145, 2090, 2093, 2092, 2151, 2148, 2149, 2109],
    ]);
    expect(codes.slice(-12)).toEqual([
      2187, 2188, 2179, 2180, 2181, 2178, 2185, 2191, 2192, 2166, 2011, 2012,
    ]);
    const deployments = codes.slice(21, -12).filter((code) => code !== 2134 && code !== 2132);
    expect(deployments).toEqual(deploymentCodes(48).flat());
    expect(codes.slice(21, 28)).toEqual([2134, 2101, 2038, 2103, 2175, 2101, 2038]);
    const texts = done.status.messages.map(({ message }) => message);
    expect(texts.filter((text) => text.includes('out of')).at(-1)).toMatch(
      /^48 out of 48 deployments updated\. Elapsed: \d+ milliseconds \(approximately \d+ minutes\)\.$/,
    );
    expect(texts.at(-2)).toMatch(/^Upgrade completed in 0 hh, \d+ min, \d+ sec, 0 millisec\.$/);
    expect(texts.at(-1)).toBe('The deployment was upgraded successfully from 10.9.1.1234 to 11.0.0.2632.');
    const databases = JSON.parse(texts[codes.indexOf(2153)] ?? '') as Record<string, unknown>;
    expect(Object.values(databases).every((entry) => JSON.stringify(entry) === '{"status":"success"}')).toBe(
      true,
    );
    expect(
      done.status.messages.every(
        ({ when }, index, all) => index === 0 || when >= (all[index - 1]?.when ?? 0),
      ),
    ).toBe(true);
    expect(done.progress).toMatchObject({ done: 48, total: 48, percent: 100, remainingMs: 0 });
    expect(await get('/admin')).toMatchObject({ currentVersion: '11.0.0', fullVersion: '11.0.0.2632' });
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: false, reason: null });
  });

  it('brings the patches along with updateToLatestPatch, counting on', async () => {
    await start();
    await release({ updateToLatestPatch: 'True' });
    const done = await finish();
    const codes = codesOf(done);
    expect(codes.slice(codes.lastIndexOf(2192) + 1)).toEqual([
      ...(Array(9).fill([2291, 2038, 2173]).flat() as number[]),
      2166,
      2011,
      2012,
    ]);
    const counts = done.status.messages.flatMap(
      ({ message }) => /^(\d+) out of/.exec(message)?.slice(1).map(Number) ?? [],
    );
    expect(counts).toEqual(Array.from({ length: 57 }, (_, i) => i + 1));
    expect(await get('/admin')).toMatchObject({ fullVersion: '11.0.0.2670' });
    const installed = await get<{ updates: { build: string }[] }>(`${upgrades}/installed`);
    expect(installed.updates.map(({ build }) => build)).toEqual(['2632', '2650', '2670']);
  });

  it('goes on to 11.1 once the mandatory patch is in, by the spec’s procedure', async () => {
    await start();
    await release({ updateToLatestPatch: 'True' });
    await finish();
    const uploaded = (await server.postParts('/admin/uploads/upload', { itemFile: license }, admin)).json<{
      item: { itemID: string };
    }>();
    const id = 'rel_18052023_3923';
    const asked = (
      await server.post(`${upgrades}/getUpgradeSettings`, { token: admin, upgradeId: JSON.stringify({ id }) })
    ).json<{
      userInputs: { id: string; value: unknown }[];
    }>();
    for (const entry of asked.userInputs)
      if (entry.id === 'licenseUpload') entry.value = uploaded.item.itemID;
    const response = await upgrade(id, { upgradeSettings: JSON.stringify(asked) });
    expect(response.statusCode, response.body).toBe(200);
    expect((await finish()).status.state).toBe('success');
    expect(await get('/admin')).toMatchObject({ fullVersion: '11.1.0.3923' });
  });
});

describe('while a job runs', () => {
  it('its children are closed, a second job and other writes are refused, reading goes on', async () => {
    await start();
    await upgrade(patch1);
    for (const child of [
      'available',
      'installed',
      'currentVersion',
      'history',
      'history/x',
      'manifestStatus',
      'checkRollback',
    ]) {
      expect((await server.get(`${upgrades}/${child}?token=${admin}`)).statusCode, child).toBe(409);
    }
    for (const child of [
      'getUpgradeSettings',
      'plan',
      'upgrade',
      'rollback',
      'importManifest',
      'deleteImportedManifest',
    ]) {
      expect((await server.post(`${upgrades}/${child}`, { token: admin })).statusCode, child).toBe(409);
    }
    expect(
      (await server.post('/admin/services/createFolder', { token: admin, folderName: 'x' })).statusCode,
    ).toBe(503);
    expect((await server.post('/admin/mode/update', { token: admin, isReadOnly: 'false' })).statusCode).toBe(
      409,
    );
    expect((await server.post('/admin/mode/update', { token: admin, isReadOnly: 'true' })).statusCode).toBe(
      200,
    );
    const { jobs } = await get<{ jobs: { id: string; state: string }[] }>('/admin/system/jobs');
    expect(jobs).toMatchObject([{ state: 'in_progress' }]);
    expect(await get(`/admin/system/jobs/${jobs[0]?.id ?? ''}`)).toMatchObject({
      status: { state: 'in_progress' },
    });
    await finish();
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: true, reason: 'administrator' });
  });

  it('of many upgrades asked for at once one is accepted', async () => {
    await start();
    const answers = await Promise.all(Array.from({ length: 50 }, () => upgrade(patch1)));
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    expect(answers.filter(({ statusCode }) => statusCode === 409)).toHaveLength(49);
  });

  it('tells what is new to whoever waits for it', async () => {
    await start();
    await upgrade(patch1);
    const { jobId } = await status();
    const waiting = get<Status>(`${upgrades}?after=1&wait=60`);
    await new Promise(setImmediate);
    await server.world.advance(1000);
    expect(codesOf(await waiting)).toEqual([2168]);
    const inVain = get<Status>(`${upgrades}?after=1000&wait=3`);
    await new Promise(setImmediate);
    await server.world.advance(3000);
    expect((await inVain).status.messages).toEqual([]);
    expect((await get<Status>(`${upgrades}?after=1000&wait=60&jobId=another`)).jobId).toBe(jobId);
    await finish();
    expect((await get<Status>(`${upgrades}?after=1000&wait=60`)).status.state).toBe('success');
  });

  it('what it uses cannot be deleted', async () => {
    await start();
    const { item } = (await server.postParts('/admin/uploads/upload', { itemFile: license }, admin)).json<{
      item: { itemID: string };
    }>();
    const upgradeSettings = JSON.stringify({ userInputs: [{ id: 'licenseUpload', value: item.itemID }] });
    await upgrade(eleven, { upgradeSettings });
    expect((await server.post(`/admin/uploads/${item.itemID}/delete`, { token: admin })).statusCode).toBe(
      503,
    );
    await finish();
    expect((await server.post(`/admin/uploads/${item.itemID}/delete`, { token: admin })).statusCode).toBe(
      200,
    );
  });
});

describe('what is refused', () => {
  it('leaves no job, no message and no read-only moment, and tells every problem', async () => {
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
    [
      '{"id":"rel_18052023_3923"}',
      'versionManifest: 11.1.0.3923 follows build 2632; installed is 10.9.1.1234.',
    ],
    ['rel_18052023_3923', 'versionManifest: must be a JSON object of the form {"id": "…"}.'],
    ['{"id":1}', 'versionManifest: must be a JSON object of the form {"id": "…"}.'],
    ['', 'versionManifest: is required.'],
  ])('versionManifest=%s', async (versionManifest, problem) => {
    await start();
    const response = await server.post(`${upgrades}/upgrade`, { token: admin, versionManifest });
    expect(response.statusCode).toBe(400);
    expect(response.json<Failure>().error.details).toContain(problem);
  });

  it('is what plan tells without starting anything', async () => {
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
    expect(patch.steps.flatMap(({ codes }) => codes)).toEqual([
      ...[
        2168,
        2165,
        2270,
        2287,
        2288,
        2271,
        ...(Array(9).fill([2291, 2038, 2173]).flat() as number[]),
        2179,
        2180,
        2181,
      ],
    ]);
    expect(patch.steps.map(({ seqNum }) => seqNum)).toEqual(patch.steps.map((_, index) => index));
    expect(await plan('nope')).toEqual({
      ...{ from: '10.9.1.1234', to: null, steps: [] },
      problems: ['versionManifest: there is no version with the id nope.'],
    });
    expect((await plan(eleven)).problems).toHaveLength(2);
    expect((await server.post(`${upgrades}/plan`, { token: admin })).statusCode).toBe(400);
    expect((await status()).status.state).toBe('no_upgrade');
  });

  it('is told with every other problem of the request', async () => {
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

  it('a member and a publisher may see and do none of it', async () => {
    await start();
    for (const path of [
      '/admin/system',
      upgrades,
      `${upgrades}/available`,
      '/admin/system/jobs',
      '/admin/uploads',
    ]) {
      expect((await server.get(`${path}?token=token-of-the-publisher`)).statusCode, path).toBe(403);
    }
  });
});

describe('a patch', () => {
  it('brings the earlier ones along as one list, and says so in order', async () => {
    await start();
    await upgrade(patch2, { upgradeSettings: '{}' });
    const done = await finish();
    expect(codesOf(done)).toEqual([
      ...[2010, 2168, 2165, 2270, 2287, 2288, 2271],
      ...(Array(9).fill([2291, 2038, 2173]).flat() as number[]),
      ...[2179, 2180, 2181, 2166, 2011, 2012],
    ]);
    expect(done.progress).toMatchObject({ done: 9, total: 9 });
    const current = await get<{ id: string; messages: unknown[] }>(`${upgrades}/currentVersion`);
    expect(current.id).toBe(patch2);
    expect(current.messages).toHaveLength(done.messageCount);
  });

  it('goes on to the newest with updateToLatestPatch', async () => {
    await start();
    expect((await upgrade(patch1, { updateToLatestPatch: 'True' })).json<Status>().progress.total).toBe(9);
    await finish();
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1260' });
  });

  it('that fails puts back what it moved, newest first, and goes on from there when resumed', async () => {
    await start({ SIMULATED_FAILURES: 'security_directory:1' });
    await upgrade(patch1);
    const failed = await finish();
    expect(failed.status).toMatchObject({ state: 'failed', code: 2 });
    // GATEWAY_INGRESS and GATEWAY_PROXY were moved, SECURITY_DIRECTORY fails.
    expect(codesOf(failed).slice(7)).toEqual([
      2291, 2038, 2173, 2291, 2038, 2173, 2291, 2901, 2904, 2904, 2904, 2166,
    ]);
    const texts = failed.status.messages.map(({ message }) => message);
    expect(texts.at(-5)).toBe(
      'The job failed at the step "Update module SECURITY_DIRECTORY": the update of SECURITY_DIRECTORY fails by SIMULATED_FAILURES.',
    );
    expect(texts.at(-4)).toBe(
      'The workload SECURITY_DIRECTORY was put back to its former image security-directory:10.9.1.1234.',
    );
    expect(texts.at(-2)).toContain('GATEWAY_INGRESS');
    expect(failed.progress).toMatchObject({ done: 0, total: 4 });
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1234' });
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: false });

    const resumed = await server.post(`/admin/system/jobs/${failed.jobId}/resume`, { token: admin });
    expect(codesOf(resumed.json<Status>()).slice(-2)).toEqual([2902, 2165]);
    expect(resumed.json<Status>().status.messages.at(-2)?.message).toBe(
      'The job was resumed by administrator.',
    );
    const done = await finish();
    expect(codesOf(done).slice(failed.messageCount)).toEqual([
      ...[
        2902,
        2165,
        ...(Array(4).fill([2291, 2038, 2173]).flat() as number[]),
        2179,
        2180,
        2181,
        2166,
        2011,
        2012,
      ],
    ]);
    expect(
      (await server.post(`/admin/system/jobs/${failed.jobId}/resume`, { token: admin })).statusCode,
    ).toBe(409);
  });

  it('is cancelled at the next border, putting back what it moved', async () => {
    await start();
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await server.world.advance(9500);
    const asked = await server.post(`/admin/system/jobs/${jobId}/cancel`, { token: admin });
    expect(asked.json<Status>().status.state).toBe('in_progress');
    const done = await finish();
    expect(done.status).toMatchObject({ state: 'cancelled', code: 4 });
    expect(codesOf(done).slice(7)).toEqual([2291, 2038, 2173, 2291, 2903, 2904, 2166]);
    expect(done.status.messages.find(({ code }) => code === 2903)?.message).toBe(
      'The job was cancelled by administrator.',
    );
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1234' });
    for (const operation of ['cancel', 'resume']) {
      expect(
        (await server.post(`/admin/system/jobs/${jobId}/${operation}`, { token: admin })).statusCode,
      ).toBe(409);
    }
  });

  it('that fails after it was asked to be cancelled says why, and is cancelled', async () => {
    await start({ SIMULATED_FAILURES: 'gateway_proxy' });
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await server.world.advance(10_500);
    await server.post(`/admin/system/jobs/${jobId}/cancel`, { token: admin });
    const done = await finish();
    expect(done.status.state).toBe('cancelled');
    expect(codesOf(done).slice(7)).toEqual([2291, 2038, 2173, 2291, 2901, 2903, 2904, 2904, 2166]);
  });

  it('cancelled before it began still enters and leaves read-only mode once', async () => {
    await start();
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await server.post(`/admin/system/jobs/${jobId}/cancel`, { token: admin });
    expect(codesOf(await finish())).toEqual([2010, 2168, 2165, 2903, 2166]);
  });

  it('that outlasts its deadline fails', async () => {
    await start({ UPGRADE_STEP_MS: '5000', UPGRADE_STEP_TIMEOUT_SECONDS: '2' });
    await upgrade(patch1);
    const failed = await finish();
    expect(failed.status.state).toBe('failed');
    expect(codesOf(failed)).toEqual([2010, 2165, 2901, 2166]);
    expect(failed.status.messages.at(2)?.message).toContain('it took longer than 2 seconds.');
  });
});

describe('a failed release', () => {
  it('stays where it is: only resuming it or upgrading to the same version is accepted', async () => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:2' });
    const { jobId } = (await release()).json<Status>();
    const failed = await finish();
    expect(codesOf(failed).slice(-2)).toEqual([2901, 2166]);
    expect(failed.status.state).toBe('failed');
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1234' });
    const refused = await upgrade(patch1);
    expect(refused.statusCode).toBe(409);
    expect(refused.json<Failure>().error.message).toContain(jobId);
    const plan = await server.post(`${upgrades}/plan`, {
      token: admin,
      versionManifest: JSON.stringify({ id: patch1 }),
    });
    expect(plan.json<{ problems: string[] }>().problems[0]).toContain(jobId);
    await server.post(`/admin/system/jobs/${jobId}/resume`, { token: admin });
    const resumed = await status();
    expect(resumed.progress.done).toBeGreaterThan(10);
    expect(resumed.progress.remainingMs).toBeNull();
    const again = await finish();
    expect(codesOf(again).slice(failed.messageCount)).toEqual([2902, 2165, 2901, 2166]);
    expect((await release()).statusCode).toBe(200);
    expect((await finish()).status.state).toBe('success');
    const { history } = await get<{ history: { state: string; startedBy: string; to: string }[] }>(
      `${upgrades}/history`,
    );
    expect(history).toMatchObject([
      { state: 'success', startedBy: 'administrator', to: '11.0.0.2632' },
      { state: 'failed', startedBy: 'administrator', to: '11.0.0.2632' },
    ]);
  });

  it('stands until it is mended, also when mending it is cancelled', async () => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    const failed = (await release()).json<Status>();
    await finish();
    const { jobId } = (await release()).json<Status>();
    await server.post(`/admin/system/jobs/${jobId}/cancel`, { token: admin });
    expect((await finish()).status.state).toBe('cancelled');
    const refused = await upgrade(patch1);
    expect(refused.statusCode).toBe(409);
    expect(refused.json<Failure>().error.message).toContain(failed.jobId);
    expect((await release()).statusCode).toBe(200);
  });

  it('can be cancelled until its plan is being executed', async () => {
    await start();
    const { jobId } = (await release()).json<Status>();
    const cancel = () => server.post(`/admin/system/jobs/${jobId}/cancel`, { token: admin });
    await server.world.advance(8000);
    expect((await status()).status.messages.at(-1)?.code).toBe(2271);
    expect((await cancel()).statusCode).toBe(409);
    await finish();
    await start();
    const early = (await release()).json<Status>();
    await server.world.advance(3000);
    expect((await server.post(`/admin/system/jobs/${early.jobId}/cancel`, { token: admin })).statusCode).toBe(
      200,
    );
    const done = await finish();
    expect(done.status.state).toBe('cancelled');
    expect(codesOf(done).slice(-2)).toEqual([2903, 2166]);
  });
});

describe('a rollback', () => {
  it('goes back to an earlier patch or the release, and says so in order', async () => {
    await start();
    await upgrade(patch2);
    await finish();
    const targets = await get<{ updates: { id: string }[] }>(`${upgrades}/checkRollback`);
    expect(targets.updates.map(({ id }) => id)).toEqual([patch1, 'rel_10092021_1234']);
    const back = (id: string) =>
      server.post(`${upgrades}/rollback`, { token: admin, versionManifest: JSON.stringify({ id }) });
    expect((await back(patch2)).statusCode).toBe(400);
    const { jobId } = (await back('rel_10092021_1234')).json<Status>();
    await server.world.advance(4500);
    expect((await server.post(`/admin/system/jobs/${jobId}/cancel`, { token: admin })).statusCode).toBe(409);
    const done = await finish();
    expect(codesOf(done)).toEqual([
      ...[
        2072,
        2168,
        2165,
        2270,
        2271,
        ...(Array(9).fill([2904, 2173]).flat() as number[]),
        2166,
        2011,
        2905,
      ],
    ]);
    expect(done.status.messages.at(-1)?.message).toBe(
      'The deployment was rolled back from 10.9.1.1260 to 10.9.1.1234.',
    );
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1234' });
    expect(await get(`${upgrades}/currentVersion`)).toMatchObject({ id: 'rel_10092021_1234', messages: [] });
    expect((await back(patch1)).json<Failure>().error.details).toEqual([
      `versionManifest: ${patch1} is nothing to go back to; no patch is installed.`,
    ]);
  });
});

describe('a rollback of what a patch brought new', () => {
  it('takes it away again, and the version gone back to keeps the messages of its job', async () => {
    await start();
    const at = (id: string, build: string, previousBuild: string, more: object) => ({
      ...{
        id,
        type: 'patch',
        version: '10.9.1',
        build,
        releaseBuild: '1234',
        previousBuild,
        containers: [],
        ...more,
      },
    });
    const content = JSON.stringify([
      at('one', '1300', '1234', { containers: [{ name: 'MAP_SERVER', image: 'map:1300' }] }),
      at('two', '1301', '1300', { newContainers: [{ name: 'BRAND_NEW', image: 'new:1301' }] }),
    ]);
    const installed = (await upgrade('two', { versionManifestFile: { name: 'm', content } })).json<Status>();
    await finish();
    await server.post(`${upgrades}/rollback`, { token: admin, versionManifest: '{"id":"one"}' });
    const done = await finish();
    expect(codesOf(done).slice(5, -3)).toEqual([2904, 2173]);
    expect(done.status.messages[5]?.message).toBe(
      'The workload BRAND_NEW was taken away: it had no former image.',
    );
    const current = await get<{ id: string; messages: Message[] }>(`${upgrades}/currentVersion`);
    expect(current.id).toBe('one');
    expect(current.messages).toHaveLength(
      (await get<Status>(`/admin/system/jobs/${installed.jobId}`)).messageCount,
    );
  });
});

describe('an interrupted process', () => {
  it('leaves the job to the next one, which goes on at the first step not done', async () => {
    await start();
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await server.world.advance(9500);
    const before = await status();
    await server.close();
    running.pop();
    await start({}, { store: await server.store.reopen() });
    const after = await status();
    expect(after.jobId).toBe(jobId);
    expect(codesOf(after)).toEqual([...codesOf(before), 2902]);
    expect(after.status.messages.at(-1)?.message).toBe('The job was resumed after a restart.');
    const done = await finish();
    expect(codesOf(done).filter((code) => code !== 2902)).toEqual([
      ...[2010, 2168, 2165, 2270, 2287, 2288, 2271],
      ...(Array(4).fill([2291, 2038, 2173]).flat() as number[]),
      ...[2179, 2180, 2181, 2166, 2011, 2012],
    ]);
  });
});

describe('the manifest', () => {
  const importFile = (content: string) =>
    server.postParts(`${upgrades}/importManifest`, { manifestFile: { name: 'm.json', content } }, admin);
  const own = JSON.stringify([
    {
      id: 'pat_own',
      type: 'patch',
      version: '10.9.1',
      build: '1300',
      releaseBuild: '1234',
      previousBuild: '1234',
      containers: [{ name: 'MAP_SERVER', image: 'map:1300' }],
    },
  ]);

  it('is replaced by an imported one until that is deleted', async () => {
    await start();
    expect(await get(`${upgrades}/manifestStatus`)).toEqual({
      versionManifestSource: 'built-in',
      lastImportedTimestamp: null,
    });
    expect((await importFile(own)).json()).toEqual({ status: 'success' });
    expect(await get(`${upgrades}/manifestStatus`)).toEqual({
      versionManifestSource: 'imported',
      lastImportedTimestamp: server.world.now(),
    });
    expect(await get(`${upgrades}/available`)).toMatchObject([
      { id: 'pat_own', installable: true, reasons: [] },
    ]);
    await server.post(`${upgrades}/deleteImportedManifest`, { token: admin });
    expect(await get<unknown[]>(`${upgrades}/available`)).toHaveLength(7);
  });

  it('is refused whole with every reason', async () => {
    await start();
    const response = await importFile(JSON.stringify([{ id: 'x' }, { id: 'y', type: 'release' }]));
    expect(response.statusCode).toBe(400);
    expect(response.json<Failure>().error.details.length).toBeGreaterThan(3);
    expect(response.json<Failure>().error.details[0]).toBe(
      'manifestFile: [0].type: must be release or patch.',
    );
    expect(await get(`${upgrades}/manifestStatus`)).toMatchObject({ versionManifestSource: 'built-in' });
  });

  it('comes along with an upgrade, and is kept only when that is accepted', async () => {
    await start();
    const versionManifestFile = { name: 'm.json', content: own };
    expect((await upgrade('nope', { versionManifestFile })).statusCode).toBe(400);
    expect(await get(`${upgrades}/manifestStatus`)).toMatchObject({ versionManifestSource: 'built-in' });
    expect((await upgrade('pat_own', { versionManifestFile })).statusCode).toBe(200);
    await finish();
    expect(await get(`${upgrades}/manifestStatus`)).toMatchObject({ versionManifestSource: 'imported' });
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1300' });
  });

  it('an empty file part counts as none', async () => {
    await start();
    const empty = { name: '', content: '' };
    expect((await upgrade(patch1, { versionManifestFile: empty, licenseFile: empty })).statusCode).toBe(200);
  });
});

it('the README and the spec name the same codes as the table', () => {
  const spec = [
    ...[
      2010, 2011, 2012, 2165, 2166, 2168, 2270, 2271, 2287, 2288, 2094, 2281, 2291, 2173, 2175, 2108, 2109,
      2087, 2090,
    ],
    ...[
      2092, 2093, 2144, 2145, 2153, 2148, 2149, 2151, 2134, 2132, 2038, 2101, 2103, 2187, 2188, 2179, 2180,
      2181, 2178,
    ],
    ...[2185, 2191, 2192],
  ];
  expect([...allCodes].sort()).toEqual([...spec, 2072, 2901, 2902, 2903, 2904, 2905].sort());
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  for (const code of [2072, 2901, 2902, 2903, 2904, 2905]) expect(readme).toContain(`| ${code} |`);
});
