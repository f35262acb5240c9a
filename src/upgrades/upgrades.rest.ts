// REST edge of upgrades: the resource that tells the progress, and what lies beneath it (spec 4.4, contract 6).
import { type Resource, closeBeneathDuringJob, folder, resource } from '../rest/resource.ts';
import { CachedJson, type Json, asJson } from '../lib/json.ts';
import { defaultTo, integer, text } from '../rest/fields.ts';
import { historyResource, jobsResource } from './jobs.rest.ts';
import { type Job, findInstallingJob, messages, newestJob } from './job-table.ts';
import { upgradesPage } from './pages/upgrades.ts';
import { type OperationsOptions, upgradeOperations } from './operations.rest.ts';
import {
  availableVersions,
  deployment,
  importedManifest,
  installedVersions,
  newestInstalled,
  rollbackTargets,
} from './deployment.ts';
import { jobStatus } from './job-status.ts';
import type { JobWatcher } from './job-watcher.ts';

export type UpgradesOptions = OperationsOptions & { watcher: JobWatcher };

export function systemResource(options: UpgradesOptions): Resource {
  const { store, runtime, watcher } = options;
  const present = () => store.read(deployment);

  const child = (title: string, description: string, read: () => Json) =>
    resource({ title, description, access: 'administrator', read });

  /** The status of an ended job does not change until the job is resumed. */
  let endedStatus: { job: Job; messageCount: number; status: CachedJson } | undefined;

  function readStatus(job: Job | undefined, after: number): Json | CachedJson {
    if (!job || job.state === 'in_progress' || after > 0)
      return asJson(jobStatus(store, job, runtime.now(), after));
    const messageCount = store.entries(messages, job.id).length;
    if (endedStatus?.job !== job || endedStatus.messageCount !== messageCount) {
      const status = new CachedJson(asJson(jobStatus(store, job, runtime.now())));
      endedStatus = { job, messageCount, status };
    }
    return endedStatus.status;
  }

  const upgrades = resource({
    title: 'Upgrades',
    description: 'Where the deployment stands, where it can go, and the newest job on its way.',
    access: 'administrator',
    fields: {
      after: defaultTo(integer('Only the messages after the first so many.', 0, 1_000_000_000), 0),
      wait: defaultTo(integer('Seconds to wait for something new.', 0, 60), 0),
      jobId: text('The job the waiting is for; where it is not the newest there is no waiting.', { to: 128 }),
    },
    read: async ({ values: { after, wait, jobId } }) => {
      const job = newestJob(store);
      if (wait === 0 || !job || (jobId !== undefined && jobId !== job.id)) return readStatus(job, after);
      await watcher.waitForChange(job, after, wait * 1000);
      return readStatus(newestJob(store), after);
    },
    view: upgradesPage(options),
    operations: upgradeOperations(options),
    resources: {
      available: child(
        'Available versions',
        'The version manifest: every version that can be reached from here.',
        () => {
          return availableVersions(store).map(({ version, reasons }) => ({
            ...asJson(version),
            installable: reasons.length === 0,
            reasons,
          }));
        },
      ),
      installed: child('Installed versions', 'The installed release, then its patches.', () => ({
        updates: installedVersions(present()).map(asJson),
      })),
      currentVersion: child(
        'Current version',
        'The newest installed version, and the messages of the job that installed it.',
        () => {
          const version = newestInstalled(present());
          const installer = findInstallingJob(store, version.id);
          return {
            ...asJson(version),
            messages: asJson(installer ? store.entries(messages, installer.id) : []),
          };
        },
      ),
      history: historyResource(options),
      manifestStatus: child('Manifest status', 'Where the version manifest comes from.', () => {
        const imported = store.read(importedManifest);
        return {
          versionManifestSource: imported ? 'imported' : 'built-in',
          lastImportedTimestamp: imported?.importedAt ?? null,
        };
      }),
      checkRollback: child('Check rollback', 'The versions that can be gone back to, newest first.', () => ({
        updates: rollbackTargets(present()).map(asJson),
      })),
    },
  });

  return folder(
    { title: 'System', description: 'The deployment as a whole.', access: 'administrator' },
    { upgrades: closeBeneathDuringJob(upgrades), jobs: jobsResource(options) },
  );
}
