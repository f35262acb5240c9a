// Changes to the catalog over REST, which appear in SOAP answers at once.
import { describe, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { namespace, startServer } from '../kit/server.ts';

const server = perTest(startServer);

const services = '/admin/services';
type Failure = { error: { code: number; message: string; details: string[] } };
type Listing = { folderName: string; folders: string[]; services: { serviceName: string; type: string }[] };

const post = (path: string, fields: Record<string, string>, token = 'token-of-the-publisher') =>
  server.post(`${services}${path}`, { token, ...fields });
const get = (path: string, token = 'token-of-the-publisher') =>
  server.get(`${services}${path}?token=${token}`);
const read = async (path: string, token?: string) => (await get(path, token)).json<Listing>();
const statusOf = async (path: string) => (await get(path, 'token-of-the-member')).statusCode;

async function namesBySoap(): Promise<string[]> {
  const { body } = await server.soap(`<GetServiceDescriptions xmlns="${namespace}"/>`);
  return [...body.matchAll(/<Name>(.*?)<\/Name>/g)].map(([, name]) => name ?? '');
}

describe('folders', () => {
  it('are created empty, are visible to everyone, and can be deleted', async () => {
    expect((await post('/createFolder', { folderName: 'New', description: 'Fresh' })).json()).toEqual({
      status: 'success',
    });
    expect(await read('/New')).toEqual({
      folderName: 'New',
      description: 'Fresh',
      folders: [],
      services: [],
    });
    const soap = await server.soap(`<GetFolders xmlns="${namespace}"/>`);
    expect(soap.body).toContain('<String>Maps</String><String>New</String><String>Tools</String>');
    expect((await post('/New/deleteFolder', {})).json()).toEqual({ status: 'success' });
    expect((await read('')).folders).not.toContain('New');
  });

  it('are not deleted while they contain a service', async () => {
    const response = await post('/Maps/deleteFolder', {});
    expect(response.statusCode).toBe(409);
    expect(response.json<Failure>().error.message).toBe('The folder Maps is not empty.');
  });

  it('have names that are unique, ignoring case, but are looked up exactly', async () => {
    const taken = await post('/createFolder', { folderName: 'mAPS' });
    expect(taken.statusCode).toBe(409);
    // The message must not reveal the stored spelling: the caller may not be allowed to see the folder.
    expect(taken.json<Failure>().error.message).toBe('A folder named mAPS exists already.');
    expect(await statusOf('/maps')).toBe(404);
  });

  it('may not have the name of a route, or characters of paths', async () => {
    const separators = Array.from('/\\?#%*:"<>|.\u0007').map((character) => `a${character}b`);
    const routes = ['webhooks', 'createFolder', 'createService'];
    const refused = [...separators, ...routes, ' a', 'a ', 'x'.repeat(129)];
    for (const folderName of refused) {
      const response = await post('/createFolder', { folderName });
      expect(response.statusCode, folderName).toBe(400);
      expect(response.json<Failure>().error.details[0]).toMatch(/^folderName: must be 1 to 128 characters/);
    }
  });

  it('may have any other name, which is normalised to NFC', async () => {
    const names = ['Карты', '地図', 'x'.repeat(128), "O'Hara & Söhne", '🗺️', 'constructor', 'toString'];
    for (const folderName of names) {
      expect((await post('/createFolder', { folderName })).statusCode, folderName).toBe(200);
      expect((await read(`/${encodeURIComponent(folderName)}`)).folderName).toBe(folderName);
    }
    expect((await post('/createFolder', { folderName: 'Cafe\u0301' })).statusCode).toBe(200);
    expect((await read(`/${encodeURIComponent('Cafe\u0301')}`)).folderName).toBe('Caf\u00e9');
    expect((await post('/createFolder', { folderName: 'CAF\u00c9' })).statusCode).toBe(409);
  });

  it('are hidden from callers who may see none of their services', async () => {
    expect((await read('', 'token-of-the-administrator')).folders).toEqual(['Maps', 'Operations', 'Tools']);
    expect((await read('')).folders).toEqual(['Maps', 'Tools']);
    expect((await get('/Operations')).statusCode).toBe(404);
    const create = await post('/createService', {
      folderName: 'Operations',
      serviceName: 'X',
      type: 'MapServer',
    });
    expect(create.json<Failure>().error.details).toEqual([
      'folderName: there is no folder named Operations.',
    ]);
  });
});

describe('services', () => {
  const city = { folderName: 'Maps', serviceName: 'City.v2', type: 'MapServer' };

  it('are created with every field and returned with all of them', async () => {
    const traits = {
      description: 'Streets & <squares>',
      capabilities: ' Map , Query,, ',
      parentType: 'MapServer',
      url: 'https://maps.example.com/city?x=1&y=2',
      access: 'organization',
    };
    expect((await post('/createService', { ...city, ...traits })).json()).toEqual({ status: 'success' });
    const at = server.runtime.now();
    const stored = { ...city, ...traits, capabilities: 'Map,Query', createdAt: at, updatedAt: at };
    const response = await get('/Maps/City.v2.MapServer', 'token-of-the-member');
    // In this order.
    expect(response.body).toBe(JSON.stringify(stored));
  });

  it('appear in and disappear from the SOAP answer at once', async () => {
    await post('/createService', city);
    expect(await namesBySoap()).toContain('Maps/City.v2');
    await post('/Maps/City.v2.MapServer/delete', {});
    expect(await namesBySoap()).not.toContain('Maps/City.v2');
    expect(await statusOf('/Maps/City.v2.MapServer')).toBe(404);
  });

  it.each(['', '/', undefined])('are created in the root with folderName %j', async (folderName) => {
    await post('/createService', {
      serviceName: 'Rooted',
      type: 'MapServer',
      ...(folderName !== undefined && { folderName }),
    });
    expect((await read('/Rooted.MapServer')).folderName).toBe('/');
  });

  it('keep absent fields when edited, and clear blank ones', async () => {
    await post('/createService', {
      ...city,
      description: 'one',
      capabilities: 'Map',
      url: 'https://a.example',
    });
    await server.runtime.advance(1000);
    await post('/Maps/City.v2.MapServer/edit', { description: 'two', url: '' });
    expect(await read('/Maps/City.v2.MapServer')).toMatchObject({
      description: 'two',
      capabilities: 'Map',
      url: null,
      access: 'public',
      createdAt: server.runtime.now() - 1000,
      updatedAt: server.runtime.now(),
    });
  });

  it.each([
    ['Maps', 'ROADS', 'mapserver', 409],
    ['Maps', 'Roads', 'ImageServer', 200],
    ['Tools', 'Roads', 'MapServer', 200],
  ])('are unique by folder, name and type, ignoring case: %s/%s.%s', async (...row) => {
    const [folderName, serviceName, type, status] = row;
    expect((await post('/createService', { folderName, serviceName, type })).statusCode).toBe(status);
    expect(await statusOf('/Maps/roads.MapServer')).toBe(404);
  });

  it('restricted to administrators can be seen, created and edited by them only', async () => {
    const hidden = { folderName: 'Maps', serviceName: 'Hidden', type: 'MapServer', access: 'administrators' };
    const administrator = 'token-of-the-administrator';
    expect((await post('/createService', hidden)).statusCode).toBe(403);
    expect((await post('/createService', hidden, administrator)).statusCode).toBe(200);
    expect((await get('/Maps/Hidden.MapServer')).statusCode).toBe(404);
    expect((await post('/Maps/Hidden.MapServer/edit', { description: 'x' })).statusCode).toBe(404);
    expect((await post('/Maps/Roads.MapServer/edit', { access: 'administrators' })).statusCode).toBe(403);
    const edited = await post('/Maps/Hidden.MapServer/edit', { access: 'public' }, administrator);
    expect(edited.statusCode).toBe(200);
  });

  it('are listed only if the caller may see them', async () => {
    expect((await read('/Maps', 'token-of-the-member')).services).toHaveLength(5);
    expect(await namesBySoap()).toHaveLength(9);
  });

  it('have an edit form that shows the current values', async () => {
    const headers = { cookie: 'steward_session=token-of-the-publisher', accept: 'text/html' };
    const page = await server.get(`${services}/Maps/Roads.MapServer/edit`, headers);
    expect(page.body).toContain('Roads and paths.</textarea>');
    expect(page.body).toContain('<option value="public" selected>everyone</option>');
  });
});

describe('the limits of the catalog', () => {
  const restart = async (env: Record<string, string>) => {
    await server.close();
    Object.assign(server, await startServer({ env, catalog: { folders: [], services: [] } }));
  };
  const create = (serviceName: string, description = '') =>
    post('/createService', { serviceName, type: 'MapServer', description });
  const refusal = (message: string) => ({ code: 409, message, details: [] });

  it('MAX_SERVICES refuses another service and another folder', async () => {
    await restart({ MAX_SERVICES: '2' });
    await Promise.all(['A', 'B'].map((name) => create(name)));
    const full = refusal('The catalog is full: MAX_SERVICES allows 2 services.');
    const [c, d] = await Promise.all([create('C'), create('D')]);
    expect([c.json<Failure>().error, d.json<Failure>().error]).toEqual([full, full]);
    expect(await namesBySoap()).toEqual(['A', 'B']);
    await post('/A.MapServer/delete', {});
    expect((await create('C')).statusCode).toBe(200);
    for (const folderName of ['one', 'two'])
      expect((await post('/createFolder', { folderName })).statusCode).toBe(200);
    const third = await post('/createFolder', { folderName: 'three' });
    expect(third.json<Failure>().error).toEqual(
      refusal('The catalog is full: MAX_SERVICES allows 2 folders.'),
    );
  });

  it('MAX_SERVICES refuses texts that are too long together, counted as XML', async () => {
    await restart({ MAX_SERVICES: '3' });
    const full = refusal('The catalog is full: MAX_SERVICES allows 2016 bytes.');
    expect((await create('A', 'é'.repeat(708))).statusCode).toBe(200);
    expect((await create('B', '&'.repeat(120))).json<Failure>().error).toEqual(full);
    expect((await create('B', '&'.repeat(100))).statusCode).toBe(200);
    const edit = (description: string) => post('/B.MapServer/edit', { description });
    expect((await edit('&'.repeat(120))).json<Failure>().error).toEqual(full);
    expect((await post('/createFolder', { folderName: 'F', description: 'x'.repeat(100) })).statusCode).toBe(
      409,
    );
    expect((await edit('&')).statusCode).toBe(200);
    expect((await create('C', 'x'.repeat(400))).statusCode).toBe(200);
  });
});
