// An operation as an HTML form: a labelled control for every field, what it accepts, and each problem beside its field.
import { needsToken } from '../../caller.ts';
import type { Problem } from '../../errors.ts';
import type { Operation } from '../resource.ts';
import type { Field } from '../fields.ts';
import type { Layout } from './layout.ts';
import { html, type Html } from './html.ts';

export type ProblemList = { readonly message: string; readonly details: readonly string[] };

export type FormError = ProblemList & { readonly problems: readonly Problem[] };

export type FormView = {
  readonly action: string;
  readonly entered: Readonly<Record<string, string | undefined>>;
  readonly error?: FormError | undefined;
};

export function operationForm(layout: Layout, operation: Operation, view: FormView): Html {
  const formToken = layout.session?.formToken ?? '';
  const asksForToken = 'token' in operation.fields && formToken === '';
  const fields = Object.entries(operation.fields).filter(([name]) => name !== 'token' || asksForToken);
  const takesFiles = fields.some(([, field]) => (field as Field<unknown>).control.kind === 'file');
  return html`${view.error && renderProblems(view.error)}
    ${needsToken(operation.access) && formToken === '' && signInFirst(layout)}
    <form method="post" action="${view.action}" ${takesFiles && html`enctype="multipart/form-data"`}>
      <input type="hidden" name="f" value="html" />
      ${!asksForToken && html`<input type="hidden" name="token" value="${formToken}" />`}
      ${
        view.entered.next !== undefined &&
        !('next' in operation.fields) &&
        html`<input type="hidden" name="next" value="${view.entered.next}" />`
      }
      ${fields.map(([name, field]) =>
        fieldView(name, field as Field<unknown>, view.entered[name] ?? '', problemsWith(name, view.error)),
      )}
      <p><button>${operation.title}</button></p>
    </form>`;
}

function signInFirst({ session }: Layout): Html {
  return html`<p>
    <a href="${session?.signInHref}">Sign in</a> first: this form works only for a signed-in browser.
  </p>`;
}

export function renderProblems({ message, details }: ProblemList): Html {
  return html`<div role="alert" class="problems">
    <p><strong>${message}</strong></p>
    ${
      details.length > 0 &&
      html`<ul>
      ${details.map((detail) => html`<li>${detail}</li>`)}
    </ul>`
    }
  </div>`;
}

function problemsWith(name: string, error: FormError | undefined): string[] {
  return (error?.problems ?? []).flatMap(({ field, message }) => (field === name ? message : []));
}

function fieldView(name: string, field: Field<unknown>, entered: string, problems: readonly string[]): Html {
  const { control } = field;
  const hint = [
    field.description,
    control.kind === 'number' && `From ${control.from} to ${control.to}.`,
    control.kind === 'text' && control.allowed !== undefined && `Allowed: ${control.allowed}.`,
    field.fallback && `Default: ${field.fallback}.`,
  ];
  const describedBy = [`${name}-hint`, ...(problems.length > 0 ? [`${name}-problem`] : [])].join(' ');
  const marks = html`id="${name}" name="${name}" aria-describedby="${describedBy}" ${field.required && 'required'}
  ${problems.length > 0 && html`aria-invalid="true"`}`;
  return html`<div class="field">
    <label for="${name}">${name}${field.required && html` <span class="required">required</span>`}</label>
    ${controlView(field, marks, entered)}
    <p class="hint" id="${name}-hint">${hint.filter(Boolean).join(' ')}</p>
    ${problems.length > 0 && html`<p class="problem" id="${name}-problem">${problems.join(' ')}</p>`}
  </div> `;
}

function controlView({ control, fallback }: Field<unknown>, marks: Html, entered: string): Html {
  switch (control.kind) {
    case 'choice':
      return html`<select ${marks}>
        <option value="">${fallback === undefined ? '–' : `${fallback} (default)`}</option>
        ${control.choices.map((choice) => {
          const mark = choice === entered.trim() ? 'selected' : '';
          return html`<option ${mark}>${choice}</option>`;
        })}
      </select>`;
    case 'file':
      return html`<input ${marks} type="file" />`;
    case 'number':
      return html`<input ${marks} inputmode="numeric" value="${entered}" />`;
    case 'text':
      if (control.lines) return html`<textarea ${marks} rows="4">${entered}</textarea>`;
      return control.secret
        ? html`<input ${marks} type="password" autocomplete="new-password" maxlength="${control.maxLength}" />`
        : html`<input ${marks} value="${entered}" maxlength="${control.maxLength}" />`;
  }
}

export type Action = {
  readonly action: string;
  readonly label: string;
  readonly formToken: string;
  readonly next: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly isDestructive?: boolean;
};

export function actionButton({ action, label, formToken, next, fields = {}, isDestructive }: Action): Html {
  const hidden = { f: 'html', token: formToken, next, ...fields };
  return html`<form class="action" method="post" action="${action}">
    ${Object.entries(hidden).map(
      ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
    )}
    <button class="${isDestructive ? 'destructive' : 'quiet'}">${label}</button>
  </form>`;
}
