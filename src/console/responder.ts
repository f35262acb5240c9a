// Answers a request with a page: selects the page, and adds its links, session and entered values.
import type { FastifyReply } from 'fastify';
import type { ErrorResponse } from '../http/errors.ts';
import { type Identity, mayCall } from '../lib/caller.ts';
import type { Problem, ServiceError } from '../lib/errors.ts';
import { html } from '../lib/html.ts';
import { type Json, plainJson } from '../lib/json.ts';
import type { Fields } from '../rest/fields.ts';
import { textIn } from '../rest/form.ts';
import type { Outcome } from '../rest/outcome.ts';
import { type RefusedRequest, type RestRequest, ownPath } from '../rest/request.ts';
import type { Resource } from '../rest/resource.ts';
import { fieldsOf } from '../rest/tree.ts';
import { FormResponse, type Refusal, noticeOf, pathOfResource } from './form-response.ts';
import { movedTo } from './frame.ts';
import { explainProblems, newerValues } from './input.ts';
import { sentenceOf } from './labels.ts';
import { renderPage } from './layout.ts';
import { type PageSenderOptions, PageSender, addressOf, pageQuery } from './page-sender.ts';
import { resourcePage } from './pages.ts';
import { SignInResponse } from './sign-in-response.ts';

type RefusalFacts = Pick<ServiceError, 'problems' | 'onPage'> & { readonly identity: Identity | undefined };

export class HtmlResponder {
  readonly #root: Resource;
  readonly #pages: PageSender;
  readonly #signIn: SignInResponse;
  readonly #form: FormResponse;

  constructor(options: PageSenderOptions) {
    this.#root = options.root;
    this.#pages = new PageSender(options);
    this.#signIn = new SignInResponse(this.#pages);
    this.#form = new FormResponse({
      pages: this.#pages,
      signIn: this.#signIn,
      sendResource: (rest, reply, refused) => this.#sendResource(rest, reply, null, refused),
    });
  }

  async sendForm(rest: RestRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.#sendMoved(rest, reply) ?? this.#form.send(rest, reply, 200, {});
  }

  /** The page without its content, which may take long to read and to render. */
  async sendFrame(rest: RestRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.#pages.send(rest, reply, 200, renderPage(await this.#pages.layout(rest, ''), html``));
  }

  async sendOutcome(rest: RestRequest, reply: FastifyReply, outcome: Outcome): Promise<FastifyReply> {
    if (outcome.seeOther !== undefined) return this.#pages.seeOther(reply, outcome.seeOther, outcome.notice);
    const { operation } = rest.entry;
    if (!operation)
      return this.#sendMoved(rest, reply) ?? this.#sendResource(rest, reply, plainJson(outcome.json));
    const next = ownPath(fillIn(textIn(rest.form, 'next') ?? '', outcome.names ?? {}));
    if (outcome.shownOnce || (outcome.view && next === undefined))
      return this.#form.send(rest, reply, 200, { result: outcome });
    const about = this.#pages.linkOf(outcome.notice?.link)?.href;
    const page = next ?? about ?? this.#pages.path(pathOfResource(rest));
    return this.#pages.seeOther(reply, page, noticeOf(operation, outcome));
  }

  #sendMoved(rest: RestRequest, reply: FastifyReply): FastifyReply | undefined {
    const path = movedTo(this.#root, rest);
    return path && this.#pages.seeOther(reply, addressOf(this.#pages.path(path), pageQuery(rest)));
  }

  /** `rest` is null if no route matches the path. */
  async sendError(
    rest: RefusedRequest | null,
    reply: FastifyReply,
    { status, headers, body }: ErrorResponse,
    { identity, problems, onPage }: RefusalFacts,
  ): Promise<FastifyReply> {
    const newer = rest && status === 409 ? newerValues(rest) : undefined;
    const explained = [...(rest ? explainProblems(rest, problems) : problems), ...(newer?.problems ?? [])];
    const shown = onPage === undefined ? explained : [];
    const fields = rest ? fieldsOf(rest.entry) : {};
    const error = {
      ...body.error,
      message: onPage ?? ((status === 400 && correctionOf(problems, fields)) || body.error.message),
      ...((shown.length > 0 || onPage !== undefined) && {
        details: shown.map((problem) => sentenceOf(problem, fields)),
      }),
      problems: shown,
      shown: newer?.shown,
      retryAfter: headers['retry-after'],
    };
    if (status === 401 && rest) return this.#signIn.sendSignedOut(rest, reply, status, error);
    // The page shows a refused form again with the entered values, unless the caller may not open it.
    const hasForm = rest?.subject ?? (rest?.isPost && ![403, 404, 405].includes(status));
    if (rest?.entry.operation && hasForm) return this.#form.send(rest, reply, status, { error });
    return this.#pages.sendError(rest, reply, { status, error, identity });
  }

  /** `refused` is the state of the form on the page. */
  async #sendResource(
    rest: RefusedRequest,
    reply: FastifyReply,
    json: Json,
    refused?: Refusal,
  ): Promise<FastifyReply> {
    const { entry, segments, identity } = rest;
    const { resource } = entry;
    const subject = rest.subject?.found;
    const caller = identity?.caller;
    const query = pageQuery(rest);
    const allowed = (entries: Readonly<Record<string, Pick<Resource, 'title' | 'access'>>>) =>
      Object.entries(entries)
        .filter(([, { access }]) => mayCall(caller, access))
        .map(([name, { title }]) => ({
          name: title,
          code: name,
          href: this.#pages.path([...segments, name]),
        }));
    const operations = allowed(resource.operations).filter(({ code }) => resource.isOffered(subject, code));
    const render = async () => resource.view?.(this.#pages.context(rest, json));
    // The form is shown again also while the database is unavailable.
    const view = await (refused ? render().catch(() => undefined) : render());
    const ownQuery = [...query].filter(([name]) => name in resource.fields);
    const layout = {
      ...(await this.#pages.layout(rest, resource.titleOf(subject, query))),
      search: segments.length === 0 ? query.get('q') : null,
      reloads: resource.isInProgress(subject),
      isError: refused !== undefined,
    };
    const page = resourcePage(layout, {
      address: this.#pages.url(segments),
      query: new URLSearchParams(ownQuery).toString(),
      description: resource.description,
      children: allowed(resource.resources).filter(({ code }) => resource.isOffered(subject, code)),
      operations,
      form: this.#form.formOn(
        rest,
        operations.some(({ code }) => code === resource.form),
        refused,
      ),
      view,
      hasCsv: resource.csv !== undefined,
    });
    return this.#pages.send(rest, reply, refused?.status ?? 200, page);
  }
}

/** The forms name their fields, so their pages need no technical term. Empty if a problem is none of a field. */
function correctionOf(problems: readonly Problem[], fields: Fields): string {
  const names = [...new Set(problems.map(({ field = '' }) => field))];
  if (names.length === 0 || names.some((name) => !Object.hasOwn(fields, name))) return '';
  const one = problems.length === 1 ? 'one field' : 'these values';
  return `Please correct ${names.length === 1 ? one : `${names.length} fields`}.`;
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
