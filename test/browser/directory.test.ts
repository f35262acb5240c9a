// Tests the directory in a browser: sign-in and sign-out, the catalog search, and the SOAP operations page.
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { oidcEnv } from '../auth/oidc-kit.ts';
import { findBarriers, findOverflow, hasChromium, patience, useBrowser } from '../kit/browser.ts';
import { startProvider } from '../kit/identity-provider.ts';
import { freePort } from '../kit/ports.ts';
import { password } from '../kit/server.ts';
import { startSteward } from '../kit/steward.ts';

const settings = '/admin/services/webhooks/settings';

describe.skipIf(!hasChromium)('the directory', patience, () => {
  const open = useBrowser();

  it('asks for a sign-in, opens the requested page, and ends the session with the sign-out', async () => {
    const { address } = await startSteward();
    const page = await open(address, { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.clock.install();
    expect((await page.goto(settings))?.status()).toBe(401);
    await page.getByLabel('User name').fill('admin');
    await page.getByLabel('Password').fill('not the password');
    await page.getByRole('button', { name: 'Show' }).click();
    expect(await page.getByLabel('Password').getAttribute('type')).toBe('text');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    expect(await page.getByLabel('User name').inputValue()).toBe('admin');
    expect(await page.getByLabel('Password').inputValue()).toBe('');

    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Webhook settings', level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe(settings);
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ name: 'steward_session', httpOnly: true, sameSite: 'Strict' });

    await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Home' }).click();
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    await copyCommand(page, `${address}/admin`);
    await page.getByRole('button', { name: 'admin administrator' }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out.').waitFor();
    expect(await page.context().cookies()).toEqual([]);
    expect((await page.goto('/admin'))?.status()).toBe(401);
    // The token is revoked, not only removed from the browser.
    await page.context().addCookies([{ name: 'steward_session', value: cookie?.value ?? '', url: address }]);
    expect((await page.goto('/admin'))?.status()).toBe(401);
  });

  it('signs in and out at an identity provider, and returns to the requested page', async () => {
    const port = await freePort();
    const env = { ...oidcEnv({ issuer: `http://127.0.0.1:${port}` }), OIDC_LABEL: 'Sign in with Example' };
    const address = (await startSteward(env)).address.replace('127.0.0.1', 'localhost');
    const provider = await startProvider({ port, servers: [address], hasForm: true });
    // Some versions of Chromium ask the provider for an icon, which it does not have.
    const page = await open(address, { provokes: /\/favicon\.ico$/ });
    expect((await page.goto(settings))?.status()).toBe(401);
    await page.getByRole('link', { name: 'Sign in with Example' }).click();
    // Another site, whose pages do not get our Strict cookies.
    expect(page.url()).toContain(provider.issuer);
    await page.getByRole('button', { name: 'Sign in as Ann' }).click();
    await page.getByRole('heading', { name: 'Webhook settings', level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe(settings);
    const cookies = await page.context().cookies(address);
    expect(cookies.map(({ name, sameSite }) => [name, sameSite])).toEqual([['steward_session', 'Strict']]);

    await page.getByRole('button', { name: 'ann administrator' }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'End the session' }).click();
    await page.getByRole('link', { name: 'Sign in with Example' }).waitFor();
    expect(page.url()).toBe(`${address}/tokens/generateToken`);
    expect(await page.context().cookies(address)).toEqual([]);
    await provider.stop();
  });

  it('sends a form once, focuses the problem, and keeps the input over the end of the session', async () => {
    const { address, token } = await startSteward();
    const page = await open(address, { token });
    await page.goto('/admin/services/createFolder');
    let posts = 0;
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/createFolder', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      posts += 1;
      await held;
      return route.continue();
    });
    await page.getByLabel('Folder name').fill('a.b');
    // Locators would wait for the next page.
    const busy = await page.evaluate(`new Promise((resolve) => {
      const button = document.querySelector('main form button');
      button.click();
      setTimeout(() => {
        button.form.requestSubmit();
        resolve({ text: button.textContent, isDisabled: button.disabled });
      }, 50);
    })`);
    expect(busy).toEqual({ text: 'Sending …', isDisabled: true });
    release();
    await page.getByRole('alert').waitFor();
    expect(posts).toBe(1);
    expect(await page.title()).toMatch(/^Error: Create folder/);
    const focused = () => page.evaluate('document.activeElement.getAttribute("role")');
    await expect.poll(focused).toBe('alert');

    await page.getByLabel('Folder name').fill('Kept');
    await page.context().clearCookies();
    await page.getByRole('button', { name: 'Create folder' }).click();
    await page.getByText('Your session has ended. Sign in to go on; your input is kept, except').waitFor();
    await page.getByLabel('User name').fill('admin');
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Create folder', level: 1 }).waitFor();
    expect(await page.getByLabel('Folder name').inputValue()).toBe('Kept');
    await page.getByRole('button', { name: 'Create folder' }).click();
    await page.getByText('The folder Kept was created.').waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Create folder' }).waitFor();
    expect(await page.getByRole('button', { name: 'Create folder' }).isEnabled()).toBe(true);
  });

  it('changes the theme in place, and asks before it removes something', async () => {
    const { address, token } = await startSteward();
    const page = await open(address, { token, colorScheme: 'light' });
    await page.goto('/admin/security/users/add');
    await page.getByLabel('User name').fill('mia');
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    expect(await background()).toBe('rgb(251, 251, 250)');
    await page.getByRole('button', { name: 'admin administrator' }).click();
    await page.getByRole('button', { name: 'dark' }).click();
    await expect.poll(background).toBe('rgb(20, 24, 27)');
    expect(await page.getByRole('button', { name: 'dark', pressed: true }).count()).toBe(1);
    expect(await page.getByLabel('User name').inputValue()).toBe('mia');
    await page.goto('/admin/services/Maps/Roads.MapServer');
    expect(await background()).toBe('rgb(20, 24, 27)');

    await page.getByRole('link', { name: 'Delete service …' }).click();
    await page.getByRole('button', { name: 'Delete service' }).waitFor();
    await page.getByRole('link', { name: 'Back' }).click();
    await page.getByRole('heading', { name: 'Roads.MapServer', level: 1 }).waitFor();
  });

  it('has room for long names, on a phone too', async () => {
    const { address, token, act } = await startSteward({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
    const [folderName, serviceName, changeType] = ['x'.repeat(100), 'y'.repeat(100), 'T'.repeat(64)];
    const service = `${folderName}/${serviceName}.MapServer`;
    await act('services/createFolder', { folderName });
    await act('services/createService', { folderName, serviceName, type: 'MapServer' });
    const hook = { name: 'W'.repeat(100), hookUrl: 'http://127.0.0.1:9/', changeTypes: changeType, service };
    const { id } = await act<{ id: string }>('services/webhooks/create', hook);
    await act('services/webhooks/publish', { changeType, service });
    const inactive = {
      name: 'hook',
      hookUrl: 'https://hooks.example/',
      changeTypes: 'Missed',
      active: 'false',
    };
    const behind = await act<{ id: string }>('services/webhooks/create', inactive);
    await act('services/webhooks/publish', { changeType: 'Missed' });
    await act(`services/webhooks/${behind.id}/activate`);
    const page = await open(address, { token });
    const paths = [`/admin/services/${service}`, `/admin/services/webhooks/${id}`, '/admin/system/audit'];
    for (const path of paths) {
      await page.goto(path);
      const cut = `:is(.crumbs li:nth-child(-n + 2), .deliveries .wide, .audit td > div)`;
      const hidden = `[...document.querySelectorAll('${cut}')].filter((one) => one.scrollWidth > one.clientWidth)`;
      expect(await page.evaluate(`${hidden}.map((one) => one.outerHTML)`), path).toEqual([]);
    }
    await page.setViewportSize({ width: 360, height: 740 });
    for (const path of ['/admin', ...paths]) {
      await page.goto(path);
      expect(await findOverflow(page), path).toEqual([]);
    }
    // Menu, search, mark and account are in one row.
    await page.goto('/admin');
    await page.getByText('● Live').waitFor();
    expect(await page.evaluate(`document.querySelector('.top').clientHeight`)).toBeLessThan(60);
    // A page whose server is gone says once that the health is not known.
    await page.goto(`/admin/services/webhooks/${behind.id}`);
    await page.evaluate(`document.body.dataset.connection = 'lost'`);
    const claims = `[...document.querySelectorAll('.health .claim')].map((one) => getComputedStyle(one, '::before').content)`;
    expect(await page.evaluate(claims)).toEqual(['"–"', '"Not known now."']);
  });

  it('finds services, sends the SOAP operations that list them, and shows the calls live at /control', async () => {
    const { address, token } = await startSteward({ TEST_CONTROL: 'true' });
    const page = await open(address, { token, timezoneId: 'Asia/Kolkata' });
    await page.goto('/admin/services');
    await page.getByRole('searchbox', { name: 'Search services' }).fill('roads');
    await page.getByRole('searchbox', { name: 'Search services' }).press('Enter');
    await page.getByText('1 service', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Roads', exact: true }).click();
    await page.getByRole('heading', { name: 'Roads.MapServer', level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/admin/services/Maps/Roads.MapServer');
    await page.getByRole('link', { name: 'Show it in the response of the SOAP service' }).click();
    expect(await page.locator('mark').textContent()).toBe('<Name>Maps/Roads</Name>');
    // Two services may have one name.
    await page.goto('/admin/services/Maps/Boundaries.MapServer');
    await page.getByRole('link', { name: 'Show it in the response of the SOAP service' }).click();
    await page.locator('mark').waitFor();
    const marked = await page.locator('pre', { has: page.locator('mark') }).textContent();
    const before = page.evaluate<string>("document.querySelector('mark').previousSibling.data");
    expect(marked?.slice((await before).length)).toMatch(
      /^<Name>Maps\/Boundaries<\/Name>\s+<Type>MapServer</,
    );
    await page.goto('/admin?q=roads');
    const everywhere = page.getByRole('searchbox', { name: 'Search everywhere' });
    expect(await everywhere.inputValue()).toBe('roads');
    await everywhere.press('Escape');
    await everywhere.fill('');
    await everywhere.press('Escape');
    expect(await page.evaluate("document.activeElement?.id === 'everywhere'")).toBe(false);
    await page.goto('/admin/system/audit');
    await page.getByRole('searchbox', { name: 'Operation, target, user or field' }).fill('mode');
    await page.getByRole('link', { name: 'Today' }).click();
    await page.waitForURL(/from=.*q=mode/);
    // Today in the zone of the reader.
    const midnight = new Date(await page.evaluate<number>('new Date().setHours(0, 0, 0, 0)'));
    expect(new URL(page.url()).searchParams.get('from')).toBe(String(midnight.getTime()));
    const from = page.getByLabel('From');
    expect(await from.inputValue()).toMatch(/T00:00$/);
    expect(await page.getByRole('link', { name: 'Today' }).getAttribute('aria-current')).toBe('true');
    await from.fill('2026-01-02T03:04');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    const entered = await page.evaluate<number>("new Date('2026-01-02T03:04').getTime()");
    await page.waitForURL(new RegExp(`from=${entered}&`));
    expect(await from.inputValue()).toBe('2026-01-02T03:04');
    await page.goto('/admin/services');
    await page.getByRole('link', { name: 'the SOAP service' }).click();

    const operation = page.getByText('GetServiceDescriptionsEx', { exact: true });
    const block = page.locator('details', { has: operation });
    await block.locator('summary').click();
    // Only administrators see this service: the page uses the session.
    await block.getByLabel('FolderName').fill('Operations');
    await block.getByRole('button', { name: 'Send GetServiceDescriptionsEx' }).click();
    await block.getByText('<Name>Operations/Diagnostics</Name>').waitFor();
    await page.getByLabel('Use my session (admin)').uncheck();
    await page.getByLabel('Token', { exact: true }).waitFor();
    await block.getByLabel('FolderName').fill('Maps');
    expect(await block.locator('[data-request]').textContent()).toContain('<FolderName>Maps</FolderName>');
    await block.getByRole('button', { name: 'Send GetServiceDescriptionsEx' }).click();
    await block.getByText(/^HTTP 200 OK after/).waitFor();
    const answer = block.locator('[data-answer] pre');
    expect(await answer.textContent()).toContain('<Name>Maps/Roads</Name>');
    await block.getByLabel('FolderName').fill('/');
    await block.getByLabel('FolderName').press('Enter');
    await expect.poll(() => answer.textContent()).toContain('<Name>World</Name>');

    await page.goto('/control');
    expect(await findBarriers(page)).toEqual([]);
    await fetch(`${address}/unknown-address`);
    await page.getByRole('link', { name: 'GET /unknown-address' }).waitFor();
    const call = page.getByRole('row', { name: 'GetServiceDescriptionsEx' }).first();
    await call.getByRole('link').click();
    await page.getByText('<Name>World</Name>').waitFor();
  });
});

/** Copies the curl command: it must be the displayed one and contain no token. */
async function copyCommand(page: Page, address: string): Promise<void> {
  await page.getByRole('button', { name: 'API', exact: true }).click();
  await page.getByRole('button', { name: 'Copy' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  await page.clock.fastForward(2_000);
  await page.getByRole('button', { name: 'Copy', exact: true }).waitFor();
  const copied = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(copied).toBe(await page.locator('[data-copy]').textContent());
  expect(copied).toContain(address);
  expect(copied).toContain('$TOKEN');
  await page.keyboard.press('Escape');
}
