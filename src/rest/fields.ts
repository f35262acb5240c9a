// Form fields. One descriptor defines the parser, the type, the HTML control and the JSON Schema of a field.
import type * as z from 'zod';
import { findExcess } from '../lib/json.ts';
import { httpUrlRule, isHttpUrl, isXmlText } from '../lib/text.ts';
import { type Problem, problemsOf } from '../lib/errors.ts';
import type { Form, FormFile, Raw, RequestedFields } from './form.ts';

/** A file may have many problems; other fields have one. */
export type Parsed<T> = { readonly value: T } | { readonly problem: string | readonly string[] };

export type Control =
  | {
      readonly kind: 'text';
      readonly minLength?: number;
      readonly maxLength?: number;
      readonly pattern?: string;
      readonly allowed?: string;
      readonly secret?: true;
      readonly lines?: true;
      readonly holds?: 'url' | 'object' | 'reference';
      /** For a comma list: known entries, which the form offers as boxes. */
      readonly picks?: readonly PickOption[];
    }
  | { readonly kind: 'number'; readonly from: number; readonly to: number }
  | {
      readonly kind: 'choice';
      readonly choices: readonly string[];
      /** What a form shows instead of a choice. */
      readonly labels?: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'file' };

export type PickOption = { readonly value: string; readonly label: string; readonly description: string };

export type Field<T> = {
  readonly description: string;
  /** The label in a form. Default: the name in words. */
  readonly label?: string;
  /** Forms fold these fields, because few callers need them. */
  readonly isAdvanced?: true;
  readonly required: boolean;
  readonly fallback?: string;
  readonly clearable?: true;
  readonly control: Control;
  readonly read: (raw: Raw) => Parsed<T>;
};

// oxlint-disable-next-line typescript/no-explicit-any -- a record of fields of any types
export type Fields = Readonly<Record<string, Field<any>>>;

export type Values<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never };

export type FieldValues<F extends Fields = Fields> = {
  readonly values: Partial<Values<F>>;
  readonly problems: readonly Problem[];
};

export function readFields<F extends Fields>(fields: F, form: Form): FieldValues<F> {
  const values: Record<string, unknown> = {};
  const problems: Problem[] = [];
  for (const [name, field] of Object.entries(fields)) {
    const parsed = field.read(form[name]) as Parsed<unknown>;
    if ('problem' in parsed) problems.push(...problemsOf(name, [parsed.problem].flat()));
    else values[name] = parsed.value;
  }
  return { values: values as Partial<Values<F>>, problems };
}

/** A form may add parameters to the query of `next`: the field `next.q` becomes the parameter `q`. */
export const carriedPrefix = 'next.';

export function requestedFields(fields: Fields): RequestedFields {
  const requested = new Map<string, 'text' | 'file'>([
    ['f', 'text'],
    ['token', 'text'],
    ['next', 'text'],
  ]);
  for (const [name, field] of Object.entries(fields)) {
    requested.set(name, (field as Field<unknown>).control.kind === 'file' ? 'file' : 'text');
  }
  const boxes = Object.keys(fields).filter((name) => picksOf(fields[name]).length > 0);
  const isBox = (name: string) => boxes.some((field) => name.startsWith(boxName(field)));
  const kindOf = (name: string) =>
    requested.get(name) ?? (name.startsWith(carriedPrefix) || isBox(name) ? 'text' : undefined);
  return { get: kindOf, has: (name) => kindOf(name) !== undefined };
}

/** The name of a box; without a value, of the input for the other entries of the list. */
export function boxName(field: string, value = ''): string {
  return `${field}.${value}`;
}

export function picksOf(field: Field<unknown> | undefined): readonly PickOption[] {
  return field?.control.kind === 'text' ? (field.control.picks ?? []) : [];
}

/**
 * Joins the chosen boxes of each list. If none is chosen, the list is empty but not blank: a change would ignore a
 * blank field.
 */
export function joinBoxes(fields: Fields, form: Form): Form {
  const joined: Record<string, Raw> = { ...form };
  for (const [name, field] of Object.entries(fields)) {
    const others = form[boxName(name)];
    if (picksOf(field).length === 0 || typeof others !== 'string') continue;
    const chosen = picksOf(field).filter(({ value }) => form[boxName(name, value)] !== undefined);
    joined[name] = [...chosen.map(({ value }) => value), others.trim()].filter(Boolean).join(',') || ',';
  }
  return joined;
}

type TextOptions = {
  from?: number;
  to: number;
  pattern?: RegExp;
  /** Completes "must be …". */
  allowed?: string;
  secret?: true;
  lines?: true;
  normalise?: (text: string) => string;
};

export function text(description: string, options: TextOptions): Field<string | undefined> {
  const { from = 1, to, pattern, secret, lines, normalise = (value) => value } = options;
  const allowed = options.allowed ?? (from > 1 ? `${from} to ${to} characters` : `at most ${to} characters`);
  const control: Control = {
    kind: 'text',
    minLength: from,
    maxLength: to,
    ...(pattern && { pattern: pattern.source }),
    ...((pattern || from > 1) && { allowed }),
    ...(secret && { secret }),
    ...(lines && { lines }),
  };
  return optional(description, control, (raw) => {
    const value = normalise(raw);
    // A character has at most two code units. Counting the characters of a long text takes long.
    const length = value.length > 2 * to ? Infinity : Array.from(value).length;
    if (length < from || length > to || (pattern && !pattern.test(value)))
      return { problem: `must be ${allowed}.` };
    if (!isXmlText(value)) return { problem: 'must not contain control characters.' };
    if (!lines && /[\n\r\u0085\u2028\u2029]/.test(value)) return { problem: 'must be one line.' };
    return { value };
  });
}

export function integer(description: string, from: number, to: number): Field<number | undefined> {
  const problem = `must be an integer from ${from} to ${to}.`;
  return optional(description, { kind: 'number', from, to }, (raw) => {
    const trimmed = raw.trim();
    // Adding 0 turns -0 into 0.
    const value = /^-?[0-9]{1,15}$/.test(trimmed) ? Number(trimmed) + 0 : NaN;
    return value >= from && value <= to ? { value } : { problem };
  });
}

/** The fields of integers that schemas describe, with their labels, descriptions and ranges. */
export function integerFields<K extends string>(
  shape: Readonly<Record<K, z.ZodInt>>,
): Readonly<Record<K, Field<number | undefined>>> {
  const fields = Object.entries<z.ZodInt>(shape).map(([name, schema]) => {
    const { label, description = '' } = schema.meta() ?? {};
    const field = integer(description, Number(schema.minValue), Number(schema.maxValue));
    return [name, labelled(String(label), field)] as const;
  });
  return Object.fromEntries(fields) as Record<K, Field<number | undefined>>;
}

/** A time in milliseconds since the epoch. An integer field has at most 15 digits. */
export function moment(description: string): Field<number | undefined> {
  return integer(description, 0, 999_999_999_999_999);
}

export function choice<const C extends readonly string[]>(
  description: string,
  choices: C,
  {
    ignoresCase = false,
    labels,
  }: { ignoresCase?: boolean; labels?: Readonly<Record<C[number], string>> } = {},
): Field<C[number] | undefined> {
  return optional(description, { kind: 'choice', choices, ...(labels && { labels }) }, (raw) => {
    const value = ignoresCase ? raw.trim().toLowerCase() : raw.trim();
    return choices.includes(value) ? { value } : { problem: `must be one of ${choices.join(', ')}.` };
  });
}

export function boolean(description: string): Field<boolean | undefined> {
  const control: Control = {
    kind: 'choice',
    choices: ['true', 'false'],
    labels: { true: 'Yes', false: 'No' },
  };
  return optional(description, control, (raw) => {
    const value = raw.trim().toLowerCase();
    return value === 'true' || value === 'false'
      ? { value: value === 'true' }
      : { problem: 'must be true or false.' };
  });
}

export function httpUrl(description: string): Field<string | undefined> {
  return optional(description, { kind: 'text', maxLength: 2048, holds: 'url' }, (raw) => {
    const value = raw.trim();
    return isHttpUrl(value) ? { value } : { problem: `must be ${httpUrlRule}.` };
  });
}

export function refine<T, U>(
  field: Field<T | undefined>,
  parse: (value: T) => Parsed<U>,
): Field<U | undefined> {
  return {
    ...field,
    read: (raw) => {
      const parsed = field.read(raw);
      if ('problem' in parsed) return parsed;
      return parsed.value === undefined ? { value: undefined } : parse(parsed.value);
    },
  };
}

/** A urlencoded form cannot carry a file, so text counts as the content of a file without a name. */
export function file(description: string): Field<FormFile | undefined> {
  return {
    description,
    control: { kind: 'file' },
    required: false,
    read: (raw) => {
      if (raw === undefined || isBlank(raw)) return { value: undefined };
      if (typeof raw !== 'string') return { value: raw };
      return { value: { filename: '', contentType: 'text/plain', bytes: Buffer.from(raw) } };
    },
  };
}

export function required<T>(field: Field<T | undefined>): Field<T> {
  return {
    ...field,
    required: true,
    read: (raw) => {
      const parsed = field.read(raw);
      if ('problem' in parsed) return parsed;
      return parsed.value === undefined ? { problem: 'is required.' } : { value: parsed.value };
    },
  };
}

export function defaultTo<T>(field: Field<T | undefined>, value: T): Field<T> {
  return {
    ...field,
    fallback: String(value),
    read: (raw) => {
      const parsed = field.read(raw);
      return 'problem' in parsed ? parsed : { value: parsed.value ?? value };
    },
  };
}

export function labelled<T>(label: string, field: Field<T>): Field<T> {
  return { ...field, label };
}

export function withPicks<T>(picks: readonly PickOption[], field: Field<T>): Field<T> {
  return field.control.kind === 'text' ? { ...field, control: { ...field.control, picks } } : field;
}

export function advanced<T>(field: Field<T>): Field<T> {
  return { ...field, isAdvanced: true };
}

/** In a change, an absent field keeps the stored value and a blank one empties it. */
export function clearable(field: Field<string | undefined>): Field<string | undefined> {
  return clearableTo(field, '');
}

/** The same for a field that is no text. */
export function clearableTo<T>(field: Field<T | undefined>, empty: T): Field<T | undefined> {
  return { ...field, clearable: true, read: (raw) => (isBlank(raw) ? { value: empty } : field.read(raw)) };
}

/** In a change, an absent field must not overwrite the stored value. */
export function definedOnly<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const given: { [K in keyof T]?: T[K] } = {};
  for (const name in values) if (values[name] !== undefined) given[name] = values[name];
  return given as never;
}

function isBlank(raw: Raw): boolean {
  return typeof raw === 'string' && raw.trim() === '';
}

function optional<T>(
  description: string,
  control: Control,
  parse: (raw: string) => Parsed<T>,
): Field<T | undefined> {
  return {
    description,
    control,
    required: false,
    read: (raw) => (typeof raw !== 'string' || isBlank(raw) ? { value: undefined } : parse(raw)),
  };
}

export function jsonObject(description: string): Field<Readonly<Record<string, unknown>> | undefined> {
  return optional(description, { kind: 'text', lines: true, holds: 'object' }, parseJsonObject);
}

export function jsonText(description: string, maxBytes: number): Field<string | undefined> {
  const control: Control = { kind: 'text', maxLength: maxBytes, lines: true, holds: 'object' };
  return optional(description, control, (raw) => {
    if (Buffer.byteLength(raw) > maxBytes) return { problem: `must be at most ${maxBytes} bytes.` };
    const parsed = parseJsonObject(raw);
    return 'problem' in parsed ? parsed : { value: raw.trim() };
  });
}

/** JSON is serialized recursively, so its depth must be limited. The form limits the number of values. */
const jsonLimits = { values: Infinity, nesting: 64 };

function parseJsonObject(raw: string): Parsed<Readonly<Record<string, unknown>>> {
  const problem = findExcess(Buffer.from(raw), jsonLimits);
  if (problem !== undefined) return { problem };
  try {
    const value: unknown = JSON.parse(raw);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { value: value as Record<string, unknown> };
    }
  } catch {
    // Refused below.
  }
  return { problem: 'must be a JSON object.' };
}

export function reference(description: string): Field<string | undefined> {
  const problem = 'must be a JSON object of the form {"id": "…"}.';
  return optional(description, { kind: 'text', lines: true, holds: 'reference' }, (raw) => {
    const parsed = parseJsonObject(raw);
    const id = 'value' in parsed ? parsed.value.id : undefined;
    return typeof id === 'string' && id !== '' ? { value: id } : { problem };
  });
}
