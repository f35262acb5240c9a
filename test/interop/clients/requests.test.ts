// Public programs of this family, kind of request by kind of request, in the order in which each program sends them, with
// the carrier of the token that it uses and what it reads of the answer. kit.ts lists the kinds.
import { describe, expect, it } from 'vitest';
import { type Fields, type Json, journal, kinds, startFamily, user } from './kit.ts';

const admin = '/org/admin';
const tokens = '/org/sharing/rest/generateToken';
const f = { f: 'json' };
const roads = `${admin}/services/Maps/Roads.MapServer`;

type Token = { token: string; expires: number };
type Listed = { folders: string[]; services: { serviceName: string; type: string }[] };

const service = {
  serviceName: 'Depths',
  type: 'FeatureServer',
  capabilities: 'Query',
  provider: 'CUSTOMDATA',
  configuredState: 'STARTED',
  properties: { disableCaching: 'true' },
  jsonProperties: { layers: [] },
  extensions: [],
};

it('of 102 kinds of requests, 70 are answered', () => {
  expect(Object.values(kinds).flat()).toHaveLength(70);
});

describe.each(['family', 'plain'])('with PROFILE=%s', (PROFILE) => {
  it('A, a GitOps command line', async () => {
    const { ask, base } = await startFamily(PROFILE);
    const { answered, expectAll } = journal('A');
    const body = { ...user, client: 'referer', referer: 'referer', expiration: '60', ...f };
    const { token } = await ask<Token>('POST', tokens, { body });
    expect(token).not.toBe('');
    answered(1);
    const headers = { authorization: `Bearer ${token}` };
    await ask('GET', admin, { query: f, headers });
    answered(2);
    const { jobsUrl } = await ask<{ jobsUrl: string }>('POST', `${roads}/start`, {
      body: { async: 'true', ...f },
      headers,
    });
    expect(await ask('GET', jobsUrl.replace(base, ''), { query: f, headers })).toHaveProperty(
      'status',
      'COMPLETED',
    );
    answered(12);
    expectAll();
  });

  it('B, a service recycler', async () => {
    const { ask, base } = await startFamily(PROFILE);
    const { answered, expectAll } = journal('B');
    const body = { ...user, referer: 'referer', expiration: '60', ...f };
    const { token } = await ask<Token>('POST', tokens, { query: f, body });
    answered(1);
    const query = { f: 'pjson', token };
    const root = await ask<Listed>('GET', `${admin}/services`, { query });
    answered(2);
    const paths = root.services.map(({ serviceName, type }) => `${serviceName}.${type}`);
    for (const folder of root.folders) {
      const { services } = await ask<Listed>('GET', `${admin}/services/${folder}`, { query });
      paths.push(...services.map(({ serviceName, type }) => `${folder}/${serviceName}.${type}`));
    }
    answered(3);
    expect(paths).toHaveLength(12);
    for (const path of paths) {
      const at = `${admin}/services/${path}`;
      const known = await ask('GET', at, { query: { ...f, token } });
      expect(known.recycleStartTime).toMatch(/^\d\d:\d\d$/);
      const changed = { ...known, recycleStartTime: '01:00' };
      const edit = { query: { ...f, token }, body: { ...f, service: JSON.stringify(changed) } };
      expect(await ask('POST', `${at}/edit`, edit)).toEqual({ status: 'success' });
      expect(await ask('GET', at, { query: { ...f, token } })).toHaveProperty('recycleStartTime', '01:00');
      const status = await ask('GET', `${at}/status`, { query });
      expect(status).toEqual({ configuredState: 'STARTED', realTimeState: 'STARTED' });
      await ask('POST', `${at}/stop`, { body: { ...f, token } });
      const started = await ask<{ jobsUrl: string }>('POST', `${at}/start`, {
        body: { ...f, async: 'true', token },
      });
      expect(started.jobsUrl).not.toContain('?');
      const job = await ask(`GET`, `${started.jobsUrl.replace(base, '')}?f=json&token=${token}`);
      expect(job).toMatchObject({ status: 'COMPLETED', resource: { name: path } });
    }
    for (const kind of [4, 5, 6, 7, 8, 9]) answered(kind);
    expectAll();
  });

  it('C, a patch report', async () => {
    const { ask } = await startFamily(PROFILE);
    const { answered, expectAll } = journal('C');
    const { token } = await ask<Token>('POST', tokens, {
      body: { ...user, referer: 'https://gis.example.com', ...f },
    });
    answered(1);
    const path = `${admin}/system/upgrades/installed`;
    const { updates } = await ask<{ updates: Json[] }>('POST', path, { body: { ...f, token } });
    for (const column of ['name', 'type', 'version', 'build', 'previousVersion', 'released', 'url'])
      expect(updates[0]).toHaveProperty(column);
    answered(2);
    expectAll();
  });

  it('D, a publishing kit', async () => {
    const { ask } = await startFamily(PROFILE);
    const { answered, expectAll } = journal('D');
    const signIn = `${admin}/generateToken`;
    const { token } = await ask<Token>('POST', signIn, { query: f, body: { ...user, client: 'requestip' } });
    answered(1);
    const create = { service: JSON.stringify(service), token, ...f };
    expect(await ask('POST', `${admin}/services/createService`, { body: create })).toEqual({
      status: 'success',
    });
    answered(3);
    const start = `${admin}/services/Depths.FeatureServer/start`;
    expect(await ask('POST', start, { body: { token, ...f } })).toEqual({ status: 'success' });
    answered(4);
    const referer = 'https://gis.example.com';
    const bound = await ask<Token>('POST', signIn, { body: { ...user, client: 'referer', referer, ...f } });
    const query = { token: bound.token, ...f };
    await ask('GET', `${admin}/services`, { query, headers: { referer } });
    answered(5);
    const parts = { itemFile: new File(['{}'], 'provider.json') };
    const uploaded = await ask<{ item: { itemID: string } }>('POST', `${admin}/uploads/upload`, {
      query,
      parts,
      headers: { referer },
    });
    expect(uploaded.item.itemID).not.toBe('');
    answered(7);
    const second = { service: JSON.stringify({ ...service, serviceName: 'Tides' }) };
    const inQuery = { query, body: second, headers: { referer } };
    expect(await ask('POST', `${admin}/services/createService`, inQuery)).toEqual({ status: 'success' });
    answered(9);
    expectAll();
  });

  it('E, an upgrade client', async () => {
    const { ask, send, base } = await startFamily(PROFILE);
    const { answered, expectAll } = journal('E');
    let address = '';
    for (const path of ['/org/info', '/org/rest/info', '/org/sharing/rest/info']) {
      const { status, text } = await send('GET', path, { query: f });
      const known = status === 200 ? (JSON.parse(text) as { authInfo?: { tokenServicesUrl: string } }) : {};
      address ||= known.authInfo?.tokenServicesUrl ?? '';
    }
    expect(address).toBe(base + tokens);
    answered(1);
    const body = { ...user, client: 'referer', referer: 'http', expiration: '60', ...f };
    const { token, expires } = await ask<Token>('POST', tokens, { body });
    expect(expires).toBeTypeOf('number');
    answered(2);
    const headers = { 'X-Acme-Authorization': `Bearer ${token}`, referer: 'http' };
    const path = (name: string) => `${admin}/system/upgrades${name}`;
    const read = <T = Json>(name: string) => ask<T>('GET', path(name), { query: f, headers });
    const post = <T = Json>(name: string, fields: Fields = {}) =>
      ask<T>('POST', path(name), { body: { ...f, ...fields }, headers });
    const ended = async () => {
      type Status = { status: { state: string } };
      await expect.poll(async () => (await read<Status>('')).status.state).toBe('success');
    };
    await read('');
    answered(4);
    expect(await read('/currentVersion')).toHaveProperty('messages');
    answered(5);
    await read('/history');
    answered(6);
    expect(await read('/installed')).toHaveProperty('updates');
    answered(7);
    expect(await post('/checkRollback')).toHaveProperty('updates');
    answered(8);
    const available = await post<{ id: string; type: string }[]>('/available');
    answered(9);
    const [patch = { id: '', type: '' }] = available;
    for (const upgradeId of [patch.id, JSON.stringify({ id: patch.id })])
      expect(await post('/getUpgradeSettings', { upgradeId })).toHaveProperty('userInputs');
    answered(10);
    const installed = await read<{ updates: Json[] }>('/installed');
    await post('/upgrade', { versionManifest: patch.id, upgradeSettings: '{}' });
    await ended();
    answered(11);
    const back = { versionManifest: JSON.stringify(installed.updates[0]), rollbackSettings: '{}' };
    expect(await post('/rollback', back)).toMatchObject({ ignored: ['rollbackSettings'] });
    await ended();
    answered(12);
    const parts = {
      ...f,
      versionManifest: patch.id,
      upgradeSettings: '{}',
      licenseUpload: new File(['{}'], 'license.json'),
    };
    expect(await ask('POST', path('/upgrade'), { parts, headers })).toMatchObject({
      ignored: ['licenseUpload'],
    });
    await ended();
    answered(13);
    const manifestFile = new File([JSON.stringify(available.slice(1))], 'manifest.json');
    await ask('POST', path('/importManifest'), { parts: { ...f, manifestFile }, headers });
    answered(14);
    expectAll();
  });

  it('F, a service client', async () => {
    const { ask } = await startFamily(PROFILE);
    const { answered, expectAll } = journal('F');
    const { token } = await ask<Token>('POST', tokens, {
      body: { ...user, client: 'referer', referer: 'http', ...f },
    });
    const headers = { 'x-acme-authorization': `Bearer ${token}`, referer: 'http' };
    const read = <T = Json>(path: string) => ask<T>('GET', path, { query: f, headers });
    const post = (path: string, fields: Fields = {}) =>
      ask('POST', path, { body: { ...f, ...fields }, headers });
    expect(await read<Listed>(`${admin}/services`)).toHaveProperty('folders');
    answered(1);
    expect((await read<Listed>(`${admin}/services/Maps`)).services[0]).toHaveProperty('serviceName');
    answered(2);
    const known = await read(roads);
    answered(3);
    const changed = { ...known, description: 'Changed.', minInstances: 2 };
    expect(await post(`${roads}/edit`, { service: JSON.stringify(changed) })).toEqual({ status: 'success' });
    expect(await read(roads)).toMatchObject({ description: 'Changed.', minInstances: 2 });
    answered(4);
    expect(await read(`${roads}/status`)).toHaveProperty('realTimeState', 'STARTED');
    answered(5);
    await post(`${roads}/stop`);
    expect(await read(`${roads}/status`)).toHaveProperty('realTimeState', 'STOPPED');
    answered(6);
    await post(`${roads}/start`);
    expect(await read(`${roads}/status`)).toHaveProperty('realTimeState', 'STARTED');
    answered(7);
    expect(await post(`${roads}/delete`)).toEqual({ status: 'success' });
    answered(8);
    const exists = `${admin}/services/exists`;
    expect(await post(exists, { folderName: 'Maps' })).toEqual({ exists: true });
    expect(await post(exists, { folderName: 'Maps', serviceName: 'Roads', type: 'MapServer' })).toEqual({
      exists: false,
    });
    answered(17);
    const created = await post(`${admin}/services/Maps/createService`, {
      serviceJson: JSON.stringify(service),
      inputUploadId: '1',
    });
    expect(created).toEqual({ status: 'success', ignored: ['inputUploadId'] });
    expect(await read(`${admin}/services/Maps/Depths.FeatureServer`)).toMatchObject(service);
    answered(19);
    expect(await post(`${admin}/services/createFolder`, { folderName: 'Harbour' })).toEqual({
      status: 'success',
    });
    answered(21);
    await post(`${admin}/services/Harbour/deleteFolder`);
    expect((await read<Listed>(`${admin}/services`)).folders).not.toContain('Harbour');
    answered(22);
    expectAll();
  });

  it('I, a publishing module', async () => {
    const { ask, send } = await startFamily(PROFILE);
    const { answered, expectAll } = journal('I');
    const headers = { referer: 'http://localhost', accept: 'text/plain' };
    const signIn = { ...user, client: 'referer', referer: 'http://localhost', expiration: '1000', ...f };
    const { token } = await ask<Token>('POST', `${admin}/generateToken`, { body: signIn, headers });
    answered(1);
    const post = (path: string, fields: Fields = {}) =>
      ask('POST', `${admin}${path}`, { body: { ...f, token, ...fields }, headers });
    const list = () => send('POST', '/org/rest/services/Harbour', { body: { ...f, token }, headers });
    // The module stops at another status. Only the family has 200 for an error.
    expect((await list()).status).toBe(PROFILE === 'family' ? 200 : 404);
    const query = { ...f, token, folderName: 'Harbour' };
    expect(await ask('GET', `${admin}/services/`, { query, headers })).toHaveProperty('folders');
    answered(3);
    await post('/services/createFolder', { folderName: 'Harbour' });
    answered(4);
    await post('/services/Harbour/createService', { service: JSON.stringify(service) });
    expect(JSON.parse((await list()).text)).toMatchObject({
      services: [{ name: 'Harbour/Depths', type: 'FeatureServer' }],
    });
    answered(2);
    answered(5);
    const at = '/services/Harbour/Depths.FeatureServer';
    expect(await ask('GET', admin + at, { query: { ...f, token }, headers })).toMatchObject(service);
    answered(6);
    const edited = await post(`${at}/edit`, {
      service: JSON.stringify({ ...service, capabilities: 'Query,Sync' }),
      runAsync: 'true',
    });
    expect(edited).toEqual({ status: 'success', ignored: ['runAsync'] });
    answered(7);
    expect(String((await post(`${at}/status`)).realTimeState).toLowerCase()).toBe('started');
    answered(8);
    await post(`${at}/stop`);
    answered(9);
    await post(`${at}/start`);
    answered(10);
    await post(`${at}/delete`, { service: '' });
    answered(13);
    await post('/uploads');
    answered(14);
    const parts = { itemFile: new File(['{}'], 'package.json'), token, ...f };
    const { item } = await ask<{ item: { itemID: string } }>('POST', `${admin}/uploads/upload`, {
      parts,
      headers,
    });
    answered(15);
    await post(`/uploads/${item.itemID}/delete`);
    answered(19);
    expectAll();
  });

  it('J, a desktop program, and K, an editor add-in', async () => {
    const { base, ask } = await startFamily(PROFILE);
    const namespace = 'http://www.example.com/schemas/Widget/9.3';
    const body =
      '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>' +
      `<t:GetServiceDescriptionsEx xmlns:t="${namespace}"><FolderName></FolderName></t:GetServiceDescriptionsEx></e:Body></e:Envelope>`;
    const headers = { 'content-type': 'text/xml; charset=utf-8', soapaction: '""' };
    const answer = await (await fetch(`${base}/org/services`, { method: 'POST', headers, body })).text();
    expect(answer).toMatch(/<(\w+:)?Name>World<\//);
    expect(answer).not.toContain('Fault');

    const { answered, expectAll } = journal('K');
    const { token } = await ask<Token>('POST', tokens, { body: { ...user, ...f } });
    const query = { ...f, token };
    expect(await ask('GET', `${roads}/status`, { query })).toHaveProperty('realTimeState', 'STARTED');
    answered(1);
    await ask('POST', `${roads}/stop`, { query });
    answered(2);
    await ask('POST', `${roads}/start`, { query });
    answered(3);
    expectAll();
  });
});
