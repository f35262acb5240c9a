// Answers a request with a page: selects the page, and adds its links, session and entered values.
import type { FastifyReply } from 'fastify';
import { type Access, type Identity, mayCall } from '../../caller.ts';
import type { Problem } from '../../errors.ts';
import type { ErrorResponse } from '../../http/errors.ts';
import type { PublicUrls } from '../../http/urls.ts';
import { type Json, plainJson } from '../../lib/json.ts';
import { textIn } from '../form.ts';
import { type RestRequest, ownPath } from '../request.ts';
import type { Outcome } from '../resource.ts';
import { postCommand } from './curl.ts';
import type { FormError } from './form.ts';
import { type AssetHrefs, type Layout, sendHtml } from './layout.ts';
import { errorPage, operationPage, resourcePage, signInPage } from './pages.ts';

export type HtmlResponderOptions = {
  readonly prefix: string;
  readonly rootName: string;
  readonly urls: PublicUrls;
  readonly assets: () => AssetHrefs;
};

type FormState = { readonly error?: FormError & { readonly code: number }; readonly result?: Json };

export class HtmlResponder {
  readonly #prefix: string;
  readonly #rootName: string;
  readonly #urls: PublicUrls;
  readonly #assets: () => AssetHrefs;

  constructor({ prefix, rootName, urls, assets }: HtmlResponderOptions) {
    this.#prefix = prefix;
    this.#rootName = rootName;
    this.#urls = urls;
    this.#assets = assets;
  }

  sendForm(rest: RestRequest, reply: FastifyReply): FastifyReply {
    return this.#sendForm(rest, reply, 200, {});
  }

  async sendOutcome(rest: RestRequest, reply: FastifyReply, outcome: Outcome): Promise<FastifyReply> {
    if (outcome.seeOther !== undefined) return seeOther(reply, outcome.seeOther);
    if (!rest.entry.operation) return this.#sendResource(rest, reply, plainJson(outcome.json));
    const next = ownPath(fillIn(textIn(rest.form, 'next') ?? '', outcome.names ?? {}));
    if (next !== undefined) return seeOther(reply, withDone(next, rest.segments.at(-1) ?? ''));
    return this.#sendForm(rest, reply, 200, { result: plainJson(outcome.json) });
  }

  /** `rest` is null if no route matches the path. */
  sendError(
    rest: RestRequest | null,
    reply: FastifyReply,
    { status, body }: ErrorResponse,
    { identity, problems }: { identity: Identity | undefined; problems: readonly Problem[] },
  ): FastifyReply {
    if (rest) rest.identity = identity;
    const error = { ...body.error, problems };
    if (status === 401 && rest) return this.#sendSignIn(rest, reply, status, { error });
    // The page shows a refused form again with the entered values, unless the caller may not open it.
    const hasForm = rest?.subject ?? (rest?.isPost && ![403, 404, 405].includes(status));
    if (rest?.entry.operation && hasForm) return this.#sendForm(rest, reply, status, { error });
    return sendHtml(reply, status, errorPage(this.#layout(rest, 'Error', identity), error));
  }

  async #sendResource(rest: RestRequest, reply: FastifyReply, json: Json): Promise<FastifyReply> {
    const { entry, segments, identity } = rest;
    const { resource } = entry;
    const { onPost } = resource;
    const subject = rest.subject?.found;
    const caller = identity?.caller;
    const query = pageQuery(rest);
    const child = (name: string) => ({ name, href: this.#path([...segments, name]) });
    const allowed = (entries: Readonly<Record<string, { access: Access }>>) =>
      Object.keys(entries).filter((name) => mayCall(caller, entries[name]?.access ?? 'anyone'));
    const listed: string[] = [];
    for (const items of resource.items) listed.push(...(await items.list(subject, caller)));
    const view = await resource.view?.({
      subject,
      json,
      caller,
      query,
      formToken: identity?.formToken ?? '',
      here: (...beneath) => this.#path([...segments, ...beneath]),
      href: (...path) => this.#path(path),
    });
    const ownQuery = [...query].filter(([name]) => name in resource.fields);
    const page = resourcePage(this.#layout(rest, resource.titleOf(subject)), {
      address: this.#urls.shellUrl(this.#prefix, segments),
      query: new URLSearchParams(ownQuery).toString(),
      done: /^[A-Za-z]{1,32}$/.exec(query.get('done') ?? '')?.[0],
      description: resource.description,
      children: [...allowed(resource.resources), ...listed].map(child),
      operations: allowed(resource.operations).map(child),
      form: onPost && { operation: onPost, action: this.#path(segments), entered: onPost.present(subject) },
      answer: resource.answer,
      json,
      view,
      hasCsv: resource.csv !== undefined,
    });
    return sendHtml(reply, 200, page);
  }

  #sendForm(rest: RestRequest, reply: FastifyReply, status: number, state: FormState): FastifyReply {
    const { segments } = rest;
    const { operation, resource } = rest.entry;
    if (!operation || operation.form === 'sign-in') return this.#sendSignIn(rest, reply, status, state);
    const parents = resource.onPost === operation ? segments : segments.slice(0, -1);
    const page = operationPage(this.#layout(rest, operation.title), operation, {
      action: this.#path(segments),
      address: this.#urls.shellUrl(this.#prefix, segments),
      entered: rest.isPost ? enteredTexts(rest) : operation.present(rest.subject?.found),
      parent: { name: parents.at(-1) ?? this.#rootName, href: this.#path(parents) },
      ...state,
    });
    return sendHtml(reply, status, page);
  }

  #sendSignIn(rest: RestRequest, reply: FastifyReply, status: number, state: FormState): FastifyReply {
    const { form, isPost, entry } = rest;
    const isSignIn = entry.operation?.form === 'sign-in';
    const given = shortText(textIn(form, 'next'));
    const requested = (isPost ? ownPath(given ?? '') : undefined) ?? this.#requestedPath(rest);
    const entered = { next: isSignIn ? given : requested, username: shortText(textIn(form, 'username')) };
    // Opening a page without a session is not an error.
    const isFirst = state.error?.code === 499 && !isPost;
    const page = signInPage(
      { title: 'Sign in', assets: this.#assets(), crumbs: [] },
      {
        action: this.#urls.tokensPath('generateToken'),
        entered,
        lead: isSignIn || isFirst ? 'Sign in to continue.' : 'Nothing was changed. Sign in to continue.',
        command: isSignIn
          ? {
              text: postCommand(
                this.#urls.shellUrl(this.#prefix, ['generateToken']),
                entry.operation,
                entered,
              ),
              answer: entry.operation.answer,
            }
          : undefined,
        ...(!isFirst && state),
      },
    );
    // The token service checks Origin, which browsers withhold from a page with the policy no-referrer.
    return sendHtml(reply, status, page, { 'referrer-policy': 'same-origin' });
  }

  #layout(rest: RestRequest | null, title: string, identity = rest?.identity): Layout {
    const segments = rest?.segments ?? [];
    const next = encodeURIComponent(this.#requestedPath(rest));
    return {
      title,
      assets: this.#assets(),
      crumbs: [this.#rootName, ...segments].map((name, index) => ({
        name,
        href: this.#path(segments.slice(0, index)),
      })),
      session: {
        caller: identity?.caller,
        formToken: identity?.formToken ?? '',
        signInHref: `${this.#urls.tokensPath('generateToken')}?f=html&next=${next}`,
        signOutAction: this.#urls.tokensPath('revokeToken'),
      },
    };
  }

  #path(segments: readonly string[]): string {
    return this.#urls.path(this.#prefix, segments);
  }

  #requestedPath(rest: RestRequest | null): string {
    const isShort = rest && !rest.isPost && shortText(rest.queryText) !== undefined;
    const query = isShort ? pageQuery(rest).toString() : '';
    return this.#path(rest?.segments ?? []) + (query === '' ? '' : `?${query}`);
  }
}

/** A token must not get into a link. */
function pageQuery({ queryText }: RestRequest): URLSearchParams {
  const query = new URLSearchParams(queryText);
  query.delete('token');
  query.delete('f');
  return query;
}

function seeOther(reply: FastifyReply, path: string): FastifyReply {
  return reply.headers({ 'cache-control': 'no-store' }).redirect(path, 303);
}

function fillIn(path: string, names: Readonly<Record<string, string>>): string {
  return Object.entries(names).reduce(
    (filled, [name, value]) =>
      filled
        .replaceAll(`{${name}}`, encodeURIComponent(value))
        .replaceAll(`%7B${name}%7D`, encodeURIComponent(value)),
    path,
  );
}

function withDone(path: string, operation: string): string {
  const url = new URL(path, 'http://own');
  url.searchParams.set('done', operation);
  return url.pathname + url.search + url.hash;
}

const maxShownLength = 4096;

/** Anyone may send a long text, and decoding and escaping it takes long. */
function shortText(text: string | undefined): string | undefined {
  return text !== undefined && text.length > maxShownLength ? undefined : text;
}

/** A page cannot put a file back into a form. */
function enteredTexts({ form, identity }: RestRequest): Record<string, string | undefined> {
  const texts = Object.keys(form).map((name) => [name, textIn(form, name)] as const);
  const shown = identity ? texts : texts.map(([name, text]) => [name, shortText(text)] as const);
  return Object.fromEntries(shown);
}
