// Tests the token service as clients of this family of APIs use it: the portal, tokens for an address, signing out,
// and the server info that they ask for beneath an address.
import { describe, expect, it } from 'vitest';
import { type Server, type ServerOptions, password, startServer } from '../kit/server.ts';

let server: Server;
const start = async (options: ServerOptions = {}) => (server = await startServer(options));

const createKey = async (fields: Record<string, string> = {}) => {
  const authorization = `Bearer ${server.token('administrator')}`;
  const created = await server.post(
    '/admin/security/self/keys/create',
    { name: 'client', role: 'member', ...fields },
    { authorization },
  );
  return created.json<{ key: string }>().key;
};

describe('portals/self', () => {
  const path = '/tokens/portals/self';

  it('names the server and its version to anyone, and the user of the token', async () => {
    await start();
    const portal = {
      id: 'steward',
      name: 'Steward',
      isPortal: true,
      currentVersion: 10.91,
      authorizedCrossOriginDomains: [],
    };
    expect((await server.get(`${path}?f=json`)).body).toBe(JSON.stringify(portal));
    const token = server.token('member');
    const user = { username: 'member', role: 'member', fullName: 'member' };
    expect((await server.get(`${path}?token=${token}`)).json()).toEqual({ ...portal, user });
    expect((await server.post(path, { token })).json()).toEqual({ ...portal, user });
    const administrator = { username: 'administrator', role: 'member', fullName: 'administrator' };
    expect((await server.post(path, { token: await createKey() })).json()).toEqual({
      ...portal,
      user: administrator,
    });
  });

  it('has the name of the console, and refuses a bad token', async () => {
    await start({ env: { CONSOLE_NAME: 'Harbour maps' } });
    expect((await server.get(path)).json()).toMatchObject({ name: 'Harbour maps' });
    expect((await server.get(`${path}?token=none`)).json()).toMatchObject({ error: { code: 498 } });
  });
});

describe('oauth2/revokeToken', () => {
  const path = '/tokens/oauth2/revokeToken';

  it('ends the token in auth_token, or else in token, and no key', async () => {
    await start();
    for (const field of ['auth_token', 'token']) {
      const signedIn = await server.post('/tokens/generateToken', { username: 'member', password });
      const { token } = signedIn.json<{ token: string }>();
      expect((await server.post(path, { client_id: 'x', [field]: token })).json()).toEqual({
        success: true,
        ignored: ['client_id'],
      });
      expect((await server.get(`/admin?f=json&token=${token}`)).json()).toMatchObject({
        error: { code: 498 },
      });
    }
    expect((await server.post(path, { auth_token: 'unknown' })).json()).toEqual({ success: true });
    expect((await server.post(path, {})).json()).toMatchObject({
      error: { code: 400, details: ['auth_token: is required, or token.'] },
    });
    const key = await createKey();
    expect((await server.post(path, { auth_token: key })).json()).toEqual({ success: true });
    expect((await server.get(`/admin?f=json&token=${key}`)).statusCode).toBe(200);
  });
});

describe('sharing/rest/generateToken', () => {
  const path = '/tokens/sharing/rest/generateToken';
  const serverUrl = 'http://localhost:8080/admin/mode';

  it('returns the token of the request and when it expires', async () => {
    await start();
    const credentials = { username: 'member', password, expiration: '60' };
    const signedIn = (await server.post('/tokens/generateToken', credentials)).json<object>();
    const { token } = signedIn as { token: string };
    const answer = await server.post(path, { token, serverUrl, expiration: '20160' });
    expect(answer.json()).toEqual(signedIn);
  });

  it('returns a key, with its expiry or two weeks', async () => {
    await start();
    const days = (count: number) => server.runtime.now() + count * 86_400_000;
    const [lasting, ending] = [await createKey(), await createKey({ name: 'other', expires: '3' })];
    expect((await server.post(path, { token: lasting, serverUrl })).json()).toEqual({
      token: lasting,
      expires: days(14),
      ssl: false,
    });
    expect((await server.post(path, { token: ending, serverUrl })).json()).toMatchObject({
      expires: days(3),
    });
  });

  it('refuses the address of another server', async () => {
    await start({ env: { PUBLIC_URL: 'https://maps.example.com/gis' } });
    const token = server.token('member');
    const ask = async (url: string) => (await server.post(path, { token, serverUrl: url })).statusCode;
    for (const own of ['https://maps.example.com/gis', 'https://MAPS.example.com/gis/admin/mode'])
      expect(await ask(own), own).toBe(200);
    for (const other of [
      'https://maps.example.com',
      'https://maps.example.com/gist',
      'https://maps.example.com/gis/../other',
      'https://maps.example.com.evil.example/gis',
      'https://evil.example/gis',
      'http://maps.example.com/gis',
      'https://maps.example.com:8443/gis',
    ])
      expect(await ask(other), other).toBe(400);
    const refused = await server.post(path, { token, serverUrl: 'https://evil.example/rest' });
    expect(refused.json()).toMatchObject({
      error: { details: ['serverUrl: must be an address beneath https://maps.example.com/gis.'] },
    });
  });

  it('refuses a token that is not that of the request, or is bound to something else', async () => {
    await start();
    const authorization = `Bearer ${server.token('member')}`;
    const other = await server.post(path, { token: server.token('publisher'), serverUrl }, { authorization });
    expect(other.json()).toMatchObject({ error: { details: ['token: must be the token of the request.'] } });
    const bound = await server.post('/tokens/generateToken', {
      username: 'member',
      password,
      client: 'referer',
      referer: 'https://client.example.com/',
    });
    const { token } = bound.json<{ token: string }>();
    const elsewhere = await server.post(
      path,
      { token, serverUrl },
      { referer: 'https://other.example.com/' },
    );
    expect(elsewhere.json()).toMatchObject({ error: { code: 498 } });
  });
});

describe('the server info beneath an address', () => {
  const statusOf = async (path: string) => (await server.get(path)).statusCode;

  it('answers at the root with two slashes, and beneath the administrator and server directories', async () => {
    await start();
    const info = (await server.get('/rest/info')).json<object>();
    for (const path of [
      '//rest/info?f=json',
      '/admin/rest/info',
      '/admin/system/upgrades/upgrade/rest/info',
      '/admin/services/Maps/Roads.MapServer/rest/info?f=json',
      '/rest/services/rest/info',
    ])
      expect((await server.get(path)).json(), path).toEqual(info);
    expect((await server.post('/admin/mode/update/rest/info', { f: 'json' })).json()).toEqual(info);
    expect(server.logLines.at(-1)).toContain('"path":"/rest/info"');
    for (const path of [
      '//rest/services',
      '//admin/mode',
      '/services/rest/info',
      '/tokens/rest/info',
      '/x/rest/info',
      '/admin/%zz/rest/info',
    ])
      expect(await statusOf(path), path).toBe(404);
    expect((await server.get('/tokens/sharing/rest/info')).json()).toEqual({
      owningSystemUrl: 'http://localhost:8080/tokens',
      authInfo: {
        isTokenBasedSecurity: true,
        tokenServicesUrl: 'http://localhost:8080/tokens/sharing/rest/generateToken',
      },
    });
  });
});
