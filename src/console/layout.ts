// The layout of every page: head, navigation, session, breadcrumb, notices, and the HTTP headers of HTML answers.
import type { FastifyReply } from 'fastify';
import { createHash } from 'node:crypto';
import type { Caller } from '../lib/caller.ts';
import { html, type Html } from '../lib/html.ts';
import { pollHeader } from '../rest/request.ts';
import { type PageAction, actionButton } from './action.ts';
import { formatTime, renderSentence, renderTime } from './time.ts';
import { type Theme, themeOf, themeSwitch } from './theme.ts';

const securityHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  // Addresses may hold a token.
  'referrer-policy': 'no-referrer',
};

/** A page for a reader with this theme. */
export type Page = (theme: Theme) => Html;

export function sendHtml(reply: FastifyReply, status: number, page: Page, headers = {}): FastifyReply {
  const { request } = reply;
  const { markup } = page(themeOf(request));
  void reply.code(status).headers({ ...securityHeaders, ...headers });
  if (status !== 200 || request.headers[pollHeader] === undefined) return reply.send(markup);
  // Leaves out what changes only because time passes: the script of the page follows that by itself.
  const lasting = markup.replaceAll(/(?<= data-(?:now|printed)=")[^"]*|(?<= data-ago\s*>)[^<]*/g, '');
  const tag = `W/"${createHash('sha256').update(lasting).digest('base64url')}"`;
  const isKnown = request.headers['if-none-match'] === tag;
  return isKnown ? reply.code(304).send() : reply.header('etag', tag).send(markup);
}

export type PageLink = { readonly name: string; readonly href: string };

export type AssetHrefs = Readonly<
  Record<'stylesheet' | 'script' | 'tryScript' | 'icon' | 'attentionIcon' | 'offlineIcon', string>
>;

export type Layout = {
  readonly title: string;
  /** The title of the document says so. */
  readonly isError?: boolean;
  /** Of this installation. */
  readonly name: string;
  /** Of the server. */
  readonly version: string;
  readonly assets: AssetHrefs;
  readonly homeHref: string;
  /** Whether browsers without scripts reload the page by themselves. */
  readonly reloads?: boolean;
  /** Where browsers go from here by themselves. */
  readonly leadsTo?: string;
  /** The time of the server, from which the script counts relative times. */
  readonly now: number;
  readonly navigation: readonly NavigationLink[];
  /** What the page shows the results of. */
  readonly search?: string | null;
  readonly crumbs: readonly Crumb[];
  readonly session?: Session;
  readonly banner?: Banner | undefined;
  /** Since when the database cannot be reached. */
  readonly unavailableSince?: number | undefined;
  /** The address of test control, if it is on. */
  readonly controlHref?: string | undefined;
  /** About the operation that has just redirected here. */
  readonly notice?:
    { readonly text: string; readonly link?: PageLink | undefined; readonly isProblem?: boolean } | undefined;
};

export type NavigationLink = PageLink & {
  readonly group: string | undefined;
  readonly current: 'page' | 'true' | undefined;
  /** How many things beneath it need attention. */
  readonly count: number;
};

/** Without an address if the caller may not open it. */
export type Crumb = { readonly name: string; readonly href?: string };

/** The system is read-only, which concerns every page. */
export type Banner = {
  readonly text: string;
  /** Of the mode, or of the job that causes it. Undefined if the caller may not open it. */
  readonly href: string | undefined;
  readonly action: PageAction | undefined;
};

export type Session = {
  readonly caller: Caller;
  readonly formToken: string;
  /** The address to return to. */
  readonly here: string;
  readonly accountHref: string;
  readonly signInHref: string;
  readonly signOutAction: string;
  readonly themeAction: string;
};

/** `api` is the panel with what programs need: other resources, operations, commands and fields. */
export function renderPage(layout: Layout, content: Html, api?: Html): Page {
  const { title, name, assets, crumbs, session, banner, notice, unavailableSince } = layout;
  const isUnavailable = unavailableSince !== undefined;
  return (theme) => html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="${theme === 'system' ? 'light dark' : theme}" />
        <title>${layout.isError && 'Error: '}${title} · ${name}</title>
        ${layout.leadsTo !== undefined && html`<meta http-equiv="refresh" content="0;url=${layout.leadsTo}" />`}
        ${layout.reloads && html`<noscript><meta http-equiv="refresh" content="10" /></noscript>`}
        <link rel="icon" href="${assets.icon}" data-attention="${assets.attentionIcon}" data-offline="${assets.offlineIcon}" type="image/svg+xml" />
        <link rel="stylesheet" href="${assets.stylesheet}" />
        <script src="${assets.script}" type="module"></script>
      </head>
      <body data-now="${layout.now}" ${isUnavailable && html`data-connection="database"`} ${layout.navigation.length > 0 && html`class="shell"`}>
        <a class="skip" href="#content">Skip to the content</a>
        ${navigationView(layout)}
        <header>
          <div class="top">
            ${
              layout.navigation.length > 0
                ? html`<button type="button" class="quiet menu" popovertarget="navigation">Menu</button>`
                : brandView(layout)
            }
            ${
              crumbs.length > 1 &&
              html`<nav class="path" aria-label="Breadcrumb">
                <ol class="crumbs">
                  ${crumbs.map(crumbView)}
                </ol>
              </nav>`
            }
            ${
              layout.navigation.length > 0 &&
              html`<form class="everywhere" role="search" method="get" action="${layout.homeHref}" aria-label="Everywhere">
                <input id="everywhere" name="q" type="search" maxlength="256" aria-label="Search everywhere" placeholder="Search (/)" value="${layout.search}" />
              </form>`
            }
            <div class="session">
              <span id="fresh" class="good" hidden>● Live</span>
              ${session && accountMenu(session, theme)}
            </div>
          </div>
          <p id="connection" class="strip" role="status" ${!isUnavailable && 'hidden'}>${
            isUnavailable && html`The database cannot be reached since ${renderTime(unavailableSince)}.`
          }</p>
          ${
            layout.controlHref !== undefined &&
            html`<p class="strip">
              <strong>Test control is on.</strong> Programs on this machine can reset this server, move its clock and
              make it fail. <a href="${layout.controlHref}">Open test control</a>
            </p>`
          }
          <div id="banner">${
            banner &&
            html`<div class="strip">
              <strong>The system is read-only.</strong> ${banner.text}
              ${banner.href !== undefined && html`<a href="${banner.href}">Show why</a>`} ${banner.action && actionButton(banner.action)}
            </div>`
          }</div>
        </header>
        <main id="content" tabindex="-1" data-printed="${name}, ${formatTime(layout.now)}">
          ${
            notice &&
            html`<p ${notice.isProblem ? html`role="alert" class="problems"` : html`role="status" class="result"`}>
              ${renderSentence(notice.text)} ${notice.link && html`<a href="${notice.link.href}">${notice.link.name}</a>`}
            </p>`
          }
          ${
            session?.caller &&
            session.formToken === '' &&
            html`<p class="hint"><a href="${session.here}">Sign in</a> first: this page changes something only for a signed-in browser.</p>`
          }
          <div class="title">
            <h1>${title}</h1>
            ${api && html`<button type="button" class="quiet" popovertarget="api">API</button>`}
          </div>
          ${content}
        </main>
        ${layout.navigation.length > 0 && keysView}
        ${
          api &&
          html`<aside id="api" popover aria-label="API of this page">
            <button type="button" class="quiet" popovertarget="api" popovertargetaction="hide">Close</button>
            ${api}
          </aside>`
        }
      </body>
    </html> `;
}

/** The script shows it. */
const keysView = html`<p id="shortcuts" popover role="dialog" aria-label="Keys">
  <kbd>/</kbd> Search · <kbd>j</kbd> <kbd>k</kbd> Next and previous row of a list · <kbd>?</kbd> These keys
</p>`;

function brandView({ name, homeHref, assets }: Layout): Html {
  return html`<a class="brand" href="${homeHref}"><img src="${assets.icon}" alt="" />${name}</a>`;
}

/** On narrow screens the navigation is a drawer. */
function navigationView(layout: Layout): Html | false {
  const groups = [...new Set(layout.navigation.map(({ group }) => group))];
  const problems = layout.navigation.reduce((sum, { count }) => sum + count, 0);
  return (
    layout.navigation.length > 0 &&
    html`<nav class="main" id="navigation" popover aria-label="Main" data-problems="${problems}">
      ${brandView(layout)}
      ${groups.map((group, index) => {
        const links = layout.navigation.filter((link) => link.group === group);
        return html`${group !== undefined && html`<h2 id="group-${index}">${group}</h2>`}
          <ul ${group !== undefined && html`aria-labelledby="group-${index}"`}>
            ${links.map((link) => navigationLink(layout.search ? { ...link, current: undefined } : link))}
          </ul> `;
      })}
    </nav>`
  );
}

function navigationLink({ name, href, current, count }: NavigationLink): Html {
  return html`<li>
    <a href="${href}" ${current && html`aria-current="${current}"`}
      >${name}${
        count > 0 &&
        html` <span class="count">${count}<span class="unseen"> ${count === 1 ? 'needs' : 'need'} attention</span></span>`
      }</a
    >
  </li> `;
}

function crumbView({ name, href }: Crumb, index: number, all: readonly Crumb[]): Html {
  if (index === all.length - 1) return html`<li aria-current="page">${name}</li> `;
  return html`<li>${href === undefined ? name : html`<a href="${href}">${name}</a>`}</li> `;
}

function accountMenu({ caller, formToken, here, ...session }: Session, theme: Theme): Html {
  if (caller === undefined) return html`<a href="${session.signInHref}">Sign in</a>`;
  const { username, role } = caller;
  return html`<button type="button" class="quiet" popovertarget="account" title="Account"
      >${username} <span class="hint">${role}</span></button
    >
    <div id="account" class="row-menu" popover>
      <a href="${session.accountHref}">Your account</a>
      ${themeSwitch(session.themeAction, here, theme)}
      ${formToken !== '' && actionButton({ action: session.signOutAction, label: 'Sign out', formToken })}
    </div>`;
}
