// Calls the server with a client library for this family of APIs, unchanged: it looks the server up, signs in, gets a
// token for each address, and signs out.
import { getSelf } from '@esri/arcgis-rest-portal';
import { ApiKeyManager, ArcGISIdentityManager, request } from '@esri/arcgis-rest-request';
import { beforeAll, describe, expect, it } from 'vitest';
import { createFakeRuntime } from '../kit/runtime.ts';
import { type Server, password, startServer } from '../kit/server.ts';

type Directory = { folders: string[] };
type Sessions = { sessions: { id: string }[] };

let server: Server;
let base: string;
/** The paths of the requests, in their order. */
let paths: string[];

async function start(env: Record<string, string> = {}): Promise<void> {
  // The library compares the expiry of its token with the time of day.
  const runtime = createFakeRuntime(Date.now());
  server = await startServer({ env: { PUBLIC_URL: '', ...env }, runtime });
  const { port } = new URL(await server.listen());
  base = `http://localhost:${port}`;
  // Before the server routes the request by another path.
  server.http.server.prependListener('request', ({ url = '' }) => {
    paths.push(url.split('?', 1)[0] ?? '');
  });
  paths = [];
}

const signIn = (username = 'administrator', given = password) =>
  ArcGISIdentityManager.signIn({ username, password: given, portal: `${base}/tokens` });

const foldersSeenBy = async (manager?: ArcGISIdentityManager | ApiKeyManager) => {
  const options = manager ? { authentication: manager } : {};
  return ((await request(`${base}/rest/services`, options)) as Directory).folders;
};

describe('ArcGISIdentityManager', () => {
  beforeAll(() => start());

  it('reads the info and lists what an anonymous caller may see', async () => {
    expect(await request(`${base}/rest/info`)).toMatchObject({ owningSystemUrl: `${base}/tokens` });
    expect(await foldersSeenBy()).toEqual(['Maps', 'Tools']);
  });

  it('signs in, and lists hidden folders and services', async () => {
    const manager = await signIn();
    expect(await foldersSeenBy(manager)).toEqual(['Maps', 'Operations', 'Tools']);
    const hidden: unknown = await request(`${base}/rest/services/Operations`, { authentication: manager });
    expect(hidden).toMatchObject({ services: [{ name: 'Operations/Diagnostics', type: 'GPServer' }] });
  });

  it('calls resources and operations of administrators with the token of the sign-in', async () => {
    const authentication = await signIn();
    const folder = { folderName: 'Harbour', description: 'Berths and tides.' };
    const created: unknown = await request(`${base}/admin/services/createFolder`, {
      authentication,
      params: folder,
    });
    expect(created).toEqual({ status: 'success' });
    expect(await request(`${base}/admin/services/Harbour`, { authentication })).toMatchObject(folder);
    const upgrades: unknown = await request(`${base}/admin/system/upgrades`, {
      authentication,
      httpMethod: 'GET',
    });
    expect(upgrades).toMatchObject({ status: { state: 'no_upgrade' } });

    const sessions = async () =>
      ((await request(`${base}/admin/security/self`, { authentication })) as Sessions).sessions;
    const before = await sessions();
    expect(await foldersSeenBy(authentication)).toContain('Harbour');
    expect(await sessions()).toHaveLength(before.length);
  });

  it('asks once for a token for an address', async () => {
    const authentication = await signIn();
    paths = [];
    for (let call = 0; call < 2; call += 1) await request(`${base}/admin/mode`, { authentication });
    expect(paths).toEqual([
      '/tokens/portals/self',
      '/admin/mode/rest/info',
      '/tokens/sharing/rest/info',
      '/tokens/sharing/rest/generateToken',
      '/admin/mode',
      '/admin/mode',
    ]);
  });

  it('reads the user and the portal', async () => {
    const user = { username: 'publisher', role: 'publisher', fullName: 'publisher' };
    const manager = await signIn('publisher');
    expect(await manager.getUser()).toEqual(user);
    const portal = {
      id: 'steward',
      name: 'Steward',
      isPortal: true,
      currentVersion: 10.91,
      authorizedCrossOriginDomains: [],
    };
    expect(await manager.getPortal()).toEqual({ ...portal, user });
    expect(await getSelf({ authentication: manager })).toEqual({ ...portal, user });
    expect(await getSelf({ portal: `${base}/tokens` })).toEqual(portal);
  });

  it('restores a serialized sign-in', async () => {
    const manager = ArcGISIdentityManager.deserialize((await signIn()).serialize());
    expect(await foldersSeenBy(manager)).toContain('Operations');
  });

  it('signs out, which ends the token', async () => {
    const manager = await signIn();
    const { token } = manager;
    expect(await ArcGISIdentityManager.destroy(manager)).toEqual({ success: true });
    const answer = await server.get(`/tokens/community/self?token=${token}`, {
      referer: '@esri/arcgis-rest-js',
    });
    expect(answer.json()).toMatchObject({ error: { code: 498 } });
  });

  it('reports a wrong password when it asks for the token', async () => {
    const options = { username: 'member', password: 'wrong password', portal: `${base}/tokens` };
    await expect(new ArcGISIdentityManager(options).refreshCredentials()).rejects.toThrow(
      'Unable to generate token.',
    );
    await expect(signIn('member', 'wrong password')).rejects.toThrow('Token required.');
  });
});

it('reports a wrong password when it signs in, with PROFILE=family', async () => {
  await start({ PROFILE: 'family' });
  try {
    await expect(signIn('member', 'wrong password')).rejects.toThrow('Unable to generate token.');
    expect(await foldersSeenBy(await signIn())).toContain('Operations');
  } finally {
    await server.close();
  }
});

it('works with other paths, and with an administrator directory at the root', async () => {
  await start({ ADMIN_PATH: '', REST_PATH: '/directory', CATALOG_PATH: '/soap' });
  try {
    const authentication = await signIn();
    expect(await request(`${base}/directory/services`, { authentication })).toMatchObject({
      folders: ['Maps', 'Operations', 'Tools'],
    });
    expect(await request(`${base}/mode`, { authentication })).toHaveProperty('isReadOnly', false);
  } finally {
    await server.close();
  }
});

it('calls everything with a key in ApiKeyManager', async () => {
  await start();
  try {
    const authorization = `Bearer ${server.token('administrator')}`;
    const created = await server.post(
      '/admin/security/self/keys/create',
      { name: 'client' },
      { authorization },
    );
    const authentication = ApiKeyManager.fromKey(created.json<{ key: string }>().key);
    expect(await foldersSeenBy(authentication)).toContain('Operations');
    const params = { folderName: 'Harbour' };
    expect(await request(`${base}/admin/services/createFolder`, { authentication, params })).toEqual({
      status: 'success',
    });
  } finally {
    await server.close();
  }
});
