// A button that calls an operation: a form with hidden fields. Where something is lost, a link to the form of the
// operation instead, which asks first.
import { html, type Html } from '../lib/html.ts';
import type { PageContext } from '../rest/view.ts';

export type PageAction = {
  readonly action: string;
  readonly label: string;
  readonly formToken: string;
  readonly next?: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly isDestructive?: boolean;
  /** The one button that most readers want. */
  readonly isPrimary?: boolean;
  readonly isDisabled?: boolean;
};

export function hiddenFields(fields: Readonly<Record<string, string>>): Html[] {
  return Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
  );
}

export function actionButton(given: PageAction): Html {
  const { action, label, formToken, next, fields = {}, isDestructive, isPrimary, isDisabled } = given;
  const style = isDestructive ? 'destructive' : isPrimary ? 'primary' : 'quiet';
  const hidden = { f: 'html', token: formToken, ...(next !== undefined && { next }), ...fields };
  return html`<form class="action" method="post" action="${action}">
    ${hiddenFields(hidden)}
    <button class="${style}"${isDisabled && disabled}>${label}</button>
  </form>`;
}

const disabled = html` disabled title="Not possible while the system is read-only."`;

type PageButton = Omit<PageAction, 'formToken' | 'isDisabled'> & { readonly worksWhileReadOnly?: true };

/** A button that leads back to this page, unless `next` is given. Nothing for a reader without a session, whose form would be refused. */
export function pageButton(page: PageContext<unknown>, button: PageButton): Html | false {
  const { worksWhileReadOnly = false, ...given } = button;
  const { formToken, address, isReadOnly } = page;
  const isDisabled = isReadOnly && !worksWhileReadOnly;
  return formToken !== '' && actionButton({ next: address, ...given, formToken, isDisabled });
}

/** The address of a form, which leads back to this page. The fields fill it in. */
export function formHref(
  page: PageContext<unknown>,
  form: string,
  fields: Readonly<Record<string, string>> = {},
): string {
  return `${form}?${new URLSearchParams({ ...fields, next: fields.next ?? page.address }).toString()}`;
}

/** A link to a form that changes something, and that read-only mode refuses. */
export function linkButton(
  { isReadOnly }: PageContext<unknown>,
  href: string,
  label: string,
  style: 'button' | 'button second' | 'plain' | 'destructive' = 'button',
): Html {
  const className = style !== 'plain' && html` class="${style}"`;
  if (!isReadOnly) return html`<a${className} href="${href}">${label}</a>`;
  return html`<button type="button" class="${style.startsWith('button') ? '' : 'quiet'}"${disabled}>${label}</button>`;
}
