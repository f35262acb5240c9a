// CATALOG_FILE and the built-in sample.
import { describe, expect, it } from 'vitest';
import { readCatalogFile } from '../../src/app/catalog-file.ts';
import { accesses } from '../../src/catalog/catalog.ts';
import { sortKey } from '../../src/catalog/listing.ts';
import { sampleCatalog } from '../../src/catalog/sample.ts';
import { formatProblem } from '../../src/lib/errors.ts';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const problemsOf = (content: unknown) => {
  const result = readCatalogFile(typeof content === 'string' ? content : JSON.stringify(content));
  return 'problems' in result ? result.problems.map(formatProblem) : [];
};

describe('a catalog file', () => {
  it('gets defaults for missing fields, and the folders that only a service names', () => {
    const result = readCatalogFile(
      JSON.stringify({
        folders: [{ folderName: 'A', description: 'first' }],
        services: [
          { serviceName: 'x', type: 'MapServer' },
          { folderName: 'B', serviceName: 'y', type: 'MapServer', description: 'y', access: 'organization' },
        ],
      }),
    );
    expect(result).toEqual({
      catalog: {
        folders: [
          { folderName: 'A', description: 'first' },
          { folderName: 'B', description: '' },
        ],
        services: [
          expect.objectContaining({ folderName: '/', description: '', url: null, access: 'public' }),
          expect.objectContaining({ folderName: 'B', serviceName: 'y', access: 'organization' }),
        ],
      },
    });
  });

  it('may contain the JSON of the API, a byte order mark and a blank address', () => {
    const shown = { folderName: '/', serviceName: 'x', type: 'T', url: '', createdAt: 1, updatedAt: 2 };
    expect(problemsOf(`\uFEFF${JSON.stringify({ services: [shown] })}`)).toEqual([]);
  });

  it('is refused with a list of all its problems', () => {
    const service = { serviceName: 'ok', type: 'MapServer' };
    expect(
      problemsOf({
        folders: [{ folderName: 'a.b' }, { description: 'no name' }],
        services: [
          { ...service, type: '1' },
          { ...service, url: 'ftp://x' },
          { ...service, access: 'me' },
          { ...service, extra: 'x'.repeat(66_000) },
          { serviceName: 'y' },
          { ...service, serviceName: 'x' },
          { ...service, serviceName: 'X' },
        ],
      }).map((problem) => problem.split(':')[0]),
    ).toEqual([
      'folders[0].folderName',
      'folders[1].folderName',
      'services[0].type',
      'services[1].url',
      'services[2].access',
      'services[3]',
      'services[4].type',
      'services[6]',
    ]);
  });

  it.each([
    ['{', /^is not JSON/],
    [[], /^must be an object with the arrays folders and services\.$/],
    [{ folders: {} }, /^folders: must be an array\.$/],
    [{ services: [{ serviceName: 'y' }] }, /^services\[0\]\.type: is required\.$/],
    [{ services: ['x'] }, /^services\[0\]: must be an object\.$/],
    [{ folders: [{ folderName: 'A', extra: 1 }] }, /^folders\[0\]: has the unknown key "extra"\.$/],
    [
      { folders: [{ folderName: 'A' }, { folderName: 'a' }] },
      /^folders\[1\]: has the same name as folders\[0\]/,
    ],
    [
      {
        services: [
          { serviceName: 'x', type: 'T' },
          { folderName: '/', serviceName: 'X', type: 't' },
        ],
      },
      /^services\[1\]: has the same name as services\[0\], ignoring case\.$/,
    ],
    [
      { folders: [{ folderName: 'Maps' }], services: [{ folderName: 'maps', serviceName: 'x', type: 'T' }] },
      /^services\[0\]\.folderName: differs from Maps only in case/,
    ],
  ])('%j is refused: %s', (content, expected) => {
    expect(problemsOf(content)).toEqual([expect.stringMatching(expected)]);
  });
});

describe('the catalog file and REST apply the same rules', () => {
  const server = perFile(startServer);

  const nameRule =
    'must be 1 to 128 characters, no blank at either end, no control characters and none of / \\ ? # % * : " < > |';
  const folderRule = `${nameRule}, no dot, and not webhooks, createFolder, createService or exists.`;
  const typeRule = 'must be a letter and up to 63 letters or digits.';
  const urlRule = 'must be an absolute http or https address of at most 2048 characters.';
  const emoji = '\u{1F5FA}';

  /** The problems that REST reports for the operation, each with its field. */
  async function restProblems(operation: string, fields: Record<string, string>): Promise<string[]> {
    const token = server.token('administrator');
    const response = await server.post(`/admin/services/${operation}`, { ...fields, token });
    return response.statusCode === 200 ? [] : response.json<{ error: { details: string[] } }>().error.details;
  }

  const service = { serviceName: 'Test', type: 'MapServer' };
  it.each([
    ['serviceName', '', 'is required.'],
    ['serviceName', ' x', `${nameRule}.`],
    ['serviceName', 'a/b', `${nameRule}.`],
    ['serviceName', '.', `${nameRule}.`],
    ['serviceName', '..', `${nameRule}.`],
    ['serviceName', 'a\nb', `${nameRule}.`],
    ['serviceName', 'x'.repeat(129), `${nameRule}.`],
    ['serviceName', emoji.repeat(129), `${nameRule}.`],
    ['serviceName', 'a\u2028b', 'must be one line.'],
    ['type', '', 'is required.'],
    ['type', '1', typeRule],
    ['type', 'Map Server', typeRule],
    ['type', 'x'.repeat(65), typeRule],
    ['description', 'x'.repeat(4001), 'must be at most 4000 characters.'],
    ['description', emoji.repeat(4001), 'must be at most 4000 characters.'],
    ['description', 'a\u0007b', 'must not contain control characters.'],
    ['capabilities', 'Map\nQuery', 'must be one line.'],
    ['capabilities', 'Map\u2028Query', 'must be one line.'],
    ['capabilities', 'x'.repeat(1001), 'must be at most 1000 characters.'],
    ['capabilities', 'a\u0007b', 'must not contain control characters.'],
    ['parentType', '1', typeRule],
    ['parentType', 'x'.repeat(65), typeRule],
    ['url', 'ftp://x', urlRule],
    ['url', '/relative', urlRule],
    ['url', `https://x.example/${'x'.repeat(2048)}`, urlRule],
    ['access', 'me', 'must be one of public, organization, administrators.'],
    ['access', 'Public', 'must be one of public, organization, administrators.'],
  ])('a service with the %s %j', async (name, value, message) => {
    const bad = { ...service, [name]: value };
    expect(await restProblems('createService', bad)).toEqual([`${name}: ${message}`]);
    expect(problemsOf({ services: [bad] })).toEqual([`services[0].${name}: ${message}`]);
  });

  it.each([
    ['folderName', 'a.b', folderRule],
    ['folderName', 'a ', folderRule],
    ['folderName', 'Webhooks', folderRule],
    ['folderName', '.', folderRule],
    ['folderName', 'x'.repeat(129), folderRule],
    ['folderName', 'a\u2028b', 'must be one line.'],
  ])('a folder, also one named by a service, with the %s %j', async (name, value, message) => {
    expect(await restProblems('createFolder', { [name]: value })).toEqual([`${name}: ${message}`]);
    expect(problemsOf({ folders: [{ [name]: value }] })).toEqual([`folders[0].${name}: ${message}`]);
    const named = { ...service, [name]: value };
    expect(problemsOf({ services: [named] })).toEqual([`services[0].${name}: ${message}`]);
  });

  it.each([
    ['folderName', '', 'is required.'],
    ['folderName', '/', folderRule],
    ['description', 'x'.repeat(4001), 'must be at most 4000 characters.'],
    ['description', 'a\u0007b', 'must not contain control characters.'],
  ])('a folder with the %s %j', async (name, value, message) => {
    const bad = { folderName: 'Test', [name]: value };
    expect(await restProblems('createFolder', bad)).toEqual([`${name}: ${message}`]);
    expect(problemsOf({ folders: [bad] })).toEqual([`folders[0].${name}: ${message}`]);
  });

  it.each([
    { description: emoji.repeat(4000) },
    { description: 'two\nlines' },
    { capabilities: ` Map ,${' '.repeat(2000)},Query ` },
    { serviceName: emoji.repeat(128), type: 'x'.repeat(64) },
    { url: ' ', parentType: ' ', access: ' ', folderName: ' ' },
    { folderName: '/', url: ' https://x.example ', access: ' public ' },
  ])('both accept %j', async (traits) => {
    const good = { serviceName: 'Good', type: 'T', ...traits };
    expect(await restProblems('createService', good)).toEqual([]);
    const name = encodeURIComponent(`${good.serviceName}.${good.type}`);
    const path = `/admin/services/${name}`;
    const token = server.token('administrator');
    const stored = (await server.get(`${path}?token=${token}`)).json<Record<string, unknown>>();
    const result = readCatalogFile(JSON.stringify({ services: [good] }));
    const { createdAt, updatedAt, ...fields } = stored;
    expect([typeof createdAt, typeof updatedAt]).toEqual(['number', 'number']);
    expect(result).toEqual({ catalog: { folders: [], services: [fields] } });
    await server.post(`${path}/delete`, { token });
  });

  it.each([1, true, null, [], {}])('a value of the file that is not text: %j', (value) => {
    const texts = ['type', 'description', 'capabilities', 'parentType', 'access'];
    const names = ['folderName', 'serviceName', ...texts];
    const bad = Object.fromEntries(names.map((name) => [name, value]));
    expect(problemsOf({ services: [bad] })).toEqual(
      names.map((name) => `services[0].${name}: must be text.`),
    );
    const withUrl = { ...service, url: value };
    expect(problemsOf({ services: [withUrl] })).toEqual(
      value === null ? [] : ['services[0].url: must be text.'],
    );
  });
});

it('the sample has 12 services in the root and three folders: 9 public, 2 organization, 1 administrators', () => {
  expect(sampleCatalog.folders).toHaveLength(3);
  expect(new Set(sampleCatalog.services.map(({ folderName }) => folderName)).size).toBe(4);
  expect(
    accesses.map(
      (access) => sampleCatalog.services.filter(({ access: given = 'public' }) => given === access).length,
    ),
  ).toEqual([9, 2, 1]);
  expect(problemsOf(sampleCatalog)).toEqual([]);
});

it('names are sorted by code point, not by UTF-16 unit', () => {
  const names = ['\u{1F5FA}', '\uFF21', 'b', 'B', 'a', '', 'ab'];
  names.sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
  expect(names).toEqual(['', 'B', 'a', 'ab', 'b', '\uFF21', '\u{1F5FA}']);
});
