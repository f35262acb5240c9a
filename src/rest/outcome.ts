// The result of an operation: its JSON, and what a page shows of it.
import type { Json, SharedJson } from '../lib/json.ts';
import type { ViewOfForm } from './view.ts';

export type Outcome = {
  readonly json: Json | SharedJson;
  readonly headers?: Record<string, string>;
  /** With `f=html`, this takes precedence over `next`. */
  readonly seeOther?: string;
  /** With `f=html`, these replace `{name}` in `next`. */
  readonly names?: Readonly<Record<string, string>>;
  /** What the next page says about the outcome. Default: the title of the operation. */
  readonly notice?: Notice;
  /** A secret that only this answer has. With `f=html`, a page shows it, also if there is a `next`. */
  readonly shownOnce?: { readonly label: string; readonly value: string; readonly hint: string };
  /** The operation that a reader of `shownOnce` is likely to want next. */
  readonly nextStep?: NextStep;
  /** The page with `f=html`, if there is no `next`. */
  readonly view?: ViewOfForm<unknown>;
};

/** A button for an operation without required fields. The operation leads to `next`. */
export type NextStep = {
  readonly label: string;
  readonly path: readonly string[];
  readonly next: readonly string[];
};

/** A sentence about what has happened, and a link to what it is about, with its path in the tree. */
export type Notice = { readonly text: string; readonly link?: NoticeLink };

export type NoticeLink = { readonly name: string; readonly path: readonly string[] };

/** Success with what else the answer has, and the sentence that a page shows about it. */
export function succeeded(
  text: string,
  link?: NoticeLink,
  json: Readonly<Record<string, Json>> = {},
): Outcome {
  return { json: { status: 'success', ...json }, notice: link ? { text, link } : { text } };
}
