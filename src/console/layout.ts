// The layout of every page: head, navigation, session, breadcrumb, notices, and the HTTP headers of HTML answers.
import type { FastifyReply } from 'fastify';
import type { Caller } from '../lib/caller.ts';
import { html, type Html } from '../lib/html.ts';
import { type PageAction, actionButton } from './action.ts';

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

export type PageLink = { readonly name: string; readonly href: string };

export type AssetHrefs = Readonly<Record<'stylesheet' | 'script' | 'icon' | 'offlineIcon', string>>;

export type Layout = {
  readonly title: string;
  readonly assets: AssetHrefs;
  readonly homeHref: string;
  /** Whether browsers without scripts reload the page by themselves. */
  readonly reloads?: boolean;
  /** The time of the server, from which the script counts relative times. */
  readonly now: number;
  readonly navigation: readonly NavigationLink[];
  readonly crumbs: readonly Crumb[];
  readonly session?: Session;
  readonly banner?: Banner | undefined;
  /** The address of test control, if it is on. */
  readonly controlHref?: string | undefined;
  /** About the operation that has just redirected here. */
  readonly notice?: { readonly text: string; readonly link?: PageLink | undefined } | undefined;
};

export type NavigationLink = PageLink & { readonly current: 'page' | 'true' | undefined };

/** Without an address if the caller may not open it. */
export type Crumb = { readonly name: string; readonly href?: string };

/** A state of the whole system that concerns every page. */
export type Banner = {
  readonly title: string;
  readonly text: string;
  readonly link?: PageLink | undefined;
  readonly action?: PageAction | undefined;
};

export type Session = {
  readonly caller: Caller;
  readonly formToken: string;
  readonly accountHref: string;
  readonly signInHref: string;
  readonly signOutAction: string;
};

export function renderPage(layout: Layout, content: Html): Html {
  const { title, assets, crumbs, session, banner, notice } = layout;
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · Steward</title>
        ${layout.reloads && html`<noscript><meta http-equiv="refresh" content="10" /></noscript>`}
        <link rel="icon" href="${assets.icon}" data-offline="${assets.offlineIcon}" type="image/svg+xml" />
        <link rel="stylesheet" href="${assets.stylesheet}" />
        <script src="${assets.script}" type="module"></script>
      </head>
      <body data-now="${layout.now}">
        <a class="skip" href="#content">Skip to the content</a>
        <header>
          <div class="top">
            <a class="brand" href="${layout.homeHref}"><img src="${assets.icon}" alt="" />Steward</a>
            ${navigationView(layout)} ${session && sessionLine(session)}
          </div>
          <p id="connection" role="status" hidden></p>
          ${
            layout.controlHref !== undefined &&
            html`<p class="control">
              <strong>Test control is on.</strong> Programs on this machine can reset this server, move its clock and
              make it fail. <a href="${layout.controlHref}">Open test control</a>
            </p>`
          }
          <div id="banner">${banner && bannerView(banner)}</div>
        </header>
        ${
          crumbs.length > 1 &&
          html`<nav class="path" aria-label="Breadcrumb">
            <ol class="crumbs">
              ${crumbs.map(crumbView)}
            </ol>
          </nav>`
        }
        <main id="content" tabindex="-1">
          ${
            notice &&
            html`<p role="status" class="result">
              ${notice.text} ${notice.link && html`<a href="${notice.link.href}">${notice.link.name}</a>`}
            </p>`
          }
          <h1>${title}</h1>
          ${content}
        </main>
      </body>
    </html> `;
}

function navigationView({ navigation }: Layout): Html | false {
  return (
    navigation.length > 0 &&
    html`<nav class="main" aria-label="Main">
      <ul>
        ${navigation.map(
          ({ name, href, current }) =>
            html`<li><a href="${href}" ${current && html`aria-current="${current}"`}>${name}</a></li> `,
        )}
      </ul>
    </nav>`
  );
}

function bannerView({ title, text, link, action }: Banner): Html {
  return html`<div class="banner">
    <p><strong>${title}</strong> ${text} ${link && html`<a href="${link.href}">${link.name}</a>`}</p>
    ${action && actionButton(action)}
  </div>`;
}

function crumbView({ name, href }: Crumb, index: number, all: readonly Crumb[]): Html {
  if (index === all.length - 1) return html`<li aria-current="page">${name}</li> `;
  return html`<li>${href === undefined ? name : html`<a href="${href}">${name}</a>`}</li> `;
}

function sessionLine({ caller, formToken, accountHref, signInHref, signOutAction }: Session): Html {
  if (caller === undefined) return html`<p class="session"><a href="${signInHref}">Sign in</a></p>`;
  const signOut =
    formToken !== '' &&
    html`<form method="post" action="${signOutAction}">
      <input type="hidden" name="f" value="html" /><input type="hidden" name="token" value="${formToken}" />
      <button class="quiet">Sign out</button>
    </form>`;
  return html`<div class="session">
    <p>
      <span class="wide-only">Signed in as</span>
      <a href="${accountHref}"><strong>${caller.username}</strong></a>
      <span class="wide-only">(${caller.role})</span>
    </p>
    ${signOut}
  </div>`;
}
