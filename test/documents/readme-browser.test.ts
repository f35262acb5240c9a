// Follows the steps that README gives for an upgrade in the browser.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hasChromium, patience, useBrowser } from '../kit/browser.ts';
import { startProcess } from '../kit/process.ts';
import { checkout } from './pages.ts';

const [, steps = ''] =
  /### In the browser\n([^]*?)\n## /.exec(readFileSync(`${checkout}README.md`, 'utf8')) ?? [];

describe.skipIf(!hasChromium)('README', patience, () => {
  const open = useBrowser();

  it('leads to a finished upgrade in the browser', async () => {
    const labels = [...steps.matchAll(/\*\*(.+?)\*\*/gs)].map(([, label]) => label?.replace(/\s+/g, ' '));
    expect(labels).toEqual([
      'Upgrade …',
      'Upload a file …',
      'Upload file',
      'Show the plan',
      'Start the upgrade',
    ]);
    const { pathname } = new URL(/<(http:[^>]*)>/.exec(steps)?.[1] ?? '');
    const [, user = '', password = ''] = /sign in as `(.*)` with `(.*)`/.exec(steps) ?? [];
    const server = startProcess({ ADMIN_PASSWORD: password, UPGRADE_STEP_MS: '2', LOG_LEVEL: 'error' });
    const page = await open(`http://localhost:${new URL(await server.listening).port}`);

    await page.goto(pathname);
    await page.getByLabel('User name').fill(user);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Upgrade to Product 11.0 …', exact: true }).click();
    await page.getByRole('link', { name: 'Upload a file …' }).click();
    await page.getByLabel('File').setInputFiles(`${checkout}package.json`);
    await page.getByRole('button', { name: 'Upload file' }).click();
    await page.getByRole('button', { name: 'Show the plan' }).click();
    const [, version = ''] = /Type (\S+) to confirm/.exec(await page.locator('main').innerText()) ?? [];
    await page.getByLabel('to confirm').fill(version);
    await page.getByRole('button', { name: 'Start the upgrade' }).click();
    await expect.poll(() => page.locator('#job .state').innerText()).toBe('Succeeded');
    await page.goto('/admin/system/upgrades');
    expect(await page.locator('#installed + dl').innerText()).toContain('11.0.0.2670');
  });
});
