// Schemas of answers. The OpenAPI document and the API reference describe answers with them, and the tests check
// every answer.
import * as z from 'zod';
import type { DeepReadonly, Json } from '../lib/json.ts';

export type AnswerSchema = z.ZodType;

/** What an answer with this schema is in TypeScript. */
export type AnswerOf<S extends AnswerSchema> = DeepReadonly<z.output<S>>;

/** The named schemas: each is a component of the OpenAPI document. */
const answers = z.registry<{ id: string }>();

/** A JSON object with exactly these fields. */
export function answerObject<F extends z.core.$ZodLooseShape>(id: string, description: string, fields: F) {
  return z.strictObject(fields).describe(description).register(answers, { id });
}

/** A JSON object with these fields and others that the server does not know. */
export function openAnswerObject<F extends z.core.$ZodLooseShape>(
  id: string,
  description: string,
  fields: F,
) {
  return z.looseObject(fields).describe(description).register(answers, { id });
}

export function answerList<E extends AnswerSchema>(id: string, description: string, entry: E) {
  return z.array(entry).describe(description).register(answers, { id });
}

export const time = z.int().describe('Milliseconds since the epoch.');

/** The answer of a page of a list. */
export const total = z.int().nonnegative().describe('How many there are on all pages.');

/** Every answer of an operation that writes may have it. */
export const ignored = z
  .array(z.string())
  .optional()
  .describe(
    'The names of given fields that had no effect: at most 20, cut at 64 characters. Absent if there are none.',
  );

export const successAnswer = answerObject('Success', 'The operation succeeded.', {
  status: z.literal('success'),
  ignored,
});

export const resourceListAnswer = answerObject('ResourceList', 'The resources beneath this one.', {
  resources: z.array(z.string()).describe('Their names.'),
});

export const errorAnswer = answerObject('Error', 'The body of every error, whatever its status.', {
  status: z.literal('error'),
  error: z.strictObject({
    code: z.int().describe('The status, except 498 or 499 for tokens and 400 for wrong credentials.'),
    message: z.string(),
    details: z.array(z.string()).describe('Every problem found, each naming its field and what is allowed.'),
  }),
});

export type JsonSchema = { readonly [key: string]: Json };

/** All named schemas as JSON Schema. They refer to each other as components of an OpenAPI document. */
export function answerComponents(): { readonly [id: string]: JsonSchema } {
  const { schemas } = z.toJSONSchema(answers, { uri: componentUri, override: simplify });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $schema: _schema, $id: _id, ...schema }]) => [
      id,
      schema as JsonSchema,
    ]),
  );
}

/** A schema on its own, for data that is no answer. */
export function toJsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _schema, ...json } = z.toJSONSchema(schema, { override: simplify });
  return json as JsonSchema;
}

function componentUri(id: string): string {
  return `#/components/schemas/${id}`;
}

export function answerReference(schema: AnswerSchema): JsonSchema {
  const id = answers.get(schema)?.id;
  if (id === undefined) throw new Error('The schema of an answer needs a name.');
  return { $ref: componentUri(id) };
}

function simplify({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  // Later versions may add fields, so clients must not rely on their absence.
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}
