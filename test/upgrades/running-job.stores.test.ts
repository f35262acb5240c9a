// Requests while an upgrade job runs: read-only mode, waiting for messages, and uploads. test/auth/access.test.ts has what
// is refused.
import { describe, expect, it } from 'vitest';
import { hashToken, tokens } from '../../src/auth/token.ts';
import { type Status, admin, codesOf, eleven, license, patch1, upgrades, useJobs } from './jobs-kit.ts';

const { server, start, upgrade, get, status, finish } = useJobs();

describe('while a job runs', () => {
  it('read-only mode cannot be turned off, and the job is listed', async () => {
    await start();
    await upgrade(patch1);
    expect((await server.post('/admin/mode/update', { token: admin, isReadOnly: 'false' })).statusCode).toBe(
      409,
    );
    expect((await server.post('/admin/mode/update', { token: admin, isReadOnly: 'true' })).statusCode).toBe(
      200,
    );
    const { jobs } = await get<{ jobs: { id: string; state: string }[] }>('/admin/system/jobs');
    expect(jobs).toMatchObject([{ state: 'in_progress' }]);
    expect(await get(`/admin/system/jobs/${jobs[0]?.id ?? ''}`)).toMatchObject({
      status: { state: 'in_progress' },
    });
    await finish();
    expect(await get('/admin/mode')).toMatchObject({ isReadOnly: true, reason: 'administrator' });
  });

  it('one of many simultaneous upgrades is accepted', async () => {
    await start();
    const answers = await Promise.all(Array.from({ length: 50 }, () => upgrade(patch1)));
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    expect(answers.filter(({ statusCode }) => statusCode === 409)).toHaveLength(49);
  });

  it('a waiting request is answered when a message arrives', async () => {
    await start();
    await upgrade(patch1);
    const { jobId } = await status();
    const waiting = get<Status>(`${upgrades}?after=1&wait=60`);
    await new Promise(setImmediate);
    await server.runtime.advance(1000);
    expect(codesOf(await waiting)).toEqual([2168]);
    const timedOut = get<Status>(`${upgrades}?after=1000&wait=3`);
    await new Promise(setImmediate);
    await server.runtime.advance(3000);
    expect((await timedOut).status.messages).toEqual([]);
    expect((await get<Status>(`${upgrades}?after=1000&wait=60&jobId=another`)).jobId).toBe(jobId);
    await finish();
    expect((await get<Status>(`${upgrades}?after=1000&wait=60`)).status.state).toBe('success');
  });

  it('a waiting request is answered with the present status when the server closes', async () => {
    await start();
    await upgrade(patch1);
    const waiting = get<Status>(`${upgrades}?after=1000&wait=60`);
    await new Promise(setImmediate);
    await server.close();
    expect((await waiting).status).toMatchObject({ state: 'in_progress', messages: [] });
  });

  it('a waiting request is refused if its token ends meanwhile', async () => {
    await start();
    await upgrade(patch1);
    const waiting = server.get(`${upgrades}?after=1000&wait=3&token=${admin}`);
    await new Promise(setImmediate);
    await server.store.update((transaction) => transaction.remove(tokens, hashToken(admin)));
    await server.runtime.advance(3000);
    expect((await waiting).statusCode).toBe(401);
  });

  it('an upload that the job uses cannot be deleted', async () => {
    await start();
    const { item } = (await server.postParts('/admin/uploads/upload', { itemFile: license }, admin)).json<{
      item: { itemID: string };
    }>();
    const upgradeSettings = JSON.stringify({ userInputs: [{ id: 'licenseUpload', value: item.itemID }] });
    await upgrade(eleven, { upgradeSettings });
    expect((await server.post(`/admin/uploads/${item.itemID}/delete`, { token: admin })).statusCode).toBe(
      503,
    );
    await finish();
    expect((await server.post(`/admin/uploads/${item.itemID}/delete`, { token: admin })).statusCode).toBe(
      200,
    );
  });
});
