// Reads jobs for requests and metrics: the newest job from the replicated state, earlier ones from the job store, and
// the messages of both. Requests can wait until a job changes.
import type { Runtime } from '../../lib/runtime.ts';
import type { Reader } from '../../store/state.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { JobEnd } from '../executors/workloads.ts';
import { maintenanceWindows, windowsAt } from '../schedule/windows.ts';
import {
  type Job,
  type JobStore,
  hasInstalled,
  isOpen,
  newestJob,
  runTotals,
  stateCodes,
} from './job-table.ts';
import type { Message } from '../planning/messages.ts';
import { isLongWait, remainingMs } from './progress.ts';

/** What was read of one job so far. A job only adds messages, and its plan never changes. */
type KnownJob = {
  readonly jobId: string;
  readonly messages: Message[];
  reading?: Promise<void> | undefined;
  plan?: ReturnType<JobStore['plan']> | undefined;
};

export class JobService {
  readonly #store: ReadableStore;
  #known: KnownJob = { jobId: '', messages: [] };

  constructor(store: ReadableStore) {
    this.#store = store;
  }

  find(id: string): Promise<Job | undefined> {
    return findJob(this.#store, id);
  }

  /** One page of all jobs, newest first, and their total number. */
  async page(start: number, num: number): Promise<{ jobs: readonly Job[]; total: number }> {
    const newest = this.#store.read(newestJob);
    if (!newest) return { jobs: [], total: 0 };
    const first = start === 0 ? [newest] : [];
    const { jobs, total } = await this.#store.jobs.page(
      newest.number,
      Math.max(0, start - 1),
      num - first.length,
    );
    return { jobs: [...first, ...jobs], total: total + 1 };
  }

  /** Undefined for the version of a fresh deployment, which no job installed. */
  async findInstalling(versionId: string): Promise<Job | undefined> {
    const newest = this.#store.read(newestJob);
    return newest && hasInstalled(newest, versionId) ? newest : this.#store.jobs.findInstalling(versionId);
  }

  /**
   * The messages of the job after the first `after`, without those that it has recorded since `job` was read. The
   * count is 0 if the store has removed the messages.
   */
  async messages(job: Job, after = 0): Promise<JobMessages> {
    const { id, messageCount } = job;
    const isNewest = this.#store.read(newestJob)?.id === id;
    const found = isNewest
      ? (await this.#readKnown(job)).slice(after)
      : await this.#store.jobs.messages(id, after);
    const isRemoved = found.length === 0 && messageCount > after;
    return {
      messages: found.slice(0, Math.max(0, messageCount - after)),
      count: isRemoved ? 0 : messageCount,
    };
  }

  /** That of the newest job is read once: it may be large, and every live update of its page needs it. */
  plan({ id }: Job): ReturnType<JobStore['plan']> {
    if (this.#store.read(newestJob)?.id !== id) return this.#store.jobs.plan(id);
    const known = this.#knownOf(id);
    known.plan ??= this.#store.jobs.plan(id).catch((error: unknown) => {
      known.plan = undefined;
      throw error;
    });
    return known.plan;
  }

  #knownOf(jobId: string): KnownJob {
    if (this.#known.jobId !== jobId) this.#known = { jobId, messages: [] };
    return this.#known;
  }

  /** Reads only what is not known yet. Requests that wait at the same time share one read. */
  async #readKnown({ id, messageCount }: Job): Promise<readonly Message[]> {
    const known = this.#knownOf(id);
    // A read that had begun before this call may lack the newest messages. The next one has them.
    for (let reads = 0; reads < 2 && known.messages.length < messageCount; reads += 1) {
      known.reading ??= this.#readMore(known).finally(() => (known.reading = undefined));
      await known.reading;
    }
    return known.messages;
  }

  async #readMore(known: KnownJob): Promise<void> {
    const more = await this.#store.jobs.messages(known.jobId, known.messages.length);
    for (const message of more) known.messages.push(message);
  }
}

async function findJob(store: ReadableStore, id: string): Promise<Job | undefined> {
  const newest = store.read(newestJob);
  return newest?.id === id ? newest : store.jobs.find(id);
}

export async function findJobEnd(store: ReadableStore, id: string): Promise<JobEnd> {
  const job = await findJob(store, id);
  if (!job) return { state: 'unknown', from: '' };
  if (job.state === 'success') return { state: 'succeeded', from: job.from };
  return { state: job.kind === 'patch' ? 'reverted' : 'unfinished', from: job.from };
}

/** False for a job that the store does not know. */
export async function hasJobEnded(store: ReadableStore, id: string): Promise<boolean> {
  const job = await findJob(store, id);
  return job !== undefined && job.state !== 'in_progress';
}

/** Messages of a job, and how many it has in all. */
type JobMessages = { readonly messages: readonly Message[]; readonly count: number };

export function jobStatus(job: Job, { messages, count }: JobMessages, at: number) {
  return {
    status: { state: job.state, code: stateCodes[job.state], messages },
    jobId: job.id,
    ...(job.startAt !== null && { startAt: job.startAt }),
    messageCount: count,
    progress: jobProgress(job, at),
  };
}

export function jobProgress(job: Job, at: number) {
  const { state, workloadsDone: done, workloads: total, progress, startedAt, runStartedAt, endedAt } = job;
  const elapsedMs = startedAt === null ? 0 : Math.max(0, (endedAt ?? at) - runStartedAt);
  const estimate = remainingMs(progress, job.reverting?.left.length, at);
  return {
    done,
    total,
    steps: { done: progress.done, total: progress.total },
    percent: state === 'success' ? 100 : progress.percent,
    elapsedMs,
    waitingFor: waitOf(job, at),
    remainingMs: state === 'scheduled' ? null : state === 'in_progress' ? (estimate ?? null) : 0,
  };
}

function waitOf({ state, waitingFor, progress, reverting }: Job, at: number) {
  if (state !== 'in_progress' || !waitingFor) return null;
  const { step, object, reason, since } = waitingFor;
  return { step, object, reason, since, isLate: isLongWait(progress, reverting !== null, at - since) };
}

/** Lets requests wait until a job changes, so that clients need not poll. */
export class JobWatcher {
  readonly #store: ReadableStore;
  readonly #runtime: Pick<Runtime, 'sleep'>;
  readonly #waiting = new Set<AbortController>();
  #isStopped = false;

  constructor(store: ReadableStore, runtime: Pick<Runtime, 'sleep'>) {
    this.#store = store;
    this.#runtime = runtime;
  }

  async waitForChange(job: Job, messageCount: number, waitMs: number): Promise<void> {
    const hasChanged = () => {
      const newest = this.#store.read(newestJob);
      const isSame = newest?.id === job.id && newest.state === job.state;
      return !isSame || !isOpen(newest) || newest.messageCount > messageCount;
    };
    if (this.#isStopped || hasChanged()) return;
    const wait = new AbortController();
    const stopListening = this.#store.onUpdate(() => {
      if (hasChanged()) wait.abort();
    });
    this.#waiting.add(wait);
    try {
      await this.#runtime.sleep(waitMs, wait.signal);
    } catch (error) {
      if (!wait.signal.aborted) throw error;
    } finally {
      this.#waiting.delete(wait);
      stopListening();
    }
  }

  /** Without this, the server could wait up to a minute for these requests when it stops. */
  stop(): void {
    this.#isStopped = true;
    for (const wait of this.#waiting) wait.abort();
  }
}

/** From the store only, so that all processes show the same metrics. */
export function upgradeStats(reader: Reader, at: number) {
  const job = reader.read(newestJob);
  const running = job?.state === 'in_progress' ? job.progress : undefined;
  const { ended, lastSuccessAt } = reader.read(runTotals);
  return {
    upgrade_running: running ? 1 : 0,
    upgrade_steps_done: running?.done ?? 0,
    upgrade_steps: running?.total ?? 0,
    upgrade_step_age_seconds: running ? Math.max(0, at - running.stepStartedAt) / 1000 : 0,
    upgrade_last_success_timestamp_seconds: (lastSuccessAt ?? 0) / 1000,
    upgrade_scheduled_timestamp_seconds: job?.state === 'scheduled' ? (job.startAt ?? 0) / 1000 : 0,
    upgrade_window_open: windowsAt(reader.read(maintenanceWindows), at).open ? 1 : 0,
    upgrade_jobs_total: Object.entries(ended).flatMap(([operation, states]) =>
      Object.entries(states).map(([state, count]) => ({ operation, state, count })),
    ),
  };
}
