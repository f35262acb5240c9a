// Steps that Jobs perform: what is created, when, with which messages, and what happens if a Job fails, hangs or is
// interrupted.
import { describe, expect, it } from 'vitest';
import { fast } from './executor.ts';
import { attemptsOf, openUpgrade, openWorkloads, textsOf } from './upgrade-kit.ts';

describe('a step template', () => {
  it('becomes a Job with the labels and variables of its step', async () => {
    const { start, end, jobs, cluster } = await openUpgrade([
      {
        step: 'before',
        name: 'backup',
        jobSpec: { ttlSecondsAfterFinished: 5, activeDeadlineSeconds: 7 },
        container: {
          env: [
            { name: 'OWN', value: '$(STEWARD_STEP)' },
            { name: 'STEWARD_STEP', value: 'other' },
          ],
        },
      },
      { step: 'after', jobSpec: { activeDeadlineSeconds: 10_000 } },
    ]);
    const { jobId } = await start('upgrade', 'pat');
    const { messages } = await end('success');
    const [before, after] = (await jobs()).sort((a, b) => (a.metadata.name < b.metadata.name ? 1 : -1));
    const short = jobId.slice(0, 8);
    expect(before?.metadata).toMatchObject({
      name: `steward-${short}-5-1`,
      labels: { 'steward/job': jobId, 'steward/step': 'before' },
    });
    expect(before?.metadata.ownerReferences).toBeUndefined();
    expect(before?.spec).not.toHaveProperty('ttlSecondsAfterFinished');
    expect(before?.spec.activeDeadlineSeconds).toBe(7);
    expect(after?.spec.activeDeadlineSeconds).toBe(60);
    expect(before?.spec.template.spec.containers[0]?.env).toEqual([
      { name: 'STEWARD_JOB_ID', value: jobId },
      { name: 'STEWARD_STEP', value: 'before' },
      { name: 'STEWARD_FROM_VERSION', value: '10.9.1.1234' },
      { name: 'STEWARD_TO_VERSION', value: '10.9.1.1300' },
      { name: 'OWN', value: '$(STEWARD_STEP)' },
    ]);
    expect(textsOf(messages, 2906, 2907)).toEqual([
      'The hook before started.',
      `The hook before completed (Job steward-${short}-5-1).`,
      'The hook after started.',
      `The hook after completed (Job ${after?.metadata.name ?? ''}).`,
    ]);
    const codes = messages.map(({ code }) => code);
    expect(codes.slice(codes.indexOf(2907), codes.indexOf(2907) + 2)).toEqual([2907, 2271]);
    expect(codes.slice(-5)).toEqual([2906, 2907, 2166, 2011, 2012]);
    expect(
      cluster.faults.requests.filter(({ method, path }) => method === 'POST' && /\/jobs/.test(path)),
    ).toHaveLength(2);
  });

  it('gives its init containers the variables too, and all its fields', async () => {
    // A real API server drops fields that it does not know.
    const newField = process.env.STEWARD_TEST_KUBECONFIG ? {} : { someNewField: { of: 'a newer server' } };
    const { start, end, jobs } = await openUpgrade([
      {
        step: 'before',
        jobSpec: {
          template: {
            metadata: { labels: { own: 'label' } },
            spec: {
              restartPolicy: 'Never',
              schedulerName: 'steward-test',
              ...newField,
              initContainers: [{ name: 'first', image: 'first:1' }],
              containers: [{ name: 'task', image: 'task:1' }],
            },
          },
        },
      },
    ]);
    await start('upgrade', 'pat');
    await end('success');
    const { template } = (await jobs())[0]?.spec ?? {};
    expect(template).toMatchObject({ metadata: { labels: { own: 'label' } } });
    expect(template?.spec).toMatchObject(newField);
    expect(template?.spec.initContainers?.[0]?.env?.map(({ name }) => name)).toContain('STEWARD_TO_VERSION');
  });

  it('is announced when its Job was created, and completed after it', async () => {
    const { cluster, start, end, read, waitForCode, jobs } = await openUpgrade([
      { step: 'logging', image: 'task:1-stuck' },
    ]);
    await start('upgrade', 'pat');
    await waitForCode(2180);
    expect(await jobs()).toHaveLength(1);
    expect((await read()).messages.at(-1)?.code).toBe(2180);
    cluster.kubelet.heal('stuck');
    const { messages } = await end('success');
    expect(textsOf(messages, 2180, 2181)).toEqual([
      'Post-upgrade operations for logging started.',
      'Post-upgrade operations for logging succeeded.',
    ]);
  });

  it('is not announced if its Job cannot be created', async () => {
    const { cluster, start, end } = await openUpgrade([{ step: 'before' }]);
    const body = { message: 'exceeded quota: count/jobs.batch' };
    cluster.faults.inject({ method: 'POST', path: /\/jobs\b/, act: { status: 422, body } });
    await start('upgrade', 'pat');
    const { codes, messages } = await end('failed');
    expect(codes).not.toContain(2906);
    expect(textsOf(messages, 2901)[0]).toMatch(/"Run the hook before": .*exceeded quota/);
  });

  it('of the database engine reports the state of the databases in its termination message', async () => {
    const { start, end } = await openUpgrade([
      { step: 'database-engine', args: ['{ "catalog": {"status": "success", "to": "16.3"} }'] },
    ]);
    await start('upgrade', 'rel');
    const { messages } = await end('success');
    expect(textsOf(messages, 2153)).toEqual(['{"catalog":{"status":"success","to":"16.3"}}']);
    // One step of the database is performed, so its frame is not skipped.
    expect(textsOf(messages, 2108, 2087)).toEqual([
      'Release upgrade of the relational database started.',
      expect.stringMatching(/^Skipped \(no step template\): The primary instance /),
    ]);
  });

  it('without a JSON object in its termination message reports success for all databases', async () => {
    const { start, end } = await openUpgrade([{ step: 'database-engine', args: ['[1]', 'done'] }]);
    await start('upgrade', 'rel');
    const { messages } = await end();
    expect(textsOf(messages, 2153)).toEqual(['{"*":{"status":"success"}}']);
  });
});

describe('a step without a template', () => {
  it('is skipped: the plan and its messages say so', async () => {
    const { start, end } = await openUpgrade([]);
    const plan = await start('plan', 'rel');
    const skipped = plan.steps.filter(({ performedBy }) => performedBy === 'nobody').map(({ id }) => id);
    expect(plan.notices).toEqual([
      `These steps have no step template and are skipped: ${skipped.join(', ')}.`,
    ]);
    expect(plan.steps.map(({ seqNum }) => seqNum)).toEqual(plan.steps.map((_step, index) => index));
    const performers = (id: string) => plan.steps.find((step) => step.id === id)?.performedBy;
    expect(['launch', 'begin', 'update', 'verify', 'final-check'].map(performers)).toEqual([
      'steward',
      'rollout',
      'rollout',
      'rollout',
      'steward',
    ]);
    expect(plan.steps.find(({ id }) => id === 'update')?.workload).toBe('deployment/map-server');
    await start('upgrade', 'rel');
    const { messages } = await end('success');
    const prefix = 'Skipped (no step template): ';
    expect(messages.filter(({ message }) => message.startsWith(prefix)).map(({ code }) => code)).toEqual([
      2094, 2281, 2288, 2108, 2087, 2144, 2145, 2090, 2093, 2092, 2151, 2148, 2149, 2109, 2187, 2188, 2180,
      2181, 2178, 2185, 2191, 2192,
    ]);
    expect(textsOf(messages, 2153)).toEqual(['{"*":{"status":"skipped"}}']);
  });

  it('leaves the pre-diagnostics empty, unless one of their steps has a template', async () => {
    const { start, end } = await openUpgrade([]);
    await start('upgrade', 'pat');
    const skipped = 'Skipped (no step template): Pre-diagnostics completed.';
    expect(textsOf((await end()).messages, 2287, 2288)).toEqual(['Pre-diagnostics started.', skipped]);
    const other = await openUpgrade([{ step: 'search-check' }]);
    await other.start('upgrade', 'rel');
    expect(textsOf((await other.end()).messages, 2288)).toEqual(['Pre-diagnostics completed.']);
  });

  it('is every step if templates are off, and no Job is read then', async () => {
    const { start, end, jobs, cluster } = await openUpgrade([{ step: 'before' }, { step: 'logging' }], {
      stepTemplates: false,
    });
    expect((await start('plan', 'pat')).notices).toEqual([
      'These steps have no step template and are skipped: logging.',
    ]);
    await start('upgrade', 'pat');
    expect((await end()).codes).not.toContain(2906);
    expect(await jobs()).toEqual([]);
    expect(cluster.faults.requests.filter(({ path }) => path.includes('/batch/'))).toEqual([]);
  });
});

describe('a failed Job', () => {
  it('fails the step with its reason and its last lines, and resume makes the next attempt', async () => {
    const { cluster, start, end, jobs, resume, images } = await openUpgrade([
      {
        step: 'before',
        image: 'task:1-crash',
        args: ['one', 'two', 'three', '\u001b[31mfour\u0007', 'five', '', 'six\t'],
      },
    ]);
    await start('upgrade', 'rel');
    const failed = await end('failed');
    const [name = ''] = (await jobs()).map(({ metadata }) => metadata.name);
    expect(textsOf(failed.messages, 2901)).toEqual([
      `The job failed at the step "Run the hook before": the Job ${name} failed (BackoffLimitExceeded: ` +
        'Job has reached the specified backoff limit): two | three | [31mfour | five | six',
    ]);
    expect(failed.codes).not.toContain(2271);
    expect(await images()).toEqual(['map-server:1', 'map-tiles:1']);
    cluster.kubelet.heal('crash');
    await resume();
    const { messages } = await end('success');
    expect(attemptsOf(await jobs())).toEqual(['7-1', '7-2']);
    expect(textsOf(messages, 2906, 2907)).toEqual([
      'The hook before started.',
      'The hook before started.',
      `The hook before completed (Job ${name.slice(0, -1)}2).`,
    ]);
  });

  it('of a patch reverts it, and the steps after the workloads are performed again when it is resumed', async () => {
    const { cluster, start, end, jobs, resume, images } = await openUpgrade([
      { step: 'before' },
      { step: 'logging' },
      { step: 'after', image: 'task:1-crash' },
    ]);
    const { steps } = await start('plan', 'pat');
    const seqNum = (id: string) => steps.find((step) => step.id === id)?.seqNum ?? 0;
    await start('upgrade', 'pat');
    await end('failed');
    expect(await images()).toEqual(['map-server:1', 'map-tiles:1']);
    cluster.kubelet.heal('crash');
    await resume();
    await end('success');
    expect(await images()).toEqual(['map-server:2', 'map-tiles:2']);
    expect(attemptsOf(await jobs())).toEqual(
      [
        `${seqNum('before')}-1`,
        ...['logging', 'after'].flatMap((id) => [`${seqNum(id)}-1`, `${seqNum(id)}-2`]),
      ].sort(),
    );
  });
});

describe('a Job that does not end', () => {
  it('ends with its pods when it exceeds its time, before anything is reverted', async () => {
    const { cluster, start, end, jobs, jobPods, waitForCode, resume, images } = await openUpgrade(
      [{ step: 'after', image: 'task:1-stuck', graceSeconds: 2 }],
      { stepTimeoutMs: 60_000 },
    );
    await start('upgrade', 'pat');
    await waitForCode(2906);
    await expect.poll(async () => (await jobPods()).length).toBe(1);
    let podsAtRevert: unknown;
    cluster.faults.inject({
      method: 'PATCH',
      act: async () => {
        podsAtRevert = await jobPods();
      },
    });
    await cluster.passTime(60_000);
    // A real API server gives no time to a pod that has no node.
    if (!cluster.isReal)
      await expect.poll(async () => (await jobPods())[0]?.metadata.deletionTimestamp).toBeDefined();
    await cluster.passTime(2_000);
    const { messages } = await end('failed');
    const [name = ''] = (await jobs()).map(({ metadata }) => metadata.name);
    expect(textsOf(messages, 2901)).toEqual([
      `The job failed at the step "Run the hook after": the Job ${name} failed (DeadlineExceeded: ` +
        'Job was active longer than specified deadline).',
    ]);
    expect(podsAtRevert).toEqual([]);
    expect(await images()).toEqual(['map-server:1', 'map-tiles:1']);
    cluster.kubelet.heal('stuck');
    await resume();
    await end('success');
    expect((await jobs()).map(({ metadata }) => metadata.name.at(-1)).sort()).toEqual(['1', '2']);
  });

  it('is deleted with its pods before the next attempt, if it has not ended a minute after its time', async () => {
    const { cluster, server, start, end, read, jobs, jobPods, resume } = await openUpgrade([
      { step: 'before', image: 'task:1-stuck' },
    ]);
    await start('upgrade', 'pat');
    await expect.poll(async () => (await jobPods()).length).toBe(1);
    await server.runtime.advance(1_859_000);
    expect((await read()).state).toBe('in_progress');
    await server.runtime.advance(1000);
    const { messages } = await end('failed');
    expect(textsOf(messages, 2901)).toEqual([
      'The job failed at the step "Run the hook before": it took longer than 1860 seconds.',
    ]);
    await resume();
    await expect.poll(async () => attemptsOf(await jobs())).toEqual(['5-2']);
    cluster.kubelet.heal('stuck');
    await end('success');
  });

  it('is deleted with its pods when the upgrade is cancelled', async () => {
    const { start, ask, end, jobs, jobPods, waitForCode } = await openUpgrade([
      { step: 'after', image: 'task:1-stuck' },
    ]);
    const { jobId } = await start('upgrade', 'pat');
    await waitForCode(2906);
    await expect.poll(async () => (await jobPods()).length).toBe(1);
    await ask(`jobs/${jobId}/cancel`);
    const { codes } = await end('cancelled');
    expect(codes.slice(codes.indexOf(2906))).toEqual([2906, 2903, 2904, 2904, 2166]);
    expect(await jobs()).toEqual([]);
    expect(await jobPods()).toEqual([]);
  });

  it('is deleted with its pods before the next attempt, if the API server was unavailable for too long', async () => {
    const { cluster, start, end, jobs, jobPods, resume } = await openUpgrade(
      [{ step: 'before', image: 'task:1-stuck' }],
      { patienceMs: 50 },
    );
    await start('upgrade', 'rel');
    await expect.poll(async () => (await jobPods()).length).toBe(1);
    const [name = ''] = (await jobs()).map(({ metadata }) => metadata.name);
    const available = cluster.faults.inject({ path: /\/jobs\//, times: Infinity, act: { status: 503 } });
    const { messages } = await end('failed');
    expect(textsOf(messages, 2901)[0]).toMatch(
      new RegExp(`The Job ${name} may still be running. The next attempt deletes it first.$`),
    );
    available();
    await resume();
    await expect.poll(async () => attemptsOf(await jobs())).toEqual(['7-2']);
    await expect.poll(jobPods).toHaveLength(1);
    cluster.kubelet.heal('stuck');
    await end('success');
  });

  it('is deleted with its pods before the next upgrade, if the API server was unavailable for too long', async () => {
    const { cluster, start, end, jobs, jobPods } = await openUpgrade(
      [{ step: 'before', image: 'task:1-stuck' }],
      { patienceMs: 50 },
    );
    await start('upgrade', 'pat');
    await expect.poll(async () => (await jobPods()).length).toBe(1);
    const available = cluster.faults.inject({ path: /\/jobs\//, times: Infinity, act: { status: 503 } });
    await end('failed');
    available();
    const { jobId } = await start('upgrade', 'pat');
    await expect
      .poll(async () => (await jobs()).map(({ metadata }) => metadata.labels?.['steward/job']))
      .toEqual([jobId]);
    await expect.poll(jobPods).toHaveLength(1);
  });

  it.each<[string, string, RegExp]>([
    ['has no image', 'task:1-missing', /the pod \S+ cannot pull the image task:1-missing \(\w+: .*\)\.$/],
    ['does not start', 'task:1', /no pod has begun to work for \d+ seconds: steward-\S+ is not ready\.$/],
    [
      'is refused',
      'task:1',
      /no pod has begun to work for \d+ seconds: it has no pod; its events say why\.$/,
    ],
  ])(
    'and whose pod %s fails the step after the time of a rollout, and is deleted',
    async (what, image, cause) => {
      const cluster = await openWorkloads();
      if (what === 'does not start') await cluster.kubelet.pause();
      const quota = { metadata: { name: 'full' }, spec: { hard: { pods: '2' } } };
      const quotas = `/api/v1/namespaces/${cluster.namespace}/resourcequotas`;
      if (what === 'is refused') await cluster.request('POST', quotas, quota);
      const options = { ...fast(), rolloutTimeoutMs: 20_000, cluster };
      const { start, end, jobs, jobPods } = await openUpgrade([{ step: 'before', image }], options);
      await start('upgrade', 'pat');
      const { messages } = await end('failed');
      const [text = ''] = textsOf(messages, 2901);
      expect(text).toMatch(/"Run the hook before": the Job steward-\S+-5-1 did not start, and was deleted: /);
      expect(text).toMatch(cause);
      expect([await jobs(), await jobPods()]).toEqual([[], []]);
    },
  );

  it('and that runs for longer than a rollout may take is waited for', async () => {
    const options = { ...fast(), rolloutTimeoutMs: 20_000 };
    const { cluster, start, end, jobPods } = await openUpgrade(
      [{ step: 'before', image: 'task:1-stuck' }],
      options,
    );
    await start('upgrade', 'pat');
    await expect.poll(async () => (await jobPods())[0]?.status.phase).toBe('Running');
    await options.runtime.sleep(60_000);
    cluster.kubelet.heal('stuck');
    await end('success');
  });

  it('fails the step if another client deletes it', async () => {
    const { cluster, start, end, jobs } = await openUpgrade([{ step: 'before', image: 'task:1-stuck' }]);
    await start('upgrade', 'pat');
    await expect.poll(async () => (await jobs()).length).toBe(1);
    const [name = ''] = (await jobs()).map(({ metadata }) => metadata.name);
    await cluster.request('DELETE', `/apis/batch/v1/namespaces/${cluster.namespace}/jobs/${name}`, {
      propagationPolicy: 'Background',
    });
    expect(textsOf((await end()).messages, 2901)).toEqual([
      `The job failed at the step "Run the hook before": another client has deleted the Job ${name}.`,
    ]);
  });
});

describe('a process that dies while a Job ends', () => {
  // A real API server gives no time to a pod that has no node.
  const isReal = process.env.STEWARD_TEST_KUBECONFIG !== undefined;
  it.skipIf(isReal)('because its time is over leaves that to the next process, which fails it', async () => {
    const cluster = await openWorkloads();
    const first = await openUpgrade([{ step: 'before', image: 'task:1-stuck', graceSeconds: 3 }], {
      cluster,
      stepTimeoutMs: 1000,
    });
    await first.start('upgrade', 'pat');
    await expect.poll(async () => (await first.jobPods()).length).toBe(1);
    await cluster.passTime(1000);
    await expect.poll(async () => (await first.jobPods())[0]?.metadata.deletionTimestamp).toBeDefined();
    const store = await first.server.store.reopen();
    await first.server.close();
    const second = await openUpgrade([], { cluster, store });
    await second.waitForCode(2902);
    await cluster.passTime(3000);
    const { messages } = await second.end('failed');
    expect(textsOf(messages, 2901)).toEqual([
      expect.stringMatching(/"Run the hook before": the Job \S+-5-1 failed \(DeadlineExceeded: .*\)\.$/),
    ]);
    expect(await second.jobPods()).toEqual([]);
    expect(attemptsOf(await second.jobs())).toEqual(['5-1']);
  });

  it('because the upgrade was cancelled leaves that to the next process, which then cancels', async () => {
    const cluster = await openWorkloads();
    const first = await openUpgrade([{ step: 'before', image: 'task:1-stuck' }], { cluster });
    const { jobId } = await first.start('upgrade', 'pat');
    await expect.poll(async () => (await first.jobPods()).length).toBe(1);
    let isDeleting = false;
    const removeFault = cluster.faults.inject({
      method: 'DELETE',
      path: /\/jobs\//,
      times: Infinity,
      act: () => {
        isDeleting = true;
        return Promise.reject(new Error('the request does not arrive'));
      },
    });
    await first.ask(`jobs/${jobId}/cancel`);
    await expect.poll(() => isDeleting).toBe(true);
    const store = await first.server.store.reopen();
    await first.server.close();
    removeFault();
    const second = await openUpgrade([], { cluster, store });
    const { codes } = await second.end('cancelled');
    expect(codes.slice(-4)).toEqual([2906, 2902, 2903, 2166]);
    expect(await second.jobs()).toEqual([]);
    expect(await second.jobPods()).toEqual([]);
    const created = cluster.faults.requests.filter(
      ({ method, path }) => method === 'POST' && path.includes('/jobs'),
    );
    expect(created).toHaveLength(1);
  });
});

describe('an interrupted step', () => {
  it('is continued by the next process with the same Job', async () => {
    const cluster = await openWorkloads();
    const first = await openUpgrade([{ step: 'before', image: 'task:1-stuck' }], { cluster });
    await first.start('upgrade', 'pat');
    await expect.poll(async () => (await first.jobs()).length).toBe(1);
    const [job] = await first.jobs();
    const store = await first.server.store.reopen();
    await first.server.close();
    const second = await openUpgrade([], { cluster, store });
    await second.waitForCode(2902);
    cluster.kubelet.heal('stuck');
    const { codes } = await second.end('success');
    expect(codes.filter((code) => code === 2906)).toHaveLength(1);
    expect((await second.jobs()).map(({ metadata }) => metadata.uid)).toEqual([job?.metadata.uid]);
  });

  it.each(['cut', 'swallow'] as const)('creates one Job if the connection is closed: %s', async (act) => {
    const { cluster, start, end, jobs } = await openUpgrade([{ step: 'before' }]);
    cluster.faults.inject({ method: 'POST', path: /\/jobs/, act });
    await start('upgrade', 'pat');
    await end('success');
    expect(attemptsOf(await jobs())).toEqual(['5-1']);
  });
});

it('a rollback runs its own hook before, and the hook after', async () => {
  const { start, end, jobs } = await openUpgrade([
    { step: 'before' },
    { step: 'before-rollback' },
    { step: 'after' },
  ]);
  await start('upgrade', 'pat_next');
  await end('success');
  await start('rollback', 'pat');
  const { messages } = await end('success');
  expect(textsOf(messages, 2906)).toEqual(['The hook before-rollback started.', 'The hook after started.']);
  // The Jobs of the upgrade were deleted when the rollback started.
  expect((await jobs()).map(({ metadata }) => metadata.labels?.['steward/step']).sort()).toEqual([
    'after',
    'before-rollback',
  ]);
});
