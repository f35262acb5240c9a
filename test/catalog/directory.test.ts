// Tests what clients read before and after they sign in: the server info, the REST catalog and the signed-in user.
import { describe, expect, it } from 'vitest';
import { versionNumber } from '../../src/home/root.rest.ts';
import { type Server, type ServerOptions, password, startServer } from '../kit/server.ts';

let server: Server;
const start = async (options: ServerOptions = {}) => (server = await startServer(options));

const publicOnes = {
  currentVersion: 10.91,
  folders: ['Maps', 'Tools'],
  services: [
    { name: 'Geometry', type: 'GeometryServer' },
    { name: 'Places', type: 'GeocodeServer' },
    { name: 'World', type: 'MapServer' },
  ],
};

describe('the server info', () => {
  it('returns the version and the address to sign in at, without a token', async () => {
    await start();
    const info = {
      currentVersion: 10.91,
      fullVersion: '10.9.1.1234',
      soapUrl: 'http://localhost:8080/services',
      owningSystemUrl: 'http://localhost:8080/tokens',
      authInfo: {
        isTokenBasedSecurity: true,
        tokenServicesUrl: 'http://localhost:8080/tokens/generateToken',
        shortLivedTokenValidity: 120,
      },
    };
    expect((await server.get('/rest/info?f=json')).body).toBe(JSON.stringify(info));
    expect((await server.post('/rest/info', { f: 'pjson' })).body).toBe(`${JSON.stringify(info, null, 2)}\n`);
    // A token that has ended does not keep a client from signing in again.
    expect((await server.get('/rest/info?token=none')).json()).toEqual(info);
    expect((await server.get('/rest?f=json')).json()).toEqual({ resources: ['info', 'services'] });
  });

  it('names the configured addresses and paths', async () => {
    const env = {
      PUBLIC_URL: 'https://maps.example.com/gis',
      REST_PATH: '/directory/rest',
      CATALOG_PATH: '/catalog',
      TOKENS_PATH: '/sign-in',
    };
    await start({ env });
    expect((await server.get('/directory/rest/info')).json()).toMatchObject({
      soapUrl: 'https://maps.example.com/gis/catalog',
      owningSystemUrl: 'https://maps.example.com/gis/sign-in',
      authInfo: { tokenServicesUrl: 'https://maps.example.com/gis/sign-in/generateToken' },
    });
    expect((await server.get('/rest/info')).statusCode).toBe(404);
  });

  it('has the version that an upgrade installs, as a number', async () => {
    const numbers = { '10.9.1': 10.91, '11.0.0': 11, '11.1.0': 11.1, '11.2.0': 11.2, '11.0.1': 11.01 };
    for (const [version, number] of Object.entries(numbers))
      expect(versionNumber({ version, build: '1' })).toBe(number);
    await start();
    const token = server.token('administrator');
    const versionManifest = '{"id":"pat_17022022_1250"}';
    expect((await server.post('/admin/system/upgrades/upgrade', { token, versionManifest })).statusCode).toBe(
      200,
    );
    await server.runtime.advance(60_000);
    expect((await server.get('/rest/info')).json()).toMatchObject({
      currentVersion: 10.91,
      fullVersion: '10.9.1.1250',
    });
  });
});

describe('the REST catalog', () => {
  it('lists what the caller may see, by GET and POST, with every carrier of a token', async () => {
    await start();
    expect((await server.get('/rest/services?f=json')).json()).toEqual(publicOnes);
    expect((await server.post('/rest/services/', { f: 'json', culture: 'en' })).json()).toEqual(publicOnes);
    expect((await server.get('/rest/services/Maps')).json()).toEqual({
      currentVersion: 10.91,
      folders: [],
      services: [
        { name: 'Maps/Boundaries', type: 'FeatureServer' },
        { name: 'Maps/Boundaries', type: 'MapServer' },
        { name: 'Maps/Elevation', type: 'ImageServer' },
        { name: 'Maps/Roads', type: 'MapServer' },
      ],
    });
    const token = server.token('administrator');
    const all = { folders: ['Maps', 'Operations', 'Tools'] };
    expect((await server.get(`/rest/services?f=json&token=${token}`)).json()).toMatchObject(all);
    expect((await server.post('/rest/services', { f: 'json', token })).json()).toMatchObject(all);
    const headers = { authorization: `Bearer ${token}` };
    expect((await server.post('/rest/services', {}, headers)).json()).toMatchObject(all);
  });

  it('does not accept the session of a browser', async () => {
    await start();
    const headers = { cookie: `steward_session=${server.token('administrator')}` };
    expect((await server.get('/rest/services', headers)).json()).toEqual(publicOnes);
  });

  it('refuses an unknown or hidden folder with 404, a bad token with 498', async () => {
    await start();
    for (const folder of ['None', 'Operations', 'maps', '%2F', 'Maps/Roads'])
      expect((await server.get(`/rest/services/${folder}?f=json`)).json(), folder).toMatchObject({
        status: 'error',
        error: { code: 404, details: [] },
      });
    for (const answer of [
      await server.get('/rest/services?f=json&token=none'),
      await server.post('/rest/services/Maps', { f: 'json', token: 'none' }),
    ]) {
      expect(answer.statusCode).toBe(401);
      expect(answer.json()).toMatchObject({ error: { code: 498, message: 'Invalid token.' } });
    }
  });

  it('needs a token with REQUIRE_TOKENS=true; with PROFILE=family errors have the status 200', async () => {
    await start({ env: { REQUIRE_TOKENS: 'true', PROFILE: 'family' } });
    const refused = await server.get('/rest/services/None?f=json');
    expect(refused.statusCode).toBe(200);
    expect(refused.json()).toMatchObject({ status: 'error', error: { code: 499 } });
    expect((await server.get('/rest/services/None?f=json&token=x')).json()).toMatchObject({
      error: { code: 498 },
    });
    const token = server.token('member');
    expect((await server.get(`/rest/services?token=${token}`)).json()).toMatchObject({
      folders: ['Maps', 'Tools'],
    });
    expect((await server.get('/rest/info')).json()).toMatchObject({ currentVersion: 10.91 });
  });

  it('has no page', async () => {
    await start();
    const html = await server.get('/rest/services?f=html', { accept: 'text/html' });
    expect(html.json()).toMatchObject({ error: { code: 400, details: ['f: must be one of json, pjson.'] } });
    const browser = await server.get('/rest/services', { accept: 'text/html' });
    expect(browser.headers['content-type']).toBe('application/json; charset=utf-8');
    const missing = await server.get('/rest/services/None', { accept: 'text/html' });
    expect(missing.json()).toMatchObject({ error: { code: 404 } });
    expect((await server.http.inject({ method: 'PUT', url: '/rest/info' })).statusCode).toBe(405);
  });
});

describe('a client that looks the server up and signs in', () => {
  it('reads the info, generates a token bound to its referring page, and asks who it is', async () => {
    await start();
    const { authInfo } = (await server.get('/rest/info?f=json')).json<{
      authInfo: { tokenServicesUrl: string };
    }>();
    const { pathname } = new URL(authInfo.tokenServicesUrl);
    const referer = 'https://client.example.com/app';
    const signedIn = await server.post(pathname, {
      username: 'member',
      password,
      client: 'referer',
      referer,
      expiration: '60',
      f: 'json',
    });
    const { token, expires, ssl } = signedIn.json<{ token: string; expires: number; ssl: boolean }>();
    expect([expires, ssl]).toEqual([server.runtime.now() + 3_600_000, false]);
    const self = { username: 'member', role: 'member', fullName: 'member' };
    const path = pathname.replace('generateToken', 'community/self');
    expect((await server.get(`${path}?f=json&token=${token}`, { referer })).body).toBe(JSON.stringify(self));
    expect((await server.post(path, { f: 'json', token }, { referer })).json()).toEqual(self);
    expect(
      (await server.get(`${path}?token=${token}`, { referer: 'https://other.example.com' })).json(),
    ).toMatchObject({ error: { code: 498 } });
    expect((await server.get(`${path}?f=json`)).json()).toMatchObject({ error: { code: 499 } });
  });

  it('may name the referring page only in the header, and the client in any case', async () => {
    await start();
    const credentials = { username: 'member', password, f: 'json' };
    const referer = 'https://client.example.com/app';
    const bound = await server.post(
      '/tokens/generateToken',
      { ...credentials, client: 'referer' },
      { referer },
    );
    const { token } = bound.json<{ token: string }>();
    const other = await server.get(`/rest/services?token=${token}`, { referer: 'https://other.example.com' });
    expect(other.json()).toMatchObject({ error: { code: 498 } });
    const byAddress = await server.post('/tokens/generateToken', { ...credentials, client: 'requestIP' });
    expect(byAddress.json()).toHaveProperty('token');
    const without = await server.post('/tokens/generateToken', { ...credentials, client: 'referer' });
    expect(without.json()).toMatchObject({
      error: { details: ['referer: is required with client=referer.'] },
    });
  });
});
