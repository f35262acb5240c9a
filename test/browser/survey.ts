// Reads pages without displaying them: checks the structure of each, and selects those that together have every
// kind of element.
import type { Page } from 'playwright-core';

/** What is wrong with the structure of a page, and the kinds of its elements. */
export type Survey = {
  readonly path: string;
  readonly problems: readonly string[];
  readonly kinds: readonly string[];
};

/**
 * Defines `kindOf` in the browser. The kind of an element is what the stylesheet and the rules of axe-core depend
 * on: its tag, classes, type, role, state and autocompletion.
 */
const kindScript = `
  const nameOf = (element) => [element.localName, ...[...element.classList].sort()].join('.');
  const kindOf = (element) => {
    const marks = [...element.attributes].flatMap(({ name, value }) => {
      if (/^(type|role|autocomplete)$/.test(name)) return name + '=' + value;
      return /^(aria-.*|disabled|hidden|open|readonly|tabindex)$/.test(name) ? name : [];
    });
    return [nameOf(element), ...marks.sort()].join(' ');
  };
  const kindsIn = (elements) => [...new Set(elements.map(kindOf))];
`;

/** Defines `survey` in the browser, whose parser reads the pages. */
const surveyScript = `
  const isNamed = (control) =>
    control.labels.length > 0 || control.hasAttribute('aria-label') || control.hasAttribute('aria-labelledby');

  async function survey(path) {
    const response = await fetch(path, { headers: { accept: 'text/html' } });
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const elements = [...page.querySelectorAll('*')];
    const ids = elements.map(({ id }) => id).filter((id) => id !== '').sort();
    const controls = [...page.querySelectorAll('input:not([type=hidden]), select, textarea')];
    const problems = [
      response.status !== 200 && 'HTTP ' + response.status,
      page.documentElement.lang === '' && 'no language',
      page.title.trim() === '' && 'no title',
      page.querySelectorAll('h1').length !== 1 && 'not exactly one h1',
      ...ids.map((id, index) => id === ids[index + 1] && 'two elements have the id ' + id),
      ...controls.map((control) => !isNamed(control) && 'no label: ' + control.outerHTML),
    ];
    return { path, problems: problems.filter(Boolean), kinds: kindsIn(elements) };
  }
`;

/** The page must have the origin of the paths. */
export function surveyPages(page: Page, paths: readonly string[]): Promise<Survey[]> {
  return page.evaluate<Survey[]>(`(async () => {
    ${kindScript} ${surveyScript}
    const surveys = [];
    for (const path of ${JSON.stringify(paths)}) surveys.push(await survey(path));
    return surveys;
  })()`);
}

/**
 * Selects pages until every kind of element is on one of them, next the page with the most kinds that are still
 * missing.
 */
export function selectPages(surveys: readonly Survey[]): string[] {
  const selected: string[] = [];
  const missing = new Set(surveys.flatMap(({ kinds }) => kinds));
  while (missing.size > 0) {
    const count = ({ kinds }: Survey) => kinds.filter((kind) => missing.has(kind)).length;
    const [next] = surveys.toSorted((one, other) => count(other) - count(one));
    if (!next) break;
    selected.push(next.path);
    for (const kind of next.kinds) missing.delete(kind);
  }
  return selected;
}

/**
 * Removes the rows of tables and lists, except the first three, that have no other kind of element than those
 * before them.
 */
export async function removeRepeatedRows(page: Page): Promise<void> {
  await page.evaluate(`{
    ${kindScript}
    for (const list of document.querySelectorAll('tbody, ul, ol')) {
      const known = new Set();
      [...list.children].forEach((row, index) => {
        const kinds = kindsIn([row, ...row.querySelectorAll('*')]);
        if (index >= 3 && kinds.every((kind) => known.has(kind))) row.remove();
        for (const kind of kinds) known.add(kind);
      });
    }
  }`);
}
