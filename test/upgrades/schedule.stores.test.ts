// Jobs that start later, in both stores: acceptance, the second preflight, and restarts.
import { describe, expect, it } from 'vitest';
import {
  type Failure,
  type Status,
  admin,
  codesOf,
  eleven,
  license,
  patch1,
  patch2,
  upgrades,
} from './jobs-kit.ts';
import {
  closeWindows,
  server,
  start,
  upgrade,
  release,
  get,
  status,
  finish,
  hour,
  day,
  iso,
  post,
  schedule,
  restartAt,
} from './schedule-kit.ts';

describe('a scheduled job', () => {
  it('waits without closing anything, and then runs like one that was sent at that time', async () => {
    await start();
    const { startAt, jobId } = await schedule();
    const scheduled = await status();
    expect(scheduled).toMatchObject({
      status: { state: 'scheduled', code: 5, messages: [{ code: 2908 }] },
      jobId,
      startAt,
      progress: { done: 0, percent: 0, elapsedMs: 0, remainingMs: null },
    });
    expect(scheduled.status.messages[0]?.message).toBe(`The job is scheduled for ${iso(startAt)}.`);
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: false });
    expect((await server.get(`${upgrades}/available?token=${admin}`)).statusCode).toBe(200);
    const [entry] = (await get<{ jobs: object[] }>('/admin/system/jobs')).jobs;
    expect(entry).toMatchObject({ id: jobId, state: 'scheduled', startAt, startedAt: null, endedAt: null });
    await server.runtime.advance(hour - 1);
    expect((await status()).status.state).toBe('scheduled');
    await server.runtime.advance(1);
    expect((await status()).status.state).toBe('in_progress');
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: true });
    const done = await finish();
    expect(codesOf(done).slice(0, 4)).toEqual([2908, 2010, 2168, 2165]);
    expect(done.status.state).toBe('success');
    const [ended] = (await get<{ jobs: { startedAt: number }[] }>('/admin/system/jobs')).jobs;
    expect(ended?.startedAt).toBe(startAt);
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1250' });
  });

  it('starts with the license that was uploaded, and keeps no content of one', async () => {
    await start();
    const startAt = String(server.runtime.now() + hour);
    const refused = await release({ startAt });
    expect(refused.statusCode).toBe(400);
    expect(refused.json<Failure>().error.details).toEqual([
      'licenseFile: cannot be sent with startAt; upload the license, and name the upload in the setting licenseUpload.',
    ]);
    expect((await status()).status.state).toBe('no_upgrade');
    const uploaded = await server.postParts('/admin/uploads/upload', { itemFile: license }, admin);
    const { itemID: value } = uploaded.json<{ item: { itemID: string } }>().item;
    const upgradeSettings = JSON.stringify({ userInputs: [{ id: 'licenseUpload', value }] });
    expect((await upgrade(eleven, { startAt, upgradeSettings })).statusCode).toBe(200);
    await restartAt(server.runtime.now());
    await server.runtime.advance(hour);
    expect((await finish()).status.state).toBe('success');
  });

  it('fails without a change if its plan is another one then, and blocks nothing', async () => {
    await start();
    const { jobId } = await schedule();
    const versions = await get<{ id: string; containers: { image: string }[] }[]>(`${upgrades}/available`);
    const content = JSON.stringify(versions).replaceAll(':10.9.1.1250', ':10.9.1.1251');
    const manifestFile = { name: 'manifest.json', content };
    const imported = await server.postParts(`${upgrades}/importManifest`, { manifestFile }, admin);
    expect(imported.statusCode, imported.body).toBe(200);
    await server.runtime.advance(hour);
    const failed = await status();
    expect(failed.status.state).toBe('failed');
    expect(failed.status.messages.at(-1)).toMatchObject({
      code: 2901,
      message: 'The job failed at the step "Start": the plan has changed since the job was accepted.',
    });
    expect(codesOf(failed)).toEqual([2908, 2901]);
    const resumed = await post(`jobs/${jobId}/resume`);
    expect(resumed.statusCode).toBe(409);
    expect(resumed.json<Failure>().error.message).toContain('it failed before its first step');
    expect((await upgrade(patch2)).statusCode).toBe(200);
    expect((await finish()).status.state).toBe('success');
  });

  it('fails without its plan', async () => {
    await start();
    const { jobId } = await schedule();
    await server.store.update((transaction) => transaction.jobs.deletePlan(jobId));
    await server.runtime.advance(hour);
    expect((await status()).status.messages.at(-1)?.message).toContain('its plan is missing.');
  });

  it('can be moved, and then starts at the new time only', async () => {
    await start();
    const { startAt, jobId } = await schedule();
    const later = startAt + hour;
    const moved = await post(`jobs/${jobId}/reschedule`, { startAt: String(later) });
    expect(moved.json<Status>()).toMatchObject({ startAt: later });
    expect(moved.json<Status>().status.messages.at(-1)).toMatchObject({
      code: 2909,
      message: `The start was moved to ${iso(later)}.`,
    });
    await server.runtime.advance(hour);
    expect((await status()).status.state).toBe('scheduled');
    await server.runtime.advance(hour);
    expect((await status()).status.state).toBe('in_progress');
    await finish();
    const tooLate = await post(`jobs/${jobId}/reschedule`, { startAt: String(later + day) });
    expect(tooLate.statusCode).toBe(409);
    expect(tooLate.json<Failure>().error.message).toContain('it is success');
    await closeWindows();
    expect((await post(`jobs/${jobId}/reschedule`, { startAt: String(later + day) })).body).toContain(
      'it is success',
    );
  });
});

describe('a start that no process was there for', () => {
  /** A start that is late by a second is still on time. */
  const graceMs = hour + 1000;

  it('takes place when one is back, within the grace', async () => {
    await start();
    const { startAt } = await schedule();
    await restartAt(startAt + graceMs);
    expect((await status()).status.state).toBe('in_progress');
    expect((await finish()).status.state).toBe('success');
  });

  it('is missed after the grace, and blocks nothing', async () => {
    await start();
    const { startAt } = await schedule();
    await restartAt(startAt + graceMs + 1);
    const missed = await status();
    expect(missed.status.state).toBe('failed');
    expect(missed.status.messages.at(-1)?.message).toBe(
      `The job failed at the step "Start": it missed its start at ${iso(startAt)}.`,
    );
    expect((await upgrade(patch2)).statusCode).toBe(200);
  });
});

describe('maintenance windows', () => {
  it('are overridden by ignoreWindows, which the audit trail says', async () => {
    await start();
    await closeWindows();
    expect((await upgrade(patch1, { ignoreWindows: 'true' })).statusCode).toBe(200);
    await finish();
    const { entries } = await get<{
      entries: { operation: string; changes: { field: string; after: unknown }[] }[];
    }>('/admin/system/audit');
    const entry = entries.find(({ operation }) => operation === 'system/upgrades/upgrade');
    expect(entry?.changes).toContainEqual(expect.objectContaining({ field: 'ignoreWindows', after: true }));
  });
});
