// The generic pages: resource, operation form, sign-in, error. They work without JavaScript.
import { needsToken } from '../lib/caller.ts';
import { type Html, html } from '../lib/html.ts';
import { type FieldDescription, describeField } from '../rest/fields.ts';
import { ownPath } from '../rest/request.ts';
import type { Operation } from '../rest/operation.ts';
import type { Outcome } from '../rest/outcome.ts';
import { hiddenFields } from './action.ts';
import { type FormView, type ProblemList, operationForm, renderProblems } from './form.ts';
import type { SignInWays } from './frame.ts';
import { type Layout, type Page, type PageLink, renderPage } from './layout.ts';
import { renderSentence } from './time.ts';

/** A link to a resource or an operation: its title, and its name in the path. */
type ApiLink = PageLink & { readonly code: string };

/** A form on the page of a resource. `address` is the one for programs. */
export type ResourceForm = FormView & { readonly operation: Operation; readonly address: string };

type ResourceView = {
  readonly address: string;
  readonly query: string;
  readonly description: string;
  readonly children: readonly ApiLink[];
  readonly operations: readonly ApiLink[];
  readonly form: ResourceForm | undefined;
  readonly view: Html | undefined;
  readonly hasCsv: boolean;
};

export function resourcePage(layout: Layout, shown: ResourceView): Page {
  const { address, query, description, children, operations, form, view } = shown;
  const asked = (format: string) => `?${query === '' ? '' : `${query}&`}f=${format}`;
  const links = html`<div class="columns">${linkList('Resources', children)} ${linkList('Operations', operations)}</div>`;
  const commands = commandView(
    [
      readCommand(query === '' ? address : `${address}?${query}`),
      ...(form ? [postCommand(form.address, form.operation, form.entered)] : []),
    ],
    [
      { name: 'JSON', href: asked('json') },
      { name: 'Pretty JSON', href: asked('pjson') },
      ...(shown.hasCsv ? [{ name: 'CSV', href: asked('csv') }] : []),
    ],
  );
  return renderPage(
    layout,
    html`${view} ${form && operationForm(layout, form.operation, form)}`,
    html`<p class="lead">${description}</p>
      ${links} ${commands}`,
  );
}

function linkList(heading: string, links: readonly ApiLink[]): Html | false {
  return (
    links.length > 0 &&
    html`<section>
      <h2>${heading}</h2>
      <ul class="links">
        ${links.map(
          ({ name, code, href }) => html`<li><a href="${href}">${name}</a> <code>${code}</code></li> `,
        )}
      </ul>
    </section>`
  );
}

function commandView(commands: readonly string[], links: readonly PageLink[] = []): Html {
  return html`<section class="command">
    <h2>From a script</h2>
    ${links.length > 0 && html`<p>${links.map(({ name, href }) => html`<a href="${href}">${name}</a> `)}</p>`}
    ${commands.map((command) => html`<pre tabindex="0" data-copy>${command}</pre> `)}
  </section>`;
}

type OperationView = FormView & {
  readonly address: string;
  readonly secret?: {
    readonly text: string;
    readonly link: PageLink | undefined;
    readonly shownOnce: NonNullable<Outcome['shownOnce']>;
    readonly nextStep: Html | false | undefined;
  };
  readonly parent: PageLink;
  /** Of the operation, instead of its form or its result. */
  readonly view: Html | undefined;
};

export function operationPage(layout: Layout, operation: Operation, view: OperationView): Page {
  const { secret, parent, entered } = view;
  const commands = commandView([postCommand(view.address, operation, entered)]);
  const lead = html`<p class="lead">${operation.description}</p>`;
  if (view.view) return renderPage(layout, view.view, html`${lead} ${commands}`);
  const { next = '' } = entered;
  const back = hasName(next) ? undefined : ownPath(next);
  const backHref = back ?? parent.href;
  return renderPage(
    layout,
    html`${view.warning === undefined && lead}
      ${secret ? secretView(secret, backHref) : operationForm(layout, operation, { ...view, cancelHref: backHref })}
      ${secret && html`<p><a href="${backHref}">Back${back === undefined && ` to ${parent.name}`}</a></p>`}`,
    commands,
  );
}

/** A path with the id of a new item exists only later. */
export function hasName(next: string): boolean {
  return /\{|%7B/i.test(next);
}

function secretView(
  { text, link, nextStep, shownOnce }: NonNullable<OperationView['secret']>,
  backHref: string,
): Html {
  const { label, value, hint } = shownOnce;
  return html`<section role="status" class="result" aria-labelledby="result">
    <h2 id="result">${renderSentence(text)}</h2>
    <p><strong>${label}</strong> ${hint}</p>
    <pre tabindex="0" data-copy="primary">${value}</pre>
    <div class="actions">${nextStep} ${link && link.href !== backHref && html`<a href="${link.href}">${link.name}</a>`}</div>
  </section>`;
}

type SignInView = SignInWays &
  Pick<FormView, 'entered'> & {
    readonly error?: ProblemList | undefined;
    readonly lead: string | undefined;
  };

export function signInPage(layout: Layout, view: SignInView): Page {
  const { lead, error, provider, hasForm, formHref } = view;
  return renderPage(
    layout,
    html`<div class="sign-in">
      ${lead !== undefined && html`<p class="lead">${lead}</p>`}
      ${error && renderProblems(error, { takesFocus: false })}
      ${provider && html`<p><a class="button" href="${provider.href}">${provider.name}</a></p>`}
      ${provider && hasForm && html`<p class="or hint">or with a password</p>`} ${hasForm && passwordForm(view)}
      ${formHref !== undefined && html`<p><a href="${formHref}">First administrator</a></p>`}
      <p class="hint">Steward ${layout.version}</p>
    </div>`,
  );
}

function passwordForm({ action, provider, entered: { username = '', next = '' } }: SignInView): Html {
  return html`<form method="post" action="${action}">
    ${hiddenFields({ f: 'html', next })}
    <div class="field">
      <label for="username">User name</label>
      <input id="username" name="username" value="${username}" autocomplete="username" required ${username === '' && 'autofocus'} />
    </div>
    <div class="field">
      <label for="password">Password</label>
      <input id="password" name="password" type="password" autocomplete="current-password" required ${username !== '' && 'autofocus'} />
    </div>
    <p><button class="button${provider && html` second`}">Sign in</button></p>
  </form>`;
}

/** A page that goes on to the address by itself. */
export function leadOnPage(layout: Layout, href: string): Page {
  const link = html`<div class="sign-in"><a class="button" href="${href}">Continue</a></div>`;
  return renderPage({ ...layout, leadsTo: href }, link);
}

/** `links` lead on from the page. */
export function errorPage(layout: Layout, error: ProblemList, links: readonly PageLink[]): Page {
  return renderPage(
    { ...layout, isError: true },
    html`${renderProblems(error)}
      <ul class="plain">
        ${links.map(({ name, href }) => html`<li><a href="${href}">${name}</a></li> `)}
      </ul>`,
  );
}

const errorTitles: Readonly<Record<number, string>> = {
  400: 'Invalid request',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  409: 'Not possible now',
  413: 'Too large',
  415: 'Unsupported content',
  429: 'Too many requests',
  500: 'Server error',
  503: 'Unavailable',
};

export function errorTitle(status: number): string {
  return errorTitles[status] ?? 'Error';
}

/** The token of a command is a shell variable, never a real token. */
function readCommand(address: string): string {
  return `curl -H "Authorization: Bearer $TOKEN" '${address}${address.includes('?') ? '&' : '?'}f=pjson'`;
}

function postCommand(
  address: string,
  { fields, access }: Pick<Operation, 'fields' | 'access'>,
  entered: Readonly<Record<string, string | undefined>>,
): string {
  const shown = Object.entries(fields)
    .map(([name, field]) => [name, describeField(field)] as const)
    .filter(([name, { control }]) => name !== 'next' && control !== 'hidden')
    .filter(([name, field]) => field.isRequired || (entered[name] ?? '') !== '');
  const hasFile = shown.some(([, { control }]) => control === 'file');
  const parts = shown.map(([name, field]) => partOf(name, field, entered[name] ?? '', hasFile));
  const body = parts.length > 0 ? parts : ["-d ''"];
  const header = !needsToken(access) ? [] : ['-H "Authorization: Bearer $TOKEN"'];
  return [['curl', ...header, `'${address}'`].join(' '), ...body].join(' \\\n  ');
}

const maxShownLength = 4096;

/** A terminal acts on these in a paste, also inside quotes. */
const controls = /[^\P{Cc}\n]/u;

function partOf(name: string, { control }: FieldDescription, entered: string, isMultipart: boolean): string {
  if (control === 'file') return `-F ${name}=@FILE`;
  // Browsers send line breaks in this way.
  const text = entered.replaceAll('\r\n', '\n');
  // Quoting and escaping a long text takes long.
  const isShown = text !== '' && text.length <= maxShownLength && !controls.test(text);
  const value = control === 'password' ? `"$${name.toUpperCase()}"` : quote(isShown ? text : '…');
  return `${isMultipart ? '--form-string' : '--data-urlencode'} ${name}=${value}`;
}

/** A word of a shell command. */
function quote(text: string): string {
  return /^[\w./:,@+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
