// The pages of the catalog: lists, search, and one service. test/pages has their texts.
import { describe, expect, it } from 'vitest';
import type { InitialCatalog } from '../../src/catalog/catalog.ts';
import type { createFields } from '../../src/catalog/fields.rest.ts';
import type { Role } from '../../src/lib/caller.ts';
import { perFile, perTest } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';
import { formOf, linkOf } from '../upgrades/page-kit.ts';

const server = perTest(startServer);

const services = '/admin/services';

async function show(path: string, role: Role = 'administrator', from = server): Promise<string> {
  const cookie = `steward_session=${from.token(role)}`;
  const page = await from.get(path, { accept: 'text/html', cookie });
  expect(page.statusCode, path).toBe(200);
  return page.body;
}

/** The first column of the tables. */
const namesIn = (page: string) =>
  [...page.matchAll(/<th role="rowheader" scope="row"><a [^>]*><bdi>(.*?)<\/bdi><\/a>/g)].map(
    ([, name]) => name,
  );
const create = (fields: Record<string, string>) =>
  server.post(`${services}/createService`, { token: server.token('administrator'), ...fields });

/** A new field is no `Field` of this test, which names where a field can be forgotten. */
type Field = Exclude<keyof typeof createFields, 'service' | 'serviceJson'>;

it('every field of a service is on its page, in its form, in its answer and in the audit trail', async () => {
  const given = { folderName: 'Tools', serviceName: 'Kiln', type: 'KilnServer', access: 'organization' };
  const texts = { description: 'Burns', capabilities: 'Heat', parentType: 'OvenServer', url: 'http://a.b/c' };
  const values: Record<Field, string> = { ...given, ...texts };
  const object = { ...values, createdAt: 1, updatedAt: 2, custom: 'x' };
  await create({ service: JSON.stringify(object) });
  const path = `${services}/Tools/Kiln.KilnServer`;
  const token = server.token('administrator');
  const changes = Object.fromEntries(Object.entries(texts).map(([name, value]) => [name, `${value}2`]));
  expect((await server.post(`${path}/edit`, { token, ...changes })).statusCode).toBe(200);
  const times = { createdAt: server.runtime.now(), updatedAt: server.runtime.now() };
  const answer = (await server.get(`${path}?token=${token}`)).json<object>();
  // A field that was kept as another member too would not have changed.
  expect(answer, 'fieldMembers of src/catalog/definition.ts').toEqual({
    ...values,
    ...changes,
    ...times,
    custom: 'x',
  });
  const [page, form] = [await show(path), await show(`${path}/edit`)];
  const shown = Object.values({ ...values, ...changes, access: 'signed-in users' });
  for (const value of shown) expect(page).toContain(value);
  for (const value of Object.values(changes)) expect(form).toContain(value);
  const trail = await server.get(`/admin/system/audit?operation=createService&token=${token}`);
  const [entry] = trail.json<{ entries: { changes: { field: string }[] }[] }>().entries;
  expect(entry?.changes.map(({ field }) => field)).toEqual(expect.arrayContaining(Object.keys(values)));
});

describe('the list', () => {
  it('shows the services of one type, in another order', async () => {
    const maps = `${services}/Maps`;
    expect(namesIn(await show(`${maps}?type=FeatureServer`))).toEqual(['Boundaries', 'Parcels']);
    await server.runtime.advance(60_000);
    await server.post(`${maps}/Roads.MapServer/edit`, {
      token: server.token('administrator'),
      description: 'New',
    });
    const arranged = await show(`${maps}?sort=changed&type=MapServer&num=1&start=0&q=+`);
    expect(namesIn(arranged)).toEqual(['Roads']);
    // Another order begins with the first page.
    expect(arranged).toContain('href="?sort=name&amp;type=MapServer"');
    const page = await show(`${maps}?sort=nonsense`);
    expect(namesIn(page)).toEqual(['Boundaries', 'Boundaries', 'Elevation', 'Parcels', 'Roads']);
  });

  it('sorts names as a reader does, and searches in a folder', async () => {
    for (const number of [10, 9]) await create({ folderName: 'Tools', serviceName: `S${number}`, type: 'T' });
    const tools = `${services}/Tools`;
    expect(namesIn(await show(`${tools}?type=T`))).toEqual(['S9', 'S10']);
    expect(namesIn(await show(`${tools}?type=T&sort=name&order=desc`))).toEqual(['S10', 'S9']);
    const found = await show(`${tools}?q=s1`);
    expect(namesIn(found)).toEqual(['S10']);
    expect(found).toContain(`href="${services}?q=s1"`);
    const none = await show(`${tools}?q=roads`);
    expect(none).toContain('No service matches.');
    expect(none).toContain(`<a href="${tools}">Remove the filters</a>`);
  });

  it('hides services that the caller may not see', async () => {
    expect(namesIn(await show(services, 'publisher'))).not.toContain('Operations');
    expect(namesIn(await show(`${services}?q=diagnostics`, 'publisher'))).toEqual([]);
    expect(namesIn(await show(`${services}?q=diagnostics`))).toEqual(['Diagnostics']);
  });

  it('lets a publisher delete an empty folder in two steps and returns to the list', async () => {
    await server.post(`${services}/createFolder`, { token: server.token('publisher'), folderName: 'New' });
    expect(await show(`${services}/New`, 'member')).not.toContain('Delete folder …');
    const page = await show(`${services}/New`, 'publisher');
    expect(formOf(page, '/deleteFolder')).toBeUndefined();
    const question = await show(linkOf(page, 'Delete folder …'), 'publisher');
    const { fields = {} } = formOf(question, '/deleteFolder') ?? {};
    const deleted = await server.post(`${services}/New/deleteFolder`, fields, {
      cookie: `steward_session=${server.token('publisher')}`,
    });
    expect(deleted.statusCode).toBe(303);
    expect(deleted.headers.location?.split('?')[0]).toBe(services);
  });
});

describe('the search', () => {
  const found = async (query: string) => namesIn(await show(`${services}?q=${encodeURIComponent(query)}`));

  it.each([
    ['rOaDs', 'by its name', ['Roads']],
    ['geocodeserver', 'by its type', ['Places']],
    ['tools stat', 'by folder and name', ['Statistics']],
    ['sea LEVEL', 'by its description', ['Elevation']],
    ['maps/roads.mapserver', 'by its path', ['Roads']],
    ['no such service', 'nothing', []],
  ])('for %j finds a service %s', async (query, _how, names) => {
    expect(await found(query)).toEqual(names);
  });

  it('finds folders too, also empty ones', async () => {
    await server.post(`${services}/createFolder`, { token: server.token('publisher'), folderName: 'Карты' });
    const page = await show(`${services}?q=${encodeURIComponent('КАРТЫ')}`);
    expect(page).toMatch(/<bdi>Карты<\/bdi> 0<\/a/);
    expect(page).not.toContain('<bdi>Maps</bdi>');
  });

  it('looks into the first 200 characters of a description, and for at most 8 words', async () => {
    const words = 'one two three four five six seven eight nine';
    await create({ serviceName: 'Long', type: 'T', description: `${words} ${'x'.repeat(200)} behind` });
    expect(await found('NINE')).toEqual(['Long']);
    expect(await found('behind')).toEqual([]);
    expect(await found(`${words} ten`)).toEqual(['Long']);
    expect(await found('one ten')).toEqual([]);
  });

  it('finds the new description of a service that was changed', async () => {
    expect(await found('newly')).toEqual([]);
    await server.post(`${services}/Tools/Statistics.GPServer/edit`, {
      token: server.token('publisher'),
      description: 'Newly described.',
    });
    expect(await found('newly')).toEqual(['Statistics']);
  });
});

describe('ten thousand services', () => {
  const numbered = (count: number, named: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => named(index));
  const service = (folderName: string) => (serviceName: string) => ({
    folderName,
    serviceName,
    type: 'MapServer',
    capabilities: '',
    description: 'd'.repeat(1000),
    parentType: '',
    url: null,
    access: 'public' as const,
  });
  const atRoot = numbered(10_000, (index) => `Service ${index + 10_000}`);
  const inFolder = numbered(450, (index) => `Inner ${index + 100}`);
  const folders = numbered(1000, (index) => `Folder ${index + 1000}`);
  const catalog: InitialCatalog = {
    folders: folders.map((folderName) => ({ folderName, description: 'd'.repeat(4000) })),
    services: [...atRoot.map(service('/')), ...inFolder.map(service('Folder 1000'))],
  };
  const own = perFile(() => startServer({ catalog }));
  const see = (path: string) => show(`${services}${path}`, 'member', own);

  /** The links of a pager, by their text. */
  const pagerLinks = (page: string, label: string) => {
    const pager = page.split(`aria-label="Pages: ${label}"`)[1]?.split('</nav>')[0] ?? '';
    const links = [...pager.matchAll(/<a href="([^"]*)">([\w,]+)<\/a>/g)];
    return Object.fromEntries(links.map(([, href = '', name = '']) => [name, href.replaceAll('&amp;', '&')]));
  };

  it('of all folders are shown page by page, below the first hundred folders', async () => {
    const page = await see('');
    expect(page.length).toBeLessThan(250_000);
    expect(page).toContain('Services 1 to 50 of 10,450.');
    expect(page.match(/class="chip" href="[^"]*\/Folder%20/g)).toHaveLength(100);
    expect(page).toMatch(/<bdi>Folder 1000<\/bdi> 450<\/a/);
    expect(page).toContain('and 900 folders more');
    expect(namesIn(page)).toEqual(inFolder.slice(0, 50));
    const last = await see(pagerLinks(page, 'Services').Last ?? '');
    expect(namesIn(last)).toEqual(atRoot.slice(-50));
    expect(Object.keys(pagerLinks(last, 'Services'))).toEqual(['First', 'Previous']);
    const first = await see(pagerLinks(last, 'Services').First ?? '');
    expect(Object.keys(pagerLinks(first, 'Services'))).toEqual(['Next', 'Last']);
  });

  it('have a pager in a folder', async () => {
    const path = '/Folder%201000';
    const page = await see(`${path}${pagerLinks(await see(path), 'Services').Next}`);
    expect(namesIn(page)).toEqual(inFolder.slice(50, 100));
    expect(page).toContain('Services 51 to 100 of 450.');
  });

  it('have a pager for search results, whose links contain no token', async () => {
    const token = own.token('member');
    const page = await see(`?q=service+%26+19&token=${token}`);
    expect(page).toContain('<p class="total">0 services</p>');
    const first = await see(`?q=service+19&token=${token}`);
    expect(first).toContain('<p class="total">1,279 services</p>');
    const next = pagerLinks(first, 'Services').Next ?? '';
    expect(next).toBe('?q=service+19&start=50&num=50');
    const second = await see(next);
    expect(second).toContain('Services 51 to 100 of 1,279.');
    expect(namesIn(second)).toHaveLength(50);
    expect(second).toMatch(/<input[^>]*name="q"[^>]*value="service 19"/);
  });

  it('have a link back to the last page from beyond the end', async () => {
    const page = await see('?start=500000');
    expect(page).toContain('There are 10,450.');
    expect(pagerLinks(page, 'Services').Previous).toBe('?start=10400&num=50');
  });
});

describe('a service', () => {
  it('shows its own address, and links to change it to publishers only', async () => {
    await create({ serviceName: 'Far', type: 'MapServer', url: 'https://far.example/x?a=1&b=2' });
    const page = await show(`${services}/Far.MapServer`, 'member');
    expect(page).toContain('href="https://far.example/x?a=1&amp;b=2"');
    expect(page).not.toMatch(/Delete service|Edit service/);
  });
});
