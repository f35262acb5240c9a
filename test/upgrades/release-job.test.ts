// A release through the API: its messages, failure and cancellation, and the list of message codes.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { codes as allCodes } from '../../src/upgrades/planning/messages.ts';
import {
  type Failure,
  type Status,
  admin,
  codesOf,
  eleven,
  license,
  patch1,
  upgrades,
  useJobs,
} from './jobs-kit.ts';

const { server, start, upgrade, release, get, status, finish } = useJobs();

/** The steps that the request would have, from its plan. */
async function planned(parts: Record<string, string> = {}) {
  const versionManifest = JSON.stringify({ id: eleven });
  const fields = { versionManifest, upgradeSettings: '{}', licenseFile: license, ...parts };
  const response = await server.postParts(`${upgrades}/plan`, fields, admin);
  const { steps } = response.json<{ steps: { id: string; codes: number[] }[] }>();
  return {
    steps: steps.length,
    deployments: steps.filter(({ id }) => id === 'update').length,
    codes: [2010, ...steps.flatMap(({ codes }) => codes), 2166, 2011, 2012],
  };
}

describe('a release', () => {
  it('answers at once, is read-only, records all messages in order, and changes the version', async () => {
    await start();
    const plan = await planned();
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
            when: server.runtime.now(),
          },
        ],
      },
      messageCount: 1,
      progress: {
        done: 0,
        total: plan.deployments,
        steps: { done: 0, total: plan.steps },
        percent: 0,
        elapsedMs: 0,
        remainingMs: null,
      },
    });
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: true, reason: 'upgrade' });
    const done = await finish();
    expect(done.status).toMatchObject({ state: 'success', code: 3 });
    const codes = codesOf(done);
    expect(codes).toEqual(plan.codes);
    const texts = done.status.messages.map(({ message }) => message);
    expect(texts.filter((text) => text.includes('out of'))).toEqual(
      Array.from(
        { length: plan.deployments },
        (_, index) =>
          expect.stringMatching(
            new RegExp(
              `^${index + 1} out of ${plan.deployments} deployments updated\\. Elapsed: \\d+ milliseconds \\(approximately \\d+ minutes\\)\\.$`,
            ),
          ) as string,
      ),
    );
    expect(texts.at(-2)).toMatch(/^Upgrade completed in 0 hh, \d+ min, \d+ sec, 0 millisec\.$/);
    expect(texts.at(-1)).toBe('The deployment was upgraded successfully from 10.9.1.1234 to 11.0.0.2632.');
    const databases = JSON.parse(texts[codes.indexOf(2153)] ?? '') as Record<string, unknown>;
    expect(Object.values(databases).every((entry) => JSON.stringify(entry) === '{"status":"success"}')).toBe(
      true,
    );
    expect(done.progress).toMatchObject({
      done: plan.deployments,
      total: plan.deployments,
      steps: { done: plan.steps, total: plan.steps },
      percent: 100,
      remainingMs: 0,
    });
    expect(await get('/admin')).toMatchObject({ currentVersion: '11.0.0', fullVersion: '11.0.0.2632' });
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: false, reason: null });
  });

  it('installs the patches too with updateToLatestPatch, continues the count, and leads to 11.1', async () => {
    await start();
    const plan = await planned({ updateToLatestPatch: 'true' });
    await release({ updateToLatestPatch: 'True' });
    const done = await finish();
    expect(codesOf(done)).toEqual(plan.codes);
    const counts = done.status.messages.flatMap(
      ({ message }) => /^(\d+) out of/.exec(message)?.slice(1).map(Number) ?? [],
    );
    expect(counts).toEqual(Array.from({ length: plan.deployments }, (_, i) => i + 1));
    expect(await get('/admin')).toMatchObject({ fullVersion: '11.0.0.2670' });
    const installed = await get<{ updates: { build: string }[] }>(`${upgrades}/installed`);
    expect(installed.updates.map(({ build }) => build)).toEqual(['2632', '2650', '2670']);

    // With a license upload and edited settings.
    const uploaded = (await server.postParts('/admin/uploads/upload', { itemFile: license }, admin)).json<{
      item: { itemID: string };
    }>();
    const id = 'rel_18052023_3923';
    const upgradeId = JSON.stringify({ id });
    const form = await server.post(`${upgrades}/getUpgradeSettings`, { token: admin, upgradeId });
    const settings = form.json<{ userInputs: { id: string; value: unknown }[] }>();
    for (const entry of settings.userInputs)
      if (entry.id === 'licenseUpload') entry.value = uploaded.item.itemID;
    const response = await upgrade(id, { upgradeSettings: JSON.stringify(settings) });
    expect(response.statusCode, response.body).toBe(200);
    expect((await finish()).status.state).toBe('success');
    expect(await get('/admin')).toMatchObject({ fullVersion: '11.1.0.3923' });
  });
});

describe('a failed release', () => {
  it('can only be resumed or repeated; other upgrades are refused', async () => {
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
    expect(resumed.progress.remainingMs).toBeGreaterThan(0);
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

  it('can be cancelled until its plan is being executed', async () => {
    await start();
    const cancel = async (jobId: string) =>
      (await server.post(`/admin/system/jobs/${jobId}/cancel`, { token: admin })).statusCode;
    const late = (await release()).json<Status>();
    await server.runtime.advance(8000);
    expect((await status()).status.messages.at(-1)?.code).toBe(2271);
    expect(await cancel(late.jobId)).toBe(409);
    await finish();
    await start();
    const early = (await release()).json<Status>();
    await server.runtime.advance(7000);
    expect((await status()).status.messages.at(-1)?.code).toBe(2288);
    expect(await cancel(early.jobId)).toBe(200);
    const done = await finish();
    expect(done.status.state).toBe('cancelled');
    expect(codesOf(done).slice(-2)).toEqual([2903, 2166]);
  });
});

it('the table of messages has the codes of the interface and additional ones, and the reference lists all of them', () => {
  const interfaceCodes = [
    2010, 2011, 2012, 2165, 2166, 2168, 2270, 2271, 2287, 2288, 2094, 2281, 2291, 2173, 2175, 2108, 2109,
    2087, 2090, 2092, 2093, 2144, 2145, 2153, 2148, 2149, 2151, 2134, 2132, 2038, 2101, 2103, 2187, 2188,
    2179, 2180, 2181, 2178, 2185, 2191, 2192,
  ];
  expect(allCodes).toEqual(expect.arrayContaining(interfaceCodes));
  const own = allCodes.filter((code) => !interfaceCodes.includes(code));
  expect(own).toEqual([2072, ...own.slice(1).map((_, index) => 2901 + index)]);
  const page = readFileSync(new URL('../../docs/reference/errors-and-codes.md', import.meta.url), 'utf8');
  for (const code of allCodes) expect(page).toContain(`| ${code} |`);
});
