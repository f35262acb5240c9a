// Jobs that start later: what they keep, when they fail, windows, and metrics.
import { describe, expect, it } from 'vitest';
import type { Problem } from '../../src/lib/errors.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import type { Inventory } from '../../src/upgrades/executors/workloads.ts';
import { maintenanceWindows } from '../../src/upgrades/schedule/windows.ts';
import { type Failure, type Status, admin, codesOf, license, patch1, patch2, upgrades } from './jobs-kit.ts';
import {
  closeWindows,
  server,
  start,
  upgrade,
  get,
  status,
  finish,
  minute,
  hour,
  day,
  iso,
  post,
  schedule,
  restartAt,
} from './schedule-kit.ts';

describe('a scheduled job', () => {
  it('is the only one: another is refused and named', async () => {
    await start();
    const { startAt, jobId } = await schedule();
    for (const parts of [{}, { startAt: String(startAt + hour) }]) {
      const refused = await upgrade(patch2, parts);
      expect(refused.statusCode).toBe(409);
      expect(refused.json<Failure>().error.message).toBe(
        `The job ${jobId} is scheduled for ${iso(startAt)}.`,
      );
    }
  });

  it('keeps its uploads until it ends', async () => {
    await start();
    const item = await server.postParts('/admin/uploads/upload', { itemFile: license }, admin);
    const id = item.json<{ item: { itemID: string } }>().item.itemID;
    const upgradeSettings = JSON.stringify({ userInputs: [{ id: 'licenseUpload', value: id }] });
    const startAt = String(server.runtime.now() + hour);
    const versionManifest = JSON.stringify({ id: 'rel_14072022_2632' });
    const accepted = await post('upgrades/upgrade', { versionManifest, upgradeSettings, startAt });
    expect(accepted.statusCode, accepted.body).toBe(200);
    const remove = () => server.post(`/admin/uploads/${id}/delete`, { token: admin });
    expect((await remove()).statusCode).toBe(409);
    await post(`jobs/${accepted.json<Status>().jobId}/cancel`);
    expect((await remove()).statusCode).toBe(200);
  });

  it('starts in read-only mode of an administrator', async () => {
    await start();
    await schedule();
    await server.post('/admin/mode/update', { token: admin, isReadOnly: 'true' });
    await server.runtime.advance(hour);
    expect((await finish()).status.state).toBe('success');
  });

  it('fails if its preflight finds a problem then', async () => {
    await start();
    await schedule();
    const versions = await get<{ id: string }[]>(`${upgrades}/available`);
    const content = JSON.stringify(versions.filter(({ id }) => !id.startsWith('pat_')));
    await server.postParts(
      `${upgrades}/importManifest`,
      { manifestFile: { name: 'manifest.json', content } },
      admin,
    );
    await server.runtime.advance(hour);
    expect((await status()).status.messages.at(-1)?.message).toMatch(
      /^The job failed at the step "Start": the preflight failed\. .*there is no version with the id/,
    );
  });

  it('does not start if the windows are closed during its preflight, but if that takes longer than the grace', async () => {
    const executor = createSimulatedExecutor({ runtime: realRuntime, stepMs: 0, failures: new Map() });
    const { inventory } = executor;
    let duringPreflight = () => Promise.resolve();
    executor.inventory = async () => {
      await duringPreflight();
      return inventory();
    };
    await start({}, { executor });
    await schedule(2 * hour);
    // Thursday, 02:00.
    const windows = [{ days: ['thu'], from: '02:30', to: '04:00', timeZone: 'UTC' }] as const;
    duringPreflight = () =>
      server.store.update((transaction) => transaction.write(maintenanceWindows, windows));
    await server.runtime.advance(2 * hour);
    expect((await status()).status.state).toBe('scheduled');
    duringPreflight = () => server.runtime.sleep(hour);
    await server.runtime.advance(30 * minute);
    await server.runtime.advance(hour);
    expect((await finish()).status.state).toBe('success');
  });

  describe('whose preflight finds only what may pass', () => {
    /** The windows close at 04:00. Until it is healed, a workload is not healthy. */
    async function startUnhealthy(others: Problem[] = [], env = {}) {
      const executor = createSimulatedExecutor({ runtime: realRuntime, stepMs: 0, failures: new Map() });
      const { inventory } = executor;
      let problems: Problem[] = [];
      executor.inventory = async () => {
        const found = await inventory();
        const planMoves: Inventory['planMoves'] = (...given) => ({ ...found.planMoves(...given), problems });
        return { ...found, planMoves };
      };
      await start(env, { executor });
      await schedule();
      problems = [{ field: 'cluster', message: 'a is not healthy.', isTransient: true }, ...others];
      return { heal: () => (problems = []) };
    }
    const cause = 'The job failed at the step "Start": the preflight failed. cluster: a is not healthy.';

    it('starts when it has passed', async () => {
      const { heal } = await startUnhealthy();
      await server.runtime.advance(hour + 30 * minute);
      expect((await status()).status.state).toBe('scheduled');
      heal();
      await server.runtime.advance(15_000);
      expect((await finish()).status.state).toBe('success');
    });

    it('fails with its cause at the end of the grace', async () => {
      await startUnhealthy([], { SCHEDULE_GRACE_MINUTES: '10' });
      await server.runtime.advance(hour + 9 * minute);
      expect((await status()).status.state).toBe('scheduled');
      await server.runtime.advance(minute);
      expect((await status()).status.messages.at(-1)?.message).toBe(cause);
    });

    it('fails with its cause when the window closes', async () => {
      await startUnhealthy();
      // Thursday, 01:00.
      const windows = [{ days: ['thu'], from: '00:30', to: '01:10', timeZone: 'UTC' }] as const;
      await server.store.update((transaction) => transaction.write(maintenanceWindows, windows));
      await server.runtime.advance(hour + 9 * minute);
      expect((await status()).status.state).toBe('scheduled');
      await server.runtime.advance(minute);
      expect((await status()).status.messages.at(-1)?.message).toBe(cause);
    });

    it('fails at once if there is another problem', async () => {
      await startUnhealthy([{ field: 'cluster', message: 'b is paused.' }]);
      await server.runtime.advance(hour);
      expect((await status()).status.messages.at(-1)?.message).toBe(`${cause} cluster: b is paused.`);
    });

    it('gets a few seconds as a request of now', async () => {
      const { heal } = await startUnhealthy();
      const { jobId } = await status();
      await post(`jobs/${jobId}/cancel`);
      const refused = upgrade(patch1);
      await server.runtime.advance(5_000);
      expect((await refused).json<Failure>().error.details).toEqual(['cluster: a is not healthy.']);
      const accepted = upgrade(patch1);
      await server.runtime.advance(1_000);
      heal();
      await server.runtime.advance(1_000);
      expect((await accepted).statusCode).toBe(200);
      expect((await finish()).status.state).toBe('success');
    });
  });

  it('can be cancelled', async () => {
    await start();
    const { jobId } = await schedule();
    const cancelled = (await post(`jobs/${jobId}/cancel`)).json<Status>();
    expect(cancelled.status).toMatchObject({ state: 'cancelled', code: 4 });
    expect(codesOf(cancelled)).toEqual([2908, 2903]);
    const { entries } = await get<{ entries: { operation: string }[] }>('/admin/system/audit');
    expect(entries.map(({ operation }) => operation)).toEqual([
      'system/jobs/{job}/cancel',
      'system/upgrades/upgrade',
    ]);
    await server.runtime.advance(2 * hour);
    expect((await status()).status.state).toBe('cancelled');
    expect((await upgrade(patch1)).statusCode).toBe(200);
  });

  it('wakes a request that waits for its start', async () => {
    await start();
    await schedule(30_000);
    const waiting = server.get(`${upgrades}?after=1&wait=60&token=${admin}`);
    await server.runtime.advance(30_000);
    expect((await waiting).json<Status>().status.state).toBe('in_progress');
  });

  it.each([
    ['0', 'startAt: must be in the future.'],
    [String(Date.UTC(2026, 0, 1) + 91 * day), 'startAt: must be at most 90 days ahead.'],
    ['soon', 'startAt: must be a time in UTC such as 2026-11-18T07:30, or an integer'],
  ])('is refused with the start time %s', async (startAt, problem) => {
    await start();
    const refused = await upgrade(patch1, { startAt });
    expect(refused.statusCode).toBe(400);
    expect(refused.json<Failure>().error.details.join()).toContain(problem);
    expect((await status()).status.state).toBe('no_upgrade');
    const twice = await upgrade('nope', { startAt });
    expect(twice.json<Failure>().error.details).toHaveLength(2);
  });

  it('can be a rollback', async () => {
    await start();
    await upgrade(patch1);
    await finish();
    const versionManifest = JSON.stringify({ id: 'rel_10092021_1234' });
    const startAt = String(server.runtime.now() + hour);
    expect((await post('upgrades/rollback', { versionManifest, startAt })).statusCode).toBe(200);
    await server.runtime.advance(hour);
    expect((await finish()).status.state).toBe('success');
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1234' });
  });
});

describe('a start that no process was there for', () => {
  it('is missed at once with SCHEDULE_GRACE_MINUTES=0', async () => {
    await start({ SCHEDULE_GRACE_MINUTES: '0' });
    const { startAt } = await schedule();
    await restartAt(startAt + 2000, { SCHEDULE_GRACE_MINUTES: '0' });
    expect((await status()).status.state).toBe('failed');
  });

  it('waits for a window within the grace, unless the job ignores windows', async () => {
    await start();
    const { startAt } = await schedule(6 * hour);
    const windows = [{ days: ['thu'], from: '06:30', to: '08:00', timeZone: 'UTC' }] as const;
    await server.store.update((transaction) => transaction.write(maintenanceWindows, windows));
    // 2026-01-01 was a Thursday.
    expect(iso(startAt)).toBe('2026-01-01T06:00:00.000Z');
    await server.runtime.advance(6 * hour + 29 * minute);
    expect((await status()).status.state).toBe('scheduled');
    await server.runtime.advance(minute);
    expect((await status()).status.state).toBe('in_progress');
  });
});

describe('maintenance windows', () => {
  it('refuse a start outside of them, and say when the next one opens', async () => {
    await start();
    await closeWindows();
    const refused = await upgrade(patch1);
    expect(refused.statusCode).toBe(409);
    expect(refused.json<Failure>().error.message).toContain(
      'The next one opens at 2026-01-03T22:00:00.000Z.',
    );
    const later = await upgrade(patch1, { startAt: String(server.runtime.now() + hour) });
    expect(later.statusCode).toBe(409);
    expect((await status()).status.state).toBe('no_upgrade');
    const { startAt } = await schedule(Date.UTC(2026, 0, 3, 23) - server.runtime.now());
    await server.runtime.advance(startAt - server.runtime.now());
    expect((await finish()).status.state).toBe('success');
  });

  it('decide about a moved start too', async () => {
    await start();
    const { jobId } = await schedule();
    await closeWindows();
    const startAt = String(server.runtime.now() + 2 * hour);
    expect((await post(`jobs/${jobId}/reschedule`, { startAt })).statusCode).toBe(409);
    for (let times = 0; times < 2; times += 1) {
      const moved = await post(`jobs/${jobId}/reschedule`, { startAt, ignoreWindows: 'true' });
      expect(moved.statusCode).toBe(200);
      const { entries } = await get<{ entries: { changes: object[] }[] }>('/admin/system/audit');
      expect(entries[0]?.changes).toContainEqual(expect.objectContaining({ field: 'ignoreWindows' }));
    }
    await server.runtime.advance(2 * hour);
    expect((await finish()).status.state).toBe('success');
  });
});

it('metrics show the scheduled start and whether a window is open', async () => {
  await start();
  const metric = async (name: string) => {
    const { body } = await server.get('/metrics');
    return Number(new RegExp(`^steward_upgrade_${name} (\\S+)$`, 'm').exec(body)?.[1]);
  };
  expect(await metric('scheduled_timestamp_seconds')).toBe(0);
  expect(await metric('window_open')).toBe(1);
  const { startAt } = await schedule();
  expect(await metric('scheduled_timestamp_seconds')).toBe(startAt / 1000);
  await closeWindows();
  expect(await metric('window_open')).toBe(0);
});
