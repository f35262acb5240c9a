// Services as JSON objects of other programs: what is kept of them, starting and stopping, and looking for one.
import { describe, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { namespace, startServer } from '../kit/server.ts';

const server = perTest(startServer);

const asAdmin = { authorization: 'Bearer token-of-the-administrator' };
const roads = '/admin/services/Maps/Roads.MapServer';

type Answer = Record<string, unknown> & { error?: { details: string[] } };

const post = async (path: string, fields: Record<string, string> = {}) =>
  (await server.post(path, fields, asAdmin)).json<Answer>();
const read = async (path: string) => (await server.get(path, asAdmin)).json<Answer>();
const newestEntry = async () =>
  ((await read('/admin/system/audit?num=1')).entries as { operation: string; changes: object[] }[])[0];

describe('service and serviceJson', () => {
  const object = {
    serviceName: 'Depths',
    type: 'FeatureServer',
    description: 'Depths of the harbour.',
    provider: 'CUSTOM',
    properties: { maxRecordCount: '2000', nested: [1, null, { deep: true }] },
  };

  it.each(['service', 'serviceJson'])('%s creates a service and keeps its other members', async (name) => {
    const given = { [name]: JSON.stringify(object), description: 'This one wins.' };
    expect(await post('/admin/services/Maps/createService', given)).toEqual({ status: 'success' });
    expect(await read('/admin/services/Maps/Depths.FeatureServer')).toMatchObject({
      ...object,
      folderName: 'Maps',
      description: 'This one wins.',
      access: 'public',
    });
  });

  it('are kept in one field of the audit trail, and count in the size of the catalog', async () => {
    await post('/admin/services/createService', { service: JSON.stringify(object) });
    const { provider, properties } = object;
    const kept = { field: 'service', before: null, after: JSON.stringify({ provider, properties }) };
    expect((await newestEntry())?.changes).toContainEqual(kept);
    const small = await startServer({ env: { MAX_SERVICES: '13' } });
    const large = { ...object, properties: 'x'.repeat(10_000) };
    const answer = await small.post(
      '/admin/services/createService',
      { service: JSON.stringify(large) },
      asAdmin,
    );
    expect(answer.statusCode).toBe(409);
  });

  it('an edit may send back everything that it has read, and replaces what is kept', async () => {
    const before = await read(roads);
    expect(before.recycleStartTime).toBe('00:00');
    expect(await post(`${roads}/edit`, { service: JSON.stringify(before) })).toEqual({ status: 'success' });
    expect(await read(roads)).toEqual(before);
    expect((await newestEntry())?.changes).toEqual([]);
    await server.runtime.advance(1000);
    const changed = { ...before, recycleStartTime: '03:00', description: null };
    await post(`${roads}/edit`, { service: JSON.stringify(changed) });
    expect(await read(roads)).toEqual({
      ...changed,
      description: '',
      updatedAt: server.runtime.now(),
    });
    await post(`${roads}/edit`, { service: '{"other":1}' });
    const after = await read(roads);
    expect(after).toMatchObject({ other: 1, description: '' });
    expect(after).not.toHaveProperty('recycleStartTime');
  });

  it.each([
    ['service', '[]', 'service: must be a JSON object.'],
    ['service', '{"access":1}', 'service: the values of access must be texts.'],
    ['service', '{"access":"me"}', 'access: must be one of public, organization, administrators.'],
    ['service', `{"a":"${'x'.repeat(65_536)}"}`, 'service: must be at most 65536 bytes.'],
    ['service', '{"serviceName":"Other"}', 'service.serviceName: must be Roads, or absent.'],
    ['serviceJson', '{"folderName":"/"}', 'service.folderName: must be Maps, or absent.'],
  ])('%s=%.40s is refused in an edit', async (name, value, problem) => {
    expect((await post(`${roads}/edit`, { [name]: value })).error?.details).toEqual([problem]);
  });

  it('of two objects, the one without effect is named', async () => {
    const answer = await post(`${roads}/edit`, { service: '{"a":1}', serviceJson: '{"b":1}', async: 'true' });
    expect(answer).toEqual({ status: 'success', ignored: ['async', 'serviceJson'] });
  });

  it('a folder in the path and another one in the object contradict each other', async () => {
    const service = JSON.stringify({ ...object, folderName: 'Tools' });
    expect((await post('/admin/services/Maps/createService', { service })).error?.details).toEqual([
      'folderName: must be Maps here, or absent.',
    ]);
  });
});

describe('start and stop', () => {
  const namesIn = async () => {
    const call = `<GetServiceDescriptionsEx xmlns="${namespace}"><FolderName>Maps</FolderName></GetServiceDescriptionsEx>`;
    const inSoap = (await server.soap(call)).body.includes('<Name>Maps/Roads</Name>');
    const inRest = (await server.get('/rest/services/Maps')).body.includes('Maps/Roads');
    const inAdmin = (await server.get('/admin/services/Maps', asAdmin)).body.includes('"Roads"');
    return { inSoap, inRest, inAdmin };
  };

  it('are repeatable, and a stopped service is in no catalog for clients', async () => {
    const started = { configuredState: 'STARTED', realTimeState: 'STARTED' };
    const stopped = { configuredState: 'STOPPED', realTimeState: 'STOPPED' };
    expect(await read(`${roads}/status`)).toEqual(started);
    for (const async of ['false', '']) {
      expect(await post(`${roads}/stop`, { async })).toEqual({ status: 'success' });
      expect(await read(`${roads}/status`)).toEqual(stopped);
    }
    expect((await newestEntry())?.changes).toEqual([]);
    expect(await namesIn()).toEqual({ inSoap: false, inRest: false, inAdmin: true });
    await post(`${roads}/start`);
    expect((await newestEntry())?.changes).toEqual([
      { field: 'configuredState', before: 'STOPPED', after: 'STARTED' },
    ]);
    expect(await namesIn()).toEqual({ inSoap: true, inRest: true, inAdmin: true });
  });

  it('follow configuredState of the object, which always shows the present state', async () => {
    await post(`${roads}/edit`, { service: '{"configuredState":"STOPPED"}' });
    expect(await read(`${roads}/status`)).toMatchObject({ realTimeState: 'STOPPED' });
    await post(`${roads}/start`);
    expect(await read(roads)).toMatchObject({ configuredState: 'STARTED' });
  });

  it('lead readers of their status to their page', async () => {
    const shown = await server.get(`${roads}/status?f=html`, asAdmin);
    expect(shown).toMatchObject({ statusCode: 303, headers: { location: roads } });
  });

  it('answer the address of a job, which is there for an hour', async () => {
    const { jobsUrl } = await post(`${roads}/start`, { async: 'true' });
    const path = String(jobsUrl).replace('http://localhost:8080', '');
    expect(path).toMatch(/^\/admin\/jobs\/[^?]+$/);
    const job = { status: 'COMPLETED', operation: 'start', resource: { name: 'Maps/Roads.MapServer' } };
    expect(await read(path)).toMatchObject(job);
    expect(await read('/admin/jobs')).toEqual({ resources: [] });
    await server.runtime.advance(3_600_000);
    const madeUp = Buffer.from('{"at":1e99,"operation":"start","path":""}').toString('base64url');
    for (const missing of [path, `${path}x`, '/admin/jobs/made-up', `/admin/jobs/${madeUp}`])
      expect((await server.get(missing, asAdmin)).statusCode, missing).toBe(404);
  });
});

it.each([
  [{ folderName: 'Maps' }, true],
  [{ folderName: 'None' }, false],
  [{}, true],
  [{ folderName: '/', serviceName: 'World' }, true],
  [{ folderName: 'Maps', serviceName: 'Roads', type: 'MapServer' }, true],
  [{ folderName: 'Maps', serviceName: 'Roads', type: 'GPServer' }, false],
  [{ folderName: 'Maps', type: 'GPServer' }, false],
  [{ folderName: 'Operations', serviceName: 'Diagnostics' }, false],
])('exists says for %j: %s', async (fields: Record<string, string>, exists) => {
  const token = server.token('member');
  expect((await server.post('/admin/services/exists', { ...fields, token })).json()).toEqual({ exists });
});

it.each([
  ['plain', 'Häfen & Kais', 200],
  ['family', 'Häfen & Kais', 400],
  ['family', 'Harbour_2', 200],
])('with PROFILE=%s a folder named %s gets %d', async (PROFILE, folderName, code) => {
  const strict = await startServer({ env: { PROFILE } });
  const answer = await strict.post('/admin/services/createFolder?f=json', { folderName }, asAdmin);
  expect(answer.json<{ error?: { code: number } }>().error?.code ?? answer.statusCode).toBe(code);
});
