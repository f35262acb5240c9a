// Takes the pictures of docs/images with `npm run screenshots`. Without it, checks that no page has changed since its
// pictures were taken.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hasChromium, launchBrowser } from '../kit/browser.ts';
import { assets } from '../kit/steward.ts';
import { type State, folderName, readPage, walkStory } from '../pages/states.ts';

const images = new URL('../../docs/images/', import.meta.url);
const hashesFile = new URL('screenshots.json', images);

const width = 1280;

type Crop = { readonly from?: string; readonly to: string; readonly margin: number };

/** The elements that a picture begins and ends with. Without `from` it begins at the top of the page. */
const crops: Readonly<Record<string, Crop>> = {
  home: { to: '.cards', margin: 24 },
  webhook: { to: '#newest tbody tr:nth-child(3)', margin: 0 },
  soap: { from: '#try', to: 'details[open] [data-answer]', margin: 24 },
  upgrade: { to: '.messages', margin: 24 },
  failed: { to: '.tiles', margin: 24 },
  audit: { to: 'tbody tr:nth-child(6)', margin: 0 },
};
const themes = ['light', 'dark'] as const;

const fileOf = (name: string, theme: string) => `${name}-${theme}.png`;

async function takePictures(browser: Browser, name: string, crop: Crop, state: State): Promise<void> {
  const { path, session = '', server } = state;
  const baseURL = server.http.server.listening ? server.http.listeningOrigin : await server.listen();
  for (const colorScheme of themes) {
    const viewport = { width, height: 900 };
    const context = await browser.newContext({ baseURL, viewport, colorScheme, deviceScaleFactor: 1 });
    await context.addCookies([{ name: 'steward_session', value: session, url: baseURL }]);
    const page = await context.newPage();
    await page.goto(path);
    if (name === 'soap') await trySoap(page);
    await page.screenshot({
      path: fileURLToPath(new URL(fileOf(name, colorScheme), images)),
      fullPage: true,
      clip: await regionOf(page, crop),
    });
    await context.close();
  }
}

async function regionOf(page: Page, { from, to, margin }: Crop) {
  const scrolled = await page.evaluate<number>('window.scrollY');
  const edgesOf = async (selector: string) => {
    const box = await page.locator(selector).first().boundingBox();
    if (!box) throw new Error(`There is no ${selector} on the page.`);
    return { top: box.y + scrolled, bottom: box.y + scrolled + box.height };
  };
  const y = from === undefined ? 0 : (await edgesOf(from)).top - margin;
  return { x: 0, y, width, height: (await edgesOf(to)).bottom + margin - y };
}

async function trySoap(page: Page): Promise<void> {
  await page.getByText('GetServiceDescriptionsEx', { exact: true }).last().click();
  await page.getByLabel('FolderName').fill(folderName);
  // Twice: the first request also measures how the browser connects.
  for (let sent = 0; sent < 2; sent += 1) {
    const answered = page.waitForResponse(/\/services\?token=/);
    await page.getByRole('button', { name: 'Send GetServiceDescriptionsEx' }).click();
    await answered;
    await page.getByText('HTTP 200').waitFor();
  }
}

/**
 * Replaces what differs from run to run, or with unrelated changes: tokens, ids, times, ports, and the versions of
 * the assets.
 */
function mask(html: string): string {
  return html
    .replaceAll(/form_[\w-]+/g, 'form_token')
    .replaceAll(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'id')
    .replaceAll(/<time[^>]*>[^<]*<\/time>/g, '<time>')
    .replaceAll(/\b(data-(?:elapsed|run|remaining|after))="[^"]*"/g, '$1=""')
    .replaceAll(/\b\d+(?:\.\d+)? (?:ms|s|milliseconds|seconds?|minutes?|hours?|days?)\b/g, 'duration')
    .replaceAll(/v1,[\w+/]+=*/g, 'v1,signature')
    .replaceAll(/localhost:\d+/g, 'localhost')
    .replaceAll(/\?v=[0-9a-f]{12}/g, '');
}

/** The SHA-256 of the masked texts, the stylesheet and the script. */
function hashPage(texts: readonly string[], { stylesheet, script } = assets): string {
  const hash = createHash('sha256');
  for (const text of [...texts.map(mask), stylesheet, script]) hash.update(JSON.stringify(text));
  return hash.digest('hex');
}

/** True with `npm run screenshots`. */
const isUpdate = () => expect.getState().snapshotState.snapshotUpdateState === 'all';

function readHashes(): Record<string, string> {
  return existsSync(hashesFile)
    ? (JSON.parse(readFileSync(hashesFile, 'utf8')) as Record<string, string>)
    : {};
}

describe('screenshots', () => {
  it('show the pages as they are', async () => {
    const stored = readHashes();
    const hashes: Record<string, string> = {};
    let browser: Browser | undefined;
    onTestFinished(async () => await browser?.close());
    const visit = async (state: State) => {
      const name = state.name.replace('pictures/', '');
      const crop = crops[name];
      if (!crop) return;
      const hash = hashPage([await readPage(state), ...state.answers]);
      const files = themes.map((theme) => fileOf(name, theme));
      for (const file of files) hashes[file] = hash;
      const isStale = files.some((file) => stored[file] !== hash || !existsSync(new URL(file, images)));
      if (!isStale) return;
      expect(isUpdate(), `The page ${name} has changed: run npm run screenshots.`).toBe(true);
      expect(hasChromium, 'Chromium takes the pictures: install it, or set CHROMIUM to its path.').toBe(true);
      browser ??= await launchBrowser();
      await takePictures(browser, name, crop, state);
    };
    await walkStory('pictures', visit, { assets });
    if (isUpdate()) writeFileSync(hashesFile, `${JSON.stringify(hashes, null, 2)}\n`);
    expect(Object.keys(readHashes())).toEqual(Object.keys(hashes));
  });
});
