// The input of a form: what its page shows at first, after a refusal, and after the session has ended.
import { type Problem, problemsOf } from '../lib/errors.ts';
import { truncate } from '../lib/text.ts';
import { parseJsonObject } from '../rest/field-types.ts';
import { metaOf, requestedFields } from '../rest/fields.ts';
import { type Form, emptyForm, parseUrlencoded, textIn } from '../rest/form.ts';
import { type RefusedRequest, maxNextLength } from '../rest/request.ts';
import type { Operation } from '../rest/operation.ts';

type Texts = Record<string, string | undefined>;

const maxShownLength = 4096;

/** Anyone may send a long text, and decoding and escaping it takes long. */
export function shortText(text: string | undefined): string | undefined {
  return text !== undefined && text.length > maxShownLength ? undefined : text;
}

/** A page cannot put a file back into a form. */
export function enteredTexts({ form = emptyForm, identity }: RefusedRequest, operation: Operation): Texts {
  const shown = Object.keys(form).map((name) => {
    const text = identity ? textIn(form, name) : shortText(textIn(form, name));
    return [name, text === undefined ? undefined : shownAgain(operation, name, text)];
  });
  return Object.fromEntries(shown) as Texts;
}

function shownAgain(operation: Operation, name: string, text: string): string {
  return metaIn(operation, name)?.shownAgain?.(text) ?? text;
}

/** Undefined if the operation has no such field. */
function metaIn({ fields }: Operation, name: string): ReturnType<typeof metaOf> | undefined {
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return field && metaOf(field);
}

/** A link to a form may fill in its fields, except secrets. */
export function presentTexts(subject: unknown, given: Form, operation: Operation): Texts {
  const present = operation.present(subject);
  return { ...present, ...linkedTexts(given, operation), ...shownFirst(present) };
}

/** What a form shows at first: a conflict is about what has changed since. */
function shownFirst(present: Texts): Texts {
  return present.version === undefined ? {} : { present: JSON.stringify(present) };
}

/** A link to the page may fill in its form. */
export function textsOfLink({ queryText, subject }: RefusedRequest, operation: Operation): Texts {
  const given = parseUrlencoded(queryText, requestedFields(operation.fields));
  return presentTexts(subject?.found, given, operation);
}

/** What an address may contain of a form: no secrets, because browsers store addresses. */
function linkedTexts(form: Form, operation: Operation): Record<string, string> {
  const isShown = (name: string) => {
    const meta = metaIn(operation, name);
    return meta !== undefined && meta.control !== 'password';
  };
  const texts = Object.keys(form)
    .filter((name) => name === 'next' || isShown(name))
    .map((name) => [name, textIn(form, name)] as const);
  return Object.fromEntries(texts.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** A field of several inputs has its problems in the words of these inputs. */
export function explainProblems({ entry, form }: RefusedRequest, problems: readonly Problem[]): Problem[] {
  const { operation } = entry;
  return problems.flatMap((problem, index) => {
    const { field = '' } = problem;
    const words = operation && metaIn(operation, field)?.parts?.explain?.(textIn(form, field) ?? '');
    if (!words) return problem;
    const isFirst = problems.findIndex((other) => other.field === field) === index;
    return isFirst ? problemsOf(field, words) : [];
  });
}

const maxPresentLength = 200;

/** What the form of an older version would replace. The reader sees both, and may send the form again. */
export function newerValues(
  rest: RefusedRequest,
): { shown: Texts; problems: readonly Problem[] } | undefined {
  const { operation } = rest.entry;
  if (!operation || !rest.subject) return undefined;
  const current = operation.present(rest.subject.found);
  const { version, ...present } = current;
  const read = parseJsonObject(textIn(rest.form, 'present') ?? '');
  const before = 'object' in read ? read.object : {};
  const entered = enteredTexts(rest, operation);
  if (version === undefined || entered.version === undefined || entered.version === version) return undefined;
  const textOf = (name: string) => (entered[name] ?? '').replaceAll('\r\n', '\n').trim();
  // Sending the form again must not undo what the reader has not touched.
  const untouched = Object.entries(present).filter(([name]) => textOf(name) === before[name]);
  const problems = Object.entries(present)
    .filter(([name, text]) => text !== before[name])
    .filter(([name, text]) => text !== textOf(name))
    .map(([field, stored]) => {
      const meta = metaIn(operation, field);
      const text = meta?.parts?.format?.(stored) ?? meta?.choiceLabels?.[stored] ?? stored;
      const message = text === '' ? 'is empty now.' : `is now: ${truncate(text, maxPresentLength)}`;
      return { field, message };
    });
  return { shown: { version, ...Object.fromEntries(untouched), ...shownFirst(current) }, problems };
}

/**
 * The address of the form's page with the input, which fills the form in again: it survives a sign-in without a script
 * and without a store. Undefined if the input is too long.
 */
export function keepInput(
  { form = emptyForm }: RefusedRequest,
  operation: Operation,
  path: string,
): string | undefined {
  // The address of a receiver or a service may contain a secret.
  const isAddress = (name: string) => metaIn(operation, name)?.format === 'uri';
  const texts = Object.entries(linkedTexts(form, operation)).filter(([name]) => !isAddress(name));
  // Encoding a long text takes long.
  const length = texts.reduce((sum, [, text]) => sum + text.length, 0);
  if (length > maxNextLength) return undefined;
  const shown = texts.map(([name, text]): [string, string] => [name, shownAgain(operation, name, text)]);
  const kept = shown.length === 0 ? path : `${path}?${new URLSearchParams(shown).toString()}`;
  return kept.length > maxNextLength ? undefined : kept;
}
