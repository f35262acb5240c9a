// Contract of the job store; every store runs this suite.
import { describe, expect } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { type Job, newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { backends, onStore, openElsewhere } from './backends.ts';
import { job, plan, tryToChange } from './definitions.ts';

const archive = (store: Store, ...jobs: Job[]) =>
  store.update((transaction) => jobs.forEach((one) => transaction.jobs.archive(one)));

const messages = (...numbers: number[]) =>
  numbers.map((n) => ({ code: 2000 + n, message: `message ${n}`, when: n }));

const append = (store: Store, jobId: string, from: number, ...numbers: number[]) =>
  store.update((transaction) => transaction.jobs.appendMessages(jobId, from, messages(...numbers)));

describe.each(backends)('the job store of the %s store', (_name, open) => {
  const it = onStore(open);

  it('is empty at first', async () => {
    const { jobs } = await open();
    expect(await jobs.find('job-1')).toBeUndefined();
    expect(await jobs.page(100, 0, 10)).toEqual({ jobs: [], total: 0 });
    expect(await jobs.findInstalling('v2')).toBeUndefined();
    expect(await jobs.plan('job-1')).toBeUndefined();
    expect(await jobs.messages('job-1')).toEqual([]);
  });

  it('finds archived jobs', async ({ store }) => {
    const reason = 'no image';
    const reverting = { left: [1], refused: [], then: 'failed' as const, since: 1, reason };
    const failed = job(2, { state: 'failed', reason, reverting });
    await archive(store, job(1), failed);
    for (const { jobs } of [store, await openElsewhere(store)]) {
      expect(await jobs.find('job-1')).toEqual(job(1));
      expect(await jobs.find('job-2')).toEqual(failed);
      expect(await jobs.find('job-3')).toBeUndefined();
    }
  });

  it('returns archived jobs below a number by page, newest first', async ({ store }) => {
    for (const number of [1, 2, 10, 3, 9]) await archive(store, job(number));
    const page = async (below: number, start: number, num: number) => {
      const { jobs, total } = await store.jobs.page(below, start, num);
      return [...jobs.map(({ number }) => number), total];
    };
    expect(await page(100, 0, 10)).toEqual([10, 9, 3, 2, 1, 5]);
    expect(await page(10, 0, 10)).toEqual([9, 3, 2, 1, 4]);
    expect(await page(10, 0, 2)).toEqual([9, 3, 4]);
    expect(await page(10, 2, 2)).toEqual([2, 1, 4]);
    expect(await page(10, 4, 2)).toEqual([4]);
    expect(await page(10, 0, 0)).toEqual([4]);
    expect(await page(1, 0, 10)).toEqual([0]);
  });

  it('finds the newest job that has installed a version, however it has ended', async ({ store }) => {
    const installed = (...ids: string[]) => ({
      hops: { all: [], done: 1, installedAt: Object.fromEntries(ids.map((id) => [id, 1])) },
    });
    await archive(store, job(1, installed('v1', 'v2')), job(2, installed('v2')));
    await archive(store, job(3, { ...installed(), state: 'failed' }), job(4, installed()));
    await archive(store, job(5, { ...installed('v3'), state: 'cancelled' }));
    const installing = async (id: string) => (await store.jobs.findInstalling(id))?.number;
    expect(await installing('v1')).toBe(1);
    expect(await installing('v2')).toBe(2);
    expect(await installing('v3')).toBe(5);
    expect(await installing('v')).toBeUndefined();
    expect(await installing('"v2"')).toBeUndefined();
  });

  it('stores, replaces and deletes plans', async ({ store }) => {
    const save = (workloads: number) =>
      store.update((transaction) => transaction.jobs.savePlan(plan('job-1', { workloads })));
    await save(1);
    await save(2);
    for (const { jobs } of [store, await openElsewhere(store)])
      expect(await jobs.plan('job-1')).toEqual(plan('job-1', { workloads: 2 }));
    await store.update((transaction) => {
      transaction.jobs.deletePlan('job-1');
      transaction.jobs.deletePlan('unknown');
    });
    expect(await store.jobs.plan('job-1')).toBeUndefined();
  });

  it('appends messages to each job in order', async ({ store }) => {
    await append(store, 'job-1', 0, 1, 2);
    await append(store, 'job-2', 0, 9);
    await append(store, 'job-1', 2);
    await append(store, 'job-1', 2, 3, 4, 5);
    for (const { jobs } of [store, await openElsewhere(store)]) {
      expect(await jobs.messages('job-1')).toEqual(messages(1, 2, 3, 4, 5));
      expect(await jobs.messages('job-1', 3)).toEqual(messages(4, 5));
      expect(await jobs.messages('job-1', 5)).toEqual([]);
      expect(await jobs.messages('job-1', 99)).toEqual([]);
      expect(await jobs.messages('job-2')).toEqual(messages(9));
      expect(await jobs.messages('job-3')).toEqual([]);
    }
  });

  it('returns values through which the stored ones cannot be changed', async ({ store }) => {
    await archive(store, job(1));
    await store.update((transaction) => transaction.jobs.savePlan(plan('job-1')));
    await append(store, 'job-1', 0, 1);
    tryToChange(await store.jobs.find('job-1'), { state: 'failed' });
    tryToChange((await store.jobs.page(9, 0, 1)).jobs[0], { state: 'failed' });
    tryToChange(await store.jobs.plan('job-1'), { workloads: 9 });
    tryToChange((await store.jobs.messages('job-1'))[0], { code: 9 });
    expect(await store.jobs.find('job-1')).toEqual(job(1));
    expect(await store.jobs.plan('job-1')).toEqual(plan('job-1'));
    expect(await store.jobs.messages('job-1')).toEqual(messages(1));
  });

  it('returns messages that do not change with the job', async ({ store }) => {
    await append(store, 'job-1', 0, 1);
    const before = await store.jobs.messages('job-1');
    await append(store, 'job-1', 1, 2);
    expect(before).toEqual(messages(1));
  });

  it('keeps the messages of the newest archived jobs, and all jobs', async () => {
    const store = await open({ jobs: 2 });
    for (const number of [1, 2, 3, 4, 5])
      await store.update((transaction) => {
        if (number > 1) transaction.jobs.archive(job(number - 1));
        transaction.write(newestJob, job(number));
        transaction.jobs.appendMessages(`job-${number}`, 0, messages(number));
      });
    // A process removes messages when it starts, and again and again.
    const { jobs } = await openElsewhere(store);
    const counts = () =>
      Promise.all([1, 2, 3, 4, 5].map(async (n) => (await jobs.messages(`job-${n}`)).length));
    await expect.poll(counts, { interval: 20 }).toEqual([0, 0, 1, 1, 1]);
    expect((await store.jobs.page(100, 0, 10)).total).toBe(4);
  });
});
