// Reset, snapshots and the seed: the state returns exactly, and equal requests get equal answers.
import { beforeEach, describe, expect, it } from 'vitest';
import { password } from '../kit/server.ts';
import { version } from '../kit/steward.ts';
import { createWebhook, startControl, startReceiver } from './kit.ts';

const server = await startControl({ SEED: 'state' });
const receiver = await startReceiver();
const { control, act, get, send, post } = server;
beforeEach(() => control.reset());

describe('reset', () => {
  it('returns to the state after the start, and keeps the password and the token of the first administrator', async () => {
    const start = await control.snapshot();
    await control.setClock({ frozen: true });
    await act('/admin/services/createFolder', { folderName: 'Later' });
    await createWebhook(server, receiver.url);
    await act('/tokens/generateToken', { username: 'admin', password });
    await control.addFailure({ match: { route: '/admin/mode' }, respond: { status: 500 } });
    await control.reset();
    expect(await control.snapshot()).toBe(start);
    expect((await send('/admin/services/Later')).status).toBe(404);
    await act('/tokens/generateToken', { username: 'admin', password });
  });

  it('ends a job and answers requests that wait for it', async () => {
    await control.setClock({ frozen: true });
    await act('/admin/system/upgrades/upgrade', { versionManifest: '{"id":"pat_28042022_1260"}' });
    const waiting = get<{ status: { state: string } }>('/admin/system/upgrades?after=999&wait=60');
    await expect
      .poll(async () => (await control.requests({ route: '/admin/system/upgrades' })).total)
      .toBe(1);
    await control.reset();
    expect((await waiting).status.state).toBe('in_progress');
    expect(await get('/admin/system/jobs')).toEqual({ jobs: [], total: 0 });
  });

  it('answers requests that arrive meanwhile from the new state', async () => {
    await act('/admin/services/createFolder', { folderName: 'Later' });
    const resetting = control.reset();
    const responses = await Promise.all(Array.from({ length: 5 }, () => get<object>('/admin/mode')));
    await resetting;
    expect(responses).toHaveLength(5);
    expect((await send('/admin/services/Later')).status).toBe(404);
  });
});

describe('a snapshot', () => {
  it('restores everything, in the middle of a job too', async () => {
    await control.setClock({ frozen: true });
    receiver.status = 500;
    await createWebhook(server, receiver.url);
    await act('/admin/services/createFolder', { folderName: 'Later' });
    await send('/admin/uploads/upload', {
      method: 'POST',
      body: (() => {
        const form = new FormData();
        form.set('itemFile', new Blob(['content']), 'file.txt');
        return form;
      })(),
    });
    await act('/admin/system/upgrades/upgrade', { versionManifest: '{"id":"pat_28042022_1260"}' });
    // Between two steps: a step that is interrupted starts again.
    await control.advanceClock(5 * 95);
    const rule = await control.addFailure({
      match: { step: 'final-check' },
      respond: { error: 'unavailable' },
      times: 3,
    });
    const snapshot = await control.snapshot();
    const finish = async () => {
      await control.advanceClock(60_000);
      return [
        await (await send('/admin/system/upgrades')).text(),
        await (await send('/admin/services/webhooks')).text(),
        await (await send('/admin/services/webhooks/history')).text(),
        await (await send('/admin/uploads')).text(),
        await (await send('/admin/system/audit')).text(),
      ];
    };
    const first = await finish();
    await control.restore(snapshot);
    expect(await control.snapshot()).toBe(snapshot);
    expect(await control.failures()).toEqual([rule]);
    expect(await finish()).toEqual(first);
    expect(first[0]).toContain('was made to fail by test control (unavailable)');
  });

  it('restores the numbers of rules, failed sign-ins and sessions', async () => {
    await control.setClock({ frozen: true });
    const rule = { match: { route: '/admin/mode' }, respond: { status: 500 } };
    await control.addFailure(rule);
    await control.removeFailures();
    const signIn = (given: string) => post('/tokens/generateToken', { username: 'admin', password: given });
    const { token } = (await (await signIn(password)).json()) as { token: string };
    for (let attempt = 0; attempt < 10; attempt += 1) await signIn('a wrong password');
    const snapshot = await control.snapshot();
    await control.reset();
    await control.restore(snapshot);
    expect((await control.addFailure(rule)).id).toBe('2');
    expect((await signIn(password)).status).toBe(429);
    const session = { headers: { authorization: `Bearer ${token}` } };
    expect((await send('/admin/security/self', session)).status).toBe(200);
  });

  it('restores keys, and contains only their hashes', async () => {
    const { key } = await act<{ key: string }>('/admin/security/self/keys/create', { name: 'nightly' });
    const program = { headers: { authorization: `Bearer ${key}` } };
    const snapshot = await control.snapshot();
    expect(snapshot).toContain('nightly');
    expect(snapshot).not.toContain(key.slice(4));
    await control.reset();
    expect((await send('/admin', program)).status).toBe(401);
    await control.restore(snapshot);
    expect((await send('/admin', program)).status).toBe(200);
    expect(JSON.stringify(await control.requests())).not.toContain(key.slice(4));
  });

  it('restores a redelivery that waits for room, and the deliveries in progress', async () => {
    const small = await startControl({ WEBHOOK_MAX_PENDING: '3', SEED: 'redelivery' });
    const read = async (path: string) => (await small.send(`/admin/services/webhooks${path}`)).text();
    const change = (path: string, fields = {}) => small.act(`/admin/services/webhooks${path}`, fields);
    await small.control.setClock({ frozen: true });
    await change('/settings', { notificationAttempts: '1', numberOfFailures: '100' });
    const { id } = await small.act<{ id: string }>('/admin/services/webhooks/create', {
      name: 'hook',
      hookUrl: `${receiver.url}/in`,
      changeTypes: '*',
      headers: '{"x-key":"a value"}',
    });
    receiver.status = 500;
    for (let event = 0; event < 8; event += 1) {
      if (event === 5) await change(`/${id}/deactivate`);
      await change('/publish', { changeType: 'Tested' });
      await small.control.advanceClock(1000);
    }
    await change(`/${id}/activate`);
    // The receiver does not answer, so only three new deliveries have room.
    receiver.status = 0;
    receiver.arrivals.length = 0;
    await change(`/${id}/redeliver`);
    await expect.poll(() => receiver.arrivals.length).toBe(3);
    const snapshot = await small.control.snapshot();
    receiver.status = 204;
    /** Restores and lets a minute pass. Returns the number of requests that the receiver got, and the deliveries. */
    const finish = async () => {
      receiver.arrivals.length = 0;
      await small.control.restore(snapshot);
      await small.control.advanceClock(60_000);
      return [receiver.arrivals.length, await read(''), await read(`/${id}/deliveries`)];
    };
    const first = await finish();
    expect(first).toEqual([8, expect.any(String), expect.stringContaining('"total":16')]);
    expect(first[2]).not.toMatch(/"state":"pending"/);
    expect(await finish()).toEqual(first);
  });

  it('works in another process, with the token of that process', async () => {
    await act('/admin/services/createFolder', { folderName: 'Carried' });
    const other = await startControl();
    await other.control.restore(await control.snapshot());
    expect((await other.send('/admin/services/Carried')).status).toBe(200);
  });

  it.each([
    ['[]', 'The body must be a snapshot that GET /control/snapshot returned.'],
    ['{"format":2}', 'format: must be 1.'],
    ['{"format":1,"version":"9.9.9"}', `version: must be ${version}, the version of this server.`],
    [`{"format":1,"version":"${version}","digest":"","state":{}}`, 'digest: must match the state'],
    ['{', 'The body must be JSON.'],
  ])('is refused if it is %s', async (body, problem) => {
    await expect(control.restore(body)).rejects.toThrow(problem);
  });
});
