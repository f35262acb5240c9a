// The layout of every page: head, breadcrumb, session, and the HTTP headers of HTML answers.
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

export type AssetHrefs = { readonly stylesheet: string; readonly script: string; readonly icon: string };

export type Layout = {
  readonly title: string;
  readonly assets: AssetHrefs;
  readonly crumbs: readonly Link[];
  readonly session?: Session;
};

export type Session = {
  readonly caller: Caller;
  readonly formToken: string;
  readonly signInHref: string;
  readonly signOutAction: string;
};

export function renderPage(layout: Layout, content: Html): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${layout.title} · Steward</title>
        <link rel="icon" href="${layout.assets.icon}" type="image/svg+xml" />
        <link rel="stylesheet" href="${layout.assets.stylesheet}" />
        <script src="${layout.assets.script}" type="module"></script>
      </head>
      <body>
        <a class="skip" href="#content">Skip to the content</a>
        <header class="top">
          ${
            layout.crumbs.length > 0 &&
            html`<nav aria-label="Breadcrumb">
              <ol class="crumbs">
                ${layout.crumbs.map(crumbView)}
              </ol>
            </nav>`
          }
          ${layout.session && sessionLine(layout.session)}
        </header>
        <main id="content" tabindex="-1">
          <h1>${layout.title}</h1>
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
