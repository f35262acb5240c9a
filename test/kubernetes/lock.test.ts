// The lock on a namespace: which jobs acquire it, and which wait or fail.
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/lib/errors.ts';
import { freshDeployment } from '../kit/sample-manifest.ts';
import type { Cluster } from './cluster.ts';
import { fast } from './executor.ts';
import { contextOf, openDeployment, workload } from './single-deployment.ts';

describe('the lock on a namespace', () => {
  const lease = async (on: Cluster) => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${on.namespace}/leases/upgrade-lock`;
    const { spec } = await on.request<{ spec: { holderIdentity?: string; leaseTransitions?: number } }>(
      'GET',
      path,
    );
    return [spec.holderIdentity, spec.leaseTransitions];
  };

  it('is acquired by a job, released, and acquired by the next', async () => {
    const { on, start } = await openDeployment();
    const executor = start();
    await executor.perform('launch', contextOf());
    expect(await lease(on)).toEqual(['job/1', 1]);
    await executor.release('job');
    expect(await lease(on)).toEqual([undefined, 1]);
    await start().perform('launch', contextOf('another'));
    expect(await lease(on)).toEqual(['another/1', 2]);
  });

  it('refuses another Steward while it is renewed, and is a problem in its plan', async () => {
    const { start, patches } = await openDeployment();
    const options = fast();
    const [ours, tsuccessors] = [start(options), start(options)];
    await ours.perform('launch', contextOf());
    const { problems } = (await start().inventory()).planReverts([], '', freshDeployment);
    expect(problems.map(formatProblem)).toEqual([
      expect.stringMatching(
        /^cluster: another Steward is upgrading the namespace: its job job\/1 holds the Lease upgrade-lock, which expires in \d+ seconds unless it is renewed\.$/,
      ),
    ]);
    const refused = tsuccessors.apply(workload, contextOf('tsuccessors'));
    refused.catch(() => undefined);
    for (let time = 0; time < 8; time += 1) {
      await options.runtime.sleep(2_000);
      await ours.perform('launch', contextOf());
    }
    await expect(refused).rejects.toThrow(
      'another Steward is upgrading the namespace: its job job/1 holds the Lease upgrade-lock.',
    );
    expect(patches()).toEqual([]);
  });

  it('is no problem of a plan when a Lease from the future was not renewed for its duration', async () => {
    const { on, start } = await openDeployment();
    const options = fast();
    await start(options).perform('launch', contextOf());
    const path = `/apis/coordination.k8s.io/v1/namespaces/${on.namespace}/leases/upgrade-lock`;
    const renewTime = new Date(options.runtime.now() + 3_600_000).toISOString().replace('Z', '000Z');
    const lease = await on.request<{ spec: object }>('GET', path);
    await on.request('PUT', path, { ...lease, spec: { ...lease.spec, renewTime } });
    const other = start(options);
    const problems = async () => (await other.inventory()).planReverts([], '', freshDeployment).problems;
    expect(await problems()).toHaveLength(1);
    await options.runtime.sleep(31_000);
    expect(await problems()).toEqual([]);
  });

  it('is acquired by another Steward when it was not renewed for its duration', async () => {
    const { on, start, image } = await openDeployment();
    await start(fast()).perform('launch', contextOf());
    await start(fast()).apply(workload, contextOf('tsuccessors'));
    expect(await lease(on)).toEqual(['tsuccessors/1', 2]);
    expect(await image()).toBe('a:2');
  });

  it('is acquired at once by the process that takes over the job, and the former process changes nothing more', async () => {
    const { on, start, patches } = await openDeployment();
    const options = fast();
    const [former, successor] = [start(options), start(options)];
    await former.perform('launch', contextOf('job', 1));
    await successor.perform('launch', contextOf('job', 2));
    expect(await lease(on)).toEqual(['job/2', 2]);
    const late = former.apply(workload, contextOf('job', 1));
    late.catch(() => undefined);
    for (let time = 0; time < 8; time += 1) {
      await options.runtime.sleep(2_000);
      await successor.perform('launch', contextOf('job', 2));
    }
    await expect(late).rejects.toThrow('its job job/2 holds the Lease');
    // The same holds when the lock is free because the job has ended.
    await successor.release('job');
    await expect(former.apply(workload, contextOf('job', 1))).rejects.toThrow(
      'another process has held the Lease',
    );
    expect(patches()).toEqual([]);
    await former.release('job');
    expect(await lease(on)).toEqual([undefined, 2]);
  });

  it('is renewed with one request every ten seconds, and not before', async () => {
    const { on, start } = await openDeployment();
    const options = fast();
    const executor = start(options);
    await executor.perform('launch', contextOf());
    const before = on.faults.requests.length;
    await executor.perform('prepare', contextOf());
    expect(on.faults.requests).toHaveLength(before);
    await options.runtime.sleep(12_000);
    await executor.perform('execute', contextOf());
    expect(on.faults.requests.slice(before).map(({ method, status }) => [method, status])).toEqual([
      ['PUT', 200],
    ]);
  });

  it('is not renewed by a process that was replaced', async () => {
    const { on, start } = await openDeployment();
    const options = fast();
    const [former, successor] = [start(options), start(options)];
    await former.perform('launch', contextOf('job', 1));
    await successor.perform('launch', contextOf('job', 2));
    await options.runtime.sleep(12_000);
    await expect(former.perform('prepare', contextOf('job', 1))).rejects.toThrow(
      'its job job/2 holds the Lease',
    );
    expect(await lease(on)).toEqual(['job/2', 2]);
  });

  it('does not block the next job of the same Steward if it could not be released', async () => {
    const { on, start } = await openDeployment();
    await start(fast()).perform('launch', contextOf());
    const hasEnded = (jobId: string) => Promise.resolve(jobId === 'job');
    expect((await start({ hasEnded }).inventory()).planReverts([], '', freshDeployment).problems).toEqual([]);
    await start({ hasEnded }).perform('launch', contextOf('next'));
    expect(await lease(on)).toEqual(['next/1', 2]);
  });

  it('cannot be acquired in a namespace that does not exist', async () => {
    const { on, start } = await openDeployment();
    on.faults.inject({
      path: /leases/,
      times: Infinity,
      act: { status: 404, body: { message: 'no namespace' } },
    });
    await expect(start().perform('launch', contextOf())).rejects.toThrow('refuses (404): no namespace.');
  });

  it('does not replace the check that no other process has taken over the job', async () => {
    const { start, patches } = await openDeployment();
    const lost = {
      ...contextOf(),
      assertOwnership: () => Promise.reject(new Error('another process has taken the job up.')),
    };
    await expect(start().apply(workload, lost)).rejects.toThrow('another process has taken the job up.');
    expect(patches()).toEqual([]);
  });
});
