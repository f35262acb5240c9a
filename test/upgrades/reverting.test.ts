// A failed or cancelled patch that reverts its workloads: its deadline, how an administrator stops it, and how a
// resume continues.
import { describe, expect, it } from 'vitest';
import { realRuntime } from '../../src/lib/runtime.ts';
import { RefusedError } from '../../src/upgrades/executors/executor.ts';
import { createSimulatedExecutor, simulatedInventory } from '../../src/upgrades/executors/simulated.ts';
import type { StepContext } from '../../src/upgrades/executors/executor.ts';
import type { Workload } from '../../src/upgrades/executors/workloads.ts';
import { patchOf } from '../kit/versions.ts';
import { type Failure, type Status, admin, codesOf, patch1, patch2, useJobs } from './jobs-kit.ts';

const { server, start, upgrade, status, finish } = useJobs();

const post = (id: string, operation: 'cancel' | 'resume', fields = {}) =>
  server.post(`/admin/system/jobs/${id}/${operation}`, { token: admin, ...fields });

const stop = { stop: 'true' };

/** Every step takes a second: the job fails at the third of four workloads and begins to revert. */
async function beginReverting(env: Record<string, string> = {}): Promise<Status> {
  await start({ SIMULATED_FAILURES: 'security_directory:1', ...env });
  await upgrade(patch1);
  for (let seconds = 0; !codesOf(await status()).includes(2901); seconds += 1) {
    expect(seconds).toBeLessThan(60);
    await server.runtime.advance(1000);
  }
  return status();
}

const messagesAfter = (seen: Status, now: Status) => now.status.messages.slice(seen.messageCount);

describe('a job that reverts its workloads', () => {
  it('stops after the current workload when it is asked to, and a resume reverts the rest', async () => {
    const failing = await beginReverting();
    const { jobId } = failing;
    await server.runtime.advance(500);
    expect((await post(jobId, 'cancel', stop)).json<Status>().status.state).toBe('in_progress');
    const stopped = await finish();
    expect(stopped.status).toMatchObject({ state: 'failed', code: 2 });
    expect(messagesAfter(failing, stopped).map(({ code }) => code)).toEqual([2904, 2901, 2166]);
    expect(messagesAfter(failing, stopped).at(1)?.message).toBe(
      'The job failed at the step "Put back the workloads": administrator stopped it. ' +
        'Not put back: GATEWAY_PROXY, GATEWAY_INGRESS. Resume the job to put them back.',
    );

    const refused = await upgrade(patch2);
    expect(refused.statusCode).toBe(409);
    expect(refused.json<Failure>().error.message).toBe(
      `The job ${jobId} to 10.9.1.1250 has not reverted all of its workloads: resume it.`,
    );

    await post(jobId, 'resume');
    const reverted = await finish();
    expect(reverted.status.state).toBe('failed');
    expect(messagesAfter(stopped, reverted).map(({ code }) => code)).toEqual([2902, 2165, 2904, 2904, 2166]);
    expect(messagesAfter(stopped, reverted)[0]?.message).toBe(
      'The job was resumed by administrator to put its workloads back.',
    );
    expect(reverted.progress).toMatchObject({ done: 0, total: 4 });

    await post(jobId, 'resume');
    expect((await finish()).status.state).toBe('success');
  });

  it('ends as cancelled after a resume, if it was cancelled at first', async () => {
    await start();
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await server.runtime.advance(12_500);
    await post(jobId, 'cancel');
    await server.runtime.advance(1000);
    expect(codesOf(await status())).toContain(2903);
    await post(jobId, 'cancel', stop);
    const stopped = await finish();
    expect(stopped.status.state).toBe('failed');
    expect(codesOf(stopped).slice(-4)).toEqual([2903, 2904, 2901, 2166]);
    await post(jobId, 'resume');
    const done = await finish();
    expect(done.status.state).toBe('cancelled');
    expect(messagesAfter(stopped, done).map(({ code }) => code)).toEqual([2902, 2165, 2904, 2166]);
    expect((await post(jobId, 'resume')).statusCode).toBe(409);
  });

  it.each([0, 1000])('goes on when its cancel is repeated after %s milliseconds', async (ms) => {
    await start();
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await server.runtime.advance(12_500);
    expect((await post(jobId, 'cancel')).statusCode).toBe(200);
    await server.runtime.advance(ms);
    expect((await post(jobId, 'cancel')).statusCode).toBe(200);
    const ended = await finish();
    expect(ended.status.state).toBe('cancelled');
    expect(codesOf(ended)).not.toContain(2901);
  });

  it('has one deadline for all workloads, and a resume has a new one', async () => {
    await start({
      SIMULATED_FAILURES: 'security_directory:1',
      UPGRADE_STEP_MS: '2000',
      REVERT_TIMEOUT_SECONDS: '3',
    });
    await upgrade(patch1);
    const failed = await finish();
    expect(failed.status.state).toBe('failed');
    expect(codesOf(failed).slice(-4)).toEqual([2901, 2904, 2901, 2166]);
    const [first, , last] = failed.status.messages.slice(-4);
    expect((last?.when ?? 0) - (first?.when ?? 0)).toBe(3000);
    expect(last?.message).toBe(
      'The job failed at the step "Put back the workloads": it took longer than 3 seconds. ' +
        'Not put back: GATEWAY_PROXY, GATEWAY_INGRESS. Resume the job to put them back.',
    );
    await post(failed.jobId, 'resume');
    const again = await finish();
    expect(messagesAfter(failed, again).map(({ code }) => code)).toEqual([2902, 2165, 2904, 2901, 2166]);
    expect(again.status.messages.at(-2)?.message).toContain(
      'Not put back: GATEWAY_INGRESS. Resume the job to put them back.',
    );
  });

  it('keeps its deadline in the process that takes it over', async () => {
    const failing = await beginReverting({ REVERT_TIMEOUT_SECONDS: '3' });
    await server.close();
    // The clock of the next server begins where that of the first began: 16 seconds before the deadline.
    await start(
      { UPGRADE_STEP_MS: '10000', REVERT_TIMEOUT_SECONDS: '3' },
      { store: await server.store.reopen() },
    );
    const ended = await finish();
    expect(messagesAfter(failing, ended).map(({ code }) => code)).toEqual([2902, 2904, 2901, 2166]);
  });

  /** The update of `failing` fails. Each workload is put back once `rollback` returns no error for it. */
  async function fail(
    version: string,
    failing: string,
    rollback: (workload: Workload) => Error | undefined,
  ): Promise<{ failed: Status; tried: string[] }> {
    const failures = new Map([[failing, 1]]);
    const executor = createSimulatedExecutor({ runtime: realRuntime, stepMs: 0, failures });
    const tried: string[] = [];
    executor.rollback = (workload) => {
      tried.push(workload.name);
      const error = rollback(workload);
      return error ? Promise.reject(error) : Promise.resolve({ isPatched: true });
    };
    await start({}, { executor });
    await upgrade(version);
    const failed = await finish();
    expect(failed.status.state).toBe('failed');
    return { failed, tried };
  }

  it('continues with the others if one is refused, and a resume reverts only that one', async () => {
    let isRefusing = true;
    const { failed, tried } = await fail(patch1, 'SECURITY_DIRECTORY', ({ name }) =>
      isRefusing && name === 'GATEWAY_PROXY'
        ? new RefusedError('the API server refuses (403): no.')
        : undefined,
    );
    expect(tried).toEqual(['SECURITY_DIRECTORY', 'GATEWAY_PROXY', 'GATEWAY_INGRESS']);
    expect(codesOf(failed).slice(-6)).toEqual([2901, 2904, 2901, 2904, 2901, 2166]);
    expect(failed.status.messages.slice(-4).map(({ message }) => message)).toEqual([
      'The job failed at the step "Put back GATEWAY_PROXY": the API server refuses (403): no.',
      expect.stringContaining('GATEWAY_INGRESS was put back'),
      'The job failed at the step "Put back the workloads": some of them could not be put back; the messages before this one say why. ' +
        'Not put back: GATEWAY_PROXY. Resume the job to put them back.',
      'The system leaves read-only mode.',
    ]);
    const blocked = await upgrade(patch2);
    expect(blocked.json<Failure>().error.message).toBe(
      `The job ${failed.jobId} to 10.9.1.1250 has not reverted all of its workloads: resume it.`,
    );

    await post(failed.jobId, 'resume');
    const again = await finish();
    expect(messagesAfter(failed, again).map(({ code }) => code)).toEqual([2902, 2165, 2901, 2901, 2166]);

    isRefusing = false;
    await post(failed.jobId, 'resume');
    const reverted = await finish();
    expect(messagesAfter(again, reverted).map(({ code }) => code)).toEqual([2902, 2165, 2904, 2166]);
    expect(tried.slice(3)).toEqual(['GATEWAY_PROXY', 'GATEWAY_PROXY']);
    expect(reverted.progress).toMatchObject({ done: 0, total: 4 });
    expect((await upgrade(patch2)).statusCode).toBe(200);
    expect((await finish()).status.state).toBe('success');
  });

  describe('with a parallelism of two', () => {
    type Act = (call: string, context: StepContext) => Promise<void>;

    /** Notes each call with the run of its change. */
    function createExecutor(calls: string[], act: Act = () => Promise.resolve()) {
      const failures = new Map([['SECURITY_DIRECTORY', 1]]);
      const executor = createSimulatedExecutor({ runtime: realRuntime, stepMs: 0, failures });
      const note = (call: string, context: StepContext) => {
        calls.push(`${call} ${context.change.split('-')[0]}`);
        return act(call, context);
      };
      return {
        ...executor,
        inventory: () => Promise.resolve({ ...simulatedInventory, parallelism: 2 }),
        beginRollback: ({ name }: Workload, context: StepContext) => note(`begin ${name}`, context),
        rollback: ({ name }: Workload, context: StepContext) =>
          note(`end ${name}`, context).then(() => ({ isPatched: true })),
      };
    }
    const all = ['SECURITY_DIRECTORY', 'GATEWAY_PROXY', 'GATEWAY_INGRESS'] as const;
    const [third, second, first] = all;

    it('begins two workloads before it waits for the first, and puts the newest back first', async () => {
      const calls: string[] = [];
      await start({}, { executor: createExecutor(calls) });
      await upgrade(patch1);
      const failed = await finish();
      expect(calls).toEqual([
        `begin ${third} 1`,
        `begin ${second} 1`,
        `end ${third} 1`,
        `begin ${first} 1`,
        `end ${second} 1`,
        `end ${first} 1`,
      ]);
      expect(codesOf(failed).slice(-5)).toEqual([2901, 2904, 2904, 2904, 2166]);
      expect(failed.progress).toMatchObject({ done: 0, total: 4 });
    });

    it('puts back what it has begun when it is stopped, and in the process that takes it over', async () => {
      const calls: string[] = [];
      let reached: () => void = () => undefined;
      const isWaiting = new Promise<void>((resolve) => (reached = resolve));
      const hang: Act = (call, { signal }) => {
        if (call !== `end ${third}`) return Promise.resolve();
        reached();
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('stopped')));
        });
      };
      await start({}, { executor: createExecutor(calls, hang) });
      const { jobId } = (await upgrade(patch1)).json<Status>();
      await isWaiting;
      await server.close();
      const store = await server.store.reopen();
      calls.length = 0;
      await start(
        {},
        { executor: createExecutor(calls, () => post(jobId, 'cancel', stop).then(() => undefined)), store },
      );
      const stopped = await finish();
      expect(calls).toEqual([`end ${third} 1`, `end ${second} 1`]);
      expect(stopped.status.messages.at(-2)?.message).toContain(
        `administrator stopped it. Not put back: ${first}.`,
      );
      await post(jobId, 'resume');
      expect(codesOf(await finish()).slice(-4)).toEqual([2902, 2165, 2904, 2166]);
      expect(calls.at(-1)).toBe(`end ${first} 2`);
    });

    it('continues with the others if one cannot be begun', async () => {
      const calls: string[] = [];
      let isRefusing = true;
      const refuse = (call: string) =>
        isRefusing && call.endsWith(second) ? Promise.reject(new RefusedError('no.')) : Promise.resolve();
      await start({}, { executor: createExecutor(calls, refuse) });
      const { jobId } = (await upgrade(patch1)).json<Status>();
      const failed = await finish();
      expect(codesOf(failed).slice(-6)).toEqual([2901, 2901, 2904, 2904, 2901, 2166]);
      expect(failed.status.messages.at(-2)?.message).toContain(`Not put back: ${second}.`);
      isRefusing = false;
      await post(jobId, 'resume');
      expect(codesOf(await finish()).slice(-4)).toEqual([2902, 2165, 2904, 2166]);
    });
  });

  it('does not revert an earlier change of a workload before a later one that was refused', async () => {
    const containers = (...images: string[]) => images.map((image) => ({ name: image.split(':')[0], image }));
    const first = {
      ...patchOf('first'),
      containers: containers('MAP_SERVER:2', 'MAP_TILES:2'),
    };
    const second = {
      ...first,
      id: 'second',
      build: '1301',
      previousBuild: '1300',
      containers: containers('MAP_SERVER:3', 'PORTAL_API:3'),
    };
    let isRefusing = true;
    const reverted: string[] = [];
    const failures = new Map([['PORTAL_API', 1]]);
    const executor = createSimulatedExecutor({ runtime: realRuntime, stepMs: 0, failures });
    executor.rollback = ({ name, parts }) => {
      reverted.push(`${name} from ${parts[0]?.image ?? ''}`);
      return isRefusing && name === 'MAP_SERVER'
        ? Promise.reject(new RefusedError('the API server refuses (403): no.'))
        : Promise.resolve({ isPatched: true });
    };
    await start({}, { executor });
    const manifestFile = { name: 'm.json', content: JSON.stringify([first, second]) };
    await server.postParts('/admin/system/upgrades/importManifest', { manifestFile }, admin);
    await upgrade('second');
    const failed = await finish();
    expect(failed.status.messages.at(-2)?.message).toContain('Not put back: MAP_SERVER. Resume');
    expect(reverted).toEqual([
      'PORTAL_API from PORTAL_API:3',
      'MAP_SERVER from MAP_SERVER:3',
      'MAP_TILES from MAP_TILES:2',
    ]);
    isRefusing = false;
    await post(failed.jobId, 'resume');
    const done = await finish();
    expect(messagesAfter(failed, done).map(({ code }) => code)).toEqual([2902, 2165, 2904, 2904, 2166]);
    expect(reverted.slice(3)).toEqual(['MAP_SERVER from MAP_SERVER:3', 'MAP_SERVER from MAP_SERVER:2']);
  });
});
