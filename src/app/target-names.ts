// The names of webhooks, services, users, keys, jobs and uploads, for the audit trail.
import type { TargetNames } from '../audit/audit-store.ts';
import { keys } from '../auth/key.ts';
import type { ReadableStore } from '../store/store.ts';
import { newestJob } from '../upgrades/jobs/job-table.ts';
import { jobTitle } from '../upgrades/pages/job-parts.ts';
import { uploads } from '../uploads/upload.ts';
import { webhooks } from '../webhooks/webhook.ts';

const webhooksPath = 'services/webhooks';
const keysPath = 'security/keys';

export function targetNames(store: ReadableStore): TargetNames {
  const lookups: Readonly<Record<string, (id: string) => Promise<string | undefined>>> = {
    [webhooksPath]: (id) => Promise.resolve(store.get(webhooks, id)?.name),
    [keysPath]: (id) => Promise.resolve(store.get(keys, id)?.name),
    'security/users': (name) => Promise.resolve(name),
    'system/jobs': async (id) => {
      const newest = store.read(newestJob);
      const job = newest?.id === id ? newest : await store.jobs.find(id);
      return job && jobTitle(job);
    },
    uploads: (id) => Promise.resolve(store.get(uploads, id)?.itemName),
  };
  return {
    nameOf: async (target) => {
      const found = Object.entries(lookups).find(([path]) => target.startsWith(`${path}/`));
      if (!found) return /^services\/(?!webhooks$)(.+)/.exec(target)?.[1];
      const [path, lookUp] = found;
      return lookUp(target.slice(path.length + 1).split('/', 1)[0] ?? '');
    },
    // Webhooks and keys are in memory. The path of a user contains the name.
    find: (text) => {
      const findIn = (path: string, rows: Iterable<{ readonly id: string; readonly name: string }>) =>
        [...rows].flatMap(({ id, name }) =>
          name.toLowerCase().includes(text.toLowerCase()) ? `${path}/${id}` : [],
        );
      return [...findIn(webhooksPath, store.all(webhooks)), ...findIn(keysPath, store.all(keys))];
    },
  };
}
