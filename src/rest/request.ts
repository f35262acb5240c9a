// One request to the form API: its target, and the results of the hooks so far.
import type { FastifyRequest } from 'fastify';
import { prefersHtml } from '../http/answers.ts';
import { clientAddress } from '../http/client-address.ts';
import { cookieOf, credentialsOf, sessionCookie } from '../http/credentials.ts';
import { notFound } from '../http/errors.ts';
import type { Access, Credentials, Identify, Identity } from '../lib/caller.ts';
import { isXmlText, toNfc } from '../lib/text.ts';
import type { Transaction } from '../store/transaction.ts';
import { requestedFields } from './fields.ts';
import { type Form, type RequestedFields, emptyForm, parseUrlencoded, textIn } from './form.ts';
import type { RequestAudit } from './request-audit.ts';
import { type Entry, type RequestContext, accessOf, fieldsOf } from './resource.ts';
import { type Format, dataFormats, formats, readFormat } from './response.ts';

/** Carries a notice to the page that follows a redirect. */
export const noticeCookie = 'steward_notice';

/** The script of an open page sends it: `page`, or `frame` if only the frame can change by itself. */
export const pollHeader = 'steward-poll';

declare module 'fastify' {
  interface FastifyRequest {
    rest: RestRequest | null;
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

export type Authenticator = {
  readonly identify: Identify;
  /** Throws if the token has ended, or if the user is removed or has a new password. */
  readonly identifyAgain: (identity: Identity) => Promise<Identity>;
  /** The same inside a transaction. */
  readonly identifyWithin: (transaction: Transaction, identity: Identity) => Identity;
};

export class RestRequest implements RequestContext {
  readonly entry: Entry;
  readonly segments: readonly string[];
  readonly hasPages: boolean;
  readonly isPost: boolean;
  readonly headers: FastifyRequest['headers'];
  readonly queryText: string;
  form: Form = emptyForm;
  query: Form = emptyForm;
  format: Format | undefined;
  identity: Identity | undefined;
  /** Undefined for requests that the audit trail does not record. */
  audit: RequestAudit | undefined;
  /** Undefined until the ids in the path are resolved. */
  subject: { readonly found: unknown } | undefined;
  /** What each id in the path names, in their order. */
  subjects: readonly unknown[] = [];
  readonly #request: FastifyRequest;

  constructor(request: FastifyRequest, { entry, segments: template, hasPages }: RestRoute) {
    this.#request = request;
    this.hasPages = hasPages;
    this.entry = entry;
    this.segments =
      entry.items.length === 0
        ? template
        : readSegments(template, request.params as Readonly<Record<string, string>>);
    this.isPost = request.method === 'POST';
    this.headers = request.headers;
    this.queryText = queryOf(request);
  }

  get requestedFields(): RequestedFields {
    return requestedFields(fieldsOf(this.entry));
  }

  get access(): Access {
    return accessOf(this.entry);
  }

  get showsForm(): boolean {
    return this.entry.operation !== undefined && !this.isPost;
  }

  get formats(): readonly Format[] {
    if (!this.hasPages) return dataFormats;
    const { operation, resource } = this.entry;
    return operation === undefined && resource.csv ? [...formats, 'csv'] : formats;
  }

  get address(): string {
    return clientAddress(this.#request);
  }

  get cookie(): string | undefined {
    return cookieOf(this.#request, sessionCookie);
  }

  /** The page that a redirect leads to shows the notice, not one that is open in another tab. */
  get noticeCookie(): string | undefined {
    return this.headers[pollHeader] === undefined ? cookieOf(this.#request, noticeCookie) : undefined;
  }

  get credentials(): Credentials {
    const credentials = credentialsOf(this.#request, textIn(this.form, 'token'));
    return this.hasPages ? credentials : { ...credentials, cookie: undefined };
  }

  get ids() {
    const { route, items } = this.entry;
    const places = route.split('/').flatMap((segment, index) => (segment.startsWith('{') ? index : []));
    return items.map((item, index) => ({ item, segment: this.segments[places[index] ?? 0] ?? '' }));
  }
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
export function guessFormat(request: FastifyRequest): Format {
  const { accept } = request.headers;
  try {
    const form = parseUrlencoded(queryOf(request), new Map([['f', 'text']]));
    return readFormat(textIn(form, 'f'), accept) ?? 'json';
  } catch {
    return prefersHtml(accept) ? 'html' : 'json';
  }
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
