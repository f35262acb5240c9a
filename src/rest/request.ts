// What the REST kit reads off a request before and beside its form.
import { toNfc, isXmlText } from '../lib/text.ts';
import type { FastifyRequest } from 'fastify';
import type { Identity } from '../caller.ts';
import type { Resource } from './resource.ts';
import { type Field, type Fields, type FieldValues, readFields } from './fields.ts';
import { type Form, type Wanted, noFields, parseUrlencoded, textIn } from './form.ts';
import { type Format, prefersHtml, readFormat } from './response.ts';
import { type Match, match, walk } from './routes.ts';

export const sessionCookie = 'steward_session';

export type Route = {
  readonly match: Match;
  readonly path: string;
  readonly segments: readonly string[];
  /** As the metrics name it, with data segments as `{param}`. */
  readonly label: string;
  readonly asked: RequestedFields;
};

/** What a route asks for, the same for every request: the fields by name, and what there is to read where none is given. */
export type RequestedFields = { readonly wanted: Wanted; readonly unanswered: FieldValues };

/** How far a request has come: what an error page may build on. */
export type Progress = {
  route: Route | undefined;
  format: Format | undefined;
  form: Form;
  identity: Identity | undefined;
  subject: { readonly found: unknown } | undefined;
};

export function beginProgress(): Progress {
  return { route: undefined, format: undefined, form: {}, identity: undefined, subject: undefined };
}

declare module 'fastify' {
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions -- merges with Fastify's own
  interface FastifyRequest {
    progress: Progress | null;
    routeLabel: string | null;
  }
}

export type FindRoute = (url: string, method: string) => Route | undefined;

/** Most paths hold no data: where they lead is known beforehand. */
export function createRouteFinder(root: Resource, prefix: string): FindRoute {
  const fixed = { POST: new Map<string, Route>(), others: new Map<string, Route>() };
  for (const { route, items } of walk(root)) {
    if (items.length > 0) continue;
    const path = [prefix, ...(route === '' ? [] : [route])].join('/');
    for (const [method, routes] of Object.entries(fixed)) {
      const found = findRoute(root, prefix, path, method);
      if (found) routes.set(path, found);
    }
  }
  return (url, method) => {
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    const known = method === 'POST' ? fixed.POST : fixed.others;
    return known.get(path) ?? findRoute(root, prefix, path, method);
  };
}

/** One trailing slash is ignored; segments are decoded one by one, so an encoded slash stays inside its segment. */
function findRoute(root: Resource, prefix: string, target: string, method: string): Route | undefined {
  // It may name the whole address, and may be percent-encoded within the prefix.
  const path = target.replace(/^https?:\/\/[^/]*/i, '').replace(/\/$/, '');
  const segments: string[] = [];
  for (const segment of path.split('/').slice(prefix.split('/').length)) {
    try {
      segments.push(toNfc(decodeURIComponent(segment)));
    } catch {
      return undefined;
    }
    // Nothing that is kept has such a name, and no store need be asked for it.
    if (!isXmlText(segments.at(-1) ?? '')) return undefined;
  }
  const found = match(root, segments, method);
  if (!found) return undefined;
  const label = [prefix, found.route].filter((part) => part !== '').join('/') || '/';
  return { match: found, path, segments, label, asked: askedBy(found) };
}

/** Worked out once for each record of fields. */
const askedByFields = new WeakMap<Fields, RequestedFields>();

function askedBy({ operation, resource }: Match): RequestedFields {
  const { fields } = operation ?? resource;
  const known = askedByFields.get(fields);
  if (known) return known;
  const wanted = new Map<string, 'text' | 'file'>([
    ['f', 'text'],
    ['token', 'text'],
    ['next', 'text'],
  ]);
  for (const [name, field] of Object.entries(fields)) {
    wanted.set(name, (field as Field<unknown>).control.kind === 'file' ? 'file' : 'text');
  }
  const asked = { wanted, unanswered: readFields(fields, noFields) };
  askedByFields.set(fields, asked);
  return asked;
}

/** A path of this server in the form a header carries; undefined for what a browser could read as another host's address. */
export function ownPath(next: string): string | undefined {
  const base = 'http://own';
  const url = /^\/(?![/\\])/.test(next) && URL.canParse(next, base) ? new URL(next, base) : undefined;
  // Dots may have stood between two slashes.
  const isOwn = url?.origin === base && !url.pathname.startsWith('//');
  return isOwn ? url.pathname + url.search + url.hash : undefined;
}

/** The format before anything has been checked: good enough to say what is wrong. */
export function guessFormat(request: FastifyRequest): Format {
  try {
    const form = parseUrlencoded(queryOf(request), new Map([['f', 'text']]));
    return readFormat(textIn(form, 'f'), request.headers.accept) ?? 'json';
  } catch {
    return prefersHtml(request.headers.accept) ? 'html' : 'json';
  }
}

export function queryOf(request: FastifyRequest): string {
  const url = request.raw.url ?? '';
  const mark = url.indexOf('?');
  return mark < 0 ? '' : url.slice(mark + 1);
}

export function cookieOf(request: FastifyRequest): string | undefined {
  const pair = request.headers.cookie?.split(';').find((part) => part.trim().startsWith(`${sessionCookie}=`));
  const value = pair?.trim().slice(sessionCookie.length + 1);
  return value === '' ? undefined : value;
}
