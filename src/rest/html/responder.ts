// The HTML face of a mounted directory: which page answers a request, with its links, session and entered values.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Access, mayCall } from '../../caller.ts';
import { postCommand } from './curl.ts';
import type { Outcome } from '../resource.ts';
import { type Json, plainJson } from '../../lib/json.ts';
import { type Form, textIn } from '../form.ts';
import { type Assets, type Layout, sendHtml } from './layout.ts';
import { errorPage, operationPage, resourcePage, signInPage } from './pages.ts';
import type { ErrorResponse } from '../response.ts';
import { type Progress, type Route, beginProgress, ownPath, queryOf } from '../request.ts';

export type HtmlResponderOptions = {
  readonly prefix: string;
  readonly rootName: string;
  readonly publicUrl: () => string;
  readonly assets: () => Assets;
  readonly tokensPath: string;
};

export type HtmlResponder = {
  outcome: (request: FastifyRequest, reply: FastifyReply, outcome: Outcome) => Promise<FastifyReply>;
  form: (request: FastifyRequest, reply: FastifyReply) => FastifyReply;
  error: (request: FastifyRequest, reply: FastifyReply, answer: ErrorResponse) => FastifyReply;
};

type Told = { readonly error?: ErrorResponse['body']['error']; readonly result?: Json };

export function createHtmlResponder({
  prefix,
  rootName,
  publicUrl,
  assets,
  tokensPath,
}: HtmlResponderOptions): HtmlResponder {
  /** The path of the public address, in front of every link. */
  const linkBase = () => new URL(publicUrl()).pathname.replace(/\/$/, '');
  /** As it may stand between single quotes. */
  const urlOf = (segments: readonly string[]) =>
    new URL(linkTo(segments), publicUrl()).href.replaceAll("'", '%27');
  const tokensHref = (operation: string) => `${linkBase()}${tokensPath}/${operation}`;

  function linkTo(segments: readonly string[]): string {
    return [linkBase() + prefix, ...segments.map(encodeURIComponent)].join('/') || '/';
  }

  /** The page as it was asked for, without what only carried the token and the format. */
  function pathOf(request: FastifyRequest): string {
    const query = request.method === 'POST' ? '' : askedOf(request).toString();
    return linkBase() + (progressOf(request).route?.path ?? prefix) + (query === '' ? '' : `?${query}`);
  }

  function frameOf(request: FastifyRequest, title: string): Layout {
    const { route, identity } = progressOf(request);
    const segments = route?.segments ?? [];
    const next = encodeURIComponent(pathOf(request));
    return {
      title,
      assets: assets(),
      crumbs: [rootName, ...segments].map((name, index) => ({
        name,
        href: linkTo(segments.slice(0, index)),
      })),
      session: {
        caller: identity?.caller,
        formToken: identity?.formToken ?? '',
        signInHref: `${tokensHref('generateToken')}?f=html&next=${next}`,
        signOutAction: tokensHref('revokeToken'),
      },
    };
  }

  async function showResource(
    request: FastifyRequest,
    reply: FastifyReply,
    { match, segments }: Route,
    json: Json,
  ) {
    const progress = progressOf(request);
    const { resource } = match;
    const { onPost } = resource;
    const subject = progress.subject?.found;
    const caller = progress.identity?.caller;
    const query = askedOf(request);
    const below = (name: string) => ({ name, href: linkTo([...segments, name]) });
    const usable = (entries: Readonly<Record<string, { access: Access }>>) =>
      Object.keys(entries).filter((name) => mayCall(caller, entries[name]?.access ?? 'anyone'));
    const listed: string[] = [];
    for (const items of resource.items) listed.push(...(await items.list(subject, caller)));
    const view = await resource.view?.({
      subject,
      json,
      caller,
      query,
      formToken: progress.identity?.formToken ?? '',
      here: (...beneath) => linkTo([...segments, ...beneath]),
      href: (...path) => linkTo(path),
    });
    const own = [...query].filter(([name]) => name in resource.fields);
    const page = resourcePage(frameOf(request, resource.titleOf(subject)), {
      address: urlOf(segments),
      query: new URLSearchParams(own).toString(),
      done: /^[A-Za-z]{1,32}$/.exec(query.get('done') ?? '')?.[0],
      description: resource.description,
      children: [...usable(resource.resources), ...listed].map(below),
      operations: usable(resource.operations).map(below),
      form: onPost && { operation: onPost, action: linkTo(segments), entered: onPost.present(subject) },
      json,
      view,
    });
    return sendHtml(reply, 200, page);
  }

  function showForm(request: FastifyRequest, reply: FastifyReply, status: number, told: Told) {
    const progress = progressOf(request);
    const operation = progress.route?.match.operation;
    if (!operation || operation.form === 'sign-in') return showSignIn(request, reply, status, told);
    const entered =
      request.method === 'POST' ? textsIn(progress.form) : operation.present(progress.subject?.found);
    const segments = progress.route?.segments ?? [];
    const isOnPost = progress.route?.match.resource.onPost === operation;
    const parents = isOnPost ? segments : segments.slice(0, -1);
    const parent = { name: parents.at(-1) ?? rootName, href: linkTo(parents) };
    const view = { action: linkTo(segments), address: urlOf(segments), entered, parent, ...told };
    return sendHtml(reply, status, operationPage(frameOf(request, operation.title), operation, view));
  }

  /** Signing in leads on to the page that was asked for. */
  function showSignIn(request: FastifyRequest, reply: FastifyReply, status: number, told: Told) {
    const { route, form } = progressOf(request);
    const operation = route?.match.operation;
    const isSignIn = operation?.form === 'sign-in';
    const isPost = request.method === 'POST';
    const comeBack = isPost ? ownPath(textIn(form, 'next') ?? '') : undefined;
    const next = isSignIn ? textIn(form, 'next') : (comeBack ?? pathOf(request));
    const entered = { next, username: textIn(form, 'username') };
    // Whoever only has not signed in yet has done nothing wrong.
    const isFirst = told.error?.code === 499 && !isPost;
    const view = {
      action: tokensHref('generateToken'),
      entered,
      lead: isSignIn || isFirst ? 'Sign in to go on.' : 'Nothing was changed. Sign in to go on.',
      command: isSignIn ? postCommand(urlOf(['generateToken']), operation, entered) : undefined,
      ...(!isFirst && told),
    };
    // The token service looks at Origin, which browsers withhold from a page that sends no referrer at all.
    const headers = { 'referrer-policy': 'same-origin' };
    return sendHtml(
      reply,
      status,
      signInPage({ title: 'Sign in', assets: assets(), crumbs: [] }, view),
      headers,
    );
  }

  return {
    async outcome(request, reply, outcome) {
      const progress = progressOf(request);
      if (outcome.seeOther !== undefined) return goOn(reply, outcome.seeOther);
      if (!progress.route || progress.route.match.operation) {
        const wanted = textIn(progress.form, 'next') ?? '';
        const next = ownPath(fillIn(wanted, outcome.names ?? {}));
        if (next !== undefined) return goOn(reply, sayDone(next, progress.route?.segments.at(-1) ?? ''));
        return showForm(request, reply, 200, { result: plainJson(outcome.json) });
      }
      return showResource(request, reply, progress.route, plainJson(outcome.json));
    },
    form: (request, reply) => showForm(request, reply, 200, {}),
    error(request, reply, { status, body: { error } }) {
      const progress = progressOf(request);
      if (status === 401) return showSignIn(request, reply, status, { error });
      // What was entered is shown again, unless the form is not there for this caller.
      const isThere = progress.subject ?? (request.method === 'POST' && ![403, 404, 405].includes(status));
      if (progress.route?.match.operation && isThere) return showForm(request, reply, status, { error });
      return sendHtml(reply, status, errorPage(frameOf(request, 'Error'), error));
    },
  };
}

/** A request that was refused before it got anywhere is shown an error page all the same. */
function progressOf(request: FastifyRequest): Progress {
  return request.progress ?? beginProgress();
}

/** What a page was asked with, but for the token, which must not get into any link, and the format. */
function askedOf(request: FastifyRequest): URLSearchParams {
  const query = new URLSearchParams(queryOf(request));
  query.delete('token');
  query.delete('f');
  return query;
}

function goOn(reply: FastifyReply, path: string): FastifyReply {
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

/** The page that is gone on to tells what has been done. */
function sayDone(path: string, operation: string): string {
  const url = new URL(path, 'http://own');
  url.searchParams.set('done', operation);
  return url.pathname + url.search + url.hash;
}

/** Files cannot be put back into a form. */
function textsIn(form: Form): Record<string, string | undefined> {
  return Object.fromEntries(Object.keys(form).map((name) => [name, textIn(form, name)]));
}
