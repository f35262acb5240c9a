// A request to the form API: what is known of it after each check (checks.ts).
import type { FastifyRequest } from 'fastify';
import { prefersHtml } from '../http/answers.ts';
import { clientAddress } from '../http/client-address.ts';
import { cookieOf } from '../http/credentials.ts';
import { notFound } from '../http/errors.ts';
import type { Identity } from '../lib/caller.ts';
import { isXmlText, toNfc } from '../lib/text.ts';
import type { RequestContext } from './call.ts';
import { requestedFields } from './fields.ts';
import { type Form, type GivenForm, type RequestedFields, parseUrlencoded, textIn } from './form.ts';
import type { RequestAudit } from './request-audit.ts';
import { type Format, dataFormats, formats, readFormat } from './response.ts';
import { type Entry, fieldsOf } from './tree.ts';

/** Carries a notice to the page that follows a redirect. */
export const noticeCookie = 'steward_notice';

/** The script of an open page sends it: `page`, or `frame` if only the frame can change by itself. */
export const pollHeader = 'steward-poll';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the checks have found out so far. Null: no route of a tree matches the path. */
    rest: RefusedRequest | null;
  }
  interface FastifyContextConfig {
    rest?: RestRoute;
  }
}

type RestRoute = {
  readonly entry: Entry;
  /** The path as OpenAPI writes it. */
  readonly template: string;
  /** The path of the operation in the audit trail. Entries share the text. */
  readonly auditName: string;
  readonly segments: readonly string[];
  /** Without pages there is no format html, and the session of a browser does not count. */
  readonly hasPages: boolean;
};

/** What a path and a method name, and who sends it. */
export type Target = Pick<RequestContext, 'headers' | 'address'> & {
  readonly request: FastifyRequest;
  readonly entry: Entry;
  readonly segments: readonly string[];
  readonly hasPages: boolean;
  readonly isPost: boolean;
  readonly queryText: string;
  /** Undefined for requests that the audit trail does not record. */
  readonly audit: RequestAudit | undefined;
};

/** Fields of a `GET` stand in both. */
export type ReadRequest = Target & GivenForm & { readonly query: Form };

export type IdentifiedRequest = ReadRequest & RequestContext & { readonly identity: Identity | undefined };

/** A request that has passed all checks but those of its fields. */
export type RestRequest = IdentifiedRequest & {
  /** What the ids in the path name. `found` is the last one. */
  readonly subject: { readonly found: unknown };
  readonly subjects: readonly unknown[];
};

/** A request that a check refuses: it has what the checks before it have found out. */
export type RefusedRequest = Target & Partial<RestRequest>;

/** Adds what a check has found out to the request itself, so that the page of an error has it too. */
export function withFound<R extends RefusedRequest, F extends Partial<RestRequest>>(
  rest: R,
  found: F,
): R & F {
  return Object.assign(rest, found);
}

export function targetOf(
  request: FastifyRequest,
  { entry, segments: template, hasPages }: RestRoute,
): Target {
  const params = request.params as Readonly<Record<string, string>>;
  return {
    request,
    headers: request.headers,
    address: clientAddress(request),
    entry,
    segments: entry.items.length === 0 ? template : readSegments(template, params),
    hasPages,
    isPost: request.method === 'POST',
    queryText: queryOf(request),
    audit: undefined,
  };
}

export function showsForm({ entry, isPost }: Pick<Target, 'entry' | 'isPost'>): boolean {
  return entry.operation !== undefined && !isPost;
}

export function formatsOf({ hasPages, entry: { operation, resource } }: Target): readonly Format[] {
  if (!hasPages) return dataFormats;
  return operation === undefined && resource.csv ? [...formats, 'csv'] : formats;
}

export function requestedFieldsOf({ entry }: Target): RequestedFields {
  return requestedFields(fieldsOf(entry));
}

/** The page that a redirect leads to shows the notice, not one that is open in another tab. */
export function noticeCookieOf(target: Target): string | undefined {
  return target.headers[pollHeader] === undefined ? cookieOf(target, noticeCookie) : undefined;
}

/** Each id in the path, with its place in the tree. */
export function idsOf({ entry: { route, items }, segments }: Target) {
  const places = route.split('/').flatMap((segment, index) => (segment.startsWith('{') ? index : []));
  return items.map((item, index) => ({ item, segment: segments[places[index] ?? 0] ?? '' }));
}

/** Fastify has decoded each segment, so an encoded slash stays inside its segment. */
function readSegments(template: readonly string[], params: Readonly<Record<string, string>>): string[] {
  return template.map((segment) => {
    if (!segment.startsWith('{')) return segment;
    const value = toNfc(params[segment.slice(1, -1)] ?? '');
    // No item has such a name, so no lookup is needed. A `%` remains where the path could not be decoded.
    if (value === '' || value.includes('%') || !isXmlText(value)) throw notFound();
    return value;
  });
}

function queryOf({ raw: { url = '' } }: FastifyRequest): string {
  const mark = url.indexOf('?');
  return mark < 0 ? '' : url.slice(mark + 1);
}

/** Until the form is read, only the query and Accept name a format. */
export function guessFormat(request: FastifyRequest, pagesAreDefault: boolean): Format {
  const usual = usualFormat(request, pagesAreDefault);
  try {
    const form = parseUrlencoded(queryOf(request), new Map([['f', 'text']]));
    return readFormat(textIn(form, 'f'), usual) ?? 'json';
  } catch {
    return usual;
  }
}

/** Of a request that names no format, to a tree with pages. */
export function usualFormat({ headers }: FastifyRequest, pagesAreDefault: boolean): Format {
  return pagesAreDefault || prefersHtml(headers.accept) ? 'html' : 'json';
}

export const maxNextLength = 4096;

/** Returns undefined for a path that a browser could read as the address of another host. */
export function ownPath(next: string): string | undefined {
  if (next.length > maxNextLength) return undefined;
  const base = 'http://own';
  const url = /^\/(?![/\\])/.test(next) && URL.canParse(next, base) ? new URL(next, base) : undefined;
  // The parser removes dot segments, after which a path such as `/.//host` begins with two slashes.
  const isOwn = url?.origin === base && !url.pathname.startsWith('//');
  return isOwn ? url.pathname + url.search + url.hash : undefined;
}
