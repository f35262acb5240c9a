// Archived jobs, plans and messages in PostgreSQL.
import { type Client, type Database, deleteInBatches, query } from '../../store/postgres/database.ts';
import type { Job, JobStore, JobWrites, StoredPlan } from './job-table.ts';
import type { Message } from '../planning/messages.ts';

export class PostgresJobs implements JobStore {
  readonly #database: Database;
  /** Archived jobs that keep their messages. */
  readonly #keep: number;

  constructor(database: Database, keep: number) {
    this.#database = database;
    this.#keep = keep;
  }

  async find(id: string): Promise<Job | undefined> {
    const [row] = await this.#database.ask<{ job: Job }>('select job from jobs where id = $1', [id]);
    return row?.job;
  }

  async page(below: number, start: number, num: number): ReturnType<JobStore['page']> {
    const [rows, [counted]] = await Promise.all([
      this.#database.ask<{ job: Job }>(
        'select job from jobs where number < $1 order by number desc offset $2 limit $3',
        [below, start, num],
      ),
      this.#database.ask<{ count: number }>('select count(*) from jobs where number < $1', [below]),
    ]);
    return { jobs: rows.map(({ job }) => job), total: counted?.count ?? 0 };
  }

  async findInstalling(versionId: string): Promise<Job | undefined> {
    const [row] = await this.#database.ask<{ job: Job }>(
      'select job from jobs where installed @> array[$1] order by number desc limit 1',
      [versionId],
    );
    return row?.job;
  }

  async plan(jobId: string): Promise<StoredPlan | undefined> {
    const [row] = await this.#database.ask<{ plan: StoredPlan }>('select plan from plans where job_id = $1', [
      jobId,
    ]);
    return row?.plan;
  }

  messages(jobId: string, after = 0): Promise<readonly Message[]> {
    return this.#database.ask<Message>(
      'select code, message, "when" from messages where job_id = $1 and number >= $2 order by number',
      [jobId, after],
    );
  }

  /** Deletes the messages of archived jobs beyond the retention. There are such jobs if it was longer before. */
  async removeOld(stopping: AbortSignal): Promise<void> {
    await deleteInBatches(
      this.#database,
      `delete from messages where ctid = any(array(
         select m.ctid from jobs j cross join lateral (select m.ctid from messages m where m.job_id = j.id) m
         where j.number <= (select max(number) from jobs) - $1 order by j.number limit $2))`,
      [this.#keep],
      stopping,
    );
  }

  writesOn(client: Client): JobWrites {
    return {
      savePlan: async (plan) => {
        await query(
          client,
          `insert into plans (job_id, plan) values ($1, $2)
           on conflict (job_id) do update set plan = excluded.plan`,
          [plan.jobId, JSON.stringify(plan)],
        );
      },
      deletePlan: async (jobId) => {
        await query(client, 'delete from plans where job_id = $1', [jobId]);
      },
      appendMessages: async (jobId, from, messages) => {
        await query(
          client,
          `insert into messages (job_id, number, code, message, "when")
           select $1, $2 + v.index - 1, v.code, v.message, v."when"
           from unnest($3::bigint[], $4::text[], $5::bigint[]) with ordinality v(code, message, "when", index)`,
          [
            jobId,
            from,
            messages.map(({ code }) => code),
            messages.map(({ message }) => message),
            messages.map(({ when }) => when),
          ],
        );
      },
      archive: async (job) => {
        await Promise.all([
          query(client, 'insert into jobs (id, number, installed, job) values ($1, $2, $3, $4)', [
            job.id,
            job.number,
            Object.keys(job.hops.installedAt),
            JSON.stringify(job),
          ]),
          query(client, 'delete from messages where job_id = (select id from jobs where number = $1)', [
            job.number - this.#keep,
          ]),
        ]);
      },
    };
  }
}
