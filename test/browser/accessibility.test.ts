// Checks with axe-core, wide and light, narrow and dark: the pages in every state, and of all pages of the directory,
// those that cover every kind of element. Checks the structure of every page.
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { walk } from '../../src/rest/tree.ts';
import { findBarriers, findOverflow, hasChromium, loadAxe, useBrowser } from '../kit/browser.ts';
import { type Hooks, startHooks } from '../kit/hooks.ts';
import { assets, startSteward } from '../kit/steward.ts';
import { type State, storyNames, walkStory } from '../pages/states.ts';
import { startControl } from '../testing/kit.ts';
import { removeRepeatedRows, selectPages, surveyPages } from './survey.ts';

const looks = {
  wide: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  narrow: { colorScheme: 'dark', viewport: { width: 360, height: 740 } },
} as const;

type Look = keyof typeof looks;

/** The addresses of all routes of both trees; `ids` gives the values of their parameters. */
function pathsOfAll(
  { admin, tokens }: Hooks['app']['trees'],
  ids: Readonly<Record<string, string>>,
): string[] {
  const fill = (route: string) =>
    // `ids.service` is at the root and does not exist in a folder.
    route
      .replace('{folder}/{service}', `{folder}/${ids.serviceInFolder}`)
      .replaceAll(/\{(\w+)\}/g, (_whole, param: string) => {
        const id = ids[param];
        if (id === undefined) throw new Error(`There is no id for {${param}}.`);
        return encodeURIComponent(id);
      });
  const paths = new Set<string>();
  for (const [prefix, root] of [
    ['/admin', admin],
    ['/tokens', tokens],
  ] as const)
    for (const { route } of walk(root)) {
      // The pages of a webhook are the same beneath its service.
      if (!route.includes('{service}/webhooks/{webhook}')) paths.add(`${prefix}/${fill(route)}`);
    }
  return [...paths];
}

/** The rules whose result depends on width or colours. */
const visualRules = ['color-contrast', 'link-in-text-block', 'scrollable-region-focusable', 'target-size'];

/**
 * Opens the details of the page and checks it: its width in both looks, all rules in the wide look, and those that
 * depend on the look in the narrow one. Changing the look takes long, so the wide one is first and last.
 */
async function checkPage(page: Page): Promise<string[]> {
  await page.evaluate(`for (const part of document.querySelectorAll('details')) part.open = true;`);
  const found: string[] = [];
  const note = (name: Look, barriers: readonly string[]) =>
    found.push(...barriers.map((barrier) => `${name}: ${barrier}`));
  await show(page, 'wide');
  note('wide', await findOverflow(page));
  await show(page, 'narrow');
  note('narrow', await findOverflow(page));
  await removeRepeatedRows(page);
  note('narrow', await findBarriers(page, visualRules));
  await show(page, 'wide');
  note('wide', await findBarriers(page));
  return found;
}

async function show(page: Page, look: Look): Promise<void> {
  const { colorScheme, viewport } = looks[look];
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize(viewport);
}

describe.skipIf(!hasChromium)('axe-core finds no problem', { timeout: 300_000 }, () => {
  const openPage = useBrowser();

  async function open(...given: Parameters<typeof openPage>): Promise<Page> {
    const page = await openPage(...given);
    await loadAxe(page);
    return page;
  }

  it.each(storyNames)('in any state of %s', async (story) => {
    const found: Record<string, string[]> = {};
    let address: string | undefined;
    const pages = new Map<string | undefined, Page>();
    const visit = async ({ name, server, path, session, status }: State) => {
      address ??= await server.listen();
      const page =
        pages.get(session) ?? (await open(address, session === undefined ? {} : { token: session }));
      pages.set(session, page);
      expect((await page.goto(path))?.status(), name).toBe(status);
      found[name] = await checkPage(page);
      // Its script would go on reading the page, in states that are not its own.
      await page.goto('about:blank');
    };
    await walkStory(story, visit, { assets });
    expect(Object.entries(found).filter(([, barriers]) => barriers.length > 0)).toEqual([]);
  });

  it('on any page of the directory', async () => {
    const server = await startHooks({ assets });
    const { id: webhook } = await server.register();
    await server.publish();
    await server.runtime.advance(1000);
    const itemFile = { name: 'license.json', content: '{}' };
    const token = server.token('administrator');
    const uploaded = await server.postParts('/admin/uploads/upload', { itemFile }, token);
    const patch = { versionManifest: '{"id":"pat_17022022_1250"}' };
    const upgraded = await server.post('/admin/system/upgrades/upgrade', patch, server.administrator);
    await server.runtime.advance(3_600_000);
    const windows = '[{"days":["sat","sun"],"from":"22:00","to":"04:00","timeZone":"Europe/Vienna"}]';
    await server.post('/admin/system/upgrades/config/update', { windows }, server.administrator);
    const start = '/admin/services/World.MapServer/start';
    const started = await server.post(start, { async: 'true' }, server.administrator);
    const paths = pathsOfAll(server.app.trees, {
      serviceJob: started.json<{ jobsUrl: string }>().jobsUrl.split('/').at(-1) ?? '',
      webhook,
      itemID: uploaded.json<{ item: { itemID: string } }>().item.itemID,
      job: upgraded.json<{ jobId: string }>().jobId,
      delivery: (await server.deliveriesOf(webhook)).deliveries[0]?.id ?? '',
      folder: 'Maps',
      service: 'World.MapServer',
      serviceInFolder: 'Roads.MapServer',
    });
    expect(paths.length).toBeGreaterThan(60);
    const page = await open(await server.listen(), { token });
    await page.goto('/admin/system/upgrades/available');
    const surveys = await surveyPages(page, paths);
    expect(surveys.filter(({ problems }) => problems.length > 0)).toEqual([]);
    const found: Record<string, string[]> = {};
    for (const path of selectPages(surveys)) {
      await page.goto(path);
      found[path] = await checkPage(page);
    }
    expect(Object.entries(found).filter(([, barriers]) => barriers.length > 0)).toEqual([]);
  });

  it('on the pages of test control', async () => {
    const { url, control, soap } = await startControl();
    await control.addFailure({ match: { soapOperation: 'GetFolders' }, respond: { fault: 'Server' } });
    await control.setClock({ frozen: true });
    await soap('<GetFolders xmlns="http://www.example.com/schemas/Product/10.0"/>');
    const page = await open(url);
    const found: Record<string, string[]> = {};
    for (const path of ['/control', '/control?request=1']) {
      await page.goto(path);
      found[path] = await checkPage(page);
    }
    expect(found).toEqual({ '/control': [], '/control?request=1': [] });
  });

  it('on a page with an open panel, menu or drawer', async () => {
    const steward = await startSteward();
    const fields = { name: 'Harbour', hookUrl: 'https://hooks.example/in', changeTypes: '*' };
    await steward.act('services/webhooks/create', fields);
    const page = await open(steward.address, { token: steward.token });
    await page.goto('/admin/services/webhooks');
    for (const [look, name] of [
      ['wide', 'API'],
      ['wide', 'Actions for Harbour'],
      ['narrow', 'admin'],
      ['narrow', 'Menu'],
    ] as const) {
      await show(page, look);
      await page.getByRole('button', { name, exact: look === 'wide' }).click();
      expect(await page.locator(':popover-open').count()).toBe(1);
      expect(await findBarriers(page), name).toEqual([]);
      await page.keyboard.press('Escape');
    }
  });

  it('on a form with a problem or a result', async () => {
    const steward = await startSteward();
    const page = await open(steward.address, { token: steward.token });
    await page.goto('/admin/services/webhooks/settings');
    const update = page.getByRole('button', { name: 'Save' });
    await page.locator('#daysInPast').fill('0');
    await update.click();
    await page.getByRole('alert').waitFor();
    expect(await checkPage(page)).toEqual([]);
    await page.locator('#daysInPast').fill('1');
    await update.click();
    await page.getByRole('status').waitFor();
    expect(await checkPage(page)).toEqual([]);
  });
});
