// The notice about an operation, in a cookie: it reaches the page after the redirect once, and no link can forge it.
import { cookieAttributes } from '../http/credentials.ts';
import { isJsonObject, parseJson } from '../lib/json.ts';
import { truncate } from '../lib/text.ts';
import { noticeCookie, ownPath } from '../rest/request.ts';
import type { Layout, PageLink } from './layout.ts';

type PageNotice = NonNullable<Layout['notice']>;

const maxTextLength = 500;
const maxJsonLength = 2800;

export function writeNotice({ text, ...rest }: PageNotice, isHttps: boolean): string {
  const notice = { text: truncate(text, maxTextLength), ...rest };
  const complete = JSON.stringify(notice);
  // Browsers drop a larger cookie. Without the link, the page says at least what has happened.
  const json = complete.length > maxJsonLength ? JSON.stringify({ ...notice, link: undefined }) : complete;
  return `${noticeCookie}=${Buffer.from(json).toString('base64url')}; Max-Age=60; ${cookieAttributes(isHttps)}`;
}

export function clearNotice(isHttps: boolean): string {
  return `${noticeCookie}=; Max-Age=0; ${cookieAttributes(isHttps)}`;
}

/** Undefined for a cookie that this server has not written. */
export function readNotice(cookie: string | undefined): PageNotice | undefined {
  if (cookie === undefined || cookie.length > 4096) return undefined;
  const notice = parseJson(Buffer.from(cookie, 'base64url').toString());
  const { text, link, isProblem } = isJsonObject(notice) ? notice : {};
  if (typeof text !== 'string' || text === '') return undefined;
  return { text, link: readLink(link), isProblem: isProblem === true };
}

function readLink(link: unknown): PageLink | undefined {
  const { name, href } = (link ?? {}) as Record<string, unknown>;
  const isOwn = typeof href === 'string' && ownPath(href) !== undefined;
  return isOwn && typeof name === 'string' ? { name, href } : undefined;
}
