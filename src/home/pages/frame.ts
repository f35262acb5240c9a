// The frame of the pages of this product: the main navigation, and the banner of read-only mode.
import type { NavigationEntry, ReadOnlyState } from '../../console/frame.ts';
import { currentMode } from '../../mode/mode.ts';
import type { Reader } from '../../store/state.ts';
import { isJobRunning, newestJob } from '../../upgrades/jobs/job-table.ts';
import { isDeactivated, listWebhooks } from '../../webhooks/webhook.ts';

export function navigation(reader: Reader): readonly NavigationEntry[] {
  const hooks = ['services', 'webhooks'];
  const webhookPage = { group: 'Webhooks', access: 'administrator' } as const;
  const upgradePage = { group: 'Upgrades', access: 'administrator' } as const;
  const otherPage = { group: 'Administration', access: 'administrator' } as const;
  return [
    { name: 'Overview', path: [], access: 'member' },
    { name: 'Services', path: ['services'], access: 'member' },
    {
      ...webhookPage,
      name: 'Endpoints',
      path: hooks,
      count: () => listWebhooks(reader).filter(isDeactivated).length,
    },
    { ...webhookPage, name: 'Deliveries', path: [...hooks, 'deliveries'] },
    { ...webhookPage, name: 'Settings', path: [...hooks, 'settings'] },
    {
      ...upgradePage,
      name: 'Overview',
      path: ['system', 'upgrades'],
      count: () => (reader.read(newestJob)?.state === 'failed' ? 1 : 0),
    },
    { ...upgradePage, name: 'Versions', path: ['system', 'upgrades', 'available'] },
    { ...upgradePage, name: 'Jobs', path: ['system', 'jobs'] },
    { ...upgradePage, name: 'Windows', path: ['system', 'upgrades', 'config'] },
    { ...otherPage, name: 'Users', path: ['security', 'users'] },
    { ...otherPage, name: 'Keys', path: ['security', 'keys'] },
    { ...otherPage, name: 'Audit', path: ['system', 'audit'] },
    { ...otherPage, name: 'Uploads', path: ['uploads'] },
    { ...otherPage, name: 'Mode', path: ['mode'] },
  ];
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
