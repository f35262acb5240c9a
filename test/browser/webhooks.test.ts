// Tests webhooks in a browser: settings, a failing receiver, its deliveries, and a redelivery.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterEach, describe, expect, it } from 'vitest';
import { hasChromium, patience, signIn, startSteward, useBrowser } from '../kit/browser.ts';

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
    const { address } = await startSteward({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
    const page = await open(address);
    await signIn(page, '/admin/services/webhooks/settings');
    await changeSettings(page);
    await register(page, (receiver.address() as AddressInfo).port);

    await page.goto('/admin/services/webhooks/publish');
    await page.locator('#changeType').fill('HarbourClosed');
    await page.getByRole('button', { name: 'Publish event' }).click();
    await page.getByRole('status').waitFor();

    await page.goto('/admin/services/webhooks');
    await page.getByRole('link', { name: 'Harbourmaster' }).click();
    await page.getByRole('heading', { name: 'Harbourmaster', level: 1 }).waitFor();
    const rows = page.getByRole('table', { name: 'Deliveries' }).locator('tbody').getByRole('row');
    const newest = async () => {
      await page.reload();
      return rows.first().innerText();
    };
    await expect.poll(newest).toMatch(/HarbourClosed[\s\S]*failed[\s\S]*503/);
    expect(await page.getByRole('img').getAttribute('aria-label')).toBe('The last delivery: 1 failed');
    expect(await page.getByText('1 of 5 within 7 days').count()).toBe(1);

    await rows.first().getByRole('link', { name: 'HarbourClosed' }).click();
    await page.getByRole('heading', { name: '1 attempt' }).waitFor();
    await page.getByText('Answer', { exact: true }).last().click();
    await page.getByText('out of order').waitFor();
    await page.goBack();

    responseStatus = 204;
    await rows.first().getByRole('button', { name: 'Redeliver' }).click();
    await expect.poll(newest).toMatch(/HarbourClosed[\s\S]*delivered[\s\S]*204/);
    expect(await rows.count()).toBe(2);
    await page.getByRole('button', { name: 'Ping' }).click();
    await expect.poll(newest).toMatch(/Ping[\s\S]*delivered/);
    await page.getByRole('button', { name: 'Deactivate' }).click();
    await page.getByRole('button', { name: 'Activate', exact: true }).waitFor();
    expect(await rows.first().getByRole('button', { name: 'Redeliver' }).isDisabled()).toBe(true);
  });
});

/** Changes the settings, first with a number out of range. */
async function changeSettings(page: Page): Promise<void> {
  const attempts = page.locator('#notificationAttempts');
  const update = page.getByRole('button', { name: 'Update webhook settings' });
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
  await page.getByRole('link', { name: 'Create a webhook' }).click();
  await page.locator('#name').fill('Harbourmaster');
  await page.locator('#hookUrl').fill(`http://127.0.0.1:${port}/in`);
  await page.locator('#changeTypes').fill('HarbourClosed');
  await page.getByRole('button', { name: 'Create webhook' }).click();
  expect(await page.getByRole('status').innerText()).toMatch(/whsec_/);
}
