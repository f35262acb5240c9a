// Form fields are zod schemas. They read the text of a field; their metadata and their JSON Schema say how forms, curl
// commands and documents show it.
import * as z from 'zod';
import { oncePer } from '../lib/collections.ts';
import { type Problem, problemsOf } from '../lib/errors.ts';
import type { Html } from '../lib/html.ts';
import { isJsonObject, parseJson } from '../lib/json.ts';
import { type Form, type Raw, type RequestedFields, textIn } from './form.ts';

export type Field<T = unknown> = z.ZodType<T>;

export type Fields = Readonly<Record<string, Field>>;

export type Values<F extends Fields> = { readonly [K in keyof F]: z.infer<F[K]> };

declare const clears: unique symbol;

/** A field that a blank text empties. A form that does not show the stored value would empty it unseen. */
export type Clearable<T extends z.ZodType> = z.ZodOptional<T> & { readonly [clears]: true };

export type ClearableNames<F extends Fields> = {
  [K in keyof F & string]: F[K] extends { readonly [clears]: true } ? K : never;
}[keyof F & string];

export type FieldValues<F extends Fields = Fields> = {
  readonly values: Partial<Values<F>>;
  readonly problems: readonly Problem[];
};

/** The metadata of a field, besides its description and keywords of JSON Schema such as `maxLength`. */
export type FieldMeta = {
  /** The label in a form. Default: the name in words. */
  readonly label?: string;
  /** How a form shows a text. Default: one line. `fixed`: not editable if the link to the form fills it in. */
  readonly control?: 'lines' | 'password' | 'file' | 'hidden' | 'time' | 'fixed';
  /** Completes "Allowed: …". */
  readonly allowed?: string;
  /** What a form shows instead of a choice. */
  readonly choiceLabels?: Readonly<Record<string, string>>;
  /** For a comma list: a box for each entry may stand for it. The form offers these known entries as boxes. */
  readonly picks?: readonly PickOption[];
  /** A control of several inputs, whose names begin with `boxName`. */
  readonly parts?: Parts;
  /** Whether a form requires the field although a program may leave it out. */
  readonly isRequiredInForm?: boolean;
  /** Forms fold these fields, because few callers need them. */
  readonly isAdvanced?: boolean;
  /** The value of a blank field. Without it, a blank field counts as absent. */
  readonly blankValue?: unknown;
  /** Whether members of the JSON object stand for the fields of their names that a form lacks. */
  readonly spreads?: boolean;
  /** Whether the field has no effect with these values of all fields; or the names of its members that have none. */
  readonly unused?: (
    values: Readonly<Record<string, unknown>>,
    subject: unknown,
  ) => boolean | readonly string[];
  /** What a page shows again of a text that was entered. Default: all of it. */
  readonly shownAgain?: (entered: string) => string;
};

declare module 'zod' {
  // oxlint-disable-next-line typescript/no-empty-object-type -- merges with zod's own
  interface GlobalMeta extends FieldMeta {}
}

export type Parts = {
  /** The inputs of the field. Without it, the derived form shows the text. */
  readonly render?: (entered: EnteredParts) => Html;
  /** The text of the field, from the values of the inputs by their names after `boxName`. */
  readonly join: (values: Readonly<Record<string, string>>) => string;
  /** A text of the field in words. Default: the text. */
  readonly format?: (text: string) => string;
  /** What is wrong with a text, in the words of the inputs. Undefined: the problems of the field. */
  readonly explain?: (text: string) => readonly string[] | undefined;
};

export type EnteredParts = {
  /** The text of the field. Undefined: nothing was entered yet. */
  readonly text: string | undefined;
  readonly problems: readonly string[];
  readonly isRequired: boolean;
};

export type PickOption = { readonly value: string; readonly label: string; readonly description: string };

export function readFields<F extends Fields>(fields: F, form: Form): FieldValues<F> {
  const values: Record<string, unknown> = {};
  const problems: Problem[] = [];
  const given = spreadMembers(fields, form);
  for (const name in fields) {
    const parsed = readField(fields[name] as Field, given[name]);
    if ('problems' in parsed) problems.push(...problemsOf(name, parsed.problems));
    else values[name] = parsed.value;
  }
  return { values: values as Partial<Values<F>>, problems };
}

/** Texts only: the schema of the object says which members must be texts. `null` counts as blank. */
function spreadMembers(fields: Fields, form: Form): Form {
  return spreadFields(fields).reduce((given, name) => {
    const object = parseJson(textIn(form, name) ?? '');
    if (!isJsonObject(object)) return given;
    const members = Object.keys(fields).flatMap((member): [string, string][] => {
      const value = Object.hasOwn(object, member) ? (object[member] ?? '') : undefined;
      return typeof value === 'string' ? [[member, value]] : [];
    });
    return { ...Object.fromEntries(members), ...given };
  }, form);
}

const spreadFields = oncePer((fields: Fields): readonly string[] =>
  Object.keys(fields).filter((name) => metaOf(fields[name] as Field).spreads),
);

/** Most fields have one problem; a file or a list of headers may have many. */
export function readField(
  field: Field,
  raw: Raw,
): { readonly value: unknown } | { readonly problems: readonly string[] } {
  const isBlank = typeof raw === 'string' && raw.trim() === '';
  if (isBlank) {
    const { blankValue } = metaOf(field);
    if (blankValue !== undefined) return { value: blankValue };
  }
  const given = isBlank ? undefined : raw;
  const parsed = field.safeParse(given);
  if (parsed.success) return { value: parsed.data };
  return {
    problems: given === undefined ? ['is required.'] : parsed.error.issues.map(({ message }) => message),
  };
}

/** The given fields that have no effect with the values of the others. */
export function unusedFields(
  fields: Fields,
  form: Form,
  { values, subject }: { readonly values: Readonly<Record<string, unknown>>; readonly subject: unknown },
): string[] {
  return usableFields(fields).flatMap(([name, unused]) => {
    const found = values[name] !== undefined && Object.hasOwn(form, name) && unused(values, subject);
    return found === true ? name : found || [];
  });
}

const usableFields = oncePer((fields: Fields) =>
  Object.entries(fields).flatMap(([name, field]) => {
    const { unused } = metaOf(field);
    return unused ? [[name, unused] as const] : [];
  }),
);

/** The metadata of a field, with that of the schemas it wraps. */
export function metaOf(field: z.core.$ZodType): z.GlobalMeta {
  let inner: z.core.$ZodType | undefined;
  if (field instanceof z.ZodOptional || field instanceof z.ZodDefault || field instanceof z.ZodNullable)
    inner = field.def.innerType;
  // `preprocess` has the transform first, other pipes have the schema first.
  if (field instanceof z.ZodPipe) inner = field.in instanceof z.ZodTransform ? field.out : field.in;
  return { ...(inner && metaOf(inner)), ...z.globalRegistry.get(field) };
}

export const requestedFields = oncePer((fields: Fields): RequestedFields => {
  const requested = new Map<string, 'text' | 'file'>([
    ['f', 'text'],
    ['token', 'text'],
    ['next', 'text'],
    ['present', 'text'],
  ]);
  for (const [name, field] of Object.entries(fields)) {
    requested.set(name, metaOf(field).control === 'file' ? 'file' : 'text');
  }
  const boxes = [...boxFields(fields).keys()];
  const isBox = (name: string) => boxes.some((field) => name.startsWith(boxName(field)));
  const kindOf = (name: string) => requested.get(name) ?? (isBox(name) ? 'text' : undefined);
  return { get: kindOf, has: (name) => kindOf(name) !== undefined };
});

/** The name of the box of a value. Without a value: the name of the input for the other entries of the list. */
export function boxName(field: string, value = ''): string {
  return `${field}.${value}`;
}

/** The fields that a form may send as several inputs, each with its parts, if it has some. */
const boxFields = oncePer((fields: Fields): ReadonlyMap<string, Parts | undefined> => {
  const all = Object.entries(fields).map(([name, field]) => ({ name, ...metaOf(field) }));
  const boxed = all.filter(({ picks, parts }) => picks !== undefined || parts !== undefined);
  return new Map(boxed.map(({ name, parts }) => [name, parts]));
});

/** Joins the boxes or parts of each field that the form lacks, if it has the input with the name `boxName`. */
export function joinBoxes(fields: Fields, form: Form): Form {
  const boxed = boxFields(fields);
  if (boxed.size === 0) return form;
  const joined: Record<string, Raw> = { ...form };
  for (const [name, parts] of boxed) {
    const others = form[boxName(name)];
    if (typeof others !== 'string' || form[name] !== undefined) continue;
    const named = Object.keys(form)
      .filter((key) => key.startsWith(boxName(name)))
      .map((key): [string, string] => [key.slice(boxName(name).length), textIn(form, key) ?? '']);
    joined[name] = parts ? parts.join(Object.fromEntries(named)) : joinPicks(named, others);
  }
  return joined;
}

/** If no box is chosen, the list is empty but not blank: a change would ignore a blank field. */
function joinPicks(chosen: readonly [string, string][], others: string): string {
  return [...chosen.map(([value]) => value), others.trim()].filter(Boolean).join(',') || ',';
}

/** In a change, an absent field must not overwrite the stored value. */
export function definedOnly<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const given: { [K in keyof T]?: T[K] } = {};
  for (const name in values) if (values[name] !== undefined) given[name] = values[name];
  return given as never;
}

export type FieldDescription = FieldMeta & {
  readonly description: string;
  readonly isRequired: boolean;
  /** The value of an absent field. */
  readonly fallback: string | number | boolean | undefined;
  readonly schema: FieldSchema;
};

type FieldSchema = {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly contentMediaType?: string;
};

export const describeField = oncePer((field: Field): FieldDescription => {
  const meta = metaOf(field);
  const absent = field.safeParse(undefined);
  return {
    ...meta,
    description: meta.description ?? '',
    isRequired: !absent.success,
    fallback: absent.data as FieldDescription['fallback'],
    schema: schemaOf(field),
  };
});

/** The metadata that is no part of the JSON Schema. */
const formKeys: Record<keyof FieldMeta, true> = {
  label: true,
  control: true,
  allowed: true,
  choiceLabels: true,
  picks: true,
  parts: true,
  isRequiredInForm: true,
  isAdvanced: true,
  blankValue: true,
  spreads: true,
  unused: true,
  shownAgain: true,
};

/** The schema of the value, without what `FieldDescription` has itself. */
function schemaOf(field: Field): FieldSchema {
  const {
    $schema,
    description,
    default: fallback,
    ...schema
  } = z.toJSONSchema(field, {
    io: 'input',
    unrepresentable: 'any',
  });
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !(key in formKeys)));
}

/** The texts that a choice or a yes-or-no accepts. */
export function choicesOf({ schema }: FieldDescription): readonly string[] | undefined {
  return schema.type === 'boolean' ? ['true', 'false'] : schema.enum;
}
