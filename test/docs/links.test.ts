// Tests that everything the documents cite exists: pages, anchors, files, test titles and npm scripts.
import { describe, expect, it } from 'vitest';
import {
  type Document,
  anchorsIn,
  citedTests,
  exists,
  filesIn,
  readDocument,
  readDocuments,
} from './documents.ts';
import {
  type Repository,
  brokenLinks,
  missingCitations,
  missingFiles,
  missingScripts,
  missingTests,
  unlinkedPages,
} from './links.ts';

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

    it('cites existing tests only', () => {
      expect(missingTests(document)).toEqual([]);
    });

    it('names existing npm scripts only', () => {
      expect(missingScripts(document, Object.keys(scripts))).toEqual([]);
    });
  },
);

it('comments in the code cite existing sections of the documents', () => {
  const sources = ['src/', 'test/', 'bench/', 'scripts/', 'deploy/', 'examples/']
    .flatMap((folder) => filesIn(folder, /\.(ts|js|sql|css|ya?ml|env|sh|py|php|wsdl)$/))
    .filter((path) => !path.startsWith('test/docs/'));
  const cited = sources.map(readDocument).flatMap((document) => missingCitations(document));
  expect([...cited, ...missingCitations(readDocument('.env.example'))]).toEqual([]);
});

it('docs/index.md links every page', () => {
  if (!exists('docs/index.md')) return;
  expect(unlinkedPages(readDocument('docs/index.md'), filesIn('docs/', /\.md$/))).toEqual([]);
});

it('docs/security.md has a source and a test for every promise', () => {
  const chapters = readDocument('docs/security.md').text.split(/^(?=## )/m);
  const items = chapters.filter((text) => text.startsWith('## V')).flatMap((text) => text.split(/^- |\n\n/m));
  const promises = items.filter((text) => text.trimEnd().endsWith(')'));
  expect(promises.length).toBeGreaterThan(70);
  const source = /\(`[^`]+`(?:,\s+`[^`]+`)?;\s+`[^`]+`\s+“[^”]+”\)$/;
  expect(promises.filter((text) => !source.test(text.trimEnd()) || citedTests(text).length !== 1)).toEqual(
    [],
  );
});

it('docs/tests.md has a proof for every promise', () => {
  const [, promises = ''] = readDocument('docs/tests.md').text.split(/^(?=## Nothing is lost)/m);
  const items = promises
    .split(/^- /m)
    .slice(1)
    .map((text) => text.split('\n\n', 1)[0] ?? '');
  expect(items.length).toBeGreaterThan(50);
  expect(items.flatMap(citedTests).length).toBeGreaterThan(100);
  expect(items.filter((item) => citedTests(item).length === 0)).toEqual([]);
});

it('.ci/run runs the test command of README.md', () => {
  const [, command = ''] = /Run its tests: `([^`]+)`/.exec(readDocument('README.md').text) ?? [];
  expect(command).toBe('npm ci && npm test');
  expect(readDocument('.ci/run').text).toContain(`\n  ${command} `);
});

describe('the checks', () => {
  const contents: Readonly<Record<string, string>> = {
    'docs/page.md': '# A page\n\n## Two words\n\n## Two words\n',
    'src/rest/form.ts': '',
    'test/rest/form.test.ts': "it('reads a form', () => {});",
  };
  const files: Repository = {
    exists: (path) =>
      path in contents ||
      Object.keys(contents).some((name) => name.startsWith(`${path.replace(/\/$/, '')}/`)),
    read: (path) => contents[path] ?? '',
    sources: ['src/rest/form.ts'],
  };
  const page = (text: string): Document => ({ path: 'docs/guides/new.md', text });

  it('find a link to a missing page or anchor', () => {
    const text = page(
      '[a](../page.md) [b](../page.md#two-words) [c](../none.md) ![d](none.png) [e](../page.md#three)',
    );
    expect(brokenLinks(text, files)).toEqual([
      'docs/guides/new.md: the link ../none.md leads nowhere.',
      'docs/guides/new.md: the link none.png leads nowhere.',
      'docs/guides/new.md: the link ../page.md#three leads nowhere.',
    ]);
  });

  it('find links of every kind, but none in code or comments, and none to other hosts', () => {
    const text = page(
      '[x]: none-1.md\n<img src="none-2.png">\n`[y](none-3.md)`\n<!-- [z](none-4.md) -->\n[w](https://example.com/none-5)\n\n```md\n[v](none-6.md)\n```\n[u](../../../outside.md)',
    );
    expect(brokenLinks(text, files).map((problem) => problem.split(' ')[3])).toEqual([
      '../../../outside.md',
      'none-1.md',
      'none-2.png',
    ]);
  });

  it('find a cited file that does not exist', () => {
    const text = page(
      '`src/rest/form.ts` `rest/form.ts` `form.ts` `src/rest/` `src/rest/*.ts` `src/rest/{form,none}.ts` `src/none.ts:12` `none.ts` `CHANGES.md` `npm test` `/admin/services` `a.json`',
    );
    expect(missingFiles(text, files).map((problem) => problem.split(' ')[3])).toEqual([
      'src/rest/{form,none}.ts',
      'src/none.ts',
      'none.ts',
      'CHANGES.md',
    ]);
  });

  it('find a cited test that does not exist', () => {
    const text = page(
      '`rest/form.test.ts`\n  “reads a\n  form”, “reads no form”; `rest/none.test.ts` “reads”',
    );
    expect(missingTests(text, files)).toEqual([
      'docs/guides/new.md: rest/form.test.ts has no test “reads no form”.',
      'docs/guides/new.md: rest/none.test.ts has no test “reads”.',
    ]);
  });

  it('find an npm script that does not exist', () => {
    expect(missingScripts(page('`npm run check`\n\n```sh\nnpm run --silent none\n```'), ['check'])).toEqual([
      'docs/guides/new.md: package.json has no script none.',
    ]);
  });

  it('find a citation of a missing page or section in code', () => {
    const text = {
      path: 'src/a.ts',
      text: '// See docs/page.md#two-words-1, docs/page.md#none and docs/none.md.',
    };
    expect(missingCitations(text, files)).toEqual([
      'src/a.ts: docs/page.md#none does not exist.',
      'src/a.ts: docs/none.md does not exist.',
    ]);
  });

  it('find a page that the index does not link', () => {
    const index = { path: 'docs/index.md', text: '[a](page.md#top)' };
    expect(unlinkedPages(index, ['docs/index.md', 'docs/page.md', 'docs/guides/new.md'])).toEqual([
      'docs/guides/new.md',
    ]);
  });

  it('give headings the anchors of GitHub', () => {
    const text =
      '# `GET` and `POST`, twice!\n\n## [A link](x.md) & more\n\n```sh\n# no heading\n```\n\n### _Über_ 2.0\n\n## V1.2 a_b\n\n<a id="own"></a>';
    expect([...anchorsIn(text)]).toEqual(['get-and-post-twice', 'a-link--more', 'über-20', 'v12-a_b', 'own']);
  });
});
