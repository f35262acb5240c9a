// The frame of the pages of this product: the main navigation, and the banner of read-only mode.
import type { NavigationEntry, ReadOnlyState } from '../../console/frame.ts';
import { currentMode } from '../../mode/mode.ts';
import type { Reader } from '../../store/state.ts';
import { isJobRunning } from '../../upgrades/jobs/job-table.ts';

export const navigation: readonly NavigationEntry[] = [
  { name: 'Home', path: [], access: 'member' },
  { name: 'Services', path: ['services'], access: 'member' },
  { name: 'Webhooks', path: ['services', 'webhooks'], access: 'administrator' },
  { name: 'Upgrades', path: ['system', 'upgrades'], access: 'administrator', also: [['system', 'jobs']] },
  { name: 'Users', path: ['security', 'users'], access: 'administrator' },
  { name: 'Uploads', path: ['uploads'], access: 'administrator' },
  { name: 'Audit', path: ['system', 'audit'], access: 'administrator' },
];

export function readOnlyState(reader: Reader): ReadOnlyState | undefined {
  const { isReadOnly, reason, message } = currentMode(reader, isJobRunning(reader));
  if (!isReadOnly) return undefined;
  return reason === 'upgrade'
    ? {
        text: message,
        link: { name: 'Show its progress', path: ['system', 'upgrades'], access: 'administrator' },
      }
    : {
        text: message,
        action: {
          name: 'Turn read-only mode off',
          path: ['mode', 'update'],
          fields: { isReadOnly: 'false' },
          access: 'administrator',
        },
      };
}
