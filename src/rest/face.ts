// The HTML face of a mounted directory: which page answers a request, with its links, session and entered values.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Outcome } from './directory.ts';
import type { Json } from './json.ts';
import { type Form, textIn } from './form.ts';
import { type Assets, type Frame, sendHtml } from './frame.ts';
import { errorPage, operationPage, resourcePage, signInPage } from './pages.ts';
import type { ErrorAnswer } from './reply.ts';
import { type Progress, type Route, beginProgress, ownPath, queryOf } from './request.ts';

export type FaceOptions = {
  readonly prefix: string;
  readonly rootName: string;
  readonly publicUrl: () => string;
  readonly assets: () => Assets;
  readonly tokensPath: string;
};

export type Face = {
  outcome: (request: FastifyRequest, reply: FastifyReply, outcome: Outcome) => Promise<FastifyReply>;
  form: (request: FastifyRequest, reply: FastifyReply) => FastifyReply;
  error: (request: FastifyRequest, reply: FastifyReply, answer: ErrorAnswer) => FastifyReply;
};

type Told = { readonly error?: ErrorAnswer['body']['error']; readonly result?: Json };

export function createFace({ prefix, rootName, publicUrl, assets, tokensPath }: FaceOptions): Face {
  /** The path of the public address, in front of every link. */
  const linkBase = () => new URL(publicUrl()).pathname.replace(/\/$/, '');
  const addressOf = (segments: readonly string[]) => new URL(linkTo(segments), publicUrl()).href;
  const tokensHref = (operation: string) => `${linkBase()}${tokensPath}/${operation}`;

  function linkTo(segments: readonly string[]): string {
    return [linkBase() + prefix, ...segments.map(encodeURIComponent)].join('/') || '/';
  }

  function frameOf({ route, identity }: Progress, title: string): Frame {
    const segments = route?.segments ?? [];
    const next = encodeURIComponent(linkBase() + (route?.path ?? prefix));
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
    const below = (name: string) => ({ name, href: linkTo([...segments, name]) });
    const listed: string[] = [];
    for (const items of resource.items) {
      listed.push(...(await items.list(subject, progress.identity?.caller)));
    }
    const view = await resource.view?.({
      ...{ subject, json, caller: progress.identity?.caller },
      query: new URLSearchParams(queryOf(request)),
      formToken: progress.identity?.formToken ?? '',
      here: (...beneath) => linkTo([...segments, ...beneath]),
      href: (...path) => linkTo(path),
    });
    const page = resourcePage(frameOf(progress, resource.title), {
      address: addressOf(segments),
      description: resource.description,
      children: [...Object.keys(resource.resources), ...listed].map(below),
      operations: Object.keys(resource.operations).map(below),
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
    const view = { action: linkTo(segments), address: addressOf(segments), entered, ...told };
    return sendHtml(reply, status, operationPage(frameOf(progress, operation.title), operation, view));
  }

  /** Signing in leads on to the page that was asked for. */
  function showSignIn(request: FastifyRequest, reply: FastifyReply, status: number, told: Told) {
    const { route, form } = progressOf(request);
    const isSignIn = route?.match.operation?.form === 'sign-in';
    const next = isSignIn ? textIn(form, 'next') : linkBase() + (route?.path ?? prefix);
    const entered = { next, username: textIn(form, 'username') };
    const view = { action: tokensHref('generateToken'), entered, ...told };
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
      if (outcome.seeOther !== undefined) return reply.redirect(outcome.seeOther, 303);
      if (!progress.route || progress.route.match.operation) {
        const next = ownPath(textIn(progress.form, 'next') ?? '');
        if (next !== undefined) return reply.redirect(next, 303);
        return showForm(request, reply, 200, { result: outcome.json });
      }
      return showResource(request, reply, progress.route, outcome.json);
    },
    form: (request, reply) => showForm(request, reply, 200, {}),
    error(request, reply, { status, body: { error } }) {
      const progress = progressOf(request);
      if (status === 401) return showSignIn(request, reply, status, { error });
      if (progress.route?.match.operation && progress.subject)
        return showForm(request, reply, status, { error });
      return sendHtml(reply, status, errorPage(frameOf(progress, 'Error'), error));
    },
  };
}

/** A request that was refused before it got anywhere is shown an error page all the same. */
function progressOf(request: FastifyRequest): Progress {
  return request.progress ?? beginProgress();
}

/** Files cannot be put back into a form. */
function textsIn(form: Form): Record<string, string | undefined> {
  return Object.fromEntries(Object.keys(form).map((name) => [name, textIn(form, name)]));
}
