// Checks the structure of every page, and the pages that cover every kind of element with axe-core, wide and light,
// narrow and dark.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterEach, describe, expect, it } from 'vitest';
import { walk } from '../../src/rest/resource.ts';
import { findBarriers, findOverflow, hasChromium, loadAxe, useBrowser } from '../kit/browser.ts';
import { type Steward, assets, password, startSteward } from '../kit/steward.ts';
import { startControl } from '../testing/kit.ts';
import { removeRepeatedRows, selectPages, surveyPages } from './survey.ts';

const receiver = createServer((request, response) => {
  const isGood = request.url === '/good';
  request.resume().on('end', () => response.writeHead(isGood ? 204 : 503).end(isGood ? '' : 'out of order'));
});
afterEach(() => {
  receiver.closeAllConnections();
  receiver.close();
});

const patch = { versionManifest: '{"id":"pat_17022022_1250"}' };
const release = 'rel_14072022_2632';

const looks = {
  wide: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  narrow: { colorScheme: 'dark', viewport: { width: 360, height: 740 } },
} as const;

type Look = keyof typeof looks;

/** The addresses of all routes of both trees; `ids` gives the values of their parameters. */
function pathsOfAll({ admin, tokens }: Steward['trees'], ids: Readonly<Record<string, string>>): string[] {
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

/** Creates data of every kind, in all states that the pages distinguish by colour. */
async function createSampleData(steward: Steward): Promise<Record<string, string>> {
  const { act, read } = steward;
  await act('services/webhooks/settings', { notificationAttempts: '1' });
  await act('security/users/add', { username: 'mia', password, role: 'member' });
  const { port } = receiver.address() as AddressInfo;
  const register = async (name: string, fields: Record<string, string> = {}) => {
    const hookUrl = `http://127.0.0.1:${port}/${name}`;
    const given = { name, hookUrl, changeTypes: 'Tested', ...fields };
    return (await act<{ webhook: { id: string } }>('services/webhooks/create', given)).webhook.id;
  };
  await register('good', { service: 'Maps/Roads.MapServer' });
  await register('idle', { active: 'false' });
  const webhook = await register('bad');
  const event = { changeType: 'Tested', service: 'Maps/Roads.MapServer', payload: '{"a":[1,{"b":null}]}' };
  await act('services/webhooks/publish', event);
  const itemID = await steward.upload('license.json', '{}');
  await act('system/upgrades/upgrade', patch);
  const job = () => read<{ jobId: string; status: { state: string } }>('system/upgrades?wait=10');
  await expect.poll(async () => (await job()).status.state).toBe('success');
  const list = `services/webhooks/${webhook}/deliveries`;
  const deliveries = () => read<{ deliveries: { id: string; state: string }[] }>(list);
  await expect.poll(async () => (await deliveries()).deliveries[0]?.state).toBe('failed');
  return {
    webhook,
    itemID,
    job: (await job()).jobId,
    delivery: (await deliveries()).deliveries[0]?.id ?? '',
    folder: 'Maps',
    service: 'World.MapServer',
    serviceInFolder: 'Roads.MapServer',
  };
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

  /** Returns the problems by address. Two pages run in parallel: one loads while axe-core checks the other. */
  async function checkAll({ address, token }: Steward, paths: readonly string[]) {
    const remaining = paths.values();
    const found: Record<string, string[]> = {};
    const worker = async () => {
      const page = await open(address, { token });
      for (const path of remaining) {
        await page.goto(path);
        const barriers = await checkPage(page);
        if (barriers.length > 0) found[path] = barriers;
      }
    };
    await Promise.all([worker(), worker()]);
    return found;
  }

  it('on any page of the directory', async () => {
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const steward = await startSteward({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', UPGRADE_STEP_MS: '0' });
    const ids = await createSampleData(steward);
    const windows = '[{"days":["sat","sun"],"from":"22:00","to":"04:00","timeZone":"Europe/Vienna"}]';
    await steward.act('system/upgrades/config/update', { windows });
    const settings = (value = '') => ({
      upgradeSettings: JSON.stringify({ userInputs: [{ id: 'licenseUpload', value }] }),
    });
    const wizardPage = (operation: string, fields = {}) => {
      const query = new URLSearchParams({ versionManifest: JSON.stringify({ id: release }), ...fields });
      return `/admin/system/upgrades/${operation}?${query.toString()}`;
    };
    const more = [
      '/services',
      '/admin/services?q=map',
      '/admin/services/Operations',
      wizardPage('plan'),
      wizardPage('upgrade'),
      wizardPage('upgrade', settings(ids.itemID)),
    ];
    const paths = [...pathsOfAll(steward.trees, ids), ...more];
    expect(paths.length).toBeGreaterThan(60);
    const page = await open(steward.address, { token: steward.token });
    await page.goto('/admin/system/upgrades/available');
    const surveys = await surveyPages(page, paths);
    expect(surveys.filter(({ problems }) => problems.length > 0)).toEqual([]);
    expect(await checkAll(steward, selectPages(surveys))).toEqual({});
  });

  it('on the pages of test control', async () => {
    const { url, control, soap } = await startControl({}, assets);
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

  it('on error pages, on forms with a problem or a result, and during an upgrade', async () => {
    const steward = await startSteward({ UPGRADE_STEP_MS: '600000' });
    const { address } = steward;
    await steward.act('security/users/add', { username: 'mia', password, role: 'member' });
    const found: Record<string, string[]> = {};
    const visit = async (page: Page, path: string, status: number) => {
      expect((await page.goto(path))?.status(), path).toBe(status);
      found[`${path}: ${status}`] = await checkPage(page);
    };

    async function visitAsOthers() {
      const anonymous = await open(address);
      await visit(anonymous, '/admin/services', 401);
      await visit(anonymous, '/nothing', 404);
      const mia = await open(address, { token: await steward.tokenOf('mia') });
      await visit(mia, '/admin', 200);
      await visit(mia, '/admin/system', 403);
    }

    async function visitAsAdministrator() {
      const page = await open(address, { token: steward.token });
      await visit(page, '/admin/nothing', 404);
      await page.goto('/admin/services/webhooks/settings');
      const update = page.getByRole('button', { name: 'Update webhook settings' });
      await page.locator('#daysInPast').fill('0');
      await update.click();
      await page.getByRole('alert').waitFor();
      found['a form with a problem'] = await checkPage(page);
      await page.locator('#daysInPast').fill('1');
      await update.click();
      await page.getByRole('status').waitFor();
      found['a form with its result'] = await checkPage(page);
      await steward.act('system/upgrades/upgrade', patch);
      await visit(page, '/admin/system/upgrades', 200);
      await visit(page, '/admin/system/upgrades/history', 409);
    }

    await Promise.all([visitAsOthers(), visitAsAdministrator()]);
    expect(Object.entries(found).filter(([, barriers]) => barriers.length > 0)).toEqual([]);
  });
});
