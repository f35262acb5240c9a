// Sends pages: their layout, their addresses, the notice that follows a redirect, and the page of an error.
import type { FastifyReply } from 'fastify';
import type { PublicUrls } from '../http/urls.ts';
import type { Identity } from '../lib/caller.ts';
import { metaOf } from '../rest/fields.ts';
import type { Notice, NoticeLink } from '../rest/outcome.ts';
import { type RefusedRequest, noticeCookieOf } from '../rest/request.ts';
import type { Resource } from '../rest/resource.ts';
import { fieldsOf } from '../rest/tree.ts';
import type { FormError, PageContext } from '../rest/view.ts';
import { type Frame, crumbsOf } from './frame.ts';
import { shortText } from './input.ts';
import { type Layout, type Page, type PageLink, sendHtml } from './layout.ts';
import { clearNotice, readNotice, writeNotice } from './notice.ts';
import { errorPage, errorTitle } from './pages.ts';

export type PageSenderOptions = {
  readonly prefix: string;
  readonly root: Resource;
  readonly rootName: string;
  readonly urls: PublicUrls;
  readonly frame: Frame;
  /** Whether the navigation leads to this tree. */
  readonly isNavigated: boolean;
};

export type PageError = FormError & {
  readonly code: number;
  readonly retryAfter?: string | undefined;
  /** What sending the form again replaces. */
  readonly shown?: Readonly<Record<string, string | undefined>> | undefined;
};

export class PageSender {
  readonly #options: PageSenderOptions;

  constructor(options: PageSenderOptions) {
    this.#options = options;
  }

  get frame(): Frame {
    return this.#options.frame;
  }

  path(segments: readonly string[]): string {
    return this.#options.urls.path(this.#options.prefix, segments);
  }

  /** For programs. */
  url(segments: readonly string[]): string {
    const { urls, prefix } = this.#options;
    return urls.shellUrl(prefix, segments);
  }

  requestedPath(rest: RefusedRequest | null): string {
    const isShort = rest && !rest.isPost && shortText(rest.queryText) !== undefined;
    const query = isShort ? pageQuery(rest).toString() : '';
    return this.path(rest?.segments ?? []) + (query === '' ? '' : `?${query}`);
  }

  linkOf(link: NoticeLink | undefined): PageLink | undefined {
    return link && { name: link.name, href: this.path(link.path) };
  }

  seeOther(reply: FastifyReply, path: string, notice?: Notice & { readonly isProblem?: boolean }) {
    if (notice) {
      const link = this.linkOf(notice.link);
      const shown = { ...notice, link: link?.href === path ? undefined : link };
      void reply.header('set-cookie', writeNotice(shown, this.#options.urls.isHttps));
    }
    return reply.headers({ 'cache-control': 'no-store' }).redirect(path, 303);
  }

  /** A notice is shown once. */
  send(rest: RefusedRequest | null, reply: FastifyReply, status: number, page: Page, headers = {}) {
    if (rest && noticeCookieOf(rest) !== undefined)
      void reply.header('set-cookie', clearNotice(this.#options.urls.isHttps));
    return sendHtml(reply, status, page, headers);
  }

  async sendError(
    rest: RefusedRequest | null,
    reply: FastifyReply,
    { status, error, identity }: RefusedPage,
  ): Promise<FastifyReply> {
    const layout = await this.layout(rest, errorTitle(status), identity);
    return this.send(rest, reply, status, errorPage(layout, error, linksOn(layout)));
  }

  async layout(rest: RefusedRequest | null, title: string, identity = rest?.identity): Promise<Layout> {
    const { frame, root, rootName, isNavigated } = this.#options;
    const layout = await frame.layout({
      title,
      identity,
      crumbs: crumbsOf(root, rest, {
        rootName,
        caller: identity?.caller,
        href: (segments) => this.path(segments),
      }),
      path: isNavigated && rest ? rest.segments : undefined,
      requested: this.requestedPath(rest),
    });
    return { ...layout, notice: readNotice(rest ? noticeCookieOf(rest) : undefined) };
  }

  context(rest: RefusedRequest, json: unknown): PageContext<unknown> {
    const { frame } = this.#options;
    const { segments, identity } = rest;
    const query = pageQuery(rest);
    return {
      subject: rest.subject?.found,
      json,
      caller: identity?.caller,
      query,
      formToken: identity?.formToken ?? '',
      isReadOnly: frame.isReadOnly,
      now: frame.now,
      address: addressOf(this.path(segments), query),
      here: (...beneath) => this.path([...segments, ...beneath]),
      href: (...path) => this.path(path),
    };
  }
}

type RefusedPage = {
  readonly status: number;
  readonly error: PageError;
  readonly identity: Identity | undefined;
};

/** Blank parameters have no effect. */
export function addressOf(path: string, query: URLSearchParams): string {
  const kept = new URLSearchParams([...query].filter(([, value]) => value.trim() !== ''));
  return kept.size === 0 ? path : `${path}?${kept.toString()}`;
}

/** From an error page to the nearest page above it, and home. */
function linksOn({ crumbs, homeHref, session }: Layout): PageLink[] {
  const above = crumbs.slice(1, -1).findLast((crumb): crumb is PageLink => crumb.href !== undefined);
  return [
    ...(above ? [{ name: `Back to ${above.name}`, href: above.href }] : []),
    { name: 'Go to the home page', href: homeHref },
    ...(session && !session.caller ? [{ name: 'Sign in', href: session.signInHref }] : []),
  ];
}

/** A secret must not get into a link. */
export function pageQuery({ queryText, entry }: RefusedRequest): URLSearchParams {
  const query = new URLSearchParams(queryText);
  query.delete('token');
  query.delete('f');
  for (const [name, field] of Object.entries(fieldsOf(entry)))
    if (metaOf(field).control === 'password') query.delete(name);
  return query;
}
