// What every page has around its content: head, breadcrumb, session, and the headers it is sent with.
import type { FastifyReply } from 'fastify';
import type { Caller } from '../../caller.ts';
import { html, type Html } from './html.ts';

const securityHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
};

export function sendHtml(reply: FastifyReply, status: number, page: Html, headers = {}): FastifyReply {
  return reply
    .code(status)
    .headers({ ...securityHeaders, ...headers })
    .send(page.markup);
}

export type Link = { readonly name: string; readonly href: string };

/** Where a page finds its stylesheet, script and picture. */
export type Assets = { readonly stylesheet: string; readonly script: string; readonly icon: string };

export type Layout = {
  readonly title: string;
  readonly assets: Assets;
  /** From the root down to this page. */
  readonly crumbs: readonly Link[];
  /** Absent on pages that know nothing of sessions. */
  readonly session?: Session;
};

export type Session = {
  readonly caller: Caller;
  readonly formToken: string;
  readonly signInHref: string;
  readonly signOutAction: string;
};

export function renderPage(frame: Layout, content: Html): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${frame.title} · Steward</title>
        <link rel="icon" href="${frame.assets.icon}" type="image/svg+xml" />
        <link rel="stylesheet" href="${frame.assets.stylesheet}" />
        <script src="${frame.assets.script}" type="module"></script>
      </head>
      <body>
        <a class="skip" href="#content">Skip to the content</a>
        <header class="top">
          ${
            frame.crumbs.length > 0 &&
            html`<nav aria-label="Breadcrumb">
              <ol class="crumbs">
                ${frame.crumbs.map(crumbView)}
              </ol>
            </nav>`
          }
          ${frame.session && sessionLine(frame.session)}
        </header>
        <main id="content" tabindex="-1">
          <h1>${frame.title}</h1>
          ${content}
        </main>
      </body>
    </html> `;
}

function crumbView({ name, href }: Link, index: number, all: readonly Link[]): Html {
  const current = index === all.length - 1 && html`aria-current="page"`;
  return html`<li><a href="${href}" ${current}>${name}</a></li> `;
}

function sessionLine({ caller, formToken, signInHref, signOutAction }: Session): Html {
  if (caller === undefined) return html`<p class="session"><a href="${signInHref}">Sign in</a></p>`;
  const signOut =
    formToken !== '' &&
    html`<form method="post" action="${signOutAction}">
      <input type="hidden" name="f" value="html" /><input type="hidden" name="token" value="${formToken}" />
      <button class="quiet">Sign out</button>
    </form>`;
  return html`<div class="session">
    <p>Signed in as <strong>${caller.username}</strong> (${caller.role})</p>
    ${signOut}
  </div>`;
}
