// Tests that everything the documents cite exists: pages, anchors, files and npm scripts.
import { describe, expect, it } from 'vitest';
import { filesIn, readDocument, readDocuments } from './documents.ts';
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
