// Helpers for the tests of the OpenAPI document: its type, and functions that find operations in it.

export const address = '/admin/openapi.json';

export type Schema = {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  anyOf?: Schema[];
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  format?: string;
  contentSchema?: Schema;
  default?: unknown;
};
export type Parameter = {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema & { $ref?: string };
};
export type Operation = {
  tags: string[];
  operationId: string;
  description: string;
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Record<string, { schema: Schema }> };
  responses: Record<string, { $ref?: string; description?: string; content?: Record<string, unknown> }>;
  security: Record<string, string[]>[];
  'x-access': string;
  'x-effect': string;
  'x-while-read-only': string;
  'x-during-job': string;
};
export type Document = {
  openapi: string;
  info: { title: string; version: string; description: string };
  servers: { url: string }[];
  externalDocs: { url: string };
  tags: { name: string }[];
  paths: Record<string, { get?: Operation; post?: Operation }>;
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, { headers?: Record<string, unknown>; content?: Record<string, unknown> }>;
    securitySchemes: Record<string, { type: string; in?: string }>;
  };
};

/** The document with operations that refer to no parameters and request bodies, but contain them. */
export function inlineReferences(document: Document): Document {
  const inline = <T>(value: T): T => {
    const { $ref } = value as { $ref?: string };
    const [, section = '', name = ''] = /^#\/components\/(\w+)\/(.*)$/.exec($ref ?? '') ?? [];
    const components = document.components as unknown as Record<string, Record<string, T>>;
    return components[section]?.[name] ?? value;
  };
  const inlineAll = (operation: Operation): Operation => ({
    ...operation,
    parameters: operation.parameters.map(inline),
    ...(operation.requestBody && { requestBody: inline(operation.requestBody) }),
  });
  const paths = Object.entries(document.paths).map(([path, { get, post }]) => [
    path,
    { ...(get && { get: inlineAll(get) }), ...(post && { post: inlineAll(post) }) },
  ]);
  return { ...document, paths: Object.fromEntries(paths) as Document['paths'] };
}

/** Takes a function because the document is read before the tests, not when the file is loaded. */
export function createDocumentReader(read: () => Document) {
  const api = () => inlineReferences(read());
  const listOperations = () =>
    Object.entries(api().paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, entry]) => ({ path, method, entry })),
    );
  const findOperation = (path: string, method: 'get' | 'post'): Operation => {
    const entry = api().paths[path]?.[method];
    if (!entry) throw new Error(`${method} ${path} is not described`);
    return entry;
  };
  const formSchema = (path: string, contentType = 'application/x-www-form-urlencoded'): Schema =>
    findOperation(path, 'post').requestBody?.content[contentType]?.schema ?? {};
  return { listOperations, findOperation, formSchema };
}
