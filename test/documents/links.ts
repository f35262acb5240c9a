// Finds what documents cite and the repository does not have: pages, anchors, files and npm scripts.
import { posix } from 'node:path';
import {
  type Document,
  anchorsIn,
  codeSpans,
  exists,
  filesIn,
  linksIn,
  npmScriptsIn,
  readDocument,
} from './documents.ts';

/** The paths of all source files. */
const sources = ['src/', 'test/', 'bench/', 'scripts/', 'examples/'].flatMap((folder) =>
  filesIn(folder, /\.(ts|js|sql)$/),
);

/** Relative links whose file or anchor does not exist. */
export function brokenLinks({ path, text }: Document): string[] {
  return linksIn(text)
    .filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target))
    .filter((target) => {
      const [file = '', anchor = ''] = target.split('#', 2);
      const resolved = file === '' ? path : posix.join(posix.dirname(path), decodeURI(file));
      return !isFound(resolved, anchor);
    })
    .map((target) => `${path}: the link ${target} leads nowhere.`);
}

function isFound(file: string, anchor: string): boolean {
  if (file.startsWith('..') || !exists(file)) return false;
  return anchor === '' || !file.endsWith('.md') || anchorsIn(readDocument(file).text).has(anchor);
}

const folders = /^(src|test|docs|deploy|bench|scripts|wsdl|examples)\/[\w./*{},-]*$/;
const topLevel =
  /^([A-Z]+\.md|[\w.]+\.config\.[jt]s|tsconfig[\w.]*\.json|package(-lock)?\.json|\.env\.example|\.ci\/run|LICENSE)$/;
const source = /^[\w./-]+\.(ts|sql)$/;

/** Code spans that look like files of the repository and are none. */
export function missingFiles({ path, text }: Document): string[] {
  return codeSpans(text)
    .map((span) => span.replace(/(#[\w-]+|:\d+)$/, ''))
    .filter((span) => !expandBraces(span).every((name) => isNoFile(name) || isFile(name)))
    .map((span) => `${path}: the file ${span} does not exist.`);
}

function isNoFile(name: string): boolean {
  return !folders.test(name) && !topLevel.test(name) && !source.test(name);
}

/** Pages may cite a source by the end of its path. */
function isFile(name: string): boolean {
  if (!folders.test(name) && !topLevel.test(name)) {
    return sources.some((path) => path === name || path.endsWith(`/${name}`));
  }
  return exists(name.replace(/[^/]*\*.*$/, ''));
}

/** `a/{b,c}.ts` → `a/b.ts`, `a/c.ts`. */
function expandBraces(name: string): string[] {
  const [all, before = '', list = '', after = ''] = /^([^{]*)\{([^{}]*)\}(.*)$/.exec(name) ?? [];
  if (all === undefined) return [name];
  return list.split(',').flatMap((part) => expandBraces(before + part + after));
}

/** Scripts that package.json does not have. */
export function missingScripts({ path, text }: Document, scripts: readonly string[]): string[] {
  return npmScriptsIn(text)
    .filter((name) => !scripts.includes(name))
    .map((name) => `${path}: package.json has no script ${name}.`);
}

/** Pages and anchors that source files cite, as `docs/page.md#anchor`. */
export function missingCitations({ path, text }: Document): string[] {
  const cited = [...text.matchAll(/\bdocs\/[\w/-]+\.md(?:#[\w-]+)?/g)].map(([citation]) => citation);
  return [...new Set(cited)]
    .filter((citation) => {
      const [file = '', anchor = ''] = citation.split('#', 2);
      return !isFound(file, anchor);
    })
    .map((citation) => `${path}: ${citation} does not exist.`);
}

/** Pages that the index does not link. */
export function unlinkedPages(index: Document, pages: readonly string[]): string[] {
  const linked = linksIn(index.text).map((target) =>
    posix.join(posix.dirname(index.path), target.split('#', 1)[0] ?? ''),
  );
  return pages.filter((page) => page !== index.path && !linked.includes(page));
}
