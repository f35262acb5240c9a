// The messages that docs/operate/kubernetes.md, docs/operate/monitoring.md and docs/troubleshooting.md quote are those of
// the code, so that a search for a message finds its explanation.
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const checkout = fileURLToPath(new URL('../../', import.meta.url));

/**
 * All texts of the code: strings that are joined with + are one, and a value in a template is `…`, unless
 * it is a constant.
 */
function readTexts(folder = 'src/upgrades'): string {
  const files = readdirSync(`${checkout}${folder}`, { recursive: true, encoding: 'utf8' });
  const source = files
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(`${checkout}${folder}/${name}`, 'utf8'))
    .join('\n');
  const constants = new Map(
    [...source.matchAll(/\bconst (\w+) = '([^'\n]*)'/g)].map(([, name = '', value = '']) => [name, value]),
  );
  return source
    .replaceAll(/['`] \+\n\s*['`]/g, '')
    .replaceAll(/\$\{(\w+)\}/g, (_all, name: string) => constants.get(name) ?? '…')
    .replaceAll(/\$\{[^}]*\}/g, '…');
}

/** The quotes in bold at the beginning of the items of the page, or of those beneath the heading. */
function readQuotes(page: string, heading = ''): string[] {
  const text = readFileSync(`${checkout}docs/operate/${page}.md`, 'utf8');
  return (
    [...text.slice(text.indexOf(heading)).matchAll(/^- \*\*([^]*?)\*\*:/gm)]
      .map(([, title = '']) => title.replaceAll(/\s+/g, ' '))
      // These are about the pods of Steward itself.
      .filter((title) => !title.startsWith('Steward') && !title.startsWith('none'))
      .flatMap((title) => [...title.matchAll(/`([^`]+)`/g)].map(([, quote = '']) => quote))
  );
}

const partsOf = (quote: string) =>
  quote
    .split(/…|\d+/)
    .map((part) => part.replaceAll(/^[\s:;,.()]+|[\s:;,.()]+$/g, ''))
    .filter((part) => part !== '');

it.each([
  ['kubernetes', '\n## When an upgrade fails', 'src/upgrades', 20],
  ['monitoring', '', 'src', 8],
])('every quoted message of docs/operate/%s.md is in the code', (page, heading, folder, least) => {
  const texts = readTexts(folder);
  const quotes = readQuotes(page, heading);
  expect(quotes.length).toBeGreaterThan(least);
  const unknown = quotes.filter((quote) => partsOf(quote).some((part) => !texts.includes(part)));
  expect(unknown).toEqual([]);
});

it('every heading of docs/troubleshooting.md that quotes a message quotes the code', () => {
  const texts = readTexts('src');
  const page = readFileSync(`${checkout}docs/troubleshooting.md`, 'utf8');
  const headings = page.split('\n').filter((line) => line.startsWith('### '));
  const quotes = headings.flatMap((line) => [...line.matchAll(/`([^`]+)`/g)].map(([, quote = '']) => quote));
  expect(quotes.length).toBeGreaterThanOrEqual(headings.length);
  const unknown = quotes.filter((quote) => partsOf(quote).some((part) => !texts.includes(part)));
  // The message of a port in use is that of Node, and a list of choices is composed.
  expect(unknown).toEqual(['listen EADDRINUSE: address already in use …', 'LOG_LEVEL must be one of …']);
});
