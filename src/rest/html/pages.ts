// The generic pages: resource, operation form, sign-in, error. They work without JavaScript.
import { postCommand, readCommand } from './curl.ts';
import { type AnswerSchema, answerFields } from '../answer.ts';
import type { Operation } from '../resource.ts';
import { type FormView, type ProblemList, operationForm, renderProblems } from './form.ts';
import { type Layout, type Link, renderPage } from './layout.ts';
import { html, type Html } from './html.ts';
import type { Json } from '../../lib/json.ts';
import { renderJson } from './json.ts';
import { renderTable } from './table.ts';

export type ResourceView = {
  readonly address: string;
  readonly query: string;
  /** The operation that has just redirected here. */
  readonly done: string | undefined;
  readonly description: string;
  readonly children: readonly Link[];
  readonly operations: readonly Link[];
  readonly form: (FormView & { readonly operation: Operation }) | undefined;
  readonly answer: AnswerSchema;
  readonly json: Json;
  readonly view: Html | undefined;
  readonly hasCsv: boolean;
};

const mostLinks = 500;

export function resourcePage(layout: Layout, shown: ResourceView): Html {
  const { address, query, description, children, operations, form, answer, json, view, done } = shown;
  const asked = (format: string) => `?${query === '' ? '' : `${query}&`}f=${format}`;
  const contents = html`<section aria-labelledby="contents">
    <h2 id="contents">Contents</h2>
    ${renderJson(json)}
  </section>`;
  return renderPage(
    layout,
    html`<p class="lead">${description}</p>
      ${done !== undefined && html`<p role="status" class="result">Done: ${done}.</p>`} ${view ?? contents} ${form && operationForm(layout, form.operation, form)}
      <div class="columns">${linkList('Resources', children)} ${linkList('Operations', operations)}</div>
      ${commandView(
        [
          readCommand(query === '' ? address : `${address}?${query}`),
          ...(form ? [postCommand(address, form.operation, form.entered)] : []),
        ],
        [
          { name: 'JSON', href: asked('json') },
          { name: 'Pretty JSON', href: asked('pjson') },
          ...(shown.hasCsv ? [{ name: 'CSV', href: asked('csv') }] : []),
        ],
        answer,
      )}`,
  );
}

function linkList(heading: string, links: readonly Link[]): Html | false {
  const rest = links.length - mostLinks;
  return (
    links.length > 0 &&
    html`<section>
      <h2>${heading}</h2>
      <ul class="links">
        ${links.slice(0, mostLinks).map(({ name, href }) => html`<li><a href="${href}">${name}</a></li> `)}
      </ul>
      ${rest > 0 && html`<p>… and ${rest} more.</p>`}
    </section>`
  );
}

function commandView(commands: readonly string[], links: readonly Link[], answer: AnswerSchema): Html {
  return html`<section class="command">
    <h2>From a script</h2>
    ${links.length > 0 && html`<p>${links.map(({ name, href }) => html`<a href="${href}">${name}</a> `)}</p>`}
    ${commands.map((command) => html`<pre tabindex="0" data-copy>${command}</pre> `)}
    <details class="answer">
      <summary>Fields of the answer</summary>
      ${renderTable(
        'Fields of the answer',
        ['Field', 'Type', 'Meaning'],
        answerFields(answer).map(({ path, type, description }) => [path, type, description]),
      )}
    </details>
  </section>`;
}

export type OperationView = FormView & {
  readonly address: string;
  readonly result?: Json;
  readonly parent: Link;
};

export function operationPage(layout: Layout, operation: Operation, view: OperationView): Html {
  const { result, parent } = view;
  const isDone = result !== undefined;
  return renderPage(
    layout,
    html`<p class="lead">${operation.description}</p>
      ${isDone ? resultView(result) : operationForm(layout, operation, view)}
      ${isDone && html`<p><a href="${parent.href}">Back to ${parent.name}</a> · <a href="${view.action}">Once more</a></p>`}
      ${commandView([postCommand(view.address, operation, view.entered)], [], operation.answer)}`,
  );
}

function resultView(json: Json): Html {
  return html`<section role="status" class="result" aria-labelledby="result">
    <h2 id="result">Result</h2>
    ${renderJson(json)}
    <details>
      <summary>JSON</summary>
      <pre tabindex="0">${JSON.stringify(json, null, 2)}</pre>
    </details>
  </section>`;
}

export type SignInView = FormView & {
  readonly lead: string;
  readonly command: { readonly text: string; readonly answer: AnswerSchema } | undefined;
};

export function signInPage(layout: Layout, view: SignInView): Html {
  return renderPage(
    layout,
    html`<p class="lead">${view.lead}</p>
      ${view.error && renderProblems(view.error)}
      <form method="post" action="${view.action}" class="sign-in">
        <input type="hidden" name="f" value="html" />
        <input type="hidden" name="next" value="${view.entered.next}" />
        <div class="field">
          <label for="username">User name</label>
          <input
            id="username"
            name="username"
            value="${view.entered.username}"
            autocomplete="username"
            required
          />
        </div>
        <div class="field">
          <label for="password">Password</label>
          <input id="password" name="password" type="password" autocomplete="current-password" required />
        </div>
        <p><button>Sign in</button></p>
      </form>
      ${view.command && commandView([view.command.text], [], view.command.answer)}`,
  );
}

export function errorPage(layout: Layout, error: ProblemList): Html {
  return renderPage(layout, renderProblems(error));
}
