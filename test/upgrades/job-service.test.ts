// The job service: what it reads from the store for the messages of the newest job and of earlier ones.
import { expect, it } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import type { Store } from '../../src/store/store.ts';
import { JobService } from '../../src/upgrades/jobs/job-service.ts';
import { type Job, newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { requestCancel, startJob } from '../../src/upgrades/jobs/job.ts';

const newJob = {
  operation: 'upgrade',
  kind: 'patch',
  targetId: 'pat_1',
  from: '1.0.0.1',
  to: '1.0.0.2',
  startedBy: 'ann',
  runner: 'memory',
  uploads: [],
  ignoresWindows: false,
  plan: { steps: [], workloads: 0, parallelism: 1, hops: [] },
} as const;

/** The reads of messages are recorded as `<job> <after>`. */
function createSystem() {
  const store = createMemoryStore({
    retention: { deliveries: { history: 1, recoverable: 1 }, jobs: 1 },
    maxEventIds: 1,
  });
  const reads: string[] = [];
  const messages = (id: string, after = 0) => {
    reads.push(`${id} ${after}`);
    return store.jobs.messages(id, after);
  };
  const service = new JobService({
    ...store,
    jobs: { ...store.jobs, plan: (id) => store.jobs.plan(id), messages },
  });
  return { store, reads, service };
}

const start = (store: Store, id: string) =>
  store.update((transaction) => startJob(transaction, { ...newJob, id }, 1000));

const end = (store: Store) =>
  change(store, (job) => ({
    ...job,
    state: 'success',
    endedAt: 2000,
    hops: { ...job.hops, done: 1, installedAt: { pat_1: 2000 } },
  }));

/** Adds messages with the given texts to the newest job. */
async function add(store: Store, ...texts: string[]): Promise<Job> {
  const messages = texts.map((message) => ({ code: 2038, message, when: 1000 }));
  await store.update((transaction) => {
    const job = transaction.read(newestJob);
    transaction.jobs.appendMessages(job?.id ?? '', job?.messageCount ?? 0, messages);
  });
  return change(store, (job) => ({ ...job, messageCount: job.messageCount + texts.length }));
}

function change(store: Store, by: (job: Job) => Job): Promise<Job> {
  return store.update((transaction) => {
    const job = transaction.read(newestJob);
    if (!job) throw new Error('There is no job.');
    const changed = by(job);
    transaction.write(newestJob, changed);
    return changed;
  });
}

const textsOf = ({ messages }: { messages: readonly { message: string }[] }) =>
  messages.map(({ message }) => message);

it('reads each message of the newest job once', async () => {
  const { store, service, reads } = createSystem();
  const first = await start(store, 'a');
  expect(await service.messages(first)).toMatchObject({ messages: [{ code: 2010 }], count: 1 });
  expect(await service.messages(first)).toMatchObject({ messages: [{ code: 2010 }], count: 1 });
  expect(reads).toEqual(['a 0']);
  const later = await add(store, 'x', 'y');
  expect(textsOf(await service.messages(later, 1))).toEqual(['x', 'y']);
  expect(textsOf(await service.messages(later, 2))).toEqual(['y']);
  expect(await service.messages(later, 9)).toEqual({ messages: [], count: 3 });
  expect(reads).toEqual(['a 0', 'a 1']);
});

it('returns no message that the job has recorded after it was read', async () => {
  const { store, service } = createSystem();
  const first = await start(store, 'a');
  const later = await add(store, 'x');
  expect(await service.messages(first)).toMatchObject({ messages: [{ code: 2010 }], count: 1 });
  expect(await service.messages(first, 1)).toEqual({ messages: [], count: 1 });
  expect(await service.messages(later)).toMatchObject({ messages: [{ code: 2010 }, { message: 'x' }] });
});

it('shares a read among requests, and reads again for one that needs newer messages', async () => {
  const { store, service, reads } = createSystem();
  const first = await start(store, 'a');
  const before = [service.messages(first), service.messages(first)];
  const later = await add(store, 'x');
  const after = [service.messages(later), service.messages(later)];
  for (const found of await Promise.all(before)) expect(found.messages).toHaveLength(1);
  for (const found of await Promise.all(after)) expect(textsOf(found)).toEqual([expect.anything(), 'x']);
  expect(reads).toEqual(['a 0', 'a 1']);
});

it('reads again after a failed read', async () => {
  const { store, service, reads } = createSystem();
  const job = await start(store, 'a');
  const { messages } = store.jobs;
  store.jobs.messages = () => Promise.reject(new Error('unavailable'));
  const both = await Promise.allSettled([service.messages(job), service.messages(job)]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  store.jobs.messages = messages;
  expect(await service.messages(job)).toMatchObject({ count: 1 });
  expect(reads).toEqual(['a 0', 'a 0']);
});

it('reads the plan of the newest job once, and again after a failed read', async () => {
  const { store, service, reads } = createSystem();
  const job = await start(store, 'a');
  const { plan } = store.jobs;
  store.jobs.plan = () => Promise.reject(new Error('unavailable'));
  await expect(service.plan(job)).rejects.toThrow('unavailable');
  store.jobs.plan = (id) => {
    reads.push(id);
    return plan(id);
  };
  for (let times = 0; times < 2; times += 1) expect(await service.plan(job)).toMatchObject({ jobId: 'a' });
  await end(store);
  await start(store, 'b');
  expect(await service.plan(job)).toBeUndefined();
  expect(reads).toEqual(['a', 'a']);
});

it('forgets the messages of a job that is no longer the newest', async () => {
  const { store, service, reads } = createSystem();
  const a = await start(store, 'a');
  await service.messages(a);
  await end(store);
  const b = await start(store, 'b');
  await service.messages(b);
  expect(await service.messages(a)).toMatchObject({ messages: [{ code: 2010 }], count: 1 });
  expect(await service.messages(a)).toMatchObject({ messages: [{ code: 2010 }], count: 1 });
  await service.messages(b);
  expect(reads).toEqual(['a 0', 'b 0', 'a 0', 'a 0']);
});

it('a job that has ended since the request found it cannot be cancelled', async () => {
  const { store } = createSystem();
  const found = await start(store, 'a');
  await end(store);
  const next = await start(store, 'b');
  await expect(
    store.update((transaction) =>
      requestCancel(transaction, found, undefined, { by: 'ann', stops: false }, 3000),
    ),
  ).rejects.toThrow('The job a cannot be cancelled: it has ended.');
  expect(store.read(newestJob)).toBe(next);
});
