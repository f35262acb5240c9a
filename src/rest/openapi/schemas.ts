// Form fields as JSON Schema, for the query and the two kinds of form, and the components of the OpenAPI document.
import type { Json } from '../../lib/json.ts';
import { type FieldDescription, type Fields, describeField } from '../fields.ts';
import { maxTextBytes } from '../form.ts';

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
    description: 'The token or key, where it is not sent as a bearer token.',
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
  const described = Object.entries(fields).map(([name, field]) => [name, describeField(field)] as const);
  const own = described.map(([name, field]) => [name, fieldSchema(field, formType)] as const);
  const needed = described.flatMap(([name, { isRequired }]) => (isRequired ? name : []));
  // The members of an object may stand for fields of their names.
  const objects = described.flatMap(([name, { spreads }]) => (spreads ? name : []));
  const ways = [needed, ...objects.map((name) => [name])].map((required) => ({ required }));
  return {
    type: 'object',
    properties: {
      ...Object.fromEntries(
        common.map((name) => [name.startsWith('f') ? 'f' : name, { $ref: `#/components/schemas/${name}` }]),
      ),
      ...Object.fromEntries(own),
    },
    ...(needed.length > 0 && (objects.length === 0 ? ways[0] : { anyOf: ways })),
  };
}

export type Parameter = { readonly name: string; readonly [key: string]: Json };

export function queryParameters(fields: Fields): Parameter[] {
  return Object.entries(fields).map(([name, field]) => {
    const described = describeField(field);
    const { description, ...schema } = fieldSchema(described, 'application/x-www-form-urlencoded');
    return { name, in: 'query', description: description ?? '', required: described.isRequired, schema };
  });
}

function fieldSchema(field: FieldDescription, formType: FormType): Schema {
  const { description, fallback, blankValue } = field;
  return {
    ...valueSchema(field, formType),
    description: blankValue === undefined ? description : `${description} A blank value empties it.`,
    ...(fallback !== undefined && { default: fallback }),
  };
}

function valueSchema(
  { schema, control, isRequired, blankValue }: FieldDescription,
  formType: FormType,
): Schema {
  if (control === 'file') {
    // A urlencoded form carries the content of a file as text.
    return formType === 'multipart/form-data'
      ? { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' }
      : { type: 'string' };
  }
  if (schema.type !== 'string' || schema.enum) return schema;
  // A blank text is no value of an optional field, so a least length of one is no limit there.
  const { minLength = 1, maxLength = maxTextBytes, pattern, ...others } = schema;
  const isClearable = blankValue !== undefined;
  const isBounded = !isClearable && (isRequired || minLength > 1);
  return {
    ...others,
    ...(isBounded && minLength > 0 && { minLength }),
    maxLength,
    ...(pattern !== undefined && { pattern: isClearable ? `^$|${pattern}` : pattern }),
  };
}

type Section = 'parameters' | 'requestBodies' | 'schemas';

/**
 * What operations refer to. Equal components are stored once: a webhook, for example, has several addresses.
 */
export class Components {
  readonly #sections: Record<Section, Record<string, Json>> = {
    parameters: {},
    requestBodies: {},
    schemas: {},
  };

  /** Another component with the same name gets a number. */
  reference(section: Section, name: string, component: Json): { readonly $ref: string } {
    const stored = this.#sections[section];
    const text = JSON.stringify(component);
    let id = name;
    for (let number = 2; stored[id] !== undefined && JSON.stringify(stored[id]) !== text; number += 1)
      id = `${name}${number}`;
    stored[id] = component;
    return { $ref: `#/components/${section}/${id}` };
  }

  in(section: Section): Readonly<Record<string, Json>> {
    return this.#sections[section];
  }
}
