// Renders docs/reference/api.md from the resource trees, the schemas of answers and the recorded answers of a tour.
import { answerComponents } from '../../../src/rest/answer.ts';
import { type Document, type Operation, type Schema, inlineReferences } from '../../rest/openapi-kit.ts';
import { type Recorded, type Tour, keyOf, takeTour } from './api-tour.ts';
import { block, code, formatPage, plain, table } from './markdown.ts';
import { readOpenApi } from './openapi.ts';

const intro = `
Every resource and operation of the REST API, with fields, roles, statuses, the schema of its answer and one recorded answer: for authors of clients and scripts.

A resource answers GET and POST alike; an operation answers POST. A path with two rows is a resource on GET and an operation on POST. Conventions of requests, tokens and errors are in [the protocol](../protocol.md), errors in [errors and codes](errors-and-codes.md). The server describes itself at \`/admin/openapi.json\`; [openapi.json](openapi.json) is that document with default settings. Generators such as openapi-typescript make a typed client from it.

In recorded answers, \`"…"\` stands for further entries of a list. Times are milliseconds since the epoch.
`;

type Endpoint = {
  readonly path: string;
  readonly methods: readonly string[];
  readonly operation: Operation & { summary: string };
};

export async function apiPage(): Promise<string> {
  const document = inlineReferences((await readOpenApi()) as Document);
  const tour = await takeTour();
  const endpoints = Object.entries(document.paths).flatMap(([path, item]) => endpointsOf(path, item));
  const tags = document.tags as { name: string; description: string }[];
  return formatPage(
    'API',
    'the resource trees in src/',
    intro,
    `## Overview\n\n${overview(endpoints)}`,
    ...tags.flatMap((tag) => [
      `## ${tag.name}\n\n${plain(tag.description)}`,
      ...endpoints
        .filter(({ operation }) => operation.tags.includes(tag.name))
        .map((endpoint) => endpointPart(endpoint, tour)),
    ]),
    '## Schemas',
    ...Object.entries(document.components.schemas)
      .filter(([name]) => name in answerComponents())
      .map(([name, schema]) => schemaPart(name, schema)),
  );
}

/** A resource is one endpoint with two methods, unless a POST does something else. */
function endpointsOf(path: string, { get, post }: Document['paths'][string]): Endpoint[] {
  const isResource = get && post && get['x-effect'] === post['x-effect'] && isSame(get, post);
  if (isResource) return [{ path, methods: ['GET', 'POST'], operation: get as Endpoint['operation'] }];
  return [
    ...(get ? [{ path, methods: ['GET'], operation: get as Endpoint['operation'] }] : []),
    ...(post ? [{ path, methods: ['POST'], operation: post as Endpoint['operation'] }] : []),
  ];
}

function isSame(get: Operation, post: Operation): boolean {
  return get.description === post.description;
}

function overview(endpoints: readonly Endpoint[]): string {
  const rows = endpoints.map(({ path, methods, operation }) => [
    `[${code(path)}](#${slug(headingOf(path, methods))})`,
    methods.join(', '),
    operation['x-access'],
    plain(operation.summary),
  ]);
  return table(['Path', 'Methods', 'Least role', 'What'], rows);
}

function headingOf(path: string, methods: readonly string[]): string {
  return `${methods.join(', ')} ${path}`;
}

/** Not the name alone: areas of the API have the same names. */
function schemaHeading(name: string): string {
  return `${name} (schema)`;
}

function schemaLink(name: string): string {
  return `[${name}](#${slug(schemaHeading(name))})`;
}

/** The anchor of a heading. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

const beneathService = /\/services\/(\{folder\}\/)?\{serviceName\}\.\{type\}\/webhooks\/\{webhook\}/;

/** The same webhook has an address beneath its service. */
function otherAddressOf(path: string): string | undefined {
  return beneathService.test(path) ? path.replace(beneathService, '/services/webhooks/{webhook}') : undefined;
}

function endpointPart({ path, methods, operation }: Endpoint, tour: Tour): string {
  const other = otherAddressOf(path);
  if (other !== undefined) {
    const link = `[${code(other)}](#${slug(headingOf(other, methods))})`;
    return `### ${plain(headingOf(path, methods))}\n\nThe same as ${link}, for a webhook of this service.`;
  }
  const recorded = methods.map((method) => tour.get(keyOf(method, path))).find((found) => found);
  if (!recorded)
    throw new Error(`Add a call of ${methods.join()} ${path} to test/documents/reference/api-tour.ts.`);
  const statuses = Object.keys(operation.responses).filter((status) => /^\d+$/.test(status));
  return [
    `### ${plain(headingOf(path, methods))}`,
    plain(operation.description),
    fieldTable(operation),
    `Answer: ${schemaLink(schemaOf(operation))}. Statuses: ${statuses.join(', ')}.`,
    answerBlock(recorded),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

function schemaOf({ responses }: Operation): string {
  const content = responses['200']?.content as Record<string, { schema: { $ref: string } }>;
  return content['application/json']?.schema.$ref.split('/').at(-1) ?? '';
}

type Described = Schema & { description?: string; $ref?: string; pattern?: string; minLength?: number };

/** The fields of the form, or of the query of a resource. */
function fieldTable({ parameters, requestBody }: Operation): string {
  const form = requestBody?.content['multipart/form-data']?.schema;
  const [usual, ...instead] = form?.anyOf?.map(({ required = [] }) => required) ?? [form?.required ?? []];
  const unless =
    instead.length > 0 ? `, unless ${instead.map((names) => code(names.join())).join(' or ')} has it` : '';
  const inForm = Object.entries(form?.properties ?? {}).map(
    ([name, schema]) => [name, schema as Described, usual?.includes(name) ?? false] as const,
  );
  const inQuery = parameters
    .filter((parameter) => parameter.in === 'query')
    .map(
      ({ name, schema, description = '', required = false }) =>
        [name, { ...schema, description }, required] as const,
    );
  const fields = [...inForm, ...inQuery].filter(([, schema]) => !('$ref' in schema));
  if (fields.length === 0) return '';
  const rows = fields.map(([name, schema, required]) => [
    code(name),
    plain(allowed(schema)),
    required ? `required${unless}` : schema.default === undefined ? '' : code(JSON.stringify(schema.default)),
    plain(schema.description ?? ''),
  ]);
  return table(['Field', 'Allowed', 'Default', 'Meaning'], rows);
}

function allowed({
  type,
  enum: choices,
  minimum,
  maximum,
  maxLength,
  format,
  contentSchema,
}: Described): string {
  if (choices) return choices.join(', ');
  if (type === 'integer') return `integer from ${minimum} to ${maximum}`;
  if (type === 'boolean') return 'true or false';
  if (format === 'binary') return 'a file';
  if (contentSchema) return 'JSON object';
  return maxLength === undefined ? 'text' : `text of at most ${maxLength} characters`;
}

function answerBlock({ path, method, answer }: Recorded): string {
  return block('json', `// ${method} ${path}\n${JSON.stringify(shorten(answer), null, 2)}`);
}

/** Lists keep their first entry. */
function shorten(value: unknown): unknown {
  if (Array.isArray(value)) return value.length > 1 ? [shorten(value[0]), '…'] : value.map(shorten);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shorten(inner)]));
}

function schemaPart(name: string, schema: Described & { items?: Described }): string {
  const rows = Object.entries(schema.properties ?? {}).map(([field, inner]) => [
    code(field),
    typeOf(inner),
    schema.required?.includes(field) ? '' : 'optional',
    plain((inner as Described).description ?? ''),
  ]);
  const lead = plain(schema.description ?? '');
  const list = schema.items ? `An array of ${typeOf(schema.items)}.` : '';
  return [
    `### ${schemaHeading(name)}`,
    [lead, list].join(' ').trim(),
    rows.length > 0 ? table(['Field', 'Type', '', 'Meaning'], rows) : '',
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

function typeOf(schema: Described & { anyOf?: Described[]; items?: Described; const?: unknown }): string {
  if (schema.$ref) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return schemaLink(name);
  }
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.enum) return schema.enum.map((choice) => code(JSON.stringify(choice))).join(', ');
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.items) return `array of ${typeOf(schema.items)}`;
  if (schema.properties) return `{ ${Object.keys(schema.properties).join(', ')} }`;
  return [schema.type ?? 'any'].flat().join(' or ');
}
