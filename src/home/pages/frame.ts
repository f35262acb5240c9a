// The frame of the pages of this product: the main navigation, and the banner of read-only mode.
import type { NavigationEntry, ReadOnlyState } from '../../console/frame.ts';
import { currentMode } from '../../mode/mode.ts';
import type { Reader } from '../../store/state.ts';
import type { ReadableStore } from '../../store/store.ts';
import { isJobRunning, newestJob } from '../../upgrades/jobs/job-table.ts';
import { readHealths } from '../../webhooks/queue/redelivery.ts';
import { listWebhooks, readHealth } from '../../webhooks/webhook.ts';
import { whileAvailable } from './health.ts';

export function navigation(store: ReadableStore, now: () => number): readonly NavigationEntry[] {
  const hooks = ['services', 'webhooks'];
  const webhookPage = { group: 'Events', access: 'administrator' } as const;
  const upgradePage = { group: 'Deployment', access: 'administrator' } as const;
  const otherPage = { group: 'Administration', access: 'administrator' } as const;
  return [
    { name: 'Home', path: [], access: 'member' },
    { name: 'Services', path: ['services'], access: 'member' },
    {
      ...webhookPage,
      name: 'Webhooks',
      path: hooks,
      count: () => countWebhooks(store, now()),
    },
    { ...webhookPage, name: 'Deliveries', path: [...hooks, 'deliveries'] },
    { ...webhookPage, name: 'Webhook settings', path: [...hooks, 'settings'] },
    {
      ...upgradePage,
      name: 'Upgrades',
      path: ['system', 'upgrades'],
      count: () => (store.read(newestJob)?.state === 'failed' ? 1 : 0),
    },
    { ...upgradePage, name: 'Available versions', path: ['system', 'upgrades', 'available'] },
    { ...upgradePage, name: 'Jobs', path: ['system', 'jobs'] },
    { ...upgradePage, name: 'Maintenance windows', path: ['system', 'upgrades', 'config'] },
    { ...otherPage, name: 'Users', path: ['security', 'users'] },
    { ...otherPage, name: 'Keys', path: ['security', 'keys'], also: ['security', 'self', 'keys'] },
    { ...otherPage, name: 'Audit trail', path: ['system', 'audit'] },
    { ...otherPage, name: 'Uploads', path: ['uploads'] },
    { ...otherPage, name: 'Read-only mode', path: ['mode'] },
  ];
}

/** The webhooks that need attention. While the database is unavailable, those that did not get all events are unknown. */
async function countWebhooks(store: ReadableStore, now: number): Promise<number> {
  const known = await whileAvailable(() => readHealths(store, now));
  const all = known ?? listWebhooks(store).map((webhook) => readHealth(store, webhook, now));
  return all.filter(({ health }) => health !== 'ok' && health !== 'inactive').length;
}

export function readOnlyState(reader: Reader): ReadOnlyState | undefined {
  const { isReadOnly, reason, message } = currentMode(reader, isJobRunning(reader));
  if (!isReadOnly) return undefined;
  if (reason === 'upgrade')
    return { text: message, link: { path: ['system', 'upgrades'], access: 'administrator' } };
  return {
    text: message,
    link: { path: ['mode'], access: 'member' },
    action: {
      name: 'Turn read-only mode off',
      path: ['mode', 'update'],
      fields: { isReadOnly: 'false' },
      access: 'administrator',
    },
  };
}
