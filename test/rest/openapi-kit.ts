// Helpers for the tests of the OpenAPI document: its type, and functions that find operations in it.

export const address = '/admin/openapi.json';

export type Schema = {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  format?: string;
  contentSchema?: Schema;
  default?: unknown;
};
export type Operation = {
  tags: string[];
  operationId: string;
  description: string;
  parameters: { name?: string; in?: string; $ref?: string; schema?: Schema }[];
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

/** Takes a function because the document is read before the tests, not when the file is loaded. */
export function createDocumentReader(api: () => Document) {
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
