// Upgrades over several versions: the path, the settings of all hops, one job with finished hops that stay, hooks
// per hop.
import { describe, expect, it } from 'vitest';
import type { Executor, TemplateRun } from '../../src/upgrades/executors/executor.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { type TemplateStepId, simulatedPerformers } from '../../src/upgrades/executors/steps.ts';
import { timelessRuntime } from '../kit/runtime.ts';
import { patchOf, releaseOf } from '../kit/versions.ts';
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

const { server, start, upgrade, get, status, finish } = useJobs();

const mandatory = 'pat_08122022_2670';
const elevenOne = 'rel_18052023_3923';
const path = [eleven, mandatory, elevenOne];

const toElevenOne = (parts: Parameters<typeof upgrade>[1] = {}) =>
  upgrade(elevenOne, { upgradeSettings: '{}', licenseFile: license, ...parts });
const version = async () => (await get<{ fullVersion: string }>('/admin')).fullVersion;
const post = (id: string, operation: 'cancel' | 'resume') =>
  server.post(`/admin/system/jobs/${id}/${operation}`, { token: admin });
const countOf = (job: Status, wanted: number) => codesOf(job).filter((code) => code === wanted).length;

/** Advances the clock until the job has recorded the message that often. */
async function reach(code: number, times: number): Promise<Status> {
  for (let seconds = 0; ; seconds += 1) {
    const now = await status();
    if (countOf(now, code) >= times) return now;
    expect(seconds).toBeLessThan(3000);
    await server.runtime.advance(1000);
  }
}

/** Steps take no time. `fail` makes the next run of a step fail in the hop to a version. */
async function startWithTemplates(...ids: TemplateStepId[]) {
  const runs: TemplateRun[] = [];
  const failing = new Set<string>();
  const simulated = createSimulatedExecutor({
    runtime: timelessRuntime,
    stepMs: 0,
    failures: new Map(),
    performers: simulatedPerformers(ids),
  });
  const runTemplate: Executor['runTemplate'] = (run, context) => {
    runs.push(run);
    if (failing.delete(`${run.step} ${run.to}`)) return Promise.reject(new Error('it breaks.'));
    return simulated.runTemplate(run, context);
  };
  await start({}, { executor: { ...simulated, runTemplate } });
  return { runs, fail: (step: TemplateStepId, to: string) => failing.add(`${step} ${to}`) };
}

async function end(): Promise<Status> {
  const state = async () => (await status()).status.state;
  await expect.poll(state, { interval: 50 }).not.toBe('in_progress');
  return status();
}

describe('an upgrade over several versions', () => {
  it('is offered with its path; only versions one hop away are installable', async () => {
    await start();
    const available = await get<{ id: string; installable: boolean; path: string[] }[]>(
      `${upgrades}/available`,
    );
    const find = (id: string) => available.find((one) => one.id === id);
    expect(find(eleven)).toMatchObject({ installable: true, path: [eleven] });
    expect(find(mandatory)).toMatchObject({ installable: false, path: [eleven, mandatory] });
    expect(find(elevenOne)).toMatchObject({ installable: false, path });
    expect(available.every((one) => one.path.at(-1) === one.id)).toBe(true);
  });

  it('asks once for inputs that several hops have, and checks them for all hops', async () => {
    await start();
    const settings = await server.post(`${upgrades}/getUpgradeSettings`, {
      token: admin,
      upgradeId: JSON.stringify({ id: elevenOne }),
    });
    const { userInputs } = settings.json<{
      userInputs: { id: string; required: boolean; seqNum: number }[];
    }>();
    expect(userInputs.map(({ id, seqNum }) => [id, seqNum])).toEqual([
      ['updateToLatestPatch', 0],
      ['licenseUpload', 1],
      ['volumesConfig', 2],
    ]);
    const refused = await upgrade(elevenOne, { upgradeSettings: '{}' });
    expect(refused.statusCode).toBe(400);
    expect(refused.json<Failure>().error.details).toEqual([
      'upgradeSettings: licenseUpload needs the id of an upload, or send licenseFile.',
    ]);
    expect((await status()).status.state).toBe('no_upgrade');
  });

  it('is one job, whose messages from 2270 on repeat for each hop', async () => {
    await start();
    const plan = await server.postParts(
      `${upgrades}/plan`,
      { versionManifest: `{"id":"${elevenOne}"}`, upgradeSettings: '{}', licenseFile: license },
      admin,
    );
    expect(plan.json()).toMatchObject({ from: '10.9.1.1234', to: '11.1.0.3923', problems: [] });
    await toElevenOne();
    const done = await finish();
    expect(done.status.state).toBe('success');
    for (const once of [2010, 2168, 2165, 2166, 2011, 2012])
      expect([once, countOf(done, once)]).toEqual([once, 1]);
    // The mandatory patch belongs to the hop of its release.
    for (const perHop of [2270, 2287, 2288, 2271, 2108, 2179]) expect(countOf(done, perHop)).toBe(2);
    const [first] = done.status.messages;
    expect(first?.message).toBe('Upgrade from 10.9.1.1234 to 11.1.0.3923 started.');
    const counted = done.status.messages.flatMap(
      ({ message }) => /^(\d+) out of (\d+)/.exec(message)?.slice(1).map(Number) ?? [],
    );
    const { total, steps } = done.progress;
    expect(counted).toEqual(Array.from({ length: total }, (_, index) => [index + 1, total]).flat());
    expect(steps?.done).toBe(steps?.total);
    expect(plan.json<{ steps: unknown[] }>().steps).toHaveLength(steps?.total ?? 0);
    expect(await version()).toBe('11.1.0.3923');
  });

  it('takes patches along in every hop, if the setting says so', async () => {
    await start();
    await toElevenOne({ updateToLatestPatch: 'true' });
    const done = await finish();
    expect(done.status.state).toBe('success');
    expect(countOf(done, 2270)).toBe(2);
  });

  it('installs mandatory patches of the installed release first', async () => {
    await start();
    await upgrade(eleven, { upgradeSettings: '{}', licenseFile: license });
    await finish();
    await toElevenOne();
    const done = await finish();
    expect([done.status.state, countOf(done, 2270)]).toEqual(['success', 2]);
  });

  it('has at most 100 hops', async () => {
    await start();
    const releases = Array.from({ length: 101 }, (_, n) => ({
      id: `rel_${n}`,
      type: 'release',
      version: '10.9.2',
      build: String(1235 + n),
      previousVersion: n === 0 ? '10.9.1' : '10.9.2',
      previousReleaseBuild: String(1234 + n),
      containers: [{ name: 'A', image: `a:${n}` }],
    }));
    const manifestFile = { name: 'm.json', content: JSON.stringify(releases) };
    await server.postParts(`${upgrades}/importManifest`, { manifestFile }, admin);
    const available = await get<{ path: string[] }[]>(`${upgrades}/available`);
    expect([99, 100].map((n) => available[n]?.path.length)).toEqual([100, 0]);
    expect((await upgrade('rel_100', { upgradeSettings: '{}' })).statusCode).toBe(400);
  });

  it('keeps finished hops when it fails, and a resume continues in the failed hop', async () => {
    const { fail } = await startWithTemplates('database-engine');
    fail('database-engine', '11.1.0.3923');
    const { jobId } = (await toElevenOne()).json<Status>();
    const failed = await end();
    expect(failed.status.state).toBe('failed');
    expect(await version()).toBe('11.0.0.2670');
    await post(jobId, 'resume');
    const done = await end();
    expect(done.status.state).toBe('success');
    // The finished hops are not repeated.
    expect(countOf(done, 2271)).toBe(2);
    expect(codesOf(done).slice(failed.messageCount, failed.messageCount + 3)).toEqual([2902, 2165, 2144]);
    expect(await version()).toBe('11.1.0.3923');
  });

  it('accepts only a resume, the same target or the release of the failed hop after a failure', async () => {
    const { fail } = await startWithTemplates('database-engine');
    fail('database-engine', '11.0.0.2670');
    const { jobId } = (await toElevenOne()).json<Status>();
    expect((await end()).status.state).toBe('failed');
    const refused = await upgrade(patch1);
    expect(refused.statusCode).toBe(409);
    expect(refused.json<Failure>().error.message).toBe(
      `The job ${jobId} to 11.1.0.3923 has failed: resume it, or upgrade to ${elevenOne} again, or upgrade to ${eleven} again.`,
    );
    fail('database-engine', '11.0.0.2632');
    expect((await upgrade(eleven, { upgradeSettings: '{}', licenseFile: license })).statusCode).toBe(200);
    expect((await end()).status.state).toBe('failed');
    // Now the job that failed has one hop.
    expect((await toElevenOne()).statusCode).toBe(409);
    expect((await upgrade(eleven, { upgradeSettings: '{}', licenseFile: license })).statusCode).toBe(200);
    expect((await end()).status.state).toBe('success');
    expect((await toElevenOne()).statusCode).toBe(200);
    expect((await end()).status.state).toBe('success');
  });

  it('to a patch of the next release is one hop; its release is accepted after a failure too', async () => {
    const { fail } = await startWithTemplates('database-engine');
    const toPatch = () => upgrade(mandatory, { upgradeSettings: '{}', licenseFile: license });
    fail('database-engine', '11.0.0.2670');
    const { jobId } = (await toPatch()).json<Status>();
    const failed = await end();
    expect([failed.status.state, countOf(failed, 2270)]).toEqual(['failed', 1]);
    expect((await toElevenOne()).json<Failure>().error.message).toBe(
      `The job ${jobId} to 11.0.0.2670 has failed: resume it, or upgrade to ${mandatory} again, or upgrade to ${eleven} again.`,
    );
    expect((await upgrade(eleven, { upgradeSettings: '{}', licenseFile: license })).statusCode).toBe(200);
    expect((await end()).status.state).toBe('success');
    expect((await toElevenOne()).statusCode).toBe(200);
    expect((await end()).status.state).toBe('success');
  });

  it('can be cancelled between hops, and finished hops stay', async () => {
    await start();
    const { jobId } = (await toElevenOne()).json<Status>();
    await reach(2271, 1);
    expect((await post(jobId, 'cancel')).statusCode).toBe(409);
    await reach(2270, 2);
    expect(await version()).toBe('11.0.0.2670');
    expect((await post(jobId, 'cancel')).statusCode).toBe(200);
    const cancelled = await finish();
    expect(cancelled.status.state).toBe('cancelled');
    expect(codesOf(cancelled).slice(-2)).toEqual([2903, 2166]);
    expect(await version()).toBe('11.0.0.2670');
    const current = await get<{ id: string; messages: unknown[] }>(`${upgrades}/currentVersion`);
    expect(current).toMatchObject({ id: mandatory });
    expect(current.messages).toHaveLength(cancelled.messageCount);
    const page = await server.get(`/admin/system/jobs/${jobId}?f=html&token=${admin}`);
    // The first hop has moved the three workloads of ADMIN twice, with the release and its patch; the next one would move them again.
    expect(page.body).toMatch(
      /<li class="partial">[^]*?<strong>ADMIN<\/strong> <span>6 of 9 updates<\/span>/,
    );
    expect((await toElevenOne()).statusCode).toBe(200);
    expect((await finish()).status.state).toBe('success');
  });

  it('that is cancelled before the hop of a failed release does not repair that release', async () => {
    await start({ SIMULATED_FAILURES: 'app_two:1' });
    const release = {
      ...releaseOf('rel_b', '3000'),
      containers: ['APP_ONE', 'APP_TWO'].map((name) => ({ name, image: `${name}:b` })),
    };
    const added = {
      ...patchOf('pat_new'),
      isMandatoryUpdate: true,
      containers: [{ name: 'APP_THREE', image: 'three:2' }],
    };
    const importVersions = (...versions: object[]) =>
      server.postParts(
        `${upgrades}/importManifest`,
        { manifestFile: { name: 'm.json', content: JSON.stringify(versions) } },
        admin,
      );
    const rollback = () =>
      server.postParts(`${upgrades}/rollback`, { versionManifest: '{"id":"rel_10092021_1234"}' }, admin);
    const toRelease = async () => {
      const response = await upgrade('rel_b', { upgradeSettings: '{}' });
      expect(response.statusCode, response.body).toBe(200);
      return response.json<Status>().jobId;
    };
    await importVersions(release);
    const failed = await toRelease();
    expect((await finish()).status.state).toBe('failed');
    await importVersions(release, added);
    const jobId = await toRelease();
    await reach(2270, 2);
    await post(jobId, 'cancel');
    expect((await finish()).status.state).toBe('cancelled');
    expect(await version()).toBe('10.9.1.1300');
    const refused = await rollback();
    expect(refused.statusCode).toBe(409);
    expect(refused.json<Failure>().error.message).toBe(
      `The job ${failed} to 10.9.2.3000 has failed: upgrade to rel_b again.`,
    );
    await toRelease();
    expect((await finish()).status.state).toBe('success');
    expect((await upgrade('pat_none')).statusCode).toBe(400);
  });

  it('runs the hooks once per hop, with the versions of the hop', async () => {
    const { runs } = await startWithTemplates('before', 'after', 'database-validate');
    await toElevenOne();
    expect((await end()).status.state).toBe('success');
    const hops = [
      ['10.9.1.1234', '11.0.0.2670'],
      ['11.0.0.2670', '11.1.0.3923'],
    ];
    const ofHook = (id: string) => runs.filter(({ step }) => step === id).map(({ from, to }) => [from, to]);
    expect(ofHook('before')).toEqual(hops);
    expect(ofHook('after')).toEqual(hops);
    expect(ofHook('database-validate')).toEqual(hops);
  });
});
