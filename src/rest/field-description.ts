// What forms, curl commands and the OpenAPI document show of a field: its metadata and its JSON Schema.
import * as z from 'zod';
import { type Field, type FieldMeta, metaOf } from './fields.ts';

export type FieldDescription = FieldMeta & {
  readonly description: string;
  readonly isRequired: boolean;
  /** The value of an absent field. */
  readonly fallback: string | number | boolean | undefined;
  readonly schema: FieldSchema;
};

export type FieldSchema = {
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

const described = new WeakMap<Field, FieldDescription>();

export function describeField(field: Field): FieldDescription {
  const known = described.get(field);
  if (known) return known;
  const description = newDescription(field);
  described.set(field, description);
  return description;
}

function newDescription(field: Field): FieldDescription {
  const meta = metaOf(field);
  const absent = field.safeParse(undefined);
  return {
    ...meta,
    description: meta.description ?? '',
    isRequired: !absent.success,
    fallback: absent.data as FieldDescription['fallback'],
    schema: schemaOf(field),
  };
}

/** The metadata that is no part of the JSON Schema. */
const formKeys: Record<keyof FieldMeta, true> = {
  label: true,
  control: true,
  allowed: true,
  choiceLabels: true,
  picks: true,
  parts: true,
  isClosedList: true,
  isAdvanced: true,
  blankValue: true,
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
