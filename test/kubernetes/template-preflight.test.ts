// What a plan says about step templates before an upgrade changes anything.
import { expect, it } from 'vitest';
import { neededPermissions, templatePermissions } from '../../src/upgrades/executors/kubernetes/namespace.ts';
import { fast } from './executor.ts';
import { attemptsOf, openUpgrade, rulesFor } from './upgrade-kit.ts';

it('two templates for one step, and templates that are not suspended, are problems', async () => {
  const { start } = await openUpgrade([
    { step: 'before', name: 'backup-b' },
    { step: 'before', name: 'backup-a', suspend: false },
    { step: 'after', name: 'smoke-test', suspend: false },
  ]);
  const { problems } = await start('plan', 'pat');
  expect(problems.sort()).toEqual([
    'cluster: cronjob/backup-a: is the step template of before, but is not suspended (spec.suspend).',
    'cluster: cronjob/smoke-test: is the step template of after, but is not suspended (spec.suspend).',
    'cluster: the step before has 2 step templates: backup-a, backup-b.',
  ]);
  expect((await start('upgrade', 'pat')).error?.details.sort()).toEqual(problems);
});

it('a label that names no step is a notice', async () => {
  const { start } = await openUpgrade([{ step: 'befor' }]);
  const { problems, notices } = await start('plan', 'pat');
  expect(problems).toEqual([]);
  expect(notices[0]).toMatch(
    /^cronjob\/befor: the label steward\/step names no step: befor\. Allowed are database-validate, /,
  );
});

it('the steps of the plan name their templates, and another template changes the digest', async () => {
  const { start, cluster } = await openUpgrade([{ step: 'logging', name: 'logs' }]);
  const { steps, digest } = await start('plan', 'pat');
  expect(steps.find(({ id }) => id === 'logging')).toMatchObject({ performedBy: 'job', template: 'logs' });
  await cluster.request('DELETE', `/apis/batch/v1/namespaces/${cluster.namespace}/cronjobs/logs`);
  expect(await start('plan', 'pat')).not.toMatchObject({ digest });
});

it('missing permissions for Jobs are a problem, unless templates are off', async () => {
  const { start, cluster } = await openUpgrade([]);
  await cluster.allow(rulesFor(neededPermissions));
  expect((await start('plan', 'pat')).problems).toEqual([
    `cluster: not allowed in the namespace ${cluster.namespace}: list cronjobs.batch; create, get, list, delete jobs.batch.`,
  ]);
  const off = await openUpgrade([], { cluster, stepTemplates: false });
  expect((await off.start('plan', 'pat')).problems).toEqual([]);
});

it('the permissions are enough to run and to delete Jobs', async () => {
  const { start, end, ask, cluster, jobPods, jobs } = await openUpgrade(
    [{ step: 'before' }, { step: 'after', image: 'task:1-stuck' }],
    // An Event that is refused is repeated for seconds.
    fast(),
  );
  await cluster.allow(rulesFor([...neededPermissions, ...templatePermissions]));
  const { jobId } = await start('upgrade', 'pat');
  await expect.poll(async () => (await jobPods()).length, { interval: 20 }).toBe(2);
  await ask(`jobs/${jobId}/cancel`);
  await end('cancelled');
  expect(attemptsOf(await jobs())).toEqual(['5-1']);
  cluster.kubelet.heal('stuck');
  await start('upgrade', 'pat');
  await end('success');
  expect(await jobs()).toHaveLength(2);
});
