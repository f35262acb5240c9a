// The metrics of upgrade jobs: they come from the store, so that every process shows the same.
import { expect, it } from 'vitest';
import { type Server, startServer } from '../kit/server.ts';
import { isOnPostgres } from '../kit/store.ts';
import { type Status, admin, patch1, upgrades, useJobs } from './jobs-kit.ts';

const { server, start, upgrade, get, status, finish } = useJobs();

/** The metrics of upgrades by name and labels, without the prefix. */
async function metricsOf(from: Server): Promise<Record<string, number>> {
  const { body } = await from.get('/metrics');
  const lines = [...body.matchAll(/^steward_upgrade_(\S+) (\S+)$/gm)];
  return Object.fromEntries(lines.map(([, name = '', value]) => [name, Number(value)]));
}

const jobs = (operation: string, state: string) => `jobs_total{operation="${operation}",state="${state}"}`;
const noJob = { running: 0, steps_done: 0, steps: 0, step_age_seconds: 0 };
const seconds = (from: Server) => from.runtime.now() / 1000;

it('all are zero before the first job', async () => {
  await start();
  expect(await metricsOf(server)).toEqual({
    ...noJob,
    [jobs('upgrade', 'success')]: 0,
    [jobs('upgrade', 'failed')]: 0,
    [jobs('upgrade', 'cancelled')]: 0,
    [jobs('rollback', 'success')]: 0,
    [jobs('rollback', 'failed')]: 0,
    [jobs('rollback', 'cancelled')]: 0,
    last_success_timestamp_seconds: 0,
    scheduled_timestamp_seconds: 0,
    window_open: 1,
  });
});

it('a running job shows its steps, and how long ago it recorded the last one', async () => {
  await start();
  const { steps } = (
    await server.postParts(`${upgrades}/plan`, { versionManifest: JSON.stringify({ id: patch1 }) }, admin)
  ).json<{ steps: unknown[] }>();
  await upgrade(patch1);
  const total = { running: 1, steps: steps.length };
  expect(await metricsOf(server)).toMatchObject({ ...total, steps_done: 0, step_age_seconds: 0 });
  await server.runtime.advance(3_400);
  expect(await metricsOf(server)).toMatchObject({ ...total, steps_done: 3, step_age_seconds: 0.4 });
  await finish();
  expect(await metricsOf(server)).toMatchObject(noJob);
});

it('every end of a run is counted, and the time of the last success is kept', async () => {
  await start({ SIMULATED_FAILURES: 'security_directory:1' });
  await upgrade(patch1);
  const { jobId } = await finish();
  expect(await metricsOf(server)).toMatchObject({
    [jobs('upgrade', 'failed')]: 1,
    [jobs('upgrade', 'success')]: 0,
    last_success_timestamp_seconds: 0,
  });
  await server.post(`/admin/system/jobs/${jobId}/resume`, { token: admin });
  await finish();
  const [job] = (await get<{ history: { endedAt: number }[] }>(`${upgrades}/history`)).history;
  const succeeded = {
    [jobs('upgrade', 'failed')]: 1,
    [jobs('upgrade', 'success')]: 1,
    last_success_timestamp_seconds: (job?.endedAt ?? 0) / 1000,
  };
  expect(await metricsOf(server)).toMatchObject(succeeded);
  expect(succeeded.last_success_timestamp_seconds).toBeLessThan(seconds(server));

  await upgrade('pat_28042022_1260');
  const { jobId: cancelled } = await status();
  await server.post(`/admin/system/jobs/${cancelled}/cancel`, { token: admin });
  await finish();
  expect(await metricsOf(server)).toMatchObject({ ...succeeded, [jobs('upgrade', 'cancelled')]: 1 });

  const { updates } = await get<{ updates: { id: string }[] }>(`${upgrades}/checkRollback`);
  const target = updates.at(-1)?.id;
  await server.post(`${upgrades}/rollback`, {
    token: admin,
    versionManifest: JSON.stringify({ id: target }),
  });
  await finish();
  expect(await metricsOf(server)).toMatchObject({ [jobs('rollback', 'success')]: 1 });
});

// Only a database has several processes.
it.runIf(isOnPostgres)('all processes show the same', async () => {
  await start();
  const other = await startServer({ store: await server.store.reopen() });
  const { jobId } = (await upgrade(patch1)).json<Status>();
  await server.runtime.advance(2_700);
  await other.runtime.advance(2_700);
  await other.store.refresh();
  const shown = await metricsOf(server);
  expect(shown).toMatchObject({ running: 1, steps_done: 2, step_age_seconds: 0.7 });
  expect(await metricsOf(other)).toEqual(shown);
  await server.post(`/admin/system/jobs/${jobId}/cancel`, { token: admin });
  await finish();
  await other.store.refresh();
  expect(await metricsOf(other)).toEqual(await metricsOf(server));
});
