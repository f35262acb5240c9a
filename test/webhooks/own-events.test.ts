// Tests of the server's own events: of services, upgrades and webhooks.
import { describe, expect, it } from 'vitest';
import { jobEvent } from '../../src/webhooks/own-events.ts';
import { perTest } from '../kit/cleanup.ts';
import { bodyOf, quick, startHooks } from '../kit/hooks.ts';
import { job } from '../store/definitions.ts';

const hooks = perTest(() =>
  startHooks({ env: { UPGRADE_STEP_MS: '0', SIMULATED_FAILURES: 'SECURITY_DIRECTORY:1' } }),
);

const received = () =>
  hooks.arrivals.map((sent) => bodyOf(sent)).map(({ type, service, data }) => ({ type, service, data }));

describe('the server’s own events', () => {
  it('report changes of services, also to the webhooks of that service', async () => {
    await hooks.register({ service: 'Maps/Roads.MapServer' });
    const ships = { folderName: 'Maps', serviceName: 'Ships', type: 'MapServer' };
    await hooks.post('/admin/services/createService', ships, hooks.administrator);
    await hooks.register({ name: 'All' });
    const roads = { folderName: 'Maps', serviceName: 'Roads', type: 'MapServer' };
    await hooks.post(
      '/admin/services/Maps/Roads.MapServer/edit',
      { description: 'New' },
      hooks.administrator,
    );
    await hooks.post('/admin/services/Maps/Ships.MapServer/delete', {}, hooks.administrator);
    await hooks.settle();
    expect(received().filter(({ type }) => type === 'ServiceUpdated')).toEqual(
      Array(2).fill({ type: 'ServiceUpdated', service: 'Maps/Roads.MapServer', data: roads }),
    );
    expect(received().filter(({ type }) => type !== 'ServiceUpdated')).toEqual([
      { type: 'ServiceDeleted', service: 'Maps/Ships.MapServer', data: ships },
    ]);
  });

  it('do not report a refused change', async () => {
    await hooks.register();
    await hooks.post('/admin/services/createService', { serviceName: 'x', type: '1' }, hooks.administrator);
    const twice = { folderName: 'Maps', serviceName: 'Roads', type: 'MapServer' };
    await hooks.post('/admin/services/createService', twice, hooks.administrator);
    await hooks.settle();
    expect(received()).toEqual([]);
  });

  const upgrade = (id: string) =>
    hooks.post(
      '/admin/system/upgrades/upgrade',
      { versionManifest: JSON.stringify({ id }) },
      hooks.administrator,
    );
  const finish = async () => {
    for (let turns = 0; turns < 200; turns += 1) await hooks.runtime.advance(0);
  };

  it('report one start of an upgrade and the end of each run, also in read-only mode', async () => {
    await hooks.register();
    const { jobId } = (await upgrade('pat_17022022_1250')).json<{ jobId: string }>();
    await finish();
    const data = { jobId, operation: 'upgrade', from: '10.9.1.1234', to: '10.9.1.1250' };
    const reason =
      'Update module SECURITY_DIRECTORY: the update of SECURITY_DIRECTORY fails by SIMULATED_FAILURES.';
    const started = { type: 'UpgradeStarted', service: null, data };
    const failed = { type: 'UpgradeFailed', service: null, data: { ...data, reason } };
    expect(received()).toEqual([started, failed]);
    await hooks.post(`/admin/system/jobs/${jobId}/resume`, {}, hooks.administrator);
    await finish();
    expect(received()).toEqual([started, failed, { type: 'UpgradeSucceeded', service: null, data }]);
  });

  it('report that an upgrade is scheduled, moved and started', async () => {
    await hooks.register();
    const startAt = hooks.runtime.now() + 60_000;
    const fields = { versionManifest: '{"id":"pat_17022022_1250"}', startAt: String(startAt) };
    const accepted = await hooks.post('/admin/system/upgrades/upgrade', fields, hooks.administrator);
    const { jobId } = accepted.json<{ jobId: string }>();
    const moved = { startAt: String(startAt + 1) };
    await hooks.post(`/admin/system/jobs/${jobId}/reschedule`, moved, hooks.administrator);
    await finish();
    const data = { jobId, operation: 'upgrade', from: '10.9.1.1234', to: '10.9.1.1250' };
    expect(received()).toEqual([
      { type: 'UpgradeScheduled', service: null, data: { ...data, startAt } },
      { type: 'UpgradeScheduled', service: null, data: { ...data, startAt: startAt + 1 } },
    ]);
    await hooks.runtime.advance(60_001);
    await finish();
    expect(received()[2]).toEqual({ type: 'UpgradeStarted', service: null, data });
  });

  it('report a missed start instead of a failure', () => {
    const missed = job(1, {
      state: 'failed',
      startAt: 5,
      startedAt: null,
      hasMissedStart: true,
      reason: 'Late.',
    });
    const { type, data } = jobEvent(missed);
    expect(type).toBe('UpgradeMissed');
    expect(JSON.parse(data)).toMatchObject({ jobId: 'job-1', startAt: 5, reason: 'Late.' });
    expect(jobEvent({ ...missed, hasMissedStart: false }).type).toBe('UpgradeFailed');
  });

  it('report a cancelled upgrade', async () => {
    await hooks.register({ changeTypes: 'UpgradeCancelled' });
    const { jobId } = (await upgrade('pat_17022022_1250')).json<{ jobId: string }>();
    await hooks.post(`/admin/system/jobs/${jobId}/cancel`, {}, hooks.administrator);
    await finish();
    expect(received()).toMatchObject([{ data: { jobId, reason: 'Cancelled by administrator.' } }]);
  });

  it('report to other webhooks that failures have deactivated a webhook', async () => {
    await hooks.act('settings', { ...quick, notificationAttempts: '1' });
    const { id } = await hooks.register({
      name: 'Broken',
      hookUrl: 'https://broken.example/',
      changeTypes: 'Tested',
    });
    await hooks.register({ name: 'Watcher', changeTypes: 'WebhookDeactivated' });
    const receiver = hooks.httpClient.receiver;
    hooks.httpClient.receiver = (request, signal, at) =>
      request.url.includes('broken') ? 500 : receiver(request, signal, at);
    const windowStart = hooks.runtime.now();
    await hooks.deliver();
    await hooks.runtime.advance(1000);
    await hooks.deliver();
    await hooks.settle();
    expect(received()).toEqual([
      {
        type: 'WebhookDeactivated',
        service: null,
        data: { webhookId: id, webhookName: 'Broken', failures: 2, windowStart },
      },
    ]);
    const line = hooks.logLines
      .map((text) => JSON.parse(text) as Record<string, unknown>)
      .findLast(({ level }) => level === 40);
    expect(line).toMatchObject({ webhookId: id, webhookName: 'Broken', failures: 2, windowStart });
    await hooks.act(`${id}/activate`);
    await hooks.act(`${id}/deactivate`);
    await hooks.settle();
    expect(received()).toHaveLength(1);
  });
});
