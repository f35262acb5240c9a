// The frame of the pages of this product: the main navigation, and the banner of read-only mode.
import type { NavigationEntry, ReadOnlyState } from '../../console/frame.ts';
import { currentMode } from '../../mode/mode.ts';
import type { Reader } from '../../store/state.ts';
import { isJobRunning, newestJob } from '../../upgrades/jobs/job-table.ts';
import { type Webhook, listWebhooks } from '../../webhooks/webhook.ts';

export function navigation(reader: Reader): readonly NavigationEntry[] {
  const isDeactivated = ({ active, deactivatedBy }: Webhook) => !active && deactivatedBy === 'failures';
  const hooks = ['services', 'webhooks'];
  return [
    { name: 'Overview', path: [], access: 'member' },
    { name: 'Services', path: ['services'], access: 'member' },
    {
      name: 'Endpoints',
      group: 'Webhooks',
      path: hooks,
      access: 'administrator',
      count: () => listWebhooks(reader).filter(isDeactivated).length,
    },
    { name: 'Deliveries', group: 'Webhooks', path: [...hooks, 'deliveries'], access: 'administrator' },
    { name: 'Settings', group: 'Webhooks', path: [...hooks, 'settings'], access: 'administrator' },
    {
      name: 'Overview',
      group: 'Upgrades',
      path: ['system', 'upgrades'],
      access: 'administrator',
      count: () => (reader.read(newestJob)?.state === 'failed' ? 1 : 0),
    },
    {
      name: 'Versions',
      group: 'Upgrades',
      path: ['system', 'upgrades', 'available'],
      access: 'administrator',
    },
    { name: 'Jobs', group: 'Upgrades', path: ['system', 'jobs'], access: 'administrator' },
    {
      name: 'Windows',
      group: 'Upgrades',
      path: ['system', 'upgrades', 'config'],
      access: 'administrator',
    },
    { name: 'Users', group: 'Administration', path: ['security', 'users'], access: 'administrator' },
    { name: 'Audit', group: 'Administration', path: ['system', 'audit'], access: 'administrator' },
    { name: 'Uploads', group: 'Administration', path: ['uploads'], access: 'administrator' },
    { name: 'Mode', group: 'Administration', path: ['mode'], access: 'administrator' },
  ];
}

export function readOnlyState(reader: Reader): ReadOnlyState | undefined {
  const { isReadOnly, reason, message } = currentMode(reader, isJobRunning(reader));
  if (!isReadOnly) return undefined;
  return reason === 'upgrade'
    ? {
        text: message,
        link: { path: ['system', 'upgrades'], access: 'administrator' },
      }
    : {
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
