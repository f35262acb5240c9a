// The HTML faces of the directory: resource, operation form, sign-in, error. Plain markup that works without script.
import type { FastifyReply } from 'fastify';
import type { Caller } from '../caller.ts';
import type { Operation } from './directory.ts';
import type { Json } from './json.ts';
import type { Field } from './fields.ts';
import { html, type Html } from './html.ts';

const securityHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

export function sendHtml(reply: FastifyReply, status: number, page: Html, headers = {}): FastifyReply {
  return reply
    .code(status)
    .headers({ ...securityHeaders, ...headers })
    .send(page.markup);
}

export type Link = { readonly name: string; readonly href: string };

/** What every page shows around its content. */
export type Frame = {
  readonly title: string;
  /** From the root down to this page. */
  readonly crumbs: readonly Link[];
  /** Absent on pages that know nothing of sessions. */
  readonly session?: Session;
};

export type Session = {
  readonly caller: Caller;
  readonly formToken: string;
  readonly signInHref: string;
  readonly signOutAction: string;
};

export function pageOf(frame: Frame, content: Html): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${frame.title}</title>
      </head>
      <body>
        <header>
          <nav aria-label="Breadcrumb">
            ${frame.crumbs.map(({ name, href }) => html`/ <a href="${href}">${name}</a> `)}
          </nav>
          ${frame.session && sessionLine(frame.session)}
        </header>
        <main>
          <h1>${frame.title}</h1>
          ${content}
        </main>
      </body>
    </html> `;
}

function sessionLine({ caller, formToken, signInHref, signOutAction }: Session): Html {
  if (caller === undefined) return html`<p><a href="${signInHref}">Sign in</a></p>`;
  const signOut =
    formToken !== '' &&
    html`<form method="post" action="${signOutAction}">
      <input type="hidden" name="f" value="html" /><input type="hidden" name="token" value="${formToken}" />
      <button>Sign out</button>
    </form>`;
  return html`<p>Signed in as ${caller.username} (${caller.role}).</p>
    ${signOut}`;
}

export type ResourceView = {
  readonly description: string;
  readonly children: readonly Link[];
  readonly operations: readonly Link[];
  /** What a POST to the same address does, where that is something else than reading. */
  readonly form: (FormView & { readonly operation: Operation }) | undefined;
  readonly json: Json;
};

export function resourcePage(frame: Frame, view: ResourceView): Html {
  const { description, children, operations, form, json } = view;
  return pageOf(
    frame,
    html`<p>${description}</p>
      ${linkList('Resources', children)} ${linkList('Operations', operations)}
      <h2>Contents</h2>
      <pre>${JSON.stringify(json, null, 2)}</pre>
      <p><a href="?f=json">JSON</a> <a href="?f=pjson">Pretty JSON</a></p>
      ${form && operationForm(frame, form.operation, form)}`,
  );
}

function linkList(heading: string, links: readonly Link[]): Html | false {
  return (
    links.length > 0 &&
    html`<h2>${heading}</h2>
      <ul>
        ${links.map(({ name, href }) => html`<li><a href="${href}">${name}</a></li>`)}
      </ul>`
  );
}

export type FormView = {
  readonly action: string;
  /** What is in the fields: as entered, or what is being changed. */
  readonly entered: Readonly<Record<string, string | undefined>>;
  readonly error?: { readonly message: string; readonly details: readonly string[] };
  readonly result?: Json;
};

export function operationPage(frame: Frame, operation: Operation, view: FormView): Html {
  return pageOf(
    frame,
    html`<p>${operation.description}</p>
      ${operationForm(frame, operation, view)}`,
  );
}

function operationForm(frame: Frame, operation: Operation, view: FormView): Html {
  const formToken = frame.session?.formToken ?? '';
  const asksForToken = 'token' in operation.fields && formToken === '';
  const fields = Object.entries(operation.fields).filter(([name]) => name !== 'token' || asksForToken);
  const takesFiles = fields.some(([, field]) => (field as Field<unknown>).control.kind === 'file');
  return html`${view.error && problemList(view.error)} ${view.result !== undefined && resultView(view.result)}
      ${operation.access !== 'anyone' && formToken === '' && signInFirst(frame)}
      <form method="post" action="${view.action}" ${takesFiles && html`enctype="multipart/form-data"`}>
        <input type="hidden" name="f" value="html" />
        ${!asksForToken && html`<input type="hidden" name="token" value="${formToken}" />`}
        ${fields.map(([name, field]) => fieldView(name, field as Field<unknown>, view.entered[name]))}
        <p><button>${operation.title}</button></p>
      </form>`;
}

function signInFirst({ session }: Frame): Html {
  return html`<p>
    <a href="${session?.signInHref}">Sign in</a> first: this form works only for a signed-in browser.
  </p>`;
}

export function signInPage(frame: Frame, view: FormView): Html {
  return pageOf(
    frame,
    html`${view.error && problemList(view.error)}
      <form method="post" action="${view.action}">
        <input type="hidden" name="f" value="html" />
        <input type="hidden" name="next" value="${view.entered.next}" />
        <p>
          <label
            >User name
            <input name="username" value="${view.entered.username}" autocomplete="username" required
          /></label>
        </p>
        <p>
          <label
            >Password <input name="password" type="password" autocomplete="current-password" required
          /></label>
        </p>
        <p><button>Sign in</button></p>
      </form>`,
  );
}

export function errorPage(frame: Frame, error: { message: string; details: readonly string[] }): Html {
  return pageOf(frame, problemList(error));
}

function problemList({ message, details }: { message: string; details: readonly string[] }): Html {
  return html`<div role="alert">
    <p><strong>${message}</strong></p>
    <ul>
      ${details.map((detail) => html`<li>${detail}</li>`)}
    </ul>
  </div>`;
}

function resultView(json: Json): Html {
  return html`<h2>Result</h2>
    <pre role="status">${JSON.stringify(json, null, 2)}</pre>`;
}

function fieldView(name: string, field: Field<unknown>, entered: string | undefined): Html {
  const hint = [
    field.description,
    field.control.kind === 'number' && `From ${field.control.from} to ${field.control.to}.`,
    field.fallback && `Default: ${field.fallback}.`,
  ];
  return html`<p>
    <label>${name}${field.required && ' (required)'} ${controlView(name, field, entered ?? '')}</label><br />
    <small>${hint.filter(Boolean).join(' ')}</small>
  </p> `;
}

function controlView(name: string, { control, required }: Field<unknown>, entered: string): Html {
  const requiredMark = html`${required && 'required'}`;
  switch (control.kind) {
    case 'choice':
      return html`<select name="${name}" ${requiredMark}>
        ${['', ...control.choices].map((choice) => {
          const mark = choice === entered.trim() ? 'selected' : '';
          return html`<option ${mark}>${choice}</option>`;
        })}
      </select>`;
    case 'file':
      return html`<input name="${name}" type="file" ${requiredMark} />`;
    case 'number':
      return html`<input name="${name}" inputmode="numeric" value="${entered}" ${requiredMark} />`;
    case 'text':
      if (control.lines) return html`<textarea name="${name}" rows="4" cols="60">${entered}</textarea>`;
      return control.secret
        ? html`<input name="${name}" type="password" autocomplete="new-password" ${requiredMark} />`
        : html`<input name="${name}" value="${entered}" maxlength="${control.maxLength}" ${requiredMark} />`;
  }
}
