// The rollout of a workload completes, and is seen to fail, whatever happens to the watches.
import { describe, expect, it } from 'vitest';
import type { Act } from './faults.ts';
import { contextOf, fast, openDeployment, workload } from './single-deployment.ts';

const event = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;

const faults: [string, Act][] = [
  ['is ended at once', { status: 200, body: '' }],
  [
    'reports that its version is too old',
    { status: 200, body: event('ERROR', { kind: 'Status', code: 410 }) },
  ],
  ['contains no JSON', { status: 200, body: '<html>\n' }],
  ['is answered with an error', { status: 500 }],
  ['is cut', 'cut'],
  ['gets no answer', 'hang'],
];

describe('a watch that', () => {
  it.each(faults)('%s does not keep a rollout from completing', async (_what, act) => {
    const { on, start, image } = await openDeployment();
    on.faults.inject({ path: /watch=true/, times: Infinity, act });
    const executor = start(fast(100));
    await executor.apply(workload, contextOf());
    await executor.verify(workload, contextOf());
    expect(await image()).toBe('a:2');
  });

  it.each(faults)('%s does not hide a failure', async (_what, act) => {
    const { on, start } = await openDeployment();
    on.faults.inject({ path: /watch=true/, times: Infinity, act });
    const executor = start(fast(100));
    const bad = { ...workload, parts: [{ container: 'a', image: 'a:2-missing', formerImage: 'a:1' }] };
    await executor.apply(bad, contextOf());
    await expect(executor.verify(bad, contextOf())).rejects.toThrow('cannot pull the image a:2-missing');
  });
});

describe('a watch', () => {
  it('reports that the workload was deleted', async () => {
    const { on, start } = await openDeployment();
    const stuck = { ...workload, parts: [{ container: 'a', image: 'a:2-stuck', formerImage: 'a:1' }] };
    const executor = start();
    await executor.apply(stuck, contextOf());
    const verified = executor.verify(stuck, contextOf());
    verified.catch(() => undefined);
    await expect.poll(() => on.faults.requests.some(({ path }) => path.includes('/pods?'))).toBe(true);
    await on.request('DELETE', `/apis/apps/v1/namespaces/${on.namespace}/deployments/a`);
    await expect(verified).rejects.toThrow('deployment/a no longer exists.');
  });

  it('does not begin with a state from before the patch', async () => {
    const { start, image } = await openDeployment();
    const executor = start();
    await executor.apply(workload, contextOf());
    await executor.verify(workload, contextOf());
    await executor.rollback(workload, contextOf());
    expect(await image()).toBe('a:1');
  });
});
