// A patch through the API: its messages, failure, resume, cancellation, and a restart of the process.
import { describe, expect, it } from 'vitest';
import { realRuntime } from '../../src/lib/runtime.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { type Status, admin, codesOf, patch1, patch2, upgrades, useJobs } from './jobs-kit.ts';
import { codesOfPatch } from './message-codes.ts';

const { server, start, upgrade, get, status, finish } = useJobs();

const post = (jobId: string, operation: string) =>
  server.post(`/admin/system/jobs/${jobId}/${operation}`, { token: admin });

describe('a patch', () => {
  it('installs the earlier patches too, with all messages in order', async () => {
    await start();
    await upgrade(patch2, { upgradeSettings: '{}' });
    const done = await finish();
    expect(codesOf(done)).toEqual(codesOfPatch(9));
    expect(done.progress).toMatchObject({ done: 9, total: 9 });
    const current = await get<{ id: string; messages: unknown[] }>(`${upgrades}/currentVersion`);
    expect(current.id).toBe(patch2);
    expect(current.messages).toHaveLength(done.messageCount);
  });

  it('installs up to the newest patch with updateToLatestPatch', async () => {
    await start();
    expect((await upgrade(patch1, { updateToLatestPatch: 'True' })).json<Status>().progress.total).toBe(9);
    await finish();
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1260' });
  });

  it('keeps only the beginning of a long error of the executor', async () => {
    const executor = createSimulatedExecutor({ runtime: realRuntime, stepMs: 0, failures: new Map() });
    executor.apply = () => Promise.reject(new Error('x'.repeat(1_000_000)));
    await start({}, { executor });
    await upgrade(patch1);
    const { state, messages } = (await finish()).status;
    expect(state).toBe('failed');
    const failure = messages.find(({ code }) => code === 2901)?.message ?? '';
    expect(failure).toMatch(/^The job failed at the step "Update module [A-Z_]+": x{4000}$/);
  });

  it('reverts its workloads when it fails, newest first, and starts with them again when resumed', async () => {
    await start({ SIMULATED_FAILURES: 'security_directory:1' });
    await upgrade(patch1);
    const failed = await finish();
    expect(failed.status).toMatchObject({ state: 'failed', code: 2 });
    // GATEWAY_INGRESS and GATEWAY_PROXY succeed, SECURITY_DIRECTORY fails.
    expect(codesOf(failed).slice(7)).toEqual([
      2291, 2038, 2173, 2291, 2038, 2173, 2291, 2901, 2904, 2904, 2904, 2166,
    ]);
    const texts = failed.status.messages.map(({ message }) => message);
    expect(texts.at(-5)).toBe(
      'The job failed at the step "Update module SECURITY_DIRECTORY": the update of SECURITY_DIRECTORY fails by SIMULATED_FAILURES.',
    );
    expect(texts.at(-4)).toBe(
      'The workload SECURITY_DIRECTORY was put back to its former image security-directory:10.9.1.1234.',
    );
    expect(texts.at(-2)).toContain('GATEWAY_INGRESS');
    expect(failed.progress).toMatchObject({ done: 0, total: 4 });
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1234' });
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: false });

    const resumed = await post(failed.jobId, 'resume');
    expect(codesOf(resumed.json<Status>()).slice(-2)).toEqual([2902, 2165]);
    expect(resumed.json<Status>().status.messages.at(-2)?.message).toBe(
      'The job was resumed by administrator.',
    );
    const done = await finish();
    expect(codesOf(done).slice(failed.messageCount)).toEqual([2902, 2165, ...codesOfPatch(4).slice(7)]);
    expect((await post(failed.jobId, 'resume')).statusCode).toBe(409);
  });

  it('is cancelled after the current step, and reverts its workloads', async () => {
    await start();
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await server.runtime.advance(9500);
    const cancelled = await post(jobId, 'cancel');
    expect(cancelled.json<Status>().status.state).toBe('in_progress');
    const done = await finish();
    expect(done.status).toMatchObject({ state: 'cancelled', code: 4 });
    expect(codesOf(done).slice(7)).toEqual([2291, 2038, 2173, 2291, 2903, 2904, 2166]);
    expect(done.status.messages.find(({ code }) => code === 2903)?.message).toBe(
      'The job was cancelled by administrator.',
    );
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1234' });
    for (const operation of ['cancel', 'resume']) expect((await post(jobId, operation)).statusCode).toBe(409);
  });

  it('reports the failure and ends as cancelled when a step fails after the request to cancel', async () => {
    await start({ SIMULATED_FAILURES: 'gateway_proxy' });
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await server.runtime.advance(10_500);
    await post(jobId, 'cancel');
    const done = await finish();
    expect(done.status.state).toBe('cancelled');
    expect(codesOf(done).slice(7)).toEqual([2291, 2038, 2173, 2291, 2901, 2903, 2904, 2904, 2166]);
  });

  it('enters and leaves read-only mode once even when it is cancelled before its first step', async () => {
    await start();
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await post(jobId, 'cancel');
    expect(codesOf(await finish())).toEqual([2010, 2168, 2165, 2903, 2166]);
  });

  it('fails when a step exceeds its time limit', async () => {
    await start({ UPGRADE_STEP_MS: '5000', UPGRADE_STEP_TIMEOUT_SECONDS: '2' });
    await upgrade(patch1);
    const failed = await finish();
    expect(failed.status.state).toBe('failed');
    expect(codesOf(failed)).toEqual([2010, 2165, 2901, 2166]);
    expect(failed.status.messages.at(2)?.message).toContain(
      'it took longer than 2 seconds: the simulated step pauses for 5 s.',
    );
  });
});

describe('a stopped process', () => {
  it('leaves its job to the next process, which continues at the first step that is not done', async () => {
    await start();
    const { jobId } = (await upgrade(patch1)).json<Status>();
    await server.runtime.advance(9500);
    const before = await status();
    await server.close();
    await start({}, { store: await server.store.reopen() });
    const after = await status();
    expect(after.jobId).toBe(jobId);
    expect(codesOf(after)).toEqual([...codesOf(before), 2902]);
    expect(after.status.messages.at(-1)?.message).toBe('The job was resumed after a restart.');
    const done = await finish();
    expect(codesOf(done).filter((code) => code !== 2902)).toEqual(codesOfPatch(4));
  });
});

it.each([
  ['40', new Error('the image is missing.')],
  ['50, because it is a defect', new TypeError('workload is undefined')],
])('a failed step is logged at the level %s', async (level, error) => {
  const executor = createSimulatedExecutor({ runtime: realRuntime, stepMs: 0, failures: new Map() });
  await start({}, { executor: { ...executor, apply: () => Promise.reject(error) } });
  const { jobId } = (await upgrade(patch1)).json<Status>();
  await finish();
  const lines = server.logLines.map((line) => JSON.parse(line) as { msg: string });
  expect(lines.find(({ msg }) => msg === 'a step of an upgrade has failed')).toMatchObject({
    level: Number.parseInt(level, 10),
    job: jobId,
    step: 'Update module GATEWAY_INGRESS',
    err: { type: error.name, message: error.message, stack: error.stack },
  });
});
