// Every page in every state. After a change of a page, `npx vitest run --mode quick test/pages --update` writes the files
// in `golden` again: read the difference before you commit it.
import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { navigation } from '../../src/home/pages/frame.ts';
import { type Entry, pathTemplate, walk } from '../../src/rest/tree.ts';
import type { Hooks } from '../kit/hooks.ts';
import { startServer } from '../kit/server.ts';
import { render } from './render.ts';
import { type State, readPage, storyNames, walkStory } from './states.ts';

/** The paths that the stories show. */
const shownPaths = new Set<string>();

it.each(storyNames)('%s: texts, links, buttons and fields are those of the file', async (story) => {
  const files: string[] = [];
  await walkStory(story, async (state) => {
    // test/catalog/soap-page.test.ts describes the page of the SOAP service.
    if (state.answers.length > 0) return;
    const file = `${state.name.replaceAll(' ', '-')}.txt`;
    files.push(file);
    shownPaths.add(state.path.replace(/\?.*/, ''));
    await expect.soft(render(await readPage(state), state.part)).toMatchFileSnapshot(`golden/${file}`);
    await expectKnown(state);
  });
  const stored = readdirSync(new URL('golden', import.meta.url), { recursive: true }).map(String);
  expect(stored.filter((file) => file.startsWith(`${story}/`) && !files.includes(file))).toEqual([]);
});

/** The pages without an id that other pages link, instead of the navigation. */
const linkedElsewhere = ['security/self', 'security/self/keys', 'services/webhooks/eventTypes'];

it('every page is in the navigation, if it has no id, and in a story', async () => {
  const { app, store } = await startServer();
  const pages = [...walk(app.trees.admin)].filter(
    // The history of upgrades leads to the page of the jobs.
    ({ operation, resource, route }) => !operation && resource.view && route !== 'system/upgrades/history',
  );
  const navigated = navigation(store, () => 0).map(({ path }) => path.join('/'));
  const fixed = pages.map(({ route }) => route).filter((route) => !route.includes('{'));
  expect(
    fixed.filter((route) => ![...navigated, ...linkedElsewhere].includes(route)),
    'Add these pages to src/home/pages/frame.ts, or to linkedElsewhere.',
  ).toEqual([]);
  const patternOf = (entry: Entry) =>
    new RegExp(
      `^${pathTemplate('/admin', entry)
        .replaceAll('.', '\\.')
        .replaceAll(/\{\w+\}/g, '[^/]+')}$`,
    );
  const patterns = pages.map((entry) => ({ title: entry.resource.title, pattern: patternOf(entry) }));
  // A resource may have several paths.
  const told = [...shownPaths].map((path) => patterns.find(({ pattern }) => pattern.test(path))?.title);
  expect(
    pages.filter(({ resource }) => !told.includes(resource.title)).map(({ route }) => route),
    'Show these pages in test/pages/states.ts.',
  ).toEqual([]);
});

/** Form tokens and ids are the same whenever the page is read, so that the script gets 304 for what it has. */
async function expectKnown({ server, path, session, status, name }: State): Promise<void> {
  if (status !== 200) return;
  const poll = (tag: unknown) =>
    server.get(path, {
      accept: 'text/html',
      'steward-poll': 'page',
      'if-none-match': String(tag),
      ...(session !== undefined && { cookie: `steward_session=${session}` }),
    });
  const { headers } = await poll('');
  expect.soft((await poll(headers.etag)).statusCode, name).toBe(304);
}

/** Matches the paths of the operations that read-only mode refuses: those of forms, or those of links to forms. */
function refusedPaths({ app }: Hooks, kind: 'form' | 'link'): RegExp {
  const routes = [...walk(app.trees.admin)].flatMap(({ route, resource, operation }) => {
    // Its form is on the page of the resource, which may be read.
    if (kind === 'link' && operation === resource.onPost) return [];
    const isRefused = operation?.effect === 'writes' && operation.whileReadOnly === 'refused';
    return isRefused ? route.replaceAll(/\{\w+\}/g, '[^/"?]+') : [];
  });
  return new RegExp(`^/admin/(${routes.join('|')})(\\?|$)`);
}

/** What a page leaves out in read-only mode; it shows all else as disabled. */
const leftOut = /^(Upload a file …|Start the upgrade|Schedule the upgrade|.* the first .*)$/;

/** The texts of the links to refused operations, and of the buttons that send one. */
function offersIn(page: string, server: Hooks): string[] {
  const main = page.slice(page.indexOf('<main'), page.indexOf('</main>'));
  const links = [...main.matchAll(/<a [^>]*href="([^"]*)"[^>]*>([^<]*)</g)]
    .filter(([, href = '']) => refusedPaths(server, 'link').test(href))
    .map(([, , label = '']) => label.trim());
  const forms = [...main.matchAll(/<form[^>]* action="([^"]*)"[^]*?<\/form>/g)]
    .filter(([form, action = '']) => /method="post"/.test(form) && refusedPaths(server, 'form').test(action))
    .flatMap(([form]) => [...form.matchAll(/<button(?![^>]* disabled)[^>]*>([^<]*)</g)])
    .map(([, label = '']) => label.trim());
  return [...links, ...forms];
}

it.each(storyNames)(
  '%s: in read-only mode, what is refused is disabled, and each page says why',
  async (story) => {
    await walkStory(story, async (state) => {
      const { server, session, status, name } = state;
      if (session === undefined || status !== 200) return;
      const change = (isReadOnly: string) =>
        server.post('/admin/mode/update', { isReadOnly, message: 'Back at <noon>.' }, server.administrator);
      const before = offersIn(await readPage(state), server);
      await change('true');
      const page = await readPage(state);
      expect(page.match(/The system is read-only\.<\/strong>\s*Back at &lt;noon&gt;\./g), name).toHaveLength(
        1,
      );
      expect.soft(offersIn(page, server), name).toEqual([]);
      const disabled = [
        ...page.matchAll(
          /<button(?: class="(?:primary|danger)" disabled|[^>]* disabled title="Not possible while the system is read-only\.")\s*>([^<]*)</g,
        ),
      ].map(([, label = '']) => label.trim());
      expect
        .soft(
          before.filter((label) => !disabled.includes(label) && !leftOut.test(label)),
          name,
        )
        .toEqual([]);
      await change('false');
    });
  },
);
