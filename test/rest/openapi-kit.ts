// What the tests of the OpenAPI document share: its form, and finding one's way in it.

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
export type Described = {
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
  paths: Record<string, { get?: Described; post?: Described }>;
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, { headers?: Record<string, unknown>; content?: Record<string, unknown> }>;
    securitySchemes: Record<string, { type: string; in?: string }>;
  };
};

/** Reads the document that is there then. */
export function readerOf(api: () => Document) {
  const described = () =>
    Object.entries(api().paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, entry]) => ({ path, method, entry })),
    );
  const at = (path: string, method: 'get' | 'post'): Described => {
    const entry = api().paths[path]?.[method];
    if (!entry) throw new Error(`${method} ${path} is not described`);
    return entry;
  };
  const formOf = (path: string, carrier = 'application/x-www-form-urlencoded'): Schema =>
    at(path, 'post').requestBody?.content[carrier]?.schema ?? {};
  return { described, at, formOf };
}
