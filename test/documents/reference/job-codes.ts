// Runs upgrade jobs of every kind, with a failure, a resumption and a cancellation, and collects the codes of their
// messages.
import type { Executor } from '../../../src/upgrades/executors/executor.ts';
import { createSimulatedExecutor } from '../../../src/upgrades/executors/simulated.ts';
import { simulatedPerformers, templateStepIds } from '../../../src/upgrades/executors/steps.ts';
import { type Server, type ServerOptions, startServer } from '../../kit/server.ts';
import { type Status, codesOf, eleven, license, patch1, upgrades } from '../../upgrades/jobs-kit.ts';

export const jobKinds = ['release', 'patch', 'rollback'] as const;

export type JobKind = (typeof jobKinds)[number];

const fresh = 'rel_10092021_1234';
const withHooks = { SIMULATED_STEP_TEMPLATES: templateStepIds.join() };
const oneJobMs = 3_600_000;

export async function findCodes(): Promise<Record<JobKind, ReadonlySet<number>>> {
  const release = { upgradeSettings: '{}', licenseFile: license, updateToLatestPatch: 'true' };
  return {
    release: await runJobs({ env: { ...withHooks, SIMULATED_FAILURES: 'MAP_SERVER:1' } }, async (jobs) => {
      await jobs.cancel(await jobs.start('upgrade', eleven, release));
      await jobs.resume(await jobs.start('upgrade', eleven, release));
    }),
    patch: await runJobs(
      { env: { ...withHooks, SIMULATED_FAILURES: 'SECURITY_DIRECTORY:1' } },
      async (jobs) => {
        await jobs.cancel(await jobs.start('upgrade', patch1));
        await jobs.resume(await jobs.start('upgrade', patch1));
      },
    ),
    rollback: await runJobs({ executor: failingOnce() }, async (jobs) => {
      await jobs.start('upgrade', patch1);
      await jobs.finish();
      jobs.codes.clear();
      await jobs.resume(await jobs.start('rollback', fresh));
    }),
  };
}

async function runJobs(
  options: ServerOptions,
  scenario: (jobs: Jobs) => Promise<void>,
): Promise<Set<number>> {
  const server = await startServer(options);
  const jobs = new Jobs(server);
  await scenario(jobs);
  const { status } = await jobs.finish();
  await server.close();
  if (status.state !== 'success') throw new Error(`The last job is ${status.state}.`);
  return jobs.codes;
}

class Jobs {
  readonly codes = new Set<number>();
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  async start(
    operation: 'upgrade' | 'rollback',
    id: string,
    parts: Parameters<Server['postParts']>[1] = {},
  ): Promise<string> {
    const fields = { versionManifest: JSON.stringify({ id }), ...parts };
    const answer = await this.#server.postParts(`${upgrades}/${operation}`, fields, this.#token);
    return answer.json<Status>().jobId;
  }

  /** Cancels the job after its first steps. */
  async cancel(jobId: string): Promise<void> {
    await this.#server.runtime.advance(300);
    await this.#post(jobId, 'cancel');
    await this.finish();
  }

  /** Lets the job fail, and resumes it. */
  async resume(jobId: string): Promise<void> {
    await this.finish();
    await this.#post(jobId, 'resume');
  }

  async finish(): Promise<Status> {
    await this.#server.runtime.advance(oneJobMs);
    const answer = await this.#server.get(upgrades, { authorization: `Bearer ${this.#token}` });
    const status = answer.json<Status>();
    for (const code of codesOf(status)) this.codes.add(code);
    return status;
  }

  #post(jobId: string, operation: string) {
    return this.#server.post(`/admin/system/jobs/${jobId}/${operation}`, { token: this.#token });
  }

  get #token(): string {
    return this.#server.token('administrator');
  }
}

/** An executor whose first rollback of a workload fails. */
function failingOnce(): Executor {
  const runtime = { sleep: () => Promise.resolve() };
  const executor = createSimulatedExecutor({
    runtime,
    stepMs: 0,
    failures: new Map(),
    performers: simulatedPerformers(templateStepIds),
  });
  let hasFailed = false;
  return {
    ...executor,
    rollback: (...parameters) => {
      if (hasFailed) return executor.rollback(...parameters);
      hasFailed = true;
      return Promise.reject(new Error('the image is missing.'));
    },
  };
}
