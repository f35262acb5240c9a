// What a page knows of its request.
import type { Caller } from '../lib/caller.ts';
import type { Problem } from '../lib/errors.ts';
import type { Html } from '../lib/html.ts';

export type View<S, J = unknown> = (context: PageContext<S, J>) => Html | Promise<Html>;

export type PageContext<S, J = unknown> = {
  readonly subject: S;
  readonly json: J;
  readonly caller: Caller;
  readonly query: URLSearchParams;
  /** Empty if the browser has no session. */
  readonly formToken: string;
  /** Operations that write are refused now, except those that declare otherwise. */
  readonly isReadOnly: boolean;
  readonly now: number;
  /** The address of this page with its query, to return to it. */
  readonly address: string;
  readonly here: (...segments: readonly string[]) => string;
  /** From the root of the tree; `here` starts at this page. */
  readonly href: (...segments: readonly string[]) => string;
};

/** Texts for a field, or with labels the only values that its form accepts. */
export type Suggestions = Readonly<Record<string, readonly string[] | readonly Option[]>>;

export type Option = { readonly value: string; readonly label: string };

export type Entered = Readonly<Record<string, string | undefined>>;

/** Why a form was refused. */
export type FormError = {
  readonly message: string;
  readonly details: readonly string[];
  readonly problems: readonly Problem[];
};

export type FormPage<S = unknown> = PageContext<S> & {
  readonly entered: Entered;
  readonly error: FormError | undefined;
};

/** A page for what was entered. Undefined: the page without a view. */
export type ViewOfForm<S> = (page: FormPage<S>) => Promise<Html | undefined> | undefined;
