// CATALOG_FILE and the built-in sample (contract 4).
import { describe, expect, it } from 'vitest';
import { accesses } from '../../src/catalog/catalog.ts';
import { readCatalogFile } from '../../src/catalog/catalog-file.ts';
import { byCodePoint } from '../../src/catalog/listing.ts';
import { sampleCatalog } from '../../src/catalog/sample.ts';

const problemsOf = (content: unknown) => {
  const result = readCatalogFile(typeof content === 'string' ? content : JSON.stringify(content));
  return 'problems' in result ? result.problems : [];
};

describe('a catalog file', () => {
  it('fills in what is left out and makes folders that only a service names', () => {
    const result = readCatalogFile(
      JSON.stringify({
        folders: [{ folderName: 'A', description: 'first' }],
        services: [
          { serviceName: 'x', type: 'MapServer' },
          {
            folderName: 'B',
            serviceName: 'y',
            type: 'MapServer',
            description: 'not the folder’s',
            access: 'organization',
          },
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
          expect.objectContaining({
            folderName: '/',
            serviceName: 'x',
            description: '',
            url: null,
            access: 'public',
          }),
          expect.objectContaining({ folderName: 'B', serviceName: 'y', access: 'organization' }),
        ],
      },
    });
  });

  it('takes what the API shows, a byte order mark and a blank address', () => {
    const shown = { folderName: '/', serviceName: 'x', type: 'T', url: '', createdAt: 1, updatedAt: 2 };
    expect(problemsOf(`\uFEFF${JSON.stringify({ services: [shown] })}`)).toEqual([]);
  });

  it('says what is allowed where something is missing, beside what is there twice', () => {
    const twice = { serviceName: 'x', type: 'T' };
    expect(problemsOf({ services: [twice, { serviceName: 'y' }, { ...twice, type: 't' }] })).toEqual([
      'services[1].type: must be a letter and up to 63 letters or digits.',
      'services[2]: has the same name as services[0] but for case.',
    ]);
  });

  it('is refused with all its problems at once', () => {
    const service = { serviceName: 'ok', type: 'MapServer' };
    expect(
      problemsOf({
        folders: [{ folderName: 'a.b' }, { description: 'no name' }],
        services: [
          { ...service, type: '1' },
          { ...service, url: 'ftp://x' },
          { ...service, access: 'me' },
          { ...service, extra: 1 },
        ],
      }).map((problem) => problem.split(':')[0]),
    ).toEqual([
      'folders[0].folderName',
      'folders[1].folderName',
      'services[0].type',
      'services[1].url',
      'services[2].access',
      'services[3]',
    ]);
  });

  it.each([
    ['{', /^is not JSON/],
    [[], /^The file: /],
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
      /^services\[1\]: has the same name as services\[0\]/,
    ],
    [
      { folders: [{ folderName: 'Maps' }], services: [{ folderName: 'maps', serviceName: 'x', type: 'T' }] },
      /^services\[0\]\.folderName: differs from Maps only in case/,
    ],
  ])('%j is refused: %s', (content, expected) => {
    expect(problemsOf(content)).toEqual([expect.stringMatching(expected)]);
  });
});

it('the sample has 12 services in the root and three folders: 9 public, 2 organization, 1 administrators', () => {
  expect(sampleCatalog.folders).toHaveLength(3);
  expect(new Set(sampleCatalog.services.map(({ folderName }) => folderName)).size).toBe(4);
  expect(
    accesses.map((access) => sampleCatalog.services.filter((service) => service.access === access).length),
  ).toEqual([9, 2, 1]);
  expect(problemsOf(sampleCatalog)).toEqual([]);
});

it('names sort by code point, not by UTF-16 unit', () => {
  const names = ['\u{1F5FA}', '\uFF21', 'b', 'B', 'a', '', 'ab'];
  expect(names.sort(byCodePoint)).toEqual(['', 'B', 'a', 'ab', 'b', '\uFF21', '\u{1F5FA}']);
});
