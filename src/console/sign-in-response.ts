// The sign-in page: for callers without a session, and for forms that were sent after the end of their session.
import type { FastifyReply } from 'fastify';
import { textIn } from '../rest/form.ts';
import { type RefusedRequest, noticeCookieOf } from '../rest/request.ts';
import type { FormError } from '../rest/view.ts';
import { keepInput, shortText } from './input.ts';
import { readNotice } from './notice.ts';
import type { PageError, PageSender } from './page-sender.ts';
import { signInPage } from './pages.ts';

export class SignInResponse {
  readonly #pages: PageSender;

  constructor(pages: PageSender) {
    this.#pages = pages;
  }

  /** The form of an earlier session is not executed, also if the browser has a new session. */
  sendSignedOut(rest: RefusedRequest, reply: FastifyReply, status: number, error: PageError): FastifyReply {
    const { operation } = rest.entry;
    if (!rest.isPost || !operation || operation.form === 'sign-in')
      return this.send(rest, reply, status, { error });
    const own = this.#pages.path(rest.segments);
    const kept = keepInput(rest, operation, own);
    const hasSession = (rest.identity?.formToken ?? '') !== '';
    if (hasSession && kept !== undefined) return this.#pages.seeOther(reply, kept, renewedSession);
    return this.send(rest, reply, status, {
      ended: { path: kept ?? own, isKept: kept !== undefined },
    });
  }

  send(
    rest: RefusedRequest,
    reply: FastifyReply,
    status: number,
    { error, ended }: { error?: PageError; ended?: EndedForm },
  ): FastifyReply {
    const { frame } = this.#pages;
    const { form, entry } = rest;
    const isSignIn = entry.operation?.form === 'sign-in';
    const given = shortText(textIn(form, 'next'));
    const entered = {
      next: isSignIn ? given : (ended?.path ?? this.#pages.requestedPath(rest)),
      username: shortText(textIn(form, 'username')),
    };
    // Opening a page without a session is not an error.
    const isFirst = error?.code === 499;
    const hasEnded = ended !== undefined || (error?.code === 498 && textIn(form, 'token') === undefined);
    const shown = isFirst || hasEnded || !error ? undefined : signInError(error);
    const page = signInPage(
      {
        ...frame.bareLayout('Sign in'),
        isError: shown !== undefined,
        notice: readNotice(noticeCookieOf(rest)),
      },
      {
        ...frame.signIn(entered.next, { asksForForm: isSignIn && textIn(form, 'username') !== undefined }),
        entered,
        lead: hasEnded ? endedLead(ended?.isKept) : undefined,
        error: shown,
      },
    );
    // The token service checks Origin, which browsers withhold from a page with the policy no-referrer.
    return this.#pages.send(rest, reply, status, page, { 'referrer-policy': 'same-origin' });
  }
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
  if (code === 498) return { ...error, message: 'Your session has ended.', details: [] };
  if (code === 429 && retryAfter !== undefined)
    return { ...error, message: `${error.message} Try again in ${retryAfter} seconds.` };
  return error;
}
