// A button that calls an operation: a form with hidden fields. With a confirmation where something is lost.
import { html, type Html } from '../lib/html.ts';
import type { PageContext } from '../rest/resource.ts';

export type PageAction = {
  readonly action: string;
  readonly label: string;
  readonly formToken: string;
  readonly next: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly isDestructive?: boolean;
  /** The one button that most readers want. */
  readonly isPrimary?: boolean;
  readonly isDisabled?: boolean;
};

type ConfirmedAction = PageAction & { readonly subject?: string; readonly warning: string };

/** Two steps: the first one shows what is lost. */
export function confirmedAction({ subject, warning, ...action }: ConfirmedAction): Html {
  return html`<details class="destructive">
    <summary>${action.label}${subject !== undefined && html`<span class="unseen"> ${subject}</span>`} …</summary>
    <p>${warning}</p>
    ${actionButton({ ...action, isDestructive: true })}
  </details>`;
}

export function hiddenFields(fields: Readonly<Record<string, string>>): Html[] {
  return Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
  );
}

export function actionButton(given: PageAction): Html {
  const { action, label, formToken, next, fields = {}, isDestructive, isPrimary, isDisabled } = given;
  const style = isDestructive ? 'destructive' : isPrimary ? 'primary' : 'quiet';
  const hidden = { f: 'html', token: formToken, next, ...fields };
  return html`<form class="action" method="post" action="${action}">
    ${hiddenFields(hidden)}
    <button class="${style}"${isDisabled && html` disabled`}>${label}</button>
  </form>`;
}

type PageButton = Omit<PageAction, 'formToken' | 'next' | 'isDisabled'> & {
  /** Default: this page. */
  readonly next?: string;
  /** Asks first. */
  readonly confirm?: { readonly subject?: string; readonly warning: string };
  readonly worksWhileReadOnly?: true;
};

/** A button that leads back to this page. Nothing for a reader without a session, whose form would be refused. */
export function pageButton(page: PageContext<unknown>, button: PageButton): Html | false {
  const { confirm, worksWhileReadOnly = false, ...given } = button;
  const { formToken, address, isReadOnly } = page;
  const action = { next: address, ...given, formToken, isDisabled: isReadOnly && !worksWhileReadOnly };
  return formToken !== '' && (confirm ? confirmedAction({ ...action, ...confirm }) : actionButton(action));
}

/** The address of a form, which leads back to this page. The fields fill it in. */
export function formHref(
  page: PageContext<unknown>,
  form: string,
  fields: Readonly<Record<string, string>> = {},
): string {
  return `${form}?${new URLSearchParams({ ...fields, next: fields.next ?? page.address }).toString()}`;
}

/** A link to a form that changes something. */
export function linkButton(
  { isReadOnly }: PageContext<unknown>,
  href: string,
  label: string,
  style: 'second' | '' = '',
): Html {
  return isReadOnly
    ? html`<button type="button" disabled title="Not possible while the system is read-only.">${label}</button>`
    : html`<a class="button ${style}" href="${href}">${label}</a>`;
}
