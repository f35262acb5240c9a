// REST operations that say what can be installed and what is: the imported manifest, and the adopted version.
import * as z from 'zod';
import { type Problem, ServiceError, problemsOf } from '../lib/errors.ts';
import { formatCount, formatNumber } from '../lib/format.ts';
import { answerObject, successAnswer } from '../rest/answer.ts';
import { file, text } from '../rest/field-types.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import type { Reader } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Executor } from './executors/executor.ts';
import { isOpen, newestJob } from './jobs/job-table.ts';
import type { JobsOptions } from './jobs.rest.ts';
import { baseManifestName } from './pages/versions.ts';
import { withOrigin } from './starting/first-version.ts';
import {
  type Deployment,
  currentManifest,
  deployment,
  importManifest,
  importedManifest,
  installedVersions,
  newestInstalled,
} from './versions/deployment.ts';
import { reachableVersions } from './versions/hops.ts';
import {
  findDeployment,
  formatStartingVersions,
  nothingFollows,
  startingVersions,
} from './versions/installed-version.ts';
import { type Version, formatVersion, readManifest } from './versions/manifest.ts';

/** The version before it; null if that is not known. */
export type Adoption = { readonly from: string | null; readonly to: string };

export type ManifestOptions = Pick<JobsOptions, 'store'> & {
  readonly executor: Executor;
  /** Decides the installed version if it is not known yet. */
  readonly decideVersion: () => Promise<void>;
  readonly notifyAdoption: (transaction: Transaction, adoption: Adoption, at: number) => void;
};

const reachableFields = {
  reachable: z.int().nonnegative().describe('How many versions an upgrade can reach from the installed one.'),
  notice: z.string().optional().describe('Why no version can be reached. Only if none can.'),
};

const importAnswer = answerObject('ImportedManifest', 'The manifest was imported.', {
  ...successAnswer.shape,
  ...reachableFields,
});

const adoptAnswer = answerObject('AdoptedVersion', 'The installed version was adopted.', {
  ...successAnswer.shape,
  from: z.string().nullable().describe('The version before, with its build. Null: it was not known.'),
  to: z.string().describe('The adopted version, with its build.'),
  ...reachableFields,
  drift: z
    .array(z.string())
    .nullable()
    .describe('The workloads whose images are not those of the version. Null: the cluster cannot be read.'),
});

const versionsPage = { name: 'Show the versions', path: ['system', 'upgrades', 'available'] };

const installedVersionField = text({ to: 200 }).describe(
  'What is installed: the id of a version of the manifest, or a version and build such as 11.5.0.6815.',
);

export function manifestOperations(options: ManifestOptions): Record<string, Operation> {
  return {
    importManifest: importManifestOperation(options),
    deleteImportedManifest: deleteImportedManifestOperation(options),
    adopt: adoptOperation(options),
  };
}

function importManifestOperation(options: ManifestOptions): Operation {
  const { store } = options;
  return operation({
    title: 'Import manifest',
    description: 'Replaces the version manifest for all versions that are not installed.',
    warning: () =>
      `The manifest has ${formatCount(currentManifest(store).length, 'version')} now. Those that the file lacks are removed.`,
    fields: {
      manifestFile: file().describe('A version manifest: a JSON array of versions, or {"versions": […]}.'),
      installedVersion: installedVersionField
        .optional()
        .describe('Adopts this version together with the manifest, as adopt does.'),
    },
    answer: importAnswer,
    check: ({ values: { manifestFile, installedVersion: name } }) => {
      if (!manifestFile) return { problems: [] };
      const adopted = (versions: readonly Version[]) =>
        name === undefined ? undefined : findDeployment(versions, name);
      const read = readManifest(manifestFile.bytes, (versions) =>
        installedVersions(adopted(versions) ?? store.read(deployment)),
      );
      if ('problems' in read) return { problems: problemsOf('manifestFile', read.problems) };
      const { versions } = read;
      const problems = name === undefined ? [] : notFound(versions, adopted(versions));
      return { problems, prepared: { versions, adopted: adopted(versions) } };
    },
    run: async ({ prepared: { versions, adopted }, update, actor }) => {
      const added = await update((transaction, at) => {
        if (adopted) adopt(options, transaction, adopted, actor?.user, at);
        return importManifest(transaction, versions, at);
      });
      await options.decideVersion();
      const { json, text } = countReachable(store);
      const imported = `The manifest with ${formatCount(versions.length, 'version')} was imported, ${formatNumber(added.length)} of them new.`;
      return succeeded(`${imported} ${text}`, versionsPage, json);
    },
  });
}

function deleteImportedManifestOperation({ store }: ManifestOptions): Operation {
  return operation({
    title: 'Delete imported manifest',
    description: 'Deletes the imported version manifest, so that the one of the start is used again.',
    run: async ({ update }) => {
      await update((transaction) => transaction.write(importedManifest, null));
      return succeeded(`Steward uses ${baseManifestName(store)} again.`, versionsPage);
    },
  });
}

function adoptOperation(options: ManifestOptions): Operation {
  const { store, executor } = options;
  return operation({
    title: 'Adopt a version',
    description: 'Declares which version is installed. Changes no workload and starts no job.',
    warning: () =>
      'Steward takes this version as the installed one. It changes no workload and starts no job.',
    fields: { installedVersion: installedVersionField },
    suggest: () => ({ installedVersion: startingVersions(currentManifest(store)) }),
    answer: adoptAnswer,
    check: ({ values: { installedVersion: name } }) => {
      if (name === undefined) return { problems: [] };
      const manifest = currentManifest(store);
      const prepared = findDeployment(manifest, name);
      return { problems: notFound(manifest, prepared), ...(prepared && { prepared }) };
    },
    run: async ({ prepared: present, update, actor }) => {
      const adoption = await update((transaction, at) =>
        adopt(options, transaction, present, actor?.user, at),
      );
      const { isKnown, workloads } = (await executor.inventory()).planRepair(present);
      const drift = isKnown ? workloads.flat().map(({ name }) => name) : null;
      const { json, text } = countReachable(store);
      return succeeded(`${adoption.to} is the installed version. ${text}`, versionsPage, {
        ...adoption,
        ...json,
        drift,
      });
    },
  });
}

function notFound(manifest: readonly Version[], found: Deployment | undefined): Problem[] {
  const message = `there is no such version; it must be ${formatStartingVersions(manifest)}.`;
  return found ? [] : [{ field: 'installedVersion', message }];
}

function adopt(
  { notifyAdoption }: ManifestOptions,
  transaction: Transaction,
  present: Deployment,
  user: string | undefined | null,
  at: number,
): Adoption {
  const job = transaction.read(newestJob);
  if (job && isOpen(job)) {
    const message = `The job ${job.id} to ${job.to} has not ended: wait for its end, or cancel it.`;
    throw new ServiceError('conflict', message);
  }
  const before = transaction.read(deployment);
  const from = before && formatVersion(newestInstalled(before));
  const adoption = { from, to: formatVersion(newestInstalled(present)) };
  const idsOf = (one: Deployment | null) => installedVersions(one).map(({ id }) => id);
  if (idsOf(before).join() === idsOf(present).join()) return adoption;
  transaction.write(deployment, withOrigin(present, `an adoption by ${user ?? 'an administrator'}`, at));
  notifyAdoption(transaction, adoption, at);
  return adoption;
}

/** For the answer, and the sentence for a page. */
function countReachable(reader: Reader) {
  const present = reader.read(deployment);
  const manifest = currentManifest(reader);
  const reachable = present ? reachableVersions(manifest, present).length : 0;
  const notice = present ? nothingFollows(manifest, present) : 'The installed version is not known.';
  return reachable > 0
    ? { json: { reachable }, text: `${formatCount(reachable, 'version')} can be installed.` }
    : { json: { reachable, notice }, text: notice };
}
