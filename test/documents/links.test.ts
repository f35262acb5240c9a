// Tests that everything the documents cite exists: pages, anchors, files and npm scripts.
import { describe, expect, it } from 'vitest';
import { anchorsIn, filesIn, readDocument, readDocuments } from './documents.ts';
import { brokenLinks, missingCitations, missingFiles, missingScripts, unlinkedPages } from './links.ts';

const { scripts } = JSON.parse(readDocument('package.json').text) as { scripts: Record<string, string> };

describe.each(readDocuments().map((document) => [document.path, document] as const))(
  '%s',
  (_path, document) => {
    it('has links to existing pages and anchors only', () => {
      expect(brokenLinks(document)).toEqual([]);
    });

    it('has no marks of an unfinished merge', () => {
      expect(document.text).not.toMatch(/^(<{7}|={7}|>{7})(?: |$)/m);
    });

    it('cites existing files only', () => {
      expect(missingFiles(document)).toEqual([]);
    });

    it('names existing npm scripts only', () => {
      expect(missingScripts(document, Object.keys(scripts))).toEqual([]);
    });
  },
);

it('comments in the code cite existing sections of the documents', () => {
  const sources = ['src/', 'test/', 'bench/', 'scripts/', 'deploy/', 'examples/']
    .flatMap((folder) => filesIn(folder, /\.(ts|js|sql|css|ya?ml|env|sh|py|php|wsdl)$/))
    .filter((path) => !path.startsWith('test/documents/'));
  const cited = sources.map(readDocument).flatMap((document) => missingCitations(document));
  expect([...cited, ...missingCitations(readDocument('.env.example'))]).toEqual([]);
});

it('docs/index.md links every page', () => {
  expect(unlinkedPages(readDocument('docs/index.md'), filesIn('docs/', /\.md$/))).toEqual([]);
});

it('.ci/run runs the test command of README.md', () => {
  const [, command = ''] = /Run its tests: `([^`]+)`/.exec(readDocument('README.md').text) ?? [];
  expect(command).toBe('npm ci && npm test');
  expect(readDocument('.ci/run').text).toContain(`\n  ${command} `);
});

describe('the checks find', () => {
  const inPage = (text: string) => ({ path: 'docs/guides/new.md', text });

  it('links to a missing page, picture or anchor, but none in code and none to other hosts', () => {
    const page = inPage(
      '[a](../protocol.md#limits) [b](../none.md) [c](../protocol.md#none)\n\n[d]: none-1.md\n<img src="none-2.png"> `[e](none-3.md)` [f](https://example.com/none-4)\n\n```md\n[g](none-5.md)\n```\n',
    );
    expect(brokenLinks(page).map((problem) => problem.split(' ')[3])).toEqual([
      '../none.md',
      '../protocol.md#none',
      'none-1.md',
      'none-2.png',
    ]);
  });

  it('files, npm scripts and sections that do not exist, and a page without a link', () => {
    const page = inPage(
      '`src/rest/form.ts` `rest/form.ts` `src/rest/` `src/rest/{form,none}.ts` `none.ts` `CHANGES.md` `npm run none`',
    );
    expect(missingFiles(page).map((problem) => problem.split(' ')[3])).toEqual([
      'src/rest/{form,none}.ts',
      'none.ts',
      'CHANGES.md',
    ]);
    expect(missingScripts(page, ['check'])).toHaveLength(1);
    expect(unlinkedPages(page, ['docs/none.md'])).toEqual(['docs/none.md']);
    expect(missingCitations(inPage('See docs/protocol.md#limits and docs/protocol.md#none.'))).toHaveLength(
      1,
    );
  });

  it('headings by the anchors of GitHub', () => {
    const text =
      '# `GET` and `POST`, twice!\n\n## [A link](x.md) & more\n\n```sh\n# no heading\n```\n\n### _Über_ 2.0\n\n## V1.2 a_b\n\n<a id="own"></a>';
    expect([...anchorsIn(text)]).toEqual(['get-and-post-twice', 'a-link--more', 'über-20', 'v12-a_b', 'own']);
  });
});
