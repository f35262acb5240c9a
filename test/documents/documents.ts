// The documents of the repository, and what their Markdown contains: headings, links and code spans.
import { existsSync, readFileSync, readdirSync } from 'node:fs';

const root = new URL('../../', import.meta.url);

export type Document = {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
};

export function exists(path: string): boolean {
  return existsSync(new URL(path, root));
}

export function readDocument(path: string): Document {
  return { path, text: readFileSync(new URL(path, root), 'utf8') };
}

/** All files of a folder, or none if it does not exist. */
export function filesIn(folder: string, extensions: RegExp): string[] {
  if (!exists(folder)) return [];
  return readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .map((name) => `${folder}${name.replaceAll('\\', '/')}`)
    .filter((path) => extensions.test(path) && !path.includes('node_modules/'))
    .sort();
}

/** Every page for readers that exists. */
export function readDocuments(): Document[] {
  const single = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', 'deploy/README.md'];
  const paths = [...single.filter(exists), ...filesIn('docs/', /\.md$/), ...filesIn('examples/', /\.md$/)];
  return paths.map(readDocument);
}

/** The text without fenced code and comments. Lines keep their numbers. */
export function withoutBlocks(text: string): string {
  return text
    .replace(/^( *)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1\2[^\n]*$/gm, onlyLineBreaks)
    .replace(/<!--[\s\S]*?-->/g, onlyLineBreaks);
}

function withoutCode(text: string): string {
  return withoutBlocks(text).replace(/(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)/g, onlyLineBreaks);
}

function onlyLineBreaks(text: string): string {
  return text.replace(/[^\n]/g, '');
}

/** The inline code of a text. */
export function codeSpans(text: string): string[] {
  const spans = withoutBlocks(text).matchAll(/(`+)(?!`)([\s\S]*?)(?<!`)\1(?!`)/g);
  return [...spans].map(([, , content = '']) => content.trim());
}

/** The anchors that GitHub gives the headings of a page, and those that the page sets itself. */
export function anchorsIn(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of withoutBlocks(text).matchAll(/^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*$/gm)) {
    const slug = slugOf(heading);
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  for (const [, id = ''] of withoutBlocks(text).matchAll(/<a\s[^>]*\b(?:id|name)="([^"]+)"/g))
    anchors.add(id);
  return anchors;
}

function slugOf(heading: string): string {
  return heading
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>]+>/g, '')
    .replace(/(^|\W)_([^_]+)_(?=\W|$)/g, '$1$2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
    .replaceAll(' ', '-');
}

/** The targets of all links and images. */
export function linksIn(text: string): string[] {
  const prose = withoutCode(text);
  const inline = prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g);
  const references = prose.matchAll(/^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?/gm);
  const html = prose.matchAll(/\b(?:href|src|srcset)="([^"\s]+)[^"]*"/g);
  return [...inline, ...references, ...html].map(([, target = '']) => target);
}

/** The names of the npm scripts that a page mentions, in code blocks too. */
export function npmScriptsIn(text: string): string[] {
  return [...text.matchAll(/\bnpm run (?:(?:--silent|-s) )?([a-z][\w:-]*)/g)].map(([, name = '']) => name);
}
