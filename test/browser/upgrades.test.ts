// Tests upgrades in a browser. With scripts, the page updates itself while the job runs. The job moves only when a
// test advances the clock.
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { hasChromium, patience, useBrowser } from '../kit/browser.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { startSteward } from '../kit/steward.ts';

const upgrades = '/admin/system/upgrades';
const license = {
  name: 'license.json',
  mimeType: 'application/json',
  buffer: Buffer.from('{"licensed":true}'),
};

const endsWithin = { timeout: 120_000, interval: 100 };

/** Starts a server whose steps take a second of its fake clock. */
async function startWithClock(env: Record<string, string> = {}) {
  const runtime = createFakeRuntime(Date.now());
  const steward = await startSteward({ UPGRADE_STEP_MS: '1000', ...env }, runtime);
  return {
    ...steward,
    runtime,
    runSteps: (count: number) => runtime.advance(count * 1000),
    /** Longer than any job takes. */
    runToEnd: () => runtime.advance(600_000),
  };
}

/** The label with the state of the newest job. */
const stateOf = (page: Page) => page.locator('#job .state');
const messagesOf = (page: Page) => page.getByRole('region', { name: /^Messages/ }).getByRole('listitem');

/** In a tab in the background, whose reader has not decided about notifications yet. */
const hideAndNotify = `
  Object.defineProperty(document, 'hidden', { get: () => true });
  window.Notification = class {
    static get permission() {
      return sessionStorage.getItem('permission') ?? 'default';
    }
    static async requestPermission() {
      sessionStorage.setItem('permission', 'granted');
      return 'granted';
    }
    constructor(title, { body }) {
      window.notified = [title, body];
    }
  };
`;

/** Chooses the release, uploads its license, enters the settings and starts the upgrade. */
async function startRelease(page: Page): Promise<void> {
  await page.goto(`${upgrades}/available`);
  await page.getByRole('link', { name: 'Upgrade to Product 11.0 …', exact: true }).click();
  await page.getByRole('link', { name: 'Upload a file …' }).click();
  await page.getByLabel('File').setInputFiles(license);
  await page.getByRole('button', { name: 'Upload file' }).click();
  await page.getByLabel('Install the patches of the release too').selectOption('Yes');
  await page.getByRole('button', { name: 'Show the plan' }).click();
  await page.getByRole('heading', { name: 'Plan', level: 2 }).waitFor();
  // There is no way back, so the browser requires the version.
  await page.getByRole('button', { name: 'Start the upgrade' }).click();
  const confirm = page.getByLabel(/^Type .* to confirm/).first();
  expect(
    await confirm.evaluate((input) => (input as unknown as { checkValidity: () => boolean }).checkValidity()),
  ).toBe(false);
  await confirm.fill('11.0.0.2670');
  await page.getByRole('button', { name: 'Start the upgrade' }).click();
  await expectState(page, 'In progress');
}

async function expectInstalled(page: Page, version: string): Promise<void> {
  await page.goto(upgrades);
  expect(await page.locator('#installed + dl').innerText()).toContain(version);
}

const expectState = (page: Page, state: string) =>
  expect.poll(() => stateOf(page).innerText(), endsWithin).toBe(state);

describe.skipIf(!hasChromium)('an upgrade', patience, () => {
  const open = useBrowser();

  it('updates the page in every open browser until it succeeds', async () => {
    const { address, token, read, runSteps, runToEnd } = await startWithClock();
    const [page, other] = await Promise.all([open(address, { token }), open(address, { token })]);
    await other.addInitScript(hideAndNotify);
    await startRelease(page);
    await page.waitForLoadState();
    await page.getByText('Upgrade to 11.0.0.2670 started.').waitFor();
    const filled = page.locator('.tiles > li.done');
    let loads = 0;
    page.on('load', () => (loads += 1));
    await other.goto(upgrades);
    expect(await other.locator('#job').innerText()).toMatch(
      /^Upgrade from 10\.9\.1\.1234 to 11\.0\.0\.2670 In progress/,
    );
    await other.getByRole('button', { name: 'Notify me at the end' }).click();
    await other.getByText('This browser notifies you when the job ends.').waitFor();

    const bar = page.getByRole('progressbar');
    const seen = { done: [] as number[], messages: [] as number[] };
    for (let round = 0; round < 5; round += 1) {
      const before = await messagesOf(page).count();
      await runSteps(30);
      const { progress } = await read<{ progress: { percent: number } }>('system/upgrades');
      await expect.poll(() => bar.getAttribute('value'), endsWithin).toBe(String(progress.percent));
      await expect.poll(() => messagesOf(page).count(), endsWithin).toBeGreaterThan(before);
      seen.done.push(progress.percent);
      seen.messages.push(await messagesOf(page).count());
    }
    for (const counts of Object.values(seen)) {
      expect(counts).toEqual(counts.toSorted((a, b) => a - b));
      expect(new Set(counts).size, counts.join()).toBeGreaterThan(4);
    }
    await expect.poll(() => filled.count(), endsWithin).toBeGreaterThan(1);
    expect(await page.title()).toMatch(/^\d+ % · Upgrade from/);
    expect(await stateOf(page).innerText()).toBe('In progress');
    await runToEnd();
    await expectState(page, 'Succeeded');
    const end = 'Upgrade from 10.9.1.1234 to 11.0.0.2670: succeeded.';
    await expect.poll(() => other.title()).toBe(`● ${end}`);
    expect(await other.evaluate('notified')).toEqual(['Steward', end]);
    await other.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    expect(await other.title()).toBe('Upgrades · Steward');
    // The script reloads the page once, when the job has ended.
    await expect.poll(() => loads).toBe(1);
    await page.getByRole('status').filter({ hasText: end }).waitFor();
    expect(await messagesOf(page).last().innerText()).toMatch(/ 2012 /);
    await expectInstalled(other, '11.0.0.2670');
    await page.reload();
    expect(await stateOf(page).innerText()).toBe('Succeeded');
  });

  it('that fails shows the reason, and succeeds after it is resumed', async () => {
    const { address, token, runToEnd } = await startWithClock({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    const [page, other] = await Promise.all([open(address, { token }), open(address, { token })]);
    await other.clock.install();
    await other.goto(upgrades);
    await other.getByText('Upgrade to 11.').first().waitFor();
    await startRelease(page);
    // The page of another reader shows the job that has started, and what it changes beside its own content.
    await other.clock.fastForward(5_000);
    await expectState(other, 'In progress');
    await other.goto('/admin/services/webhooks/settings');
    const banner = other.getByText('The system is read-only.', { exact: true });
    await banner.waitFor();
    expect(await other.title()).toBe('Webhook settings · Steward');
    const save = other.getByRole('button', { name: 'Save' });
    expect(await save.isDisabled()).toBe(true);
    const list = await other.context().newPage();
    await list.clock.install();
    await list.goto('/admin/services');
    expect(await list.getByRole('button', { name: 'Create service' }).isDisabled()).toBe(true);
    await other.getByLabel('Attempts per delivery').fill('2');
    await runToEnd();
    await other.clock.fastForward(30_000);
    await banner.waitFor({ state: 'hidden' });
    await expect.poll(() => other.title()).toBe('(1) Webhook settings · Steward');
    // The form keeps its input.
    await expect.poll(() => save.isEnabled()).toBe(true);
    expect(await other.getByText('Not possible while the system is read-only.').count()).toBe(0);
    expect(await other.getByLabel('Attempts per delivery').inputValue()).toBe('2');
    await list.clock.fastForward(30_000);
    await list.getByRole('link', { name: 'Create service' }).waitFor();
    expect(await other.locator('link[rel="icon"]').getAttribute('href')).toContain('attention.svg');
    await other.getByRole('navigation', { name: 'Main' }).getByText('1 needs attention').waitFor();
    await expectState(page, 'Failed');
    expect(await page.locator('p.problem').innerText()).toContain('MAP_SERVER');
    await expectInstalled(page, '10.9.1.1234');
    // The overview offers it too, and shows the end of the job.
    await page.getByRole('button', { name: 'Resume' }).click();
    await expectState(page, 'In progress');
    await runToEnd();
    await page.getByRole('status').filter({ hasText: '11.0.0.2670: succeeded.' }).waitFor();
    await expectInstalled(page, '11.0.0.2670');
    await page
      .getByRole('link', { name: /^Upgrade from/ })
      .first()
      .click();
    await expectState(page, 'Succeeded');
    expect(
      await messagesOf(page)
        .filter({ hasText: /\b290[12]\b/ })
        .count(),
    ).toBe(2);
  });

  it('does not look fresh while the server does not answer, and recovers', async () => {
    const { address, token, runSteps, runToEnd } = await startWithClock();
    const page = await open(address, { token, provokes: /net::ERR_FAILED/ });
    await startRelease(page);
    const strip = page.locator('#connection');
    const opacity = () => page.evaluate("getComputedStyle(document.getElementById('job-state')).opacity");
    const icon = () => page.locator('link[rel="icon"]').getAttribute('href');
    const usualIcon = await icon();
    await page.route('**/*', (route) => route.abort());
    await expect
      .poll(() => strip.innerText(), endsWithin)
      .toMatch(/^Not connected since .+\. Trying again …$/);
    await expect.poll(() => page.title()).toMatch(/^● Offline · Upgrade from/);
    await expect.poll(opacity, endsWithin).toBe('0.6');
    expect(await icon()).not.toBe(usualIcon);
    expect(await page.getByText('● Live').isVisible()).toBe(false);
    await expect.poll(() => page.locator('body').getAttribute('data-connection'), endsWithin).toBe('lost');

    await page.unroute('**/*');
    await runSteps(30);
    await strip.waitFor({ state: 'hidden' });
    await page.getByText('● Live').waitFor();
    await expect.poll(() => page.title()).toMatch(/^\d+ % · Upgrade from/);
    expect(await opacity()).toBe('1');
    await expect.poll(icon).toBe(usualIcon);

    await page.goto('/admin');
    const isWell = async () => (await page.locator('main').innerText()).includes('Accepts changes');
    await runToEnd();
    await expect.poll(isWell, endsWithin).toBe(true);
    await page.route('**/*', (route) => route.abort());
    await strip.waitFor();
    const main = await page.locator('main').innerText();
    for (const claim of [
      'Accepts changes',
      'Everything works.',
      'A job is running.',
      'No delivery is pending.',
    ])
      expect(main).not.toContain(claim);
    await page.unroute('**/*');
    await strip.waitFor({ state: 'hidden' });
    expect(await isWell()).toBe(true);

    await page.context().clearCookies();
    await expect.poll(() => strip.innerText(), endsWithin).toBe('Your session has ended. Sign in to go on.');
    expect(await page.evaluate("getComputedStyle(document.getElementById('banner')).opacity")).toBe('0.6');
    await page.context().addCookies([{ name: 'steward_session', value: token, url: address }]);
    await strip.waitFor({ state: 'hidden' });
    await page.context().clearCookies();
    await strip.getByRole('link', { name: 'Sign in' }).click();
    await page.getByLabel('Password').waitFor();
  });

  it('shows the messages of a component in place, and follows them until the reader scrolls back', async () => {
    const { address, token, runSteps } = await startWithClock();
    const page = await open(address, { token });
    await startRelease(page);
    await page.waitForLoadState();
    await runSteps(60);
    const follow = page.getByLabel('Follow');
    const all = await messagesOf(page).count();
    let loads = 0;
    page.on('load', () => (loads += 1));
    await page.getByRole('link', { name: /^ADMIN/ }).click();
    await page.getByRole('heading', { name: 'Messages about ADMIN' }).waitFor();
    for (const line of await messagesOf(page)
      .filter({ hasText: / 2\d{3} / })
      .allInnerTexts())
      expect(line).toContain('ADMIN');
    await page.getByRole('link', { name: /^ADMIN/ }).click();
    await expect.poll(() => messagesOf(page).count()).toBeGreaterThanOrEqual(all);
    await page.getByLabel('Kind').selectOption('Errors only');
    await expect.poll(() => messagesOf(page).count()).toBe(0);
    await page.getByRole('link', { name: 'Show all' }).click();
    await expect.poll(() => messagesOf(page).count()).toBeGreaterThanOrEqual(all);
    expect(loads).toBe(0);
    expect(await follow.isChecked()).toBe(true);
    await messagesOf(page).first().scrollIntoViewIfNeeded();
    await expect.poll(() => follow.isChecked()).toBe(false);
    const first = await messagesOf(page).nth(1).boundingBox();
    await runSteps(30);
    await expect.poll(() => messagesOf(page).count()).toBeGreaterThan(all);
    expect((await messagesOf(page).nth(1).boundingBox())?.y).toBeCloseTo(first?.y ?? 0, 0);
  });
});

describe.skipIf(!hasChromium)('a scheduled upgrade', patience, () => {
  const open = useBrowser();

  it('starts at the time that was entered in the zone of the reader, and can be moved and cancelled', async () => {
    const { address, token, read, runtime } = await startWithClock();
    const page = await open(address, { token, timezoneId: 'America/New_York' });
    await page.goto(`${upgrades}/plan?versionManifest={"id":"pat_17022022_1250"}`);
    const local = (aheadMs: number) => {
      const wanted = new Date(runtime.now() + aheadMs);
      const text = wanted.toLocaleString('sv-SE', { timeZone: 'America/New_York' }).slice(0, 16);
      return { text: text.replace(' ', 'T'), at: Math.floor(wanted.getTime() / 60_000) * 60_000 };
    };
    const first = local(2 * 3_600_000);
    const control = page.getByLabel('At (America/New_York)');
    const choice = page.getByLabel('When');
    await control.fill(first.text);
    expect(await choice.inputValue()).toBe('at');
    await choice.selectOption('Now');
    expect(await control.inputValue()).toBe('');
    await control.fill(first.text);
    await page.getByRole('button', { name: /^Schedule for / }).click();
    await expectState(page, 'Scheduled');
    const shown = first.text.replace('T', ' ');
    await page.getByText(`scheduled for ${shown}:00 GMT−`).first().waitFor();
    expect(await page.locator('.result time').getAttribute('title')).toBe(
      `${new Date(first.at).toISOString().slice(0, 19).replace('T', ' ')} UTC`,
    );
    expect(await read('system/upgrades')).toMatchObject({ startAt: first.at });
    await page.getByRole('link', { name: 'Reschedule …' }).click();
    expect(await control.inputValue()).toBe(first.text);
    const second = local(3_600_000);
    await control.fill(second.text);
    await page.getByRole('button', { name: 'Reschedule job' }).click();
    await page.getByText('The start was moved to').first().waitFor();
    expect(await read('system/upgrades')).toMatchObject({ startAt: second.at });
    await page.goto(upgrades);
    await page.getByText('Starts in').waitFor();
    await page.getByRole('link', { name: 'Cancel …' }).click();
    await page.getByText('To start it later, prepare it again.').waitFor();
    await page.getByRole('button', { name: 'Cancel job' }).click();
    await expectState(page, 'Cancelled');
    await page.goto(`${upgrades}/config`);
    expect(await page.getByLabel('Time zone').inputValue()).toBe('America/New_York');
  });
});
