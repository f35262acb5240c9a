// The kinds of form fields. Each reads text as a zod schema and reports problems in the words of the form API.
import * as z from 'zod';
import { findExcess, isJsonObject, parseJson } from '../lib/json.ts';
import { httpUrlRule, isHttpUrl, isXmlText } from '../lib/text.ts';
import type { Clearable } from './fields.ts';
import type { FormFile } from './form.ts';

type TextOptions = {
  from?: number;
  to: number;
  pattern?: RegExp;
  /** Completes "must be …". */
  allowed?: string;
  control?: 'lines' | 'password';
  normalise?: (text: string) => string;
  /** Names have no tabs and other control characters that XML allows. */
  isName?: boolean;
};

export function text(options: TextOptions): z.ZodString {
  const { from = 1, to, pattern, control, normalise = (value) => value, isName = false } = options;
  const allowed = options.allowed ?? (from > 1 ? `${from} to ${to} characters` : `at most ${to} characters`);
  const isAllowed = (value: string) => hasLength(value, from, to) && (!pattern || pattern.test(value));
  const isOneLine = (value: string) => !/[\n\r\u0085\u2028\u2029]/.test(value);
  // One call: each would copy the schema.
  return z
    .string()
    .check(
      z.overwrite(normalise),
      z.refine(isAllowed, { error: `must be ${allowed}.`, abort: true }),
      z.refine((value) => isXmlText(value) && !(isName && /[^\P{Cc}\n\r\u0085]/u.test(value)), {
        error: 'must not contain control characters.',
        abort: true,
      }),
      z.refine((value) => control === 'lines' || isOneLine(value), {
        error: 'must be one line.',
        abort: true,
      }),
    )
    .meta({
      minLength: from,
      maxLength: to,
      ...(pattern && { pattern: pattern.source }),
      ...((pattern || from > 1) && { allowed }),
      ...(control && { control }),
      ...(control === 'password' && { format: 'password' }),
    });
}

/** A character has at most two code units. Counting the characters of a long text takes long. */
function hasLength(value: string, from: number, to: number): boolean {
  const length = value.length > 2 * to ? Infinity : Array.from(value).length;
  return length >= from && length <= to;
}

export function integer(from: number, to: number) {
  const problem = `must be an integer from ${from} to ${to}.`;
  const isAllowed = (value: number) => Number.isInteger(value) && value >= from && value <= to;
  const allowed = z.number(problem).check(z.refine(isAllowed, problem));
  return z.preprocess(toInteger, allowed.meta({ type: 'integer', minimum: from, maximum: to }));
}

function toInteger(raw: unknown): number {
  const digits = typeof raw === 'string' ? raw.trim() : '';
  // Adding 0 turns -0 into 0.
  return /^-?[0-9]{1,15}$/.test(digits) ? Number(digits) + 0 : NaN;
}

/** The optional fields of the integers that a schema describes, with their labels, descriptions and ranges. */
export function integerFields<K extends string>(shape: Readonly<Record<K, z.ZodInt>>) {
  const fields = Object.entries<z.ZodInt>(shape).map(([name, schema]) => {
    const field = integer(Number(schema.minValue), Number(schema.maxValue));
    return [name, field.optional().meta(schema.meta() ?? {})] as const;
  });
  return Object.fromEntries(fields) as Record<K, z.ZodOptional<ReturnType<typeof integer>>>;
}

/** An integer field has at most 15 digits. */
const lastMoment = 999_999_999_999_999;

/** A time in milliseconds since the epoch. Forms send it as a date and time in UTC. `what` begins its description. */
export function moment(what: string) {
  const problem =
    'must be a time in UTC such as 2026-11-18T07:30, or an integer of milliseconds since the epoch.';
  const toMoment = (raw: unknown) => parseDate(String(raw).trim()) ?? toInteger(raw);
  return z.preprocess(toMoment, z.int(problem).min(0, problem).max(lastMoment, problem)).meta({
    control: 'time',
    description: `${what}, in milliseconds since the epoch, or as 2026-11-18T07:30 in UTC.`,
  });
}

const dateAndTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?$/;

/** Undefined if the text is no such date. */
function parseDate(text: string): number | undefined {
  const at = dateAndTime.test(text) ? Date.parse(`${text}Z`) : NaN;
  // Date.parse reads February 30 as a day in March.
  const isDate = !Number.isNaN(at) && new Date(at).toISOString().startsWith(text.slice(0, 10));
  return isDate ? at : undefined;
}

/** The version of a thing that a change was made from. Forms contain it, so that two readers do not overwrite each other. */
export function version(meaning = 'updatedAt as the caller has read it.') {
  return integer(0, lastMoment)
    .optional()
    .meta({
      description: `${meaning} If it has changed since, the operation is refused with 409. Without it nothing is compared.`,
      control: 'hidden',
    });
}

export function choice<const C extends readonly string[]>(choices: C, { ignoresCase = false } = {}) {
  const normalise = (raw: unknown) => {
    const trimmed = String(raw).trim();
    return ignoresCase ? trimmed.toLowerCase() : trimmed;
  };
  return z.preprocess(normalise, z.enum(choices, `must be one of ${choices.join(', ')}.`));
}

export function boolean() {
  const values = new Map([
    ['true', true],
    ['false', false],
  ]);
  const toBoolean = (raw: unknown) => values.get(String(raw).trim().toLowerCase());
  return z
    .preprocess(toBoolean, z.boolean('must be true or false.'))
    .meta({ choiceLabels: { true: 'Yes', false: 'No' } });
}

export function httpUrl(): z.ZodString {
  return z
    .string()
    .trim()
    .refine(isHttpUrl, { error: `must be ${httpUrlRule}.`, abort: true })
    .meta({ maxLength: 2048, format: 'uri' });
}

/** A urlencoded form cannot carry a file, so text counts as the content of a file without a name. */
export function file() {
  const toFile = (raw: unknown) =>
    typeof raw === 'string' ? { filename: '', contentType: 'text/plain', bytes: Buffer.from(raw) } : raw;
  const given = z.custom<FormFile>((raw) => raw !== undefined);
  return z.preprocess(toFile, given).meta({ control: 'file' });
}

const jsonContent = { control: 'lines', contentMediaType: 'application/json' } as const;

export function jsonObject(maxBytes = Infinity) {
  const read = (raw: string, context: z.RefinementCtx) => {
    const result = parseJsonObject(raw);
    return 'problem' in result ? refuse(context, [result.problem]) : result.object;
  };
  return z
    .string()
    .refine((raw) => Buffer.byteLength(raw) <= maxBytes, {
      error: `must be at most ${maxBytes} bytes.`,
      abort: true,
    })
    .transform(read)
    .meta({ ...jsonContent, contentSchema: { type: 'object' } });
}

/** The text of a JSON object or array, unchanged: parsing and writing it again would change large numbers. */
export function jsonText(maxBytes: number): z.ZodString {
  return z
    .string()
    .refine((raw) => Buffer.byteLength(raw) <= maxBytes, {
      error: `must be at most ${maxBytes} bytes.`,
      abort: true,
    })
    .superRefine((raw, context) => {
      const result = parseJsonField(raw);
      const isAllowed = 'value' in result && (isJsonObject(result.value) || Array.isArray(result.value));
      if (!isAllowed)
        context.addIssue('problem' in result ? result.problem : 'must be a JSON object or array.');
    })
    .trim()
    .meta({ ...jsonContent, contentSchema: { type: ['object', 'array'] }, maxLength: maxBytes });
}

/** The id in a JSON object, or alone. */
export function reference() {
  const read = (raw: string, context: z.RefinementCtx) => {
    if (/^\s*[A-Za-z0-9][A-Za-z0-9_.-]*\s*$/.test(raw)) return raw.trim();
    const result = parseJsonObject(raw);
    const id = 'object' in result ? result.object.id : undefined;
    return typeof id === 'string' && id !== ''
      ? id
      : refuse(context, ['must be a JSON object of the form {"id": "…"}, or an id.']);
  };
  const content = {
    type: 'object',
    properties: { id: { type: 'string', minLength: 1 } },
    required: ['id'],
  };
  return z
    .string()
    .transform(read)
    .meta({ ...jsonContent, contentSchema: content });
}

/** JSON is serialized recursively, so its depth must be limited. The form limits the number of values. */
const jsonLimits = { values: Infinity, nesting: 64 };

function parseJsonField(raw: string): { value: unknown } | { problem: string } {
  const problem = findExcess(Buffer.from(raw), jsonLimits);
  return problem === undefined ? { value: parseJson(raw) } : { problem };
}

export function parseJsonObject(
  raw: string,
): { object: Readonly<Record<string, unknown>> } | { problem: string } {
  const result = parseJsonField(raw);
  if ('problem' in result) return result;
  const { value } = result;
  return isJsonObject(value) ? { object: value } : { problem: 'must be a JSON object.' };
}

/** In a change, an absent field keeps the stored value and a blank one empties it. */
export function clearable<T extends z.ZodType>(field: T, empty: z.infer<T> | '' = ''): Clearable<T> {
  return field.optional().meta({ blankValue: empty }) as Clearable<T>;
}

/** Refuses the text of a field in a transform. There must be a problem, otherwise the field would be accepted. */
export function refuse(context: z.RefinementCtx, problems: readonly string[]): never {
  if (problems.length === 0) throw new Error('A refused field needs a problem.');
  for (const problem of problems) context.addIssue(problem);
  return z.NEVER;
}
