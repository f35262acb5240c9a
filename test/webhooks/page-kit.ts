// Reads the pages of webhooks and presses their buttons.
import { expect } from 'vitest';
import type { Hooks } from '../kit/hooks.ts';
import { formOf } from '../upgrades/page-kit.ts';

export const all = '/admin/services/webhooks';

/** The text of the page, without markup and with single spaces. */
export const textOf = (page: string) =>
  page
    .replace(/<(script|style|title)[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&#39;', "'")
    .replace(/\s+/g, ' ');

/** The browser of a signed-in administrator. */
export function browse(hooks: () => Hooks) {
  const cookie = () => `steward_session=${hooks().token('administrator')}`;

  async function see(path: string) {
    const page = await hooks().get(path, { accept: 'text/html', cookie: cookie() });
    expect(page.statusCode).toBe(200);
    return page.body;
  }

  /** Presses the button that posts to `action`. Returns the address of the redirect, without its `done` parameter. */
  async function press(page: string, action: string) {
    const form = formOf(page, action);
    expect(form?.fields).toMatchObject({ f: 'html' });
    const answer = await hooks().post(action, form?.fields, { cookie: cookie() });
    expect(answer.statusCode).toBe(303);
    return String(answer.headers.location).replace(/[?&]done=\w+$/, '');
  }

  return { cookie, see, press };
}
