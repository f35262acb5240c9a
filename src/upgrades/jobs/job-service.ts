// Reads jobs for requests: the newest job from the replicated state, earlier ones from the job store, and the
// messages of both.
import type { ReadableStore } from '../../store/store.ts';
import type { JobEnd } from '../planning/workloads.ts';
import type { JobMessages } from './job-status.ts';
import { type Job, hasInstalled, newestJob } from './job-table.ts';
import type { Message } from './messages.ts';

/** The messages of one job that were read so far. A job only adds messages, so they stay valid. */
type KnownMessages = {
  readonly jobId: string;
  readonly messages: Message[];
  reading: Promise<void> | undefined;
};

export class JobService {
  readonly #store: ReadableStore;
  #known: KnownMessages = { jobId: '', messages: [], reading: undefined };

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
    const isFirst = start === 0;
    const { jobs, total } = await this.#store.jobs.page(
      newest.number,
      isFirst ? 0 : start - 1,
      isFirst ? num - 1 : num,
    );
    return { jobs: isFirst ? [newest, ...jobs] : jobs, total: total + 1 };
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

  /** Reads only what is not known yet. Requests that wait at the same time share one read. */
  async #readKnown({ id, messageCount }: Job): Promise<readonly Message[]> {
    if (this.#known.jobId !== id) this.#known = { jobId: id, messages: [], reading: undefined };
    const known = this.#known;
    // A read that had begun before this call may lack the newest messages. The next one has them.
    for (let reads = 0; reads < 2 && known.messages.length < messageCount; reads += 1) {
      known.reading ??= this.#readMore(known).finally(() => (known.reading = undefined));
      await known.reading;
    }
    return known.messages;
  }

  async #readMore(known: KnownMessages): Promise<void> {
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
  if (!job) return 'unknown';
  if (job.state === 'success') return 'succeeded';
  return job.kind === 'patch' ? 'reverted' : 'unfinished';
}

/** False for a job that the store does not know. */
export async function hasJobEnded(store: ReadableStore, id: string): Promise<boolean> {
  const job = await findJob(store, id);
  return job !== undefined && job.state !== 'in_progress';
}
