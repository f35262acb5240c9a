// Archived jobs, plans and messages in memory.
import { freeze } from '../../store/changes.ts';
import { type Job, type JobStore, type JobWrites, type StoredPlan, hasInstalled } from './job-table.ts';
import type { Message } from '../planning/messages.ts';

export type JobDump = {
  readonly archived: readonly Job[];
  readonly plans: readonly StoredPlan[];
  readonly messages: Readonly<Record<string, readonly Message[]>>;
};

export class MemoryJobs {
  readonly #keep: number;
  readonly #jobs = new Map<string, Job>();
  readonly #plans = new Map<string, StoredPlan>();
  readonly #messages = new Map<string, Message[]>();

  /** `keep` is how many archived jobs keep their messages. */
  constructor(keep: number) {
    this.#keep = keep;
  }

  readonly port: JobStore = {
    find: async (id) => this.#jobs.get(id),
    page: async (below, start, num) => {
      const jobs = this.#newestFirst().filter(({ number }) => number < below);
      return { jobs: jobs.slice(start, start + num), total: jobs.length };
    },
    findInstalling: async (versionId) => this.#newestFirst().find((job) => hasInstalled(job, versionId)),
    plan: async (jobId) => this.#plans.get(jobId),
    messages: async (jobId, after = 0) => this.#messages.get(jobId)?.slice(after) ?? [],
  };

  readonly writes: JobWrites = {
    savePlan: async (plan) => void this.#plans.set(plan.jobId, plan),
    deletePlan: async (jobId) => void this.#plans.delete(jobId),
    appendMessages: async (jobId, from, messages) => {
      const list = this.#messages.get(jobId) ?? [];
      this.#messages.set(jobId, list);
      list.splice(from, 0, ...messages);
    },
    archive: async (job) => {
      this.#jobs.set(job.id, job);
      for (const { id } of this.#newestFirst().slice(this.#keep)) this.#messages.delete(id);
    },
  };

  dump(): JobDump {
    return {
      archived: [...this.#jobs.values()],
      plans: [...this.#plans.values()],
      messages: Object.fromEntries([...this.#messages].map(([id, list]) => [id, [...list]])),
    };
  }

  load({ archived, plans, messages }: JobDump): void {
    for (const job of archived) this.#jobs.set(job.id, freeze(job));
    for (const plan of plans) this.#plans.set(plan.jobId, freeze(plan));
    for (const [id, list] of Object.entries(messages)) this.#messages.set(id, list.map(freeze));
  }

  #newestFirst(): Job[] {
    return [...this.#jobs.values()].sort((a, b) => b.number - a.number);
  }
}
