// The steps of simulated jobs: their ids, which of them are skipped, hooks, failures by step, and messages before
// and after the work.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { stepIds, steps, templateStepIds, templateSteps } from '../../src/upgrades/executors/steps.ts';
import { type Status, admin, codesOf, eleven, license, patch1, upgrades, useJobs } from './jobs-kit.ts';

const { server, start, upgrade, release, status, finish } = useJobs();

type PlannedStep = { seqNum: number; id: string; codes: number[]; performedBy: string; workload?: string };
type Planned = { steps: PlannedStep[]; notices: string[]; problems: string[] };

async function plan(id: string): Promise<Planned> {
  const parts = { versionManifest: JSON.stringify({ id }), upgradeSettings: '{}', licenseFile: license };
  return (await server.postParts(`${upgrades}/plan`, parts, admin)).json<Planned>();
}

const resume = (jobId: string) => server.post(`/admin/system/jobs/${jobId}/resume`, { token: admin });
const textsOf = ({ status: { messages } }: Status, ...codes: number[]) =>
  messages.filter(({ code }) => codes.includes(code)).map(({ message }) => message);

it.each([
  ['protocol.md', stepIds],
  ['operate/step-templates.md', templateStepIds],
])('docs/%s names every step', (page, ids) => {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  expect(ids.filter((id) => !text.includes(`\`${id}\``))).toEqual([]);
  const codes = page === 'protocol.md' ? ids.flatMap((id) => steps[id].codes) : [];
  expect(codes.filter((code) => !text.includes(String(code)))).toEqual([]);
});

describe('a plan', () => {
  it('of a release has the ids of the interface, in order', async () => {
    expect(readConfig({}).SIMULATED_STEP_TEMPLATES).toEqual(templateSteps);
    await start({ SIMULATED_STEP_TEMPLATES: [...templateSteps, 'before', 'after'].join() });
    const { steps, notices } = await plan(eleven);
    const withoutWorkloads = steps.filter(({ workload }) => workload === undefined);
    expect(withoutWorkloads.map(({ id, codes }) => [id, ...codes].join(' '))).toEqual([
      'launch 2168',
      'read-only 2165',
      'prepare 2270',
      'diagnostics-begin 2287',
      'database-validate 2094',
      'search-check 2281',
      'diagnostics-end 2288',
      'before 2906 2907',
      'execute 2271',
      'database-begin 2108',
      'database-read-only 2087',
      'database-engine 2144 2153 2145',
      'database-promote 2090',
      'database-read-write 2093',
      'database-standby 2092',
      'role-change 2151',
      'database-post-upgrade 2148 2149',
      'database-end 2109',
      'portal-content 2187 2188',
      'post-upgrade 2179',
      'logging 2180 2181',
      'services-refresh 2178 2185',
      'search-refresh 2191 2192',
      'after 2906 2907',
      'final-check',
    ]);
    expect(steps.map(({ seqNum }) => seqNum)).toEqual(steps.map((_step, index) => index));
    const byWhom = (performer: string) => [
      ...new Set(steps.filter(({ performedBy }) => performedBy === performer).map(({ id }) => id)),
    ];
    expect(byWhom('steward')).toEqual([
      'launch',
      'read-only',
      'prepare',
      'diagnostics-begin',
      'diagnostics-end',
      'execute',
      'database-begin',
      'database-end',
      'post-upgrade',
      'final-check',
    ]);
    expect(byWhom('steward').length + byWhom('simulation').length).toBe(
      new Set(steps.map(({ id }) => id)).size,
    );
    expect(notices).toEqual([]);
    const ofWorkloads = steps.filter(({ workload }) => workload !== undefined);
    expect([...new Set(ofWorkloads.map(({ id }) => id))]).toEqual([
      'component-begin',
      'begin',
      'update',
      'verify',
      'component-end',
    ]);
  });
});

describe('a job', () => {
  it('says that steps are skipped, takes no time for them, and leaves out hooks that are not listed', async () => {
    await start({ SIMULATED_STEP_TEMPLATES: 'none' });
    await upgrade(patch1);
    const done = await finish();
    expect(done.status.state).toBe('success');
    expect(textsOf(done, 2180, 2181)).toEqual([
      'Skipped (no step template): Post-upgrade operations for logging started.',
      'Skipped (no step template): Post-upgrade operations for logging succeeded.',
    ]);
    expect(codesOf(done)).not.toContain(2906);
    const whenOf = (wanted: number) => done.status.messages.find(({ code }) => code === wanted)?.when;
    expect(whenOf(2181)).toBe(whenOf(2179));
  });

  it('runs the listed hooks', async () => {
    await start({ SIMULATED_STEP_TEMPLATES: 'before,logging,after,before-rollback' });
    const { jobId } = (await upgrade(patch1)).json<Status>();
    const done = await finish();
    const name = (seqNum: number) => `steward-${jobId.slice(0, 8)}-${seqNum}-1`;
    const { length } = done.status.messages.filter(({ code }) => code === 2038);
    expect(textsOf(done, 2906, 2907)).toEqual([
      'The hook before started.',
      `The hook before completed (Job ${name(5)}).`,
      'The hook after started.',
      `The hook after completed (Job ${name(7 + 3 * length + 2)}).`,
    ]);
    const id = 'rel_10_9_1';
    const targets = await server.get(`${upgrades}/checkRollback?token=${admin}`);
    const [target] = targets.json<{ updates: { id: string }[] }>().updates;
    await server.post(`${upgrades}/rollback`, {
      token: admin,
      versionManifest: JSON.stringify({ id: target?.id ?? id }),
    });
    expect(textsOf(await finish(), 2906)).toEqual([
      'The hook before-rollback started.',
      'The hook after started.',
    ]);
  });

  it('fails at a step of SIMULATED_FAILURES as often as it says, and makes the next attempt when resumed', async () => {
    await start({
      SIMULATED_FAILURES: '@database-engine:2, @final-check:1',
      SIMULATED_STEP_TEMPLATES: 'database-engine,after',
    });
    const { jobId } = (await release()).json<Status>();
    const failed = await finish();
    expect(failed.status.state).toBe('failed');
    expect(textsOf(failed, 2901)).toEqual([
      'The job failed at the step "Upgrade the database engine": the step database-engine fails by SIMULATED_FAILURES.',
    ]);
    expect(codesOf(failed).slice(-3)).toEqual([2144, 2901, 2166]);
    await resume(jobId);
    const again = await finish();
    expect(codesOf(again).slice(failed.messageCount)).toEqual([2902, 2165, 2144, 2901, 2166]);
    await resume(jobId);
    const unchecked = await finish();
    expect(unchecked.status.state).toBe('failed');
    expect(textsOf(unchecked, 2901).at(-1)).toContain('"Check all workloads": the step final-check fails');
    await resume(jobId);
    const done = await finish();
    expect(done.status.state).toBe('success');
    expect(codesOf(done).slice(unchecked.messageCount)).toEqual([2902, 2165, 2166, 2011, 2012]);
  });

  it('that is cancelled does not wait for the Job of its step', async () => {
    await start({ SIMULATED_STEP_TEMPLATES: 'before', UPGRADE_STEP_MS: '600000' });
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await server.runtime.advance(5 * 600_000 + 1);
    expect(codesOf(await status()).at(-1)).toBe(2906);
    await server.post(`/admin/system/jobs/${jobId}/cancel`, { token: admin });
    await server.runtime.advance(1000);
    const cancelled = await status();
    expect(cancelled.status.state).toBe('cancelled');
    expect(codesOf(cancelled).slice(-3)).toEqual([2906, 2903, 2166]);
  });
});
