// Earlier jobs: their pages, how long their messages are kept, and how a failed one still counts after
// cancelled ones.
import { describe, expect, it } from 'vitest';
import {
  type Failure,
  type Status,
  admin,
  codesOf,
  eleven,
  patch1,
  patch2,
  upgrades,
  useJobs,
} from './jobs-kit.ts';
import { formOf } from './page-kit.ts';

const { server, start, upgrade, release, get, finish } = useJobs();

type Entry = { id: string; state: string };
type Page = { jobs: Entry[]; total: number };

const jobsPath = '/admin/system/jobs';
const fresh = 'rel_10092021_1234';

const post = (path: string, fields: Record<string, string> = {}) =>
  server.post(path, { token: admin, ...fields });
const rollback = (id: string) => post(`${upgrades}/rollback`, { versionManifest: JSON.stringify({ id }) });
const show = async (path: string) =>
  (await server.get(path, { accept: 'text/html', cookie: `steward_session=${admin}` })).body;

async function begin(request: ReturnType<typeof upgrade>): Promise<string> {
  const response = await request;
  expect(response.statusCode, response.body).toBe(200);
  return response.json<Status>().jobId;
}

/** Runs a job to its end and returns its id. */
async function run(request: ReturnType<typeof upgrade>, expected: string): Promise<string> {
  const id = await begin(request);
  const { jobId, status } = await finish();
  expect([jobId, status.state]).toEqual([id, expected]);
  return id;
}

/** Starts a job and cancels it before its plan is executed. */
async function cancelled(request: ReturnType<typeof upgrade>): Promise<string> {
  const id = await begin(request);
  await post(`${jobsPath}/${id}/cancel`);
  expect((await finish()).status.state).toBe('cancelled');
  return id;
}

/** Returns the ids, newest first. */
async function cancelJobs(count: number, target = patch1): Promise<string[]> {
  const ids: string[] = [];
  for (let job = 0; job < count; job += 1) ids.unshift(await cancelled(upgrade(target)));
  return ids;
}

describe('the lists of jobs', () => {
  it.each([
    [jobsPath, 'jobs'],
    [`${upgrades}/history`, 'history'],
  ] as const)('%s returns one page and the total, newest first', async (path, name) => {
    await start();
    expect(await get(path)).toEqual({ [name]: [], total: 0 });
    const ids = await cancelJobs(5);
    const idsOf = async (query: string) => {
      const { [name]: jobs, total } = await get<{ jobs: Entry[]; history: Entry[]; total: number }>(
        `${path}?${query}`,
      );
      expect(total).toBe(5);
      return jobs.map(({ id }) => id);
    };
    expect(await idsOf('')).toEqual(ids);
    expect(await idsOf('num=1')).toEqual(ids.slice(0, 1));
    expect(await idsOf('num=2')).toEqual(ids.slice(0, 2));
    expect(await idsOf('start=1&num=2')).toEqual(ids.slice(1, 3));
    expect(await idsOf('start=3&num=100')).toEqual(ids.slice(3));
    expect(await idsOf('start=5')).toEqual([]);
    for (const query of ['num=0', 'num=101', 'start=-1', 'start=x'])
      expect((await server.get(`${path}?${query}&token=${admin}`)).statusCode, query).toBe(400);
    const entry = await get<Entry>(`${path}/${ids[4] ?? ''}`);
    expect(entry).toMatchObject(name === 'jobs' ? { jobId: ids[4] } : { id: ids[4], state: 'cancelled' });
    expect((await server.get(`${path}/unknown?token=${admin}`)).statusCode).toBe(404);
  });
});

describe('an earlier job', () => {
  it('keeps its status and its messages, and can be neither cancelled nor resumed', async () => {
    await start();
    const installing = await run(upgrade(patch1), 'success');
    const before = await get<Status>(`${jobsPath}/${installing}`);
    const [, id = ''] = await cancelJobs(2, patch2);
    const after = await get<Status>(`${jobsPath}/${installing}`);
    expect(after).toEqual(before);
    expect(after.messageCount).toBe(after.status.messages.length);
    expect(codesOf(after).at(-1)).toBe(2012);
    const current = await get<{ id: string; messages: unknown[] }>(`${upgrades}/currentVersion`);
    expect(current).toMatchObject({ id: patch1, messages: before.status.messages });
    expect(await show(upgrades)).toMatch(/<dt>Since<\/dt>\s*<dd><time/);
    for (const operation of ['cancel', 'resume']) {
      const refused = await post(`${jobsPath}/${id}/${operation}`);
      expect(refused.statusCode).toBe(409);
      expect(refused.json<Failure>().error.message).toMatch(
        new RegExp(`^The job ${id} cannot be ${operation}(led|d): it is cancelled\\.$`),
      );
    }
  });

  it('cannot be resumed after it has failed', async () => {
    await start({ SIMULATED_FAILURES: 'gateway_proxy:1' });
    const failed = await run(upgrade(patch1), 'failed');
    await cancelJobs(1);
    const refused = await post(`${jobsPath}/${failed}/resume`);
    expect(refused.statusCode).toBe(409);
    expect(refused.json<Failure>().error.message).toBe(
      `The job ${failed} cannot be resumed: it is not the newest.`,
    );
    expect(formOf(await show(`${jobsPath}/${failed}`), '/resume')).toBeUndefined();
  });

  it('loses its messages when it is neither the newest one nor one of JOB_HISTORY before it', async () => {
    await start({ JOB_HISTORY: '2' });
    const installing = await run(upgrade(patch1), 'success');
    const [newest = '', second = '', third = '', fourth = ''] = await cancelJobs(4, patch2);
    const read = (id = installing) => get<Status>(`${jobsPath}/${id}`);
    // PostgreSQL removes them in the background.
    await expect.poll(async () => (await read()).messageCount).toBe(0);
    await expect.poll(async () => (await read(fourth)).messageCount).toBe(0);
    expect(await read()).toMatchObject({
      status: { state: 'success', code: 3, messages: [] },
      jobId: installing,
      progress: { done: 4, total: 4, percent: 100 },
    });
    expect(await get(`${upgrades}/history/${installing}`)).toMatchObject({
      id: installing,
      state: 'success',
      messages: [],
    });
    expect(await get(`${upgrades}/currentVersion`)).toMatchObject({ id: patch1, messages: [] });
    const page = await show(`${jobsPath}/${installing}`);
    expect(page).toContain('<span class="state good">Succeeded</span>');
    expect(page).toMatch(/The messages of this job were removed[\s\S]*<code>JOB_HISTORY<\/code>/);
    expect(page).not.toContain('class="messages"');
    for (const id of [newest, second, third]) {
      expect((await read(id)).messageCount).toBeGreaterThan(0);
      expect(await show(`${jobsPath}/${id}`)).not.toContain('JOB_HISTORY</code>');
    }
    expect((await get<Page>(jobsPath)).total).toBe(5);
  });
});

describe('a failed release', () => {
  const refusal = async (request: ReturnType<typeof upgrade>) => {
    const response = await request;
    expect(response.statusCode).toBe(409);
    return response.json<Failure>().error.message;
  };

  it('blocks other jobs after any number of cancelled jobs and a restart, until it is repeated', async () => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    await run(upgrade(patch1), 'success');
    const failed = await run(release(), 'failed');
    const newest = `The job ${failed} to 11.0.0.2632 has failed: resume it, or upgrade to ${eleven} again.`;
    expect(await refusal(upgrade(patch2))).toBe(newest);
    await cancelled(release());
    const earlier = `The job ${failed} to 11.0.0.2632 has failed: upgrade to ${eleven} again.`;
    expect(await refusal(upgrade(patch2))).toBe(earlier);
    await cancelled(release());
    expect(await refusal(rollback(fresh))).toBe(earlier);
    expect(await show(upgrades)).toContain(
      'The job to 11.0.0.2632 has failed. Upgrade to that version again.',
    );
    await server.close();
    await start({}, { store: await server.store.reopen() });
    expect(await refusal(upgrade(patch2))).toBe(earlier);
    await run(release(), 'success');
    expect(await get('/admin')).toMatchObject({ fullVersion: '11.0.0.2632' });
    // It no longer counts, whatever is cancelled later.
    await cancelled(upgrade('pat_22092022_2650'));
    await begin(upgrade('pat_22092022_2650'));
  });
});
