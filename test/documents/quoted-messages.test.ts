// The messages that docs/operate/kubernetes.md and docs/troubleshooting.md quote are those of the code, so that a
// search for a message finds its explanation.
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

/** The quotes in bold at the beginning of the items beneath the heading, without items about the pods of Steward itself. */
function readQuotes(): string[] {
  const page = readFileSync(`${checkout}docs/operate/kubernetes.md`, 'utf8');
  const section = page.slice(page.indexOf('\n## When an upgrade fails'));
  const titles = [...section.matchAll(/^- \*\*([^]*?)\*\*:/gm)].map(([, title = '']) =>
    title.replaceAll(/\s+/g, ' '),
  );
  return titles
    .filter((title) => !title.startsWith('Steward') && !title.startsWith('none'))
    .flatMap((title) => [...title.matchAll(/`([^`]+)`/g)].map(([, quote = '']) => quote));
}

const partsOf = (quote: string) =>
  quote
    .split(/…|\d+/)
    .map((part) => part.replaceAll(/^[\s:;,.()]+|[\s:;,.()]+$/g, ''))
    .filter((part) => part !== '');

it('every quoted message is in the code', () => {
  const texts = readTexts();
  const quotes = readQuotes();
  expect(quotes.length).toBeGreaterThan(20);
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
