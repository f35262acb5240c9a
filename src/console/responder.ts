// Answers a request with a page: selects the page, and adds its links, session and entered values.
import type { FastifyReply } from 'fastify';
import type { ErrorResponse } from '../http/errors.ts';
import type { PublicUrls } from '../http/urls.ts';
import { type Identity, mayCall } from '../lib/caller.ts';
import type { Problem, ServiceError } from '../lib/errors.ts';
import { html } from '../lib/html.ts';
import { type Json, plainJson } from '../lib/json.ts';
import { type Fields, metaOf } from '../rest/fields.ts';
import { textIn } from '../rest/form.ts';
import { type RestRequest, ownPath } from '../rest/request.ts';
import {
  type Entered,
  type FormError,
  type Notice,
  type NoticeLink,
  type Operation,
  type Outcome,
  type PageContext,
  type Resource,
  fieldsOf,
} from '../rest/resource.ts';
import { pageButton } from './action.ts';
import type { FormView } from './form.ts';
import { type Frame, type PageRequest, crumbsOf, movedTo } from './frame.ts';
import {
  enteredTexts,
  explainProblems,
  keepInput,
  newerValues,
  presentTexts,
  shortText,
  textsOfLink,
} from './input.ts';
import { sentenceOf } from './labels.ts';
import { type Layout, type Page, type PageLink, renderPage, sendHtml } from './layout.ts';
import { clearNotice, readNotice, writeNotice } from './notice.ts';
import {
  type ResourceForm,
  errorPage,
  errorTitle,
  hasName,
  operationPage,
  resourcePage,
  signInPage,
} from './pages.ts';

type HtmlResponderOptions = {
  readonly prefix: string;
  readonly root: Resource;
  readonly rootName: string;
  readonly urls: PublicUrls;
  readonly frame: Frame;
  /** Whether the navigation leads to this tree. */
  readonly isNavigated: boolean;
};

type Refusal = Pick<FormView, 'entered'> & { readonly status: number; readonly error: PageError };

type RefusalFacts = Pick<ServiceError, 'problems' | 'onPage'> & { readonly identity: Identity | undefined };

type PageError = FormError & {
  readonly code: number;
  readonly retryAfter?: string | undefined;
  /** What sending the form again replaces. */
  readonly shown?: Readonly<Record<string, string | undefined>> | undefined;
};

export class HtmlResponder {
  readonly #options: HtmlResponderOptions;

  constructor(options: HtmlResponderOptions) {
    this.#options = options;
  }

  async sendForm(rest: RestRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.#sendMoved(rest, reply) ?? this.#sendForm(rest, reply, 200, {});
  }

  /** The page without its content, which may take long to read and to render. */
  async sendFrame(rest: RestRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.#send(rest, reply, 200, renderPage(await this.#layout(rest, ''), html``));
  }

  async sendOutcome(rest: RestRequest, reply: FastifyReply, outcome: Outcome): Promise<FastifyReply> {
    if (outcome.seeOther !== undefined) return this.#seeOther(reply, outcome.seeOther, outcome.notice);
    const { operation } = rest.entry;
    if (!operation)
      return this.#sendMoved(rest, reply) ?? this.#sendResource(rest, reply, plainJson(outcome.json));
    const next = ownPath(fillIn(textIn(rest.form, 'next') ?? '', outcome.names ?? {}));
    if (outcome.shownOnce || (outcome.view && next === undefined))
      return this.#sendForm(rest, reply, 200, { result: outcome });
    const about = this.#linkOf(outcome.notice?.link)?.href;
    const page = next ?? about ?? this.#path(pathOfResource(rest));
    return this.#seeOther(reply, page, noticeOf(operation, outcome));
  }

  #sendMoved(rest: RestRequest, reply: FastifyReply): FastifyReply | undefined {
    const path = movedTo(this.#options.root, rest);
    return path && this.#seeOther(reply, addressOf(this.#path(path), pageQuery(rest)));
  }

  #seeOther(reply: FastifyReply, path: string, notice?: Notice & { readonly isProblem?: boolean }) {
    if (notice) {
      const link = this.#linkOf(notice.link);
      const shown = { ...notice, link: link?.href === path ? undefined : link };
      void reply.header('set-cookie', writeNotice(shown, this.#options.urls.isHttps));
    }
    return reply.headers({ 'cache-control': 'no-store' }).redirect(path, 303);
  }

  #linkOf(link: NoticeLink | undefined): PageLink | undefined {
    return link && { name: link.name, href: this.#path(link.path) };
  }

  /** A notice is shown once. */
  #send(rest: PageRequest | null, reply: FastifyReply, status: number, page: Page, headers = {}) {
    if (rest?.noticeCookie !== undefined)
      void reply.header('set-cookie', clearNotice(this.#options.urls.isHttps));
    return sendHtml(reply, status, page, headers);
  }

  /** `rest` is null if no route matches the path. */
  async sendError(
    rest: RestRequest | null,
    reply: FastifyReply,
    { status, headers, body }: ErrorResponse,
    { identity, problems, onPage }: RefusalFacts,
  ): Promise<FastifyReply> {
    if (rest) rest.identity = identity;
    const newer = rest && status === 409 ? newerValues(rest) : undefined;
    const shown = [...(rest ? explainProblems(rest, problems) : problems), ...(newer?.problems ?? [])];
    const fields = rest ? fieldsOf(rest.entry) : {};
    const error = {
      ...body.error,
      message: onPage ?? ((status === 400 && correctionOf(problems, fields)) || body.error.message),
      ...(shown.length > 0 && { details: shown.map((problem) => sentenceOf(problem, fields)) }),
      problems: shown,
      shown: newer?.shown,
      retryAfter: headers['retry-after'],
    };
    if (status === 401 && rest) return this.#sendSignedOut(rest, reply, status, error);
    // The page shows a refused form again with the entered values, unless the caller may not open it.
    const hasForm = rest?.subject ?? (rest?.isPost && ![403, 404, 405].includes(status));
    if (rest?.entry.operation && hasForm) return this.#sendForm(rest, reply, status, { error });
    return this.#sendErrorPage(rest, reply, { status, error, identity });
  }

  async #sendErrorPage(
    rest: RestRequest | null,
    reply: FastifyReply,
    { status, error, identity }: Omit<Refusal, 'entered'> & Pick<RefusalFacts, 'identity'>,
  ): Promise<FastifyReply> {
    const layout = await this.#layout(rest, errorTitle(status), identity);
    return this.#send(rest, reply, status, errorPage(layout, error, linksOn(layout)));
  }

  /** The form of an earlier session is not executed, also if the browser has a new session. */
  #sendSignedOut(rest: RestRequest, reply: FastifyReply, status: number, error: PageError): FastifyReply {
    const { operation } = rest.entry;
    if (!rest.isPost || !operation || operation.form === 'sign-in')
      return this.#sendSignIn(rest, reply, status, { error });
    const own = this.#path(rest.segments);
    const kept = keepInput(rest, operation, own);
    const hasSession = (rest.identity?.formToken ?? '') !== '';
    if (hasSession && kept !== undefined) return this.#seeOther(reply, kept, renewedSession);
    return this.#sendSignIn(rest, reply, status, {
      ended: { path: kept ?? own, isKept: kept !== undefined },
    });
  }

  /** `refused` is the state of the form on the page. */
  async #sendResource(
    rest: PageRequest,
    reply: FastifyReply,
    json: Json,
    refused?: Refusal,
  ): Promise<FastifyReply> {
    const { urls, prefix } = this.#options;
    const { entry, segments, identity } = rest;
    const { resource } = entry;
    const subject = rest.subject?.found;
    const caller = identity?.caller;
    const query = pageQuery(rest);
    const allowed = (entries: Readonly<Record<string, Pick<Resource, 'title' | 'access'>>>) =>
      Object.entries(entries)
        .filter(([, { access }]) => mayCall(caller, access))
        .map(([name, { title }]) => ({ name: title, code: name, href: this.#path([...segments, name]) }));
    const operations = allowed(resource.operations).filter(({ code }) => resource.isOffered(subject, code));
    const render = async () => resource.view?.(this.#pageContext(rest, json));
    // The form is shown again also while the database is unavailable.
    const view = await (refused ? render().catch(() => undefined) : render());
    const ownQuery = [...query].filter(([name]) => name in resource.fields);
    const layout = {
      ...(await this.#layout(rest, resource.titleOf(subject, query))),
      search: segments.length === 0 ? query.get('q') : null,
      reloads: resource.isInProgress(subject),
      isError: refused !== undefined,
    };
    const page = resourcePage(layout, {
      address: urls.shellUrl(prefix, segments),
      query: new URLSearchParams(ownQuery).toString(),
      description: resource.description,
      children: allowed(resource.resources),
      operations,
      form: this.#ownForm(
        rest,
        operations.some(({ code }) => code === resource.form),
        refused,
      ),
      view,
      hasCsv: resource.csv !== undefined,
    });
    return this.#send(rest, reply, refused?.status ?? 200, page);
  }

  /** The form on the page of a resource, which leads back to the page. */
  #ownForm(rest: PageRequest, isOffered: boolean, refused?: Refusal): ResourceForm | undefined {
    const { onPost, form = '', operations } = rest.entry.resource;
    const operation = isOffered ? operations[form] : onPost;
    if (!operation) return undefined;
    const segments = isOffered ? [...rest.segments, form] : rest.segments;
    const next = isOffered && { next: this.#path(rest.segments) };
    const entered = { ...next, ...(refused?.entered ?? textsOfLink(rest, operation)) };
    return {
      ...this.#formView(rest, operation, entered),
      error: refused?.error,
      operation,
      action: this.#path(segments),
      address: this.#options.urls.shellUrl(this.#options.prefix, segments),
    };
  }

  #pageContext(rest: PageRequest, json: Json): PageContext<unknown, never> {
    const { frame } = this.#options;
    const { segments, identity } = rest;
    const query = pageQuery(rest);
    return {
      subject: rest.subject?.found,
      json: json as never,
      caller: identity?.caller,
      query,
      formToken: identity?.formToken ?? '',
      isReadOnly: frame.isReadOnly,
      now: frame.now,
      address: addressOf(this.#path(segments), query),
      here: (...beneath) => this.#path([...segments, ...beneath]),
      href: (...path) => this.#path(path),
    };
  }

  #formView(rest: PageRequest, operation: Operation, entered: FormView['entered']): FormView {
    const suggestions = operation.suggest(rest.subject?.found, rest.identity?.caller);
    const unchanged = rest.subject ? operation.unchanged(rest.subject.found) : {};
    return { action: this.#path(rest.segments), entered, suggestions, unchanged };
  }

  async #sendForm(
    rest: RestRequest,
    reply: FastifyReply,
    status: number,
    { error, result }: { readonly error?: PageError; readonly result?: Outcome },
  ): Promise<FastifyReply> {
    const { urls, prefix } = this.#options;
    const { segments } = rest;
    const { operation } = rest.entry;
    if (!operation || operation.form === 'sign-in')
      return this.#sendSignIn(rest, reply, status, error ? { error } : {});
    const entered = rest.isPost
      ? { ...enteredTexts(rest, operation), ...error?.shown }
      : presentTexts(rest.subject?.found, rest.form, operation);
    // A form may be refused before its caller is known.
    const isKnown = mayCall(rest.identity?.caller, operation.access);
    const formPage = { ...this.#pageContext(rest, null), entered, error };
    const shown = isKnown ? (result ?? operation).view?.(formPage) : undefined;
    // The database may be unavailable.
    const view = await (error ? shown?.catch(() => undefined) : shown);
    const warn = async () =>
      isKnown && rest.subject && !result ? operation.warning(rest.subject.found, entered) : undefined;
    const warning = await (error ? warn().catch(() => undefined) : warn());
    // Otherwise the operation would show a form for programs, or one that is refused.
    const hasOwnPage = operation.form === 'derived' && isOffered(rest) && !hasFormOnResource(rest);
    if (!result?.shownOnce && !view && !hasOwnPage)
      return this.#sendElsewhere(rest, reply, error && { status, error, entered });
    const title = formTitle(rest, operation, entered);
    const layout = { ...(await this.#layout(rest, title)), isError: error !== undefined };
    const step = result?.nextStep;
    const page = operationPage(layout, operation, {
      ...this.#formView(rest, operation, entered),
      address: urls.shellUrl(prefix, segments),
      parent: { name: layout.crumbs.at(-2)?.name ?? 'the list', href: this.#path(pathOfResource(rest)) },
      error,
      view,
      warning,
      ...(result?.shownOnce && {
        secret: {
          text: noticeOf(operation, result).text,
          link: this.#linkOf(result.notice?.link),
          shownOnce: result.shownOnce,
          nextStep:
            step &&
            pageButton(formPage, { ...step, action: this.#path(step.path), next: this.#path(step.next) }),
        },
      }),
    });
    return this.#send(rest, reply, status, page);
  }

  /**
   * The form of the operation is on the page of its resource, or another page has a button for it, which `next` leads
   * back to: that page says why the operation was refused.
   */
  #sendElsewhere(
    rest: RestRequest,
    reply: FastifyReply,
    refused: Refusal | undefined,
  ): FastifyReply | Promise<FastifyReply> {
    const own = this.#path(pathOfResource(rest));
    const next = textIn(rest.form, 'next') || undefined;
    // The page of a new item does not exist.
    const left = (next !== undefined && !hasName(next) && ownPath(next)) || own;
    const isOnResource = hasFormOnResource(rest);
    if (!refused) return this.#seeOther(reply, isOnResource ? addressOf(own, pageQuery(rest)) : left);
    const { status, error } = refused;
    const mayRead = mayCall(rest.identity?.caller, rest.entry.resource.access);
    if (isOnResource && mayRead) return this.#sendResource(requestForResource(rest), reply, null, refused);
    if (next === undefined)
      return this.#sendErrorPage(rest, reply, { status, error, identity: rest.identity });
    const text = [error.message, ...error.details].join(' ');
    return this.#seeOther(reply, left, { text, isProblem: true });
  }

  #sendSignIn(
    rest: RestRequest,
    reply: FastifyReply,
    status: number,
    { error, ended }: { error?: PageError; ended?: EndedForm },
  ): FastifyReply {
    const { frame } = this.#options;
    const { form, entry } = rest;
    const isSignIn = entry.operation?.form === 'sign-in';
    const given = shortText(textIn(form, 'next'));
    const entered = {
      next: isSignIn ? given : (ended?.path ?? this.#requestedPath(rest)),
      username: shortText(textIn(form, 'username')),
    };
    // Opening a page without a session is not an error.
    const isFirst = error?.code === 499;
    const hasEnded = ended !== undefined || (error?.code === 498 && textIn(form, 'token') === undefined);
    const shown = isFirst || hasEnded || !error ? undefined : signInError(error);
    const page = signInPage(
      { ...frame.bareLayout('Sign in'), isError: shown !== undefined, notice: readNotice(rest.noticeCookie) },
      {
        ...frame.signIn(entered.next, { asksForForm: isSignIn && textIn(form, 'username') !== undefined }),
        entered,
        lead: hasEnded ? endedLead(ended?.isKept) : undefined,
        error: shown,
      },
    );
    // The token service checks Origin, which browsers withhold from a page with the policy no-referrer.
    return this.#send(rest, reply, status, page, { 'referrer-policy': 'same-origin' });
  }

  async #layout(rest: PageRequest | null, title: string, identity = rest?.identity): Promise<Layout> {
    const { frame, root, rootName, isNavigated } = this.#options;
    const layout = await frame.layout({
      title,
      identity,
      crumbs: crumbsOf(root, rest, {
        rootName,
        caller: identity?.caller,
        href: (segments) => this.#path(segments),
      }),
      path: isNavigated && rest ? rest.segments : undefined,
      requested: this.#requestedPath(rest),
    });
    return { ...layout, notice: readNotice(rest?.noticeCookie) };
  }

  #path(segments: readonly string[]): string {
    return this.#options.urls.path(this.#options.prefix, segments);
  }

  #requestedPath(rest: PageRequest | null): string {
    const isShort = rest && !rest.isPost && shortText(rest.queryText) !== undefined;
    const query = isShort ? pageQuery(rest).toString() : '';
    return this.#path(rest?.segments ?? []) + (query === '' ? '' : `?${query}`);
  }
}

/** Blank parameters have no effect. */
function addressOf(path: string, query: URLSearchParams): string {
  const kept = new URLSearchParams([...query].filter(([, value]) => value.trim() !== ''));
  return kept.size === 0 ? path : `${path}?${kept.toString()}`;
}

/** The forms name their fields, so their pages need no technical term. Empty if a problem is none of a field. */
function correctionOf(problems: readonly Problem[], fields: Fields): string {
  const names = [...new Set(problems.map(({ field = '' }) => field))];
  if (names.length === 0 || names.some((name) => !Object.hasOwn(fields, name))) return '';
  const one = problems.length === 1 ? 'one field' : 'these values';
  return `Please correct ${names.length === 1 ? one : `${names.length} fields`}.`;
}

function noticeOf({ title }: Operation, { notice }: Outcome): Notice {
  return notice ?? { text: `${title}: accepted.` };
}

/** The path of the resource whose page has the form or the button of the operation. */
function pathOfResource({ entry: { operation, resource }, segments }: RestRequest): readonly string[] {
  return operation === undefined || operation === resource.onPost ? segments : segments.slice(0, -1);
}

function isOffered({ subject, entry: { operation, resource } }: RestRequest): boolean {
  const name = Object.keys(resource.operations).find((one) => resource.operations[one] === operation);
  return name === undefined || !subject || resource.isOffered(subject.found, name);
}

/** Whether the page of the resource has the form. */
function hasFormOnResource(rest: RestRequest): boolean {
  const { operation, resource } = rest.entry;
  const { form = '', operations, onPost } = resource;
  return operation !== undefined && operation === (operations[form] ?? onPost) && isOffered(rest);
}

function requestForResource(rest: RestRequest): PageRequest {
  const { entry, subject, subjects, identity, isPost, queryText, noticeCookie } = rest;
  const segments = pathOfResource(rest);
  const route = entry.route.split('/').slice(0, segments.length).join('/');
  const page = { entry: { ...entry, route, operation: undefined }, segments, subject, subjects };
  return { ...page, identity, isPost, queryText, noticeCookie };
}

/** An operation of an item names the item. */
function formTitle({ entry, subject }: RestRequest, operation: Operation, entered: Entered): string {
  const isOfItem = entry.items.at(-1)?.resource === entry.resource;
  const title = operation.titleOf(entered);
  return isOfItem && subject ? `${title}: ${entry.resource.titleOf(subject.found)}` : title;
}

/** A form that was sent after the end of its session. */
type EndedForm = { readonly path: string; readonly isKept: boolean };

const renewedSession = {
  text: 'You have signed in again since this form was opened. Nothing was changed: check the input, and send it again.',
};

/** Undefined: no form was sent. */
function endedLead(isKept: boolean | undefined): string {
  if (isKept === undefined) return 'Your session has ended. Sign in to go on.';
  return isKept
    ? 'Your session has ended. Sign in to go on; your input is kept, except passwords, addresses and files.'
    : 'Your session has ended. Your input is not kept: go back to copy it before you sign in.';
}

function signInError(error: PageError): FormError {
  const { code, retryAfter } = error;
  if (code === 400 && error.problems.length === 0)
    return { ...error, message: 'The user name or the password is wrong.' };
  if (code === 498) return { ...error, message: 'Your session has ended.', details: [] };
  if (code === 429 && retryAfter !== undefined)
    return { ...error, message: `${error.message} Try again in ${retryAfter} seconds.` };
  return error;
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
function pageQuery({ queryText, entry }: PageRequest): URLSearchParams {
  const query = new URLSearchParams(queryText);
  query.delete('token');
  query.delete('f');
  for (const [name, field] of Object.entries(fieldsOf(entry)))
    if (metaOf(field).control === 'password') query.delete(name);
  return query;
}

/** `next` with the names of new items. */
function fillIn(path: string, names: Readonly<Record<string, string>>): string {
  return Object.entries(names).reduce(
    (filled, [name, value]) =>
      filled
        .replaceAll(`{${name}}`, encodeURIComponent(value))
        .replaceAll(`%7B${name}%7D`, encodeURIComponent(value)),
    path,
  );
}
