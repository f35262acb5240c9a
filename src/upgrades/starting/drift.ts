// Whether the workloads still have the images of the installed version, or why it is not known, for pages. One look at the cluster serves all
// pages of half a minute, because pages update themselves.
import type { Runtime } from '../../lib/runtime.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { Executor } from '../executors/executor.ts';
import { newestJob } from '../jobs/job-table.ts';
import { currentManifest, deployment } from '../versions/deployment.ts';

const maxAgeMs = 30_000;

/**
 * Why the images may not be those of the installed version. `isKnown` is false if the cluster cannot be read, or if the
 * version is not known.
 */
export type Drift = { readonly isKnown: boolean; readonly text: string };

/** Undefined if the workloads have these images, or if a job is changing them. */
export type ReadDrift = () => Promise<Drift | undefined>;

export function createDriftReader(
  store: ReadableStore,
  executor: Executor,
  { now }: Pick<Runtime, 'now'>,
): ReadDrift {
  let last = { at: -Infinity, job: '', drift: Promise.resolve<Drift | undefined>(undefined) };
  const readNow = async (): Promise<Drift | undefined> => {
    const inventory = await executor.inventory();
    const present = store.read(deployment);
    const { reason } = present ? {} : inventory.recognize(currentManifest(store));
    if (!present) return reason === undefined ? undefined : { isKnown: false, text: reason };
    const { isKnown, drift } = inventory.planRepair(present);
    if (isKnown) return drift === undefined ? undefined : { isKnown, text: drift };
    // The next page looks again.
    last.at = -Infinity;
    return { isKnown, text: 'The cluster cannot be read, so the images of its workloads are unknown.' };
  };
  return async () => {
    const { id = '', state, revision = 0 } = store.read(newestJob) ?? {};
    if (state === 'in_progress') return undefined;
    const job = `${id} ${revision} ${store.read(deployment)?.origin?.at}`;
    if (now() >= last.at + maxAgeMs || last.job !== job) last = { at: now(), job, drift: readNow() };
    try {
      return await last.drift;
    } catch (error) {
      // The store was unavailable.
      last.at = -Infinity;
      throw error;
    }
  };
}
