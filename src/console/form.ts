// An operation as an HTML form: a labelled control for every field, what it accepts, and each problem beside its field.
import { type Html, html } from '../lib/html.ts';
import { type FieldDescription, type PickOption, boxName, choicesOf, describeField } from '../rest/fields.ts';
import type { Operation } from '../rest/operation.ts';
import type { Entered, FormError, Option, Suggestions } from '../rest/view.ts';
import { capitaliseWord, labelOf } from './labels.ts';
import type { Layout } from './layout.ts';
import { renderSentence } from './time.ts';

export type ProblemList = { readonly message: string; readonly details: readonly (string | Html)[] };

export type FormView = {
  readonly action: string;
  readonly entered: Entered;
  readonly suggestions: Suggestions;
  readonly unchanged?: Readonly<Record<string, string>>;
  readonly warning?: string | undefined;
  readonly error?: FormError | undefined;
  /** Of a page that has only this form. Its first field then has the focus. */
  readonly cancelHref?: string;
};

/** What a form needs of an operation. */
type FormOperation = Pick<
  Operation,
  'title' | 'fields' | 'access' | 'effect' | 'whileReadOnly' | 'isDestructive'
>;

type NamedField = readonly [string, FieldDescription];

export function operationForm(layout: Layout, operation: FormOperation, view: FormView): Html {
  const formToken = layout.session?.formToken ?? '';
  const isChange = /^(Update|Edit|Change) /.test(operation.title);
  const asksForToken = 'token' in operation.fields && formToken === '';
  const fields = Object.entries(operation.fields)
    .filter(([name]) => name !== 'token' || asksForToken)
    .map(([name, field]): NamedField => {
      const { isRequired, isRequiredInForm = isRequired, ...described } = describeField(field);
      return [name, { ...described, isRequired: isRequiredInForm }];
    });
  const takesFiles = fields.some(([, { control }]) => control === 'file');
  const isRefused =
    layout.banner !== undefined && operation.effect === 'writes' && operation.whileReadOnly === 'refused';
  const isHidden = (name: string) =>
    fields.some(([known, { control }]) => known === name && control === 'hidden');
  const carried = Object.keys(view.entered).filter(
    (name) => isHidden(name) || (['next', 'present'].includes(name) && !(name in operation.fields)),
  );
  const viewOf = ([name, field]: NamedField) =>
    fieldView(name, field, {
      entered: view.entered[name],
      problems: problemsWith(name, view.error),
      suggestions: view.suggestions[name] ?? [],
      unchanged: view.unchanged?.[name],
      takesFocus: name === focused,
    });
  const isFixed = ([name, { control }]: NamedField) =>
    control === 'fixed' && view.entered[name] && problemsWith(name, view.error).length === 0;
  const isAdvanced = ([, field]: NamedField) => field.isAdvanced === true;
  const isUsed = ([name]: NamedField) =>
    (view.entered[name] ?? '') !== '' || problemsWith(name, view.error).length > 0;
  const shown = fields.filter(([name]) => !isHidden(name));
  const advanced = shown.filter(isAdvanced);
  const focused =
    view.cancelHref !== undefined && !view.error ? shown.find((one) => !isFixed(one))?.[0] : undefined;
  return html`${view.error && renderProblems(view.error)}
    ${view.warning !== undefined && html`<p class="notice">${view.warning}</p>`}
    <form method="post" action="${view.action}" ${takesFiles && html`enctype="multipart/form-data"`}>
      <input type="hidden" name="f" value="html" />
      ${!asksForToken && html`<input type="hidden" name="token" value="${formToken}" />`}
      ${carried.map((name) => html`<input type="hidden" name="${name}" value="${view.entered[name]}" />`)}
      ${shown.filter((one) => !isAdvanced(one)).map((one) => (isFixed(one) ? fixedView(one, view) : viewOf(one)))}
      ${
        advanced.length > 0 &&
        html`<details class="further" ${advanced.some(isUsed) && 'open'}>
          <summary>More fields</summary>
          ${advanced.map(viewOf)}
        </details>`
      }
      <p>
        <button class="${operation.isDestructive ? 'danger' : 'primary'}"${isRefused && html` disabled`}>${isChange ? 'Save' : operation.title}</button>
        ${view.cancelHref !== undefined && html`<a href="${view.cancelHref}">Back</a>`}
        ${isRefused && html`<span class="hint">Not possible while the system is read-only.</span>`}
      </p>
    </form>`;
}

function fixedView([name, field]: NamedField, { entered }: FormView): Html {
  return html`<p class="field">
    ${labelOf(name, field)}: <strong>${entered[name]}</strong>
    <input type="hidden" name="${name}" value="${entered[name]}" />
  </p> `;
}

/** The page of a refused form begins with its problems, also for readers who do not see them. */
export function renderProblems({ message, details }: ProblemList, { takesFocus = true } = {}): Html {
  return html`<div role="alert" class="problems" tabindex="-1" ${takesFocus && 'autofocus'}>
    <p><strong>${renderSentence(message)}</strong></p>
    ${
      details.length > 0 &&
      html`<ul>
      ${details.map((detail) => html`<li>${typeof detail === 'string' ? renderSentence(detail) : detail}</li>`)}
    </ul>`
    }
  </div>`;
}

export function problemsWith(name: string, error: FormError | undefined): string[] {
  return (error?.problems ?? []).flatMap(({ field, message }) => (field === name ? message : []));
}

type FieldView = {
  /** Undefined: nothing was entered yet. */
  readonly entered: string | undefined;
  readonly problems: readonly string[];
  readonly suggestions?: readonly string[] | readonly Option[];
  readonly unchanged?: string | undefined;
  readonly takesFocus?: boolean;
  /** The HTML id. Default: the name. */
  readonly id?: string;
};

const maxSuggestions = 200;

/** With a script, a time is entered in the zone of the browser, which the label then names. */
export const zoneView = html` (<span data-zone>UTC</span>)`;

/** A description such as "The name of the service." repeats the label. */
const onlyNames = /^(?:The|A) [A-Za-z ]+\.$/;

/** The filter of a list. Their labels name the zone in short. */
export function renderTimeRange(given: Readonly<Record<string, string>>): Html {
  const input = (name: string, label: string) =>
    html`<label for="filter-${name}">${label} <span data-zone="short">UTC</span></label>
      ${renderTimeInput(html`id="filter-${name}" name="${name}"`, given[name] ?? '')}`;
  return html`<div>${input('from', 'From')} ${input('to', 'To')}</div>`;
}

export function fieldView(name: string, field: FieldDescription, view: FieldView): Html {
  if (field.picks) return boxesView(name, field, field.picks, view);
  const { entered = '', problems, id = name } = view;
  if (field.parts?.render) {
    // The parts show their own problems.
    const parts = field.parts.render({ ...view, text: view.entered, isRequired: field.isRequired });
    return html`<input type="hidden" name="${boxName(name)}" value="" /> ${parts} `;
  }
  const { description, control, allowed, fallback, schema, isRequired } = field;
  const options = optionsOf(field, view);
  const suggestions = (view.suggestions ?? [])
    .filter((one) => typeof one === 'string')
    .slice(0, maxSuggestions);
  const defaultText = options || fallback === undefined ? '' : String(fallback);
  const hint = [
    // The picker of a time shows its format, and a list of suggestions what they mean.
    control !== 'time' && !onlyNames.test(description) && (!options || choicesOf(field)) && description,
    control !== 'time' &&
      !options &&
      schema.type === 'integer' &&
      `From ${schema.minimum} to ${schema.maximum}.`,
    allowed !== undefined && `Allowed: ${allowed}.`,
    defaultText !== '' && `Default: ${defaultText}.`,
  ].filter(Boolean);
  const describedBy = [
    ...(hint.length > 0 ? [`${id}-hint`] : []),
    ...(problems.length > 0 ? [`${id}-problem`] : []),
  ];
  const marks = html`id="${id}" name="${name}" ${describedBy.length > 0 && html`aria-describedby="${describedBy.join(' ')}"`} ${isRequired && 'required'} ${view.takesFocus && 'autofocus'}
  ${problems.length > 0 && html`aria-invalid="true"`} ${suggestions.length > 0 && html`list="${id}-list"`}`;
  return html`<div class="field">
    <label for="${id}"
      >${labelOf(name, field)}${control === 'time' && zoneView}${isRequired && html` <span class="required">required</span>`}</label
    >
    ${options ? choiceView(field, options, marks, view) : controlView(field, marks, entered)}
    ${
      suggestions.length > 0 &&
      html`<datalist id="${id}-list">
        ${suggestions.map((value) => html`<option value="${value}"></option>`)}
      </datalist>`
    }
    ${hint.length > 0 && html`<p class="hint" id="${id}-hint">${hint.join(' ')}</p>`}
    ${problems.length > 0 && problemView(id, problems)}
  </div> `;
}

/** A list as boxes for its known entries, and a text for others if it may have them. */
function boxesView(
  name: string,
  field: FieldDescription,
  picks: readonly PickOption[],
  { entered = '', problems }: FieldView,
): Html {
  const chosen = entered.split(',').map((one) => one.trim());
  const others = chosen.filter((one) => one !== '' && !picks.some(({ value }) => value === one));
  const isWrong = problems.length > 0;
  return html`<fieldset class="field boxes" ${isWrong && html`aria-describedby="${name}-problem"`}>
    <legend>
      ${labelOf(name, field)}${field.isRequired && html` <span class="required">required</span>`}
    </legend>
    ${picks.map((pick) => boxView(name, pick, chosen.includes(pick.value)))}
    <label for="${name}">Others, separated by commas</label>
    <input id="${name}" name="${boxName(name)}" value="${others.join(', ')}" />
    ${isWrong && problemView(name, problems)}
  </fieldset> `;
}

export function problemView(id: string, problems: readonly string[]): Html {
  return html`<p class="problem" id="${id}-problem">${problems.map(capitaliseWord).join(' ')}</p>`;
}

function boxView(name: string, { value, label, description }: PickOption, isChosen: boolean): Html {
  const id = boxName(name, value);
  return html`<div>
    <input type="checkbox" id="${id}" name="${id}" value="true" aria-describedby="${id}-hint" ${isChosen && 'checked'} />
    <label for="${id}">${label}</label>
    <span class="hint" id="${id}-hint">${description}</span>
  </div> `;
}

/** The values of a choice. A long list is cut, but not what was entered. */
function optionsOf(
  field: FieldDescription,
  { suggestions = [], entered = '' }: FieldView,
): Option[] | undefined {
  const choices = choicesOf(field);
  if (choices) return choices.map((value) => ({ value, label: field.choiceLabels?.[value] ?? value }));
  const options = suggestions.filter((one) => typeof one !== 'string');
  return options.length === 0
    ? undefined
    : options.filter(({ value }, index) => index < maxSuggestions || value === entered);
}

function controlView({ control, schema }: FieldDescription, marks: Html, entered: string): Html {
  if (control === 'time') return renderTimeInput(marks, entered);
  if (schema.type === 'integer') return html`<input ${marks} inputmode="numeric" value="${entered}" />`;
  switch (control) {
    case 'file':
      return html`<input ${marks} type="file" />`;
    case 'lines':
      return html`<textarea ${marks} rows="4">${entered}</textarea>`;
    case 'password':
      return html`<input ${marks} type="password" autocomplete="new-password" maxlength="${schema.maxLength}" />`;
    case 'hidden':
    case 'fixed':
    case undefined:
    default:
      return html`<input ${marks} value="${entered}" maxlength="${schema.maxLength}" />`;
  }
}

/** A date and time in UTC. A link may give milliseconds since the epoch. */
export function renderTimeInput(marks: Html, entered: string): Html {
  const isNumber = /^\d{1,15}$/.test(entered.trim());
  const value = isNumber ? new Date(Number(entered)).toISOString().replace(/(:00)?(\.000)?Z$/, '') : entered;
  return html`<input ${marks} type="datetime-local" step="any" value="${value}" />`;
}

function choiceView(
  field: FieldDescription,
  options: readonly Option[],
  marks: Html,
  { entered = '', unchanged }: FieldView,
): Html {
  const blank = blankChoice(field, unchanged);
  const standsFor = options.find(({ value }) => value === blank.value);
  const isChosen = options.some(({ value }) => value === entered.trim());
  const hasBlank = field.isRequired ? isChosen : options.some(({ value }) => value === '');
  return html`<select ${marks}>
        ${!hasBlank && html`<option value="">${standsFor ? `${standsFor.label} (${blank.label})` : blank.label}</option>`}
        ${options
          .filter((option) => option !== standsFor)
          .map(({ value, label }) => {
            const mark = value === entered.trim() ? 'selected' : '';
            return html`<option value="${value}" ${mark}>${label}</option>`;
          })}
      </select>`;
}

/** What a blank choice means, and which value it stands for. */
function blankChoice(
  { fallback, isRequired }: FieldDescription,
  unchanged: string | undefined,
): { readonly label: string; readonly value?: string } {
  if (unchanged !== undefined) return { label: 'unchanged', value: unchanged };
  if (fallback !== undefined) return { label: 'default', value: String(fallback) };
  return { label: isRequired ? 'Choose one' : '–' };
}
