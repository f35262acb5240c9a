// The page of an operation: its form, empty or as it was refused, or its result.
import type { FastifyReply } from 'fastify';
import { mayCall } from '../lib/caller.ts';
import { emptyForm, textIn } from '../rest/form.ts';
import type { Operation } from '../rest/operation.ts';
import type { Notice, Outcome } from '../rest/outcome.ts';
import { type RefusedRequest, ownPath } from '../rest/request.ts';
import type { Entered } from '../rest/view.ts';
import { pageButton } from './action.ts';
import type { FormView } from './form.ts';
import { enteredTexts, presentTexts, textsOfLink } from './input.ts';
import { type PageError, type PageSender, addressOf, pageQuery } from './page-sender.ts';
import { type ResourceForm, hasName, operationPage } from './pages.ts';
import type { SignInResponse } from './sign-in-response.ts';

export type Refusal = Pick<FormView, 'entered'> & { readonly status: number; readonly error: PageError };

type FormResponseOptions = {
  readonly pages: PageSender;
  readonly signIn: SignInResponse;
  /** The page of the resource, with the refused form. */
  readonly sendResource: (
    rest: RefusedRequest,
    reply: FastifyReply,
    refused: Refusal,
  ) => Promise<FastifyReply>;
};

export class FormResponse {
  readonly #pages: PageSender;
  readonly #options: FormResponseOptions;

  constructor(options: FormResponseOptions) {
    this.#pages = options.pages;
    this.#options = options;
  }

  async send(
    rest: RefusedRequest,
    reply: FastifyReply,
    status: number,
    { error, result }: { readonly error?: PageError; readonly result?: Outcome },
  ): Promise<FastifyReply> {
    const { segments } = rest;
    const { operation } = rest.entry;
    if (!operation || operation.form === 'sign-in')
      return this.#options.signIn.send(rest, reply, status, error ? { error } : {});
    const entered = rest.isPost
      ? { ...enteredTexts(rest, operation), ...error?.shown }
      : presentTexts(rest.subject?.found, rest.form ?? emptyForm, operation);
    // A form may be refused before its caller is known.
    const isKnown = mayCall(rest.identity?.caller, operation.access);
    const formPage = { ...this.#pages.context(rest, null), entered, error };
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
    const layout = { ...(await this.#pages.layout(rest, title)), isError: error !== undefined };
    const step = result?.nextStep;
    const page = operationPage(layout, operation, {
      ...this.#formView(rest, operation, entered),
      address: this.#pages.url(segments),
      parent: {
        name: layout.crumbs.at(-2)?.name ?? 'the list',
        href: this.#pages.path(pathOfResource(rest)),
      },
      error,
      view,
      warning,
      ...(result?.shownOnce && {
        secret: {
          text: noticeOf(operation, result).text,
          link: this.#pages.linkOf(result.notice?.link),
          shownOnce: result.shownOnce,
          nextStep:
            step &&
            pageButton(formPage, {
              ...step,
              action: this.#pages.path(step.path),
              next: this.#pages.path(step.next),
            }),
        },
      }),
    });
    return this.#pages.send(rest, reply, status, page);
  }

  /** The form on the page of a resource, which leads back to the page. */
  formOn(rest: RefusedRequest, isOffered: boolean, refused?: Refusal): ResourceForm | undefined {
    const { onPost, form = '', operations } = rest.entry.resource;
    const operation = isOffered ? operations[form] : onPost;
    if (!operation) return undefined;
    const segments = isOffered ? [...rest.segments, form] : rest.segments;
    const next = isOffered && { next: this.#pages.path(rest.segments) };
    const entered = { ...next, ...(refused?.entered ?? textsOfLink(rest, operation)) };
    return {
      ...this.#formView(rest, operation, entered),
      error: refused?.error,
      operation,
      action: this.#pages.path(segments),
      address: this.#pages.url(segments),
    };
  }

  #formView(rest: RefusedRequest, operation: Operation, entered: FormView['entered']): FormView {
    const suggestions = operation.suggest(rest.subject?.found, rest.identity?.caller);
    const unchanged = rest.subject ? operation.unchanged(rest.subject.found) : {};
    return { action: this.#pages.path(rest.segments), entered, suggestions, unchanged };
  }

  /**
   * The form of the operation is on the page of its resource, or another page has a button for it, which `next` leads
   * back to: that page says why the operation was refused.
   */
  #sendElsewhere(
    rest: RefusedRequest,
    reply: FastifyReply,
    refused: Refusal | undefined,
  ): FastifyReply | Promise<FastifyReply> {
    const own = this.#pages.path(pathOfResource(rest));
    const next = textIn(rest.form, 'next') || undefined;
    // The page of a new item does not exist.
    const left = (next !== undefined && !hasName(next) && ownPath(next)) || own;
    const isOnResource = hasFormOnResource(rest);
    if (!refused) return this.#pages.seeOther(reply, isOnResource ? addressOf(own, pageQuery(rest)) : left);
    const { status, error } = refused;
    const mayRead = mayCall(rest.identity?.caller, rest.entry.resource.access);
    if (isOnResource && mayRead) return this.#options.sendResource(requestForResource(rest), reply, refused);
    if (next === undefined)
      return this.#pages.sendError(rest, reply, { status, error, identity: rest.identity });
    const text = [error.message, ...error.details].join(' ');
    return this.#pages.seeOther(reply, left, { text, isProblem: true });
  }
}

export function noticeOf({ title }: Operation, { notice }: Outcome): Notice {
  return notice ?? { text: `${title}: accepted.` };
}

/** The path of the resource whose page has the form or the button of the operation. */
export function pathOfResource({
  entry: { operation, resource },
  segments,
}: RefusedRequest): readonly string[] {
  return operation === undefined || operation === resource.onPost ? segments : segments.slice(0, -1);
}

function isOffered({ subject, entry: { operation, resource } }: RefusedRequest): boolean {
  const name = Object.keys(resource.operations).find((one) => resource.operations[one] === operation);
  return name === undefined || !subject || resource.isOffered(subject.found, name);
}

/** Whether the page of the resource has the form. */
function hasFormOnResource(rest: RefusedRequest): boolean {
  const { operation, resource } = rest.entry;
  const { form = '', operations, onPost } = resource;
  return operation !== undefined && operation === (operations[form] ?? onPost) && isOffered(rest);
}

function requestForResource(rest: RefusedRequest): RefusedRequest {
  const segments = pathOfResource(rest);
  const route = rest.entry.route.split('/').slice(0, segments.length).join('/');
  return { ...rest, entry: { ...rest.entry, route, operation: undefined }, segments };
}

/** An operation of an item names the item. */
function formTitle({ entry, subject }: RefusedRequest, operation: Operation, entered: Entered): string {
  const isOfItem = entry.items.at(-1)?.resource === entry.resource;
  const title = operation.titleOf(entered);
  return isOfItem && subject ? `${title}: ${entry.resource.titleOf(subject.found)}` : title;
}
