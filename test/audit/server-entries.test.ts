// Entries of sign-ins and of what the server does itself; entries while the database is unavailable; retention; log
// lines.
import { beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/lib/errors.ts';
import { startHooks } from '../kit/hooks.ts';
import { type Server, password, startServer } from '../kit/server.ts';
import { entriesOf, newEntries } from './kit.ts';

const generateToken = '/tokens/generateToken';
const dayMs = 86_400_000;

let server: Server;
const admin = { authorization: 'Bearer token-of-the-administrator' };

beforeEach(async () => {
  server = await startServer();
});

type LogLine = {
  level: number;
  msg: string;
  auditEntry?: string;
  entry?: { id: string };
  address?: string;
  status?: number;
};
const logLines = () => server.logLines.map((line) => JSON.parse(line) as LogLine);

describe('a sign-in', () => {
  it('names the user if it succeeds', async () => {
    const entries = await newEntries(server, () =>
      server.post(generateToken, { username: 'MEMBER', password }),
    );
    expect(entries).toMatchObject([
      { user: 'member', role: 'member', operation: 'tokens/generateToken', outcome: 'success', changes: [] },
    ]);
  });

  it('names the user if it fails, only if there is such a user', async () => {
    const entries = await newEntries(server, async () => {
      await server.post(generateToken, { username: 'member', password: 'a wrong one' });
      await server.post(generateToken, { username: 'my password', password: 'a wrong one' });
      await server.post(generateToken, { username: 'another name', password: 'a wrong one' });
    });
    expect(entries).toMatchObject([
      { user: null, role: null, outcome: 'refused', code: 400, count: 2 },
      { user: 'member', role: null, outcome: 'refused', code: 400, count: 1 },
    ]);
    expect(JSON.stringify(entries)).not.toContain('my password');
  });

  it('is recorded if it is refused after too many attempts', async () => {
    const entries = await newEntries(server, async () => {
      for (let attempt = 0; attempt < 12; attempt += 1)
        await server.post(generateToken, { username: 'member', password: 'a wrong one' });
    });
    expect(entries).toMatchObject([
      { user: 'member', code: 429, count: 2 },
      { user: 'member', code: 400, count: 10 },
    ]);
  });

  it('is not recorded if a field is not acceptable', async () => {
    const entries = await newEntries(server, async () => {
      await server.post(generateToken, { username: 'member' });
      await server.post(generateToken, { username: 'member', password, client: 'referer' });
    });
    expect(entries).toEqual([]);
  });
});

it('a sign-out names the user; the end of an unknown token is not recorded', async () => {
  const { token } = (await server.post(generateToken, { username: 'member', password })).json<{
    token: string;
  }>();
  const entries = await newEntries(server, async () => {
    await server.post('/tokens/revokeToken', { token });
    await server.post('/tokens/revokeToken', { token });
    await server.post('/tokens/revokeToken', { token: 'nothing' });
  });
  expect(entries).toMatchObject([
    { user: 'member', role: 'member', operation: 'tokens/revokeToken', outcome: 'success' },
  ]);
});

it('the deactivation of a webhook for its failures is an entry of the server', async () => {
  const hooks = await startHooks();
  await hooks.act('settings', { notificationAttempts: '1', numberOfFailures: '1' });
  const { id } = await hooks.register({ name: 'Broken' });
  hooks.answerWith(500);
  const entries = await newEntries(hooks, async () => {
    await hooks.publish();
    await hooks.runtime.advance(60_000);
  });
  expect(entries).toEqual([
    {
      id: expect.any(String) as string,
      at: expect.any(Number) as number,
      user: null,
      role: null,
      key: null,
      address: null,
      operation: 'services/webhooks/{webhook}/deactivate',
      target: `services/webhooks/${id}`,
      outcome: 'success',
      code: null,
      count: 1,
      changes: [
        { field: 'active', before: true, after: false },
        { field: 'deactivatedBy', before: null, after: 'failures' },
      ],
    },
  ]);
});

it('the end of a job is an entry of the server', async () => {
  const fields = { versionManifest: '{"id":"pat_17022022_1250"}' };
  const started = await newEntries(server, () =>
    server.post('/admin/system/upgrades/upgrade', fields, admin),
  );
  const ended = await newEntries(server, () => server.runtime.advance(3_600_000));
  expect(started).toMatchObject([
    {
      user: 'administrator',
      operation: 'system/upgrades/upgrade',
      changes: [
        { field: 'operation', before: null, after: 'upgrade' },
        { field: 'from', before: null, after: '10.9.1.1234' },
        { field: 'to', before: null, after: '10.9.1.1250' },
        { field: 'state', before: null, after: 'in_progress' },
      ],
    },
  ]);
  expect(ended).toMatchObject([
    {
      user: null,
      operation: 'system/jobs/{job}/end',
      target: started[0]?.target,
      outcome: 'success',
      changes: [
        { field: 'installedVersion', before: '10.9.1.1234', after: '10.9.1.1250' },
        { field: 'state', before: 'in_progress', after: 'success' },
      ],
    },
  ]);
});

it('the end of a failed job is a failure', async () => {
  const own = await startServer({ env: { SIMULATED_FAILURES: 'gateway_proxy:1' } });
  const fields = { token: own.token('administrator'), versionManifest: '{"id":"pat_17022022_1250"}' };
  await own.post('/admin/system/upgrades/upgrade', fields);
  await own.runtime.advance(3_600_000);
  expect((await entriesOf(own))[0]).toMatchObject({ operation: 'system/jobs/{job}/end', outcome: 'failed' });
});

it('a target that is not found is not named: it may be anything, even a token', async () => {
  const entries = await newEntries(server, () =>
    server.post('/admin/services/webhooks/some-secret-text/delete', {}, admin),
  );
  expect(entries).toMatchObject([{ code: 404, target: null }]);
  expect(JSON.stringify(entries)).not.toContain('some-secret-text');
});

it('while the database is unavailable, entries are in the log only', async () => {
  const { audit, update } = server.store;
  const { add, count } = audit;
  const fail = () => Promise.reject(new ServiceError('unavailable', 'unavailable'));
  Object.assign(audit, { add: fail, count: fail });
  const create = (fields: Record<string, string>) =>
    server.post('/admin/services/createFolder', fields, admin);
  const before = logLines().length;
  expect((await create({})).statusCode).toBe(400);
  server.store.update = fail;
  expect((await create({ folderName: 'New' })).statusCode).toBe(503);
  server.store.update = update;
  Object.assign(audit, { add, count });
  await server.runtime.advance(60_000);
  expect(await entriesOf(server)).toEqual([]);
  const lines = logLines().slice(before);
  const lost = lines.filter(({ msg }) => msg === 'an entry of the audit trail could not be stored');
  expect(lost).toMatchObject([
    { level: 40, entry: { operation: 'services/createFolder', outcome: 'refused', code: 400 } },
    { level: 40, entry: { operation: 'services/createFolder', outcome: 'failed', code: 503 } },
  ]);
  // The store logs an outage once. A stack for each request would hide that line.
  expect(lost.filter((line) => 'err' in line)).toEqual([]);
  const requests = lines.filter(({ msg }) => msg === 'request');
  expect(requests.map(({ auditEntry }) => auditEntry)).toEqual(lost.map(({ entry }) => entry?.id));
});

it('entries older than AUDIT_DAYS are removed', async () => {
  const own = await startServer({ env: { AUDIT_DAYS: '2' } });
  const fields = { token: own.token('administrator'), folderName: 'New' };
  await own.post('/admin/services/createFolder', fields);
  await own.runtime.advance(2 * dayMs - 600_000);
  expect(await entriesOf(own)).toHaveLength(1);
  await own.runtime.advance(1_200_000);
  expect(await entriesOf(own)).toHaveLength(0);
});

describe('the log', () => {
  const requests = () => logLines().filter(({ msg }) => msg === 'request');

  it('names the entry in the line of a refused request, as a warning', async () => {
    const [entry] = await newEntries(server, () => server.post('/admin/services/createFolder', {}, admin));
    expect(requests().at(-1)).toMatchObject({
      level: 40,
      status: 400,
      address: '127.0.0.1',
      auditEntry: entry?.id,
    });
    await server.post('/admin/services/createFolder', {}, admin);
    expect(requests().at(-1)?.auditEntry).toBe(entry?.id);
  });

  it('names the entry in every line of a failed request', async () => {
    const { update } = server.store;
    server.store.update = () => Promise.reject(new Error('broken'));
    const [entry] = await newEntries(server, () =>
      server.post('/admin/services/createFolder', { folderName: 'New' }, admin),
    );
    server.store.update = update;
    expect(entry).toMatchObject({ user: 'administrator', outcome: 'failed', code: 500 });
    expect(logLines().filter(({ auditEntry: id }) => id === entry?.id)).toMatchObject([
      { level: 50, msg: 'request failed' },
      { level: 40, msg: 'request', status: 500 },
    ]);
  });

  it('reports as a warning also a refusal without a known caller', async () => {
    await server.get('/admin/services', { authorization: 'Bearer unknown' });
    expect(requests().at(-1)).toMatchObject({ level: 40, status: 401, address: '127.0.0.1' });
    expect(requests().at(-1)).not.toHaveProperty('auditEntry');
  });

  it('reports other requests as information', async () => {
    await server.get('/admin/services', admin);
    await server.get('/admin/nothing', admin);
    await server.get('/admin/services');
    await server.soap('<nonsense/>');
    expect(requests().slice(-4)).toMatchObject([
      { level: 30, status: 200 },
      { level: 30, status: 404 },
      { level: 30, status: 401, address: '127.0.0.1' },
      { level: 30, status: 500 },
    ]);
  });
});
