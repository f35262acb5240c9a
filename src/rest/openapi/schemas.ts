// Form fields as JSON Schema, for the query and the two kinds of form.
import type { Control, Field, Fields } from '../fields.ts';
import { maxTextBytes } from '../form.ts';
import type { Json } from '../../lib/json.ts';

type Schema = { readonly [key: string]: Json };

type FormType = 'application/x-www-form-urlencoded' | 'multipart/form-data';

export const formTypes: readonly FormType[] = ['application/x-www-form-urlencoded', 'multipart/form-data'];

export const commonFields = {
  f: {
    type: 'string',
    enum: ['json', 'pjson', 'html'],
    description:
      'The format of the answer, in upper or lower case. Default: html where Accept prefers it, else json.',
  },
  fOrCsv: {
    type: 'string',
    enum: ['json', 'pjson', 'html', 'csv'],
    description: 'The format of the answer, as f; csv returns a file.',
  },
  fOfData: {
    type: 'string',
    enum: ['json', 'pjson'],
    description: 'The format of the answer, in upper or lower case. Default: json. There is no page.',
  },
  token: {
    type: 'string',
    description: 'The token, where it is not sent as a bearer token.',
  },
  next: {
    type: 'string',
    description: 'With f=html: the path of this server to which the browser is redirected afterwards.',
  },
} as const;

export function formSchema(
  fields: Fields,
  common: readonly (keyof typeof commonFields)[],
  formType: FormType,
): Schema {
  const own = Object.entries(fields).map(([name, field]) => [name, fieldSchema(field, formType)] as const);
  const needed = Object.keys(fields).filter((name) => fields[name]?.required);
  return {
    type: 'object',
    properties: {
      ...Object.fromEntries(
        common.map((name) => [name.startsWith('f') ? 'f' : name, { $ref: `#/components/schemas/${name}` }]),
      ),
      ...Object.fromEntries(own),
    },
    ...(needed.length > 0 && { required: needed }),
  };
}

export type Parameter = { readonly name: string; readonly [key: string]: Json };

export function queryParameters(fields: Fields): Parameter[] {
  return Object.entries(fields).map(([name, field]: [string, Field<unknown>]) => {
    const { description, ...schema } = fieldSchema(field, 'application/x-www-form-urlencoded');
    return { name, in: 'query', description: description ?? '', required: field.required, schema };
  });
}

function fieldSchema(field: Field<unknown>, formType: FormType): Schema {
  const { description, fallback, control } = field;
  const text = { description: field.clearable ? `${description} A blank value empties it.` : description };
  const schema = valueSchema(control, field, formType);
  if (fallback === undefined) return { ...schema, ...text };
  const isText = schema.type === 'string';
  return { ...schema, ...text, default: isText ? fallback : (JSON.parse(fallback) as Json) };
}

function valueSchema(control: Control, { required, clearable }: Field<unknown>, formType: FormType): Schema {
  switch (control.kind) {
    case 'number':
      return { type: 'integer', minimum: control.from, maximum: control.to };
    case 'choice':
      return control.choices.join() === 'true,false'
        ? { type: 'boolean' }
        : { type: 'string', enum: control.choices };
    case 'file':
      // A urlencoded form carries the content of a file as text.
      return formType === 'multipart/form-data'
        ? { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' }
        : { type: 'string' };
    case 'text': {
      const { minLength = 1, maxLength = maxTextBytes, pattern, secret, holds } = control;
      const isBounded = !clearable && (required || minLength > 1);
      return {
        type: 'string',
        ...(isBounded && minLength > 0 && { minLength }),
        maxLength,
        ...(pattern !== undefined && { pattern: clearable ? `^$|${pattern}` : pattern }),
        ...(secret && { format: 'password' }),
        ...(holds && held[holds]),
      };
    }
  }
}

const held: Record<NonNullable<(Control & { kind: 'text' })['holds']>, Schema> = {
  url: { format: 'uri' },
  object: { contentMediaType: 'application/json', contentSchema: { type: 'object' } },
  reference: {
    contentMediaType: 'application/json',
    contentSchema: {
      type: 'object',
      properties: { id: { type: 'string', minLength: 1 } },
      required: ['id'],
    },
  },
};
