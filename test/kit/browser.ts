// Drives Chromium with playwright-core. Tests that need it are skipped where it is not installed. The variable
// CHROMIUM overrides its path. Where Debian's build without a window is installed, it is used: it takes half the
// time.
import type { Result } from 'axe-core';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
  chromium,
} from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { password } from './server.ts';

const given = process.env.CHROMIUM ?? '';
const installed = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((path) => existsSync(path));
const executablePath = given || installed;

/** An explicit path is not checked, so that a wrong one makes the tests fail. */
export const hasChromium = executablePath !== undefined;

export const launchBrowser = () =>
  chromium.launch({ ...(executablePath && { executablePath }), args: ['--no-sandbox'] });

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A test in a browser takes longer than other tests, above all on a busy machine. */
export const patience = { timeout: 300_000 };

type OpenOptions = BrowserContextOptions & {
  /** With a token, the page has a session. test/browser/directory.test.ts tests how a browser gets one. */
  readonly token?: string;
  /** Matches the errors that the test provokes: the text of the message and the address that it is about. */
  readonly provokes?: RegExp;
};

/**
 * Starts one browser per test file. The function it returns opens a page in its own context. A test fails when a
 * page logs errors or warnings that the test does not provoke.
 */
export function useBrowser() {
  let browser: Browser;
  const contexts = new Set<BrowserContext>();
  const documents = new Set<string>();
  let messages: { url: string; text: string }[] = [];

  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterEach(async () => {
    await Promise.all([...contexts].map((context) => context.close()));
    // Chromium also logs this error for a page whose own status is an error.
    const unexpected = messages.filter(
      ({ url, text }) => !(text.startsWith('Failed to load resource') && documents.has(url)),
    );
    contexts.clear();
    documents.clear();
    messages = [];
    expect(unexpected).toEqual([]);
  });
  afterAll(() => browser.close());

  function watch(page: Page, provokes: RegExp | undefined): void {
    page.on('response', (response) => {
      if (response.request().isNavigationRequest()) documents.add(response.url());
    });
    // Violations of the content security policy are logged here, too.
    page.on('console', (message) => {
      const [url, text] = [message.location().url, message.text()];
      if (!['error', 'warning'].includes(message.type()) || provokes?.test(`${text} ${url}`)) return;
      messages.push({ url, text });
    });
    page.on('pageerror', (error) => messages.push({ url: page.url(), text: error.message }));
  }

  return async function open(
    address: string,
    { token, provokes, ...options }: OpenOptions = {},
  ): Promise<Page> {
    const viewport = { width: 1280, height: 900 };
    const context = await browser.newContext({ baseURL: address, viewport, ...options });
    contexts.add(context);
    // Shorter than the timeout of a test, so that the error names what the page lacks.
    context.setDefaultTimeout(60_000);
    if (token !== undefined)
      await context.addCookies([{ name: 'steward_session', value: token, url: address }]);
    const page = await context.newPage();
    watch(page, provokes);
    return page;
  };
}

/** Opens a page that requires a signed-in user, and signs in. */
export async function signIn(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await page.getByLabel('User name').fill('admin');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'admin administrator' }).waitFor();
}

/** Loads axe-core with every page. For many pages this is faster than what `findBarriers` does without it. */
export const loadAxe = (page: Page) => page.addInitScript({ content: axe });

/**
 * Returns the accessibility problems of a page: violations of the axe-core rules (all, or those given), and
 * horizontal scrolling.
 */
export async function findBarriers(page: Page, rules?: readonly string[]): Promise<string[]> {
  const runOnly = rules && { type: 'rule', values: rules };
  const options = JSON.stringify({ resultTypes: ['violations'], preload: false, runOnly });
  if (await page.evaluate<boolean>(`typeof axe === 'undefined'`)) await page.evaluate(axe);
  const violations = await page.evaluate<Result[]>(
    `axe.run(${options}).then(({ violations }) => violations)`,
  );
  const found = violations
    .filter(({ impact }) => impact !== 'minor')
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(' ')}`);
  return [...found, ...(await findOverflow(page))];
}

/** Returns by how much the page is wider than the window, if it is. */
export async function findOverflow(page: Page): Promise<string[]> {
  const tooWide = await page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  return tooWide > 0 ? [`${tooWide} px too wide`] : [];
}
