// Drives Chromium with playwright-core against a server in this process. Tests that need it are skipped where it is not installed. The
// variable CHROMIUM overrides its path.
import type { Result } from 'axe-core';
import { scryptSync } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pino } from 'pino';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
  chromium,
} from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, onTestFinished } from 'vitest';
import { type App, createApp } from '../../src/app.ts';
import { createExecutor, openStore } from '../../src/backends.ts';
import { sampleCatalog } from '../../src/catalog/sample.ts';
import { readConfig } from '../../src/config.ts';
import { startControlled } from '../../src/control/start.ts';
import { realRuntime } from '../../src/runtime.ts';
import { type HttpClient, createHttpClient } from '../../src/webhooks/http-client.ts';
import { checkDelivery } from './check-deliveries.js';
import { noteRecord, noteSecret } from './leaks.ts';
import type { FakeRuntime } from './runtime.ts';

const given = process.env.CHROMIUM ?? '';
const executablePath = given || '/usr/bin/chromium';

/** An explicit path is not checked, so that a wrong one makes the tests fail. */
export const hasChromium = given !== '' || existsSync(executablePath);

export const launchBrowser = () => chromium.launch({ executablePath, args: ['--no-sandbox'] });

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const password = 'a password for tests';

/** A test in a browser takes longer than other tests, above all on a busy machine. */
export const patience = { timeout: 60_000 };

// The hash that the server makes is slow to check on purpose. A hash names its cost, so this one is fast.
const salt = Buffer.alloc(16);
const key = scryptSync(password, salt, 32, { N: 2, r: 8, p: 1 });
const passwordHash = `scrypt$2$8$1$${salt.toString('base64url')}$${key.toString('base64url')}`;

const readSource = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const assets = {
  stylesheet: readSource('src/http/assets/steward.css'),
  script: readSource('src/http/assets/steward.js'),
  icon: readSource('src/http/assets/steward.svg'),
};
const wsdl = readSource('wsdl/ServiceCatalog.wsdl');

/** Checks every delivery and sends it. */
function createCheckedClient(client: HttpClient): HttpClient {
  return {
    post(request, signal) {
      checkDelivery(request.headers, request.body);
      return client.post(request, signal);
    },
    close: () => client.close(),
  };
}

/** The server that a process starts, except that its clock may be a fake one and that its first password is checked fast. */
async function createServer(env: Record<string, string>, fake: FakeRuntime | undefined): Promise<App> {
  const config = readConfig({ ADMIN_PASSWORD: password, ...env });
  const runtime = fake ?? realRuntime;
  const httpClient = createCheckedClient(createHttpClient(config.webhookAllowCidrs));
  const logger = pino({ level: 'error' }, { write: noteRecord });
  const version = '0.0.0';
  const adminHash = () => Promise.resolve(passwordHash);
  const options = { config, runtime, httpClient, logger, version, assets, wsdl, adminHash };
  const backends = { config, runtime, logger, builtFiles: import.meta.url };
  async function create(): Promise<App> {
    if (config.testControl) return startControlled({ ...options, catalog: sampleCatalog });
    const store = await openStore(backends);
    const executor = await createExecutor(backends, store, version);
    return createApp({ ...options, catalog: sampleCatalog, store, executor });
  }
  const app = await create();
  onTestFinished(async () => {
    const closed = app.close();
    // Attempts in progress have some seconds to end.
    await fake?.advance(10_000);
    await closed;
    await httpClient.close();
  });
  return app;
}

export type Steward = Awaited<ReturnType<typeof startSteward>>;

/**
 * Starts a server at the address that its links contain, and stops it after the test. With a fake runtime, its time moves only when the
 * test advances it. The functions it returns create data to display.
 */
export async function startSteward(env: Record<string, string> = {}, runtime?: FakeRuntime) {
  const { http, trees, issueAdminToken } = await createServer(env, runtime);
  const token = await issueAdminToken();
  noteSecret(password, token);
  await http.listen({ host: '127.0.0.1', port: 0 });
  const address = `http://localhost:${new URL(http.listeningOrigin).port}`;

  async function ask<T>(path: string, init: RequestInit): Promise<T> {
    const response = await fetch(`${address}${path}`, init);
    expect(response.ok, `${path}: ${response.status}`).toBe(true);
    return (await response.json()) as T;
  }
  const askAsAdministrator = <T>(path: string, init: RequestInit = {}) =>
    ask<T>(`/admin/${path}`, { ...init, headers: { authorization: `Bearer ${token}` } });

  return {
    address,
    /** Of the administrator. */
    token,
    trees,
    tokenOf: async (username: string): Promise<string> => {
      const body = new URLSearchParams({ username, password });
      return (await ask<{ token: string }>('/tokens/generateToken', { method: 'POST', body })).token;
    },
    read: <T>(path: string) => askAsAdministrator<T>(path),
    act: <T>(path: string, fields: Record<string, string> = {}) =>
      askAsAdministrator<T>(path, { method: 'POST', body: new URLSearchParams(fields) }),
    upload: async (name: string, content: string) => {
      const body = new FormData();
      body.set('itemFile', new Blob([content]), name);
      const sent = { method: 'POST', body };
      return (await askAsAdministrator<{ item: { itemID: string } }>('uploads/upload', sent)).item.itemID;
    },
  };
}

/** With a token, the page has a session. test/browser/directory.test.ts tests how a browser gets one. */
type OpenOptions = BrowserContextOptions & { readonly token?: string };

/** Starts one browser per test file. The function it returns opens a page in its own context. A test fails when a page logs errors or warnings. */
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

  function watch(page: Page): void {
    page.on('response', (response) => {
      if (response.request().isNavigationRequest()) documents.add(response.url());
    });
    // Violations of the content security policy are logged here, too.
    page.on('console', (message) => {
      if (!['error', 'warning'].includes(message.type())) return;
      messages.push({ url: message.location().url, text: message.text() });
    });
    page.on('pageerror', (error) => messages.push({ url: page.url(), text: error.message }));
  }

  return async function open(address: string, { token, ...options }: OpenOptions = {}): Promise<Page> {
    const viewport = { width: 1280, height: 900 };
    const context = await browser.newContext({ baseURL: address, viewport, ...options });
    contexts.add(context);
    // Shorter than the timeout of a test, so that the error names what the page lacks.
    context.setDefaultTimeout(20_000);
    if (token !== undefined)
      await context.addCookies([{ name: 'steward_session', value: token, url: address }]);
    const page = await context.newPage();
    watch(page);
    return page;
  };
}

/** Opens a page that requires a signed-in user, and signs in. */
export async function signIn(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await page.getByLabel('User name').fill('admin');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Signed in as admin').waitFor();
}

/** Returns the accessibility problems of a page: violations of the axe-core rules (all, or those given), and horizontal scrolling. */
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
