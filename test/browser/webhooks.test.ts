// Tests webhooks in a browser: settings, a failing receiver, its deliveries, and a redelivery.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Locator, Page } from 'playwright-core';
import { afterEach, describe, expect, it } from 'vitest';
import { hasChromium, patience, useBrowser } from '../kit/browser.ts';
import { startSteward } from '../kit/steward.ts';

const receiver = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(responseStatus).end('out of order'));
});
let responseStatus = 503;
afterEach(() => {
  receiver.closeAllConnections();
  receiver.close();
});

describe.skipIf(!hasChromium)('webhooks', patience, () => {
  const open = useBrowser();

  it('follow the settings, and show the result of every delivery', async () => {
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const { address, token } = await startSteward({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
    const page = await open(address, { token });
    await page.clock.install();
    await page.goto('/admin/services/webhooks/settings');
    await changeSettings(page);
    await register(page, (receiver.address() as AddressInfo).port);

    await page.goto('/admin/services/webhooks/publish');
    await page.locator('#changeType').fill('HarbourClosed');
    await page.getByRole('button', { name: 'Publish event' }).click();
    await page.getByText('HarbourClosed was published to 1 webhook.').waitFor();

    await page.goto('/admin/services/webhooks');
    await page.getByText('1 of 5 failures').waitFor();
    await page
      .getByRole('row', { name: /Harbourmaster/ })
      .getByRole('cell', { name: '1', exact: true })
      .waitFor();
    await page.getByRole('link', { name: 'Harbourmaster', exact: true }).click();
    await page.getByRole('heading', { name: 'Harbourmaster', level: 1 }).waitFor();
    const rows = page
      .getByRole('table', { name: 'Deliveries', exact: true })
      .locator('tbody')
      .getByRole('row');
    expect(await rows.first().innerText()).toMatch(/HarbourClosed[\s\S]*failed[\s\S]*503/);

    await rows.first().getByRole('link', { name: 'HarbourClosed' }).click();
    await page.getByText('out of order').waitFor();
    responseStatus = 204;
    const failed = page.url();
    await page.getByRole('button', { name: 'Redeliver' }).click();
    // The page of the new delivery follows it.
    await waitForUpdate(page.getByText('The receiver accepted the event.'));
    await page.getByText('What the last attempt sent:').waitFor();
    await page.getByRole('link', { name: 'Repeats an earlier delivery' }).click();
    await page.getByRole('link', { name: 'Was redelivered' }).waitFor();
    expect(page.url()).toBe(failed);

    await page.getByRole('navigation', { name: 'Breadcrumb' }).getByText('Harbourmaster').click();
    await page.getByRole('button', { name: 'Ping' }).click();
    await page.getByText('Ping was sent to Harbourmaster.').waitFor();
    await waitForUpdate(rows.first().filter({ hasText: /Ping[\s\S]*delivered/ }));
    await page.getByText(/Last ping,[\s\S]*:\s+204 after \d+ ms\./).waitFor();
    await page.getByRole('link', { name: 'Deactivate …' }).click();
    await page.getByText('No delivery is pending.').waitFor();
    await page.getByRole('button', { name: 'Deactivate webhook' }).click();
    await page.getByText('Harbourmaster is deactivated.').waitFor();
    await page.getByRole('button', { name: 'Activate', exact: true }).waitFor();

    await activateInList(page);
  });

  it('of a large page are read less often while they change all the time', async () => {
    const { address, token, act } = await startSteward();
    const root = 'services/webhooks';
    const hook = { name: 'hook', hookUrl: 'https://hooks.example/in', changeTypes: '*', active: 'false' };
    await act(`${root}/create`, hook);
    const publish = () => act(`${root}/publish`, { changeType: 'Tested' });
    for (let count = 0; count < 50; count += 1) await publish();
    const page = await open(address, { token });
    await page.clock.install();
    await page.goto(`/admin/${root}/deliveries`);
    let reads = 0;
    page.on('request', (request) => (reads += Number('steward-poll' in request.headers())));
    await publish();
    await page.clock.fastForward(5000);
    await page.getByText('51 kept deliveries').waitFor();
    // Only an answer that differs from the one before shows that the page changes.
    await publish();
    await page.clock.fastForward(5000);
    await page.getByText('52 kept deliveries').waitFor();
    await publish();
    await page.clock.fastForward(5000);
    expect(reads).toBe(2);
    await page.clock.fastForward(25_000);
    await page.getByText('53 kept deliveries').waitFor();
    expect(reads).toBe(3);
  });
});

/** Selects the only webhook of the list. The selection stays when the page updates itself. */
async function activateInList(page: Page): Promise<void> {
  await page.goto('/admin/services/webhooks');
  const box = page.getByRole('checkbox', { name: 'Select Harbourmaster' });
  const bar = page.getByRole('form', { name: 'Selected webhooks' });
  expect(await bar.isVisible()).toBe(false);
  await box.check();
  await Promise.all([page.waitForResponse(/webhooks$/), page.clock.fastForward(10_000)]);
  expect(await box.isChecked()).toBe(true);
  await bar.getByRole('button', { name: 'Clear' }).click();
  expect(await bar.isVisible()).toBe(false);
  const menu = page.getByRole('button', { name: 'Actions for Harbourmaster' });
  await menu.click();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp']) await page.keyboard.press(key);
  expect(await page.locator(':focus').textContent()).toBe('Ping');
  await page.keyboard.press('Escape');
  await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
  expect(await box.isChecked()).toBe(true);
  await bar.getByRole('button', { name: 'Activate', exact: true }).click();
  await page.getByText('1 webhook was activated.').waitFor();
}

/** Waits until the page shows what it reads every few seconds. The clock of the page passes these seconds at once. */
async function waitForUpdate(shown: Locator): Promise<void> {
  const look = async () => {
    await shown.page().clock.fastForward(5_000);
    return shown.count();
  };
  await expect.poll(look, { ...patience, interval: 100 }).toBe(1);
}

/** Changes the settings, first with a number out of range. */
async function changeSettings(page: Page): Promise<void> {
  const attempts = page.locator('#notificationAttempts');
  const update = page.getByRole('button', { name: 'Save' });
  expect(await attempts.inputValue()).toBe('3');
  await attempts.fill('9');
  await page.locator('#daysInPast').fill('7');
  await update.click();
  await page.getByRole('alert').waitFor();
  expect(await attempts.getAttribute('aria-invalid')).toBe('true');
  const describedBy = (await attempts.getAttribute('aria-describedby'))?.split(' ') ?? [];
  expect(describedBy).toContain('notificationAttempts-problem');
  expect(await page.locator('.field', { has: attempts }).locator('.problem').textContent()).toContain(
    'from 1 to 5',
  );
  expect(await attempts.inputValue()).toBe('9');
  const days = page.locator('#daysInPast');
  expect(await days.inputValue()).toBe('7');
  expect(await days.getAttribute('aria-invalid')).toBeNull();

  await attempts.fill('1');
  await update.click();
  await page.getByRole('status').waitFor();
  await page.goto('/admin/services/webhooks/settings');
  expect(await attempts.inputValue()).toBe('1');
  expect(await days.inputValue()).toBe('7');
}

async function register(page: Page, port: number): Promise<void> {
  await page.goto('/admin/services/webhooks');
  await page.getByRole('link', { name: 'Create webhook' }).first().click();
  await page.locator('#name').fill('Harbourmaster');
  await page.locator('#hookUrl').fill(`http://127.0.0.1:${port}/in`);
  await page.getByLabel('All events').uncheck();
  await page.getByLabel('UpgradeFailed').check();
  await page.locator('#changeTypes').fill('HarbourClosed');
  await page.getByRole('button', { name: 'Create webhook' }).click();
  const created = page.getByRole('status');
  expect(await created.innerText()).toMatch(/whsec_/);
  await created.getByRole('button', { name: 'Copy' }).waitFor();
}
