// Whether the workloads still have the images of the installed version, for pages. One look at the cluster serves all
// pages of half a minute, because pages update themselves.
import type { Runtime } from '../../lib/runtime.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { Executor } from '../executors/executor.ts';
import { newestJob } from '../jobs/job-table.ts';
import { deployment } from '../versions/deployment.ts';

const maxAgeMs = 30_000;

/** Undefined if they have them, if a job is changing them, or if the cluster cannot be read. */
export type ReadDrift = () => Promise<string | undefined>;

export function createDriftReader(
  store: ReadableStore,
  executor: Executor,
  { now }: Pick<Runtime, 'now'>,
): ReadDrift {
  let last = { at: -Infinity, job: '', drift: Promise.resolve<string | undefined>(undefined) };
  const readNow = async () => (await executor.inventory()).planRepair(store.read(deployment)).drift;
  return async () => {
    const { id = '', state, revision = 0 } = store.read(newestJob) ?? {};
    if (state === 'in_progress') return undefined;
    const job = `${id} ${revision}`;
    if (now() >= last.at + maxAgeMs || last.job !== job)
      last = { at: now(), job, drift: readNow().catch(() => undefined) };
    return last.drift;
  };
}
