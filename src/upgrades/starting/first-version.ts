// Decides the installed version of a store that has none: by INSTALLED_VERSION, or else by what the executor recognizes.
// Steward never guesses: until the version is decided or adopted, it is not known.
import type { Runtime } from '../../lib/runtime.ts';
import type { Tasks } from '../../lib/tasks.ts';
import type { Reader } from '../../store/state.ts';
import type { Store } from '../../store/store.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Executor } from '../executors/executor.ts';
import type { Recognition } from '../executors/workloads.ts';
import { isOpen, newestJob } from '../jobs/job-table.ts';
import {
  type BaseManifest,
  type Deployment,
  baseManifest,
  currentManifest,
  deployment,
  installedVersions,
  newestInstalled,
} from '../versions/deployment.ts';
import { reachableVersions } from '../versions/hops.ts';
import {
  findDeployment,
  formatStartingVersions,
  isListed,
  nothingFollows,
} from '../versions/installed-version.ts';
import { findManifestProblems, formatVersion } from '../versions/manifest.ts';

const lookAgainMs = 30_000;

type Logger = Readonly<Record<'info' | 'warn', (facts: object, message: string) => void>>;

type FirstVersionOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly tasks: Tasks;
  readonly executor: Executor;
  readonly logger: Logger;
  /** INSTALLED_VERSION. */
  readonly named: string | undefined;
  /** Whether the executor may recognize a version later, and may take long to look. */
  readonly looksAgain: boolean;
  /** Records the decision in the audit trail. */
  readonly record: (transaction: Transaction, at: number) => void;
};

/** Stores the manifest of this start. Throws if it contradicts the installed version. */
export function loadManifest(transaction: Transaction, base: BaseManifest, named: string | undefined): void {
  const present =
    transaction.read(deployment) ?? (named === undefined ? null : findDeployment(base.versions, named));
  const problems =
    base.source === 'file' ? findManifestProblems(base.versions, installedVersions(present ?? null)) : [];
  if (problems.length > 0)
    throw new Error(`MANIFEST_FILE does not fit the installed version. ${problems.join(' ')}`);
  if (transaction.read(baseManifest).digest !== base.digest) transaction.write(baseManifest, base);
}

export function createFirstVersion(options: FirstVersionOptions) {
  const { store, runtime, tasks, logger, named, looksAgain } = options;
  const isKnown = () => store.read(deployment) !== null;
  let lastReason = '';
  /** Does nothing if the version is known, and leaves it unknown if it cannot be recognized. */
  async function decide(): Promise<void> {
    if (isKnown()) return;
    const found = await recognize(options);
    if (found.present) await storeDecision(options, found);
    else if (found.reason !== lastReason)
      logger.warn({ reason: (lastReason = found.reason) }, 'the installed version is not known');
    if (isKnown()) logReachable(store, logger);
  }
  /** Resolves when the version is decided, unless the executor looks again. */
  async function start(): Promise<void> {
    if (isKnown()) return logReachable(store, logger);
    if (named !== undefined || !looksAgain) return decide();
    tasks.start('recognition of the installed version', async (signal) => {
      for (; !isKnown(); await runtime.sleep(lookAgainMs, signal)) await decide();
    });
  }
  return { decide, start };
}

async function recognize({ store, executor, named }: FirstVersionOptions): Promise<Recognition> {
  const manifest = currentManifest(store);
  if (named === undefined) return (await executor.inventory()).recognize(manifest);
  const present = findDeployment(manifest, named);
  if (present) return { present, from: 'INSTALLED_VERSION' };
  throw new Error(`INSTALLED_VERSION must be ${formatStartingVersions(manifest)}.`);
}

/** Another process may have decided meanwhile, or may have started a job. */
async function storeDecision(
  { store, runtime, record }: FirstVersionOptions,
  { present, from }: { readonly present: Deployment; readonly from: string },
): Promise<void> {
  await store.update((transaction) => {
    const job = transaction.read(newestJob);
    if (transaction.read(deployment) !== null || (job && isOpen(job))) return;
    const at = runtime.now();
    transaction.write(deployment, withOrigin(present, from, at));
    record(transaction, at);
  });
}

export function withOrigin(present: Deployment, from: string, at: number): Deployment {
  return { ...present, origin: { version: formatVersion(newestInstalled(present)), from, at } };
}

function logReachable(reader: Reader, logger: Logger): void {
  const present = reader.read(deployment);
  if (!present) return;
  const manifest = currentManifest(reader);
  const reachable = reachableVersions(manifest, present).length;
  const facts = {
    installedVersion: formatVersion(newestInstalled(present)),
    derivedFrom: present.origin?.from ?? 'a job',
    reachable,
  };
  if (reachable > 0 || isListed(manifest, present)) logger.info(facts, 'the installed version is known');
  else logger.warn(facts, nothingFollows(manifest, present));
}
