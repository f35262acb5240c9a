// The theme of the pages: light, dark, or the one of the system. A cookie keeps the choice, so that the first byte of a
// page has it.
import formbody from '@fastify/formbody';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { cookieAttributes, cookieOf } from '../http/credentials.ts';
import type { PublicUrls } from '../http/urls.ts';
import { invalidField } from '../lib/errors.ts';
import { html, type Html } from '../lib/html.ts';
import { ownPath } from '../rest/request.ts';

const themes = ['system', 'light', 'dark'] as const;

export type Theme = (typeof themes)[number];

const themeCookie = 'steward_theme';
const maxAgeSeconds = 365 * 24 * 60 * 60;

const findTheme = (name: unknown) => themes.find((theme) => theme === name);

export function themeOf(request: FastifyRequest): Theme {
  return findTheme(cookieOf(request, themeCookie)) ?? 'system';
}

/** The script changes the theme in place, so that the input of a form stays. */
export function themeSwitch(action: string, next: string, theme: Theme): Html {
  return html`<form class="theme" method="post" action="${action}" aria-label="Theme">
    <input type="hidden" name="next" value="${next}" /><span>Theme</span>
    ${themes.map(
      (one) =>
        html`<button class="quiet" name="theme" value="${one}" aria-pressed="${String(one === theme)}">${one}</button> `,
    )}
  </form>`;
}

type ThemeOptions = { readonly path: string; readonly urls: PublicUrls };

/** Needs no session: it changes only the browser that sends it. */
export async function themeRoute(scope: FastifyInstance, { path, urls }: ThemeOptions): Promise<void> {
  scope.removeAllContentTypeParsers();
  await scope.register(formbody);
  scope.post<{ Body: Record<string, unknown> | undefined }>(path, (request, reply) => {
    const { theme: chosen, next } = request.body ?? {};
    const theme = findTheme(chosen);
    if (!theme) throw invalidField('theme', `must be one of ${themes.join(', ')}.`);
    const maxAge = theme === 'system' ? 0 : maxAgeSeconds;
    return reply
      .headers({
        'cache-control': 'no-store',
        'set-cookie': `${themeCookie}=${theme}; Max-Age=${maxAge}; ${cookieAttributes(urls.isHttps)}`,
      })
      .redirect(ownPath(String(next)) ?? urls.homePath, 303);
  });
}
