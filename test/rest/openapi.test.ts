// The OpenAPI document is valid and complete.
import { Validator } from '@seriousme/openapi-schema-validator';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Entry, walk } from '../../src/rest/tree.ts';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';
import { type Document, address, createDocumentReader } from './openapi-kit.ts';

const server = perFile(startServer);
let api: Document;
beforeAll(async () => {
  api = (await server.get(address)).json();
});

const { listOperations, findOperation, formSchema } = createDocumentReader(() => api);

describe('the document', () => {
  it('is valid according to an independent validator', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(structuredClone(api));
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    // Fails if a reference cannot be resolved.
    expect(JSON.stringify(validator.resolveRefs())).not.toContain('$ref');
    const broken = { ...structuredClone(api), paths: { mode: {} } };
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  it('can be read without a token by GET and HEAD, with the headers of JSON', async () => {
    const response = await server.get(`${address}/`);
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect((await server.http.inject({ method: 'HEAD', url: address })).statusCode).toBe(200);
    const post = await server.post(address);
    expect([post.statusCode, post.headers.allow]).toEqual([405, 'GET, HEAD']);
    expect(post.json()).toMatchObject({ status: 'error', error: { code: 405, details: [] } });
  });

  it('contains the name, the version and the address of the server, and the address of the WSDL', () => {
    expect(api.openapi).toMatch(/^3\.1\./);
    expect(api.info).toMatchObject({ title: 'Steward', version: '0.0.0' });
    expect(api.servers).toEqual([{ url: 'http://localhost:8080' }]);
    expect(api.externalDocs.url).toBe('http://localhost:8080/services?wsdl');
    expect(api.info.description).toContain('http://localhost:8080/services?wsdl');
  });

  it('contains the configured addresses, and is the same for every request', async () => {
    const env = {
      ADMIN_PATH: '',
      CATALOG_PATH: '/catalog',
      PUBLIC_URL: 'https://example.com/ops',
      PROFILE: 'family',
    };
    const own = await startServer({ env });
    const { body } = await own.get('/openapi.json');
    const moved = JSON.parse(body) as Document;
    expect((await new Validator().validate(structuredClone(moved))).errors).toBeUndefined();
    expect(moved.servers).toEqual([{ url: 'https://example.com/ops' }]);
    expect(Object.keys(moved.paths)).toContain('/');
    expect(Object.keys(moved.paths)).toContain('/tokens/generateToken');
    expect(moved.externalDocs.url).toBe('https://example.com/ops/catalog?wsdl');
    expect(moved.info.description).toContain('HTTP 200');
    expect((await own.get('/openapi.json')).body).toBe(body);
  });
});

describe('the document describes', () => {
  /** The path of a route in the document, where a service has two parameters. */
  const pathOf = (prefix: string, { route }: Entry) =>
    [prefix, route.replaceAll('{service}', '{serviceName}.{type}')].join('/').replace(/\/$/, '');

  it('every resource and operation of all trees, and nothing else', () => {
    const entries = Object.entries(server.app.trees).flatMap(([name, root]) =>
      [...walk(root)].map((entry) => ({ path: pathOf(`/${name}`, entry), entry })),
    );
    const expected = entries.flatMap(({ path, entry: { operation, resource } }) => {
      if (operation) return [`post ${path}`];
      return resource.onPost ? [`get ${path}`] : [`get ${path}`, `post ${path}`];
    });
    expect(
      listOperations()
        .map(({ method, path }) => `${method} ${path}`)
        .sort(),
    ).toEqual(expected.sort());
  });

  it('every operation once: ids are unique, and no two paths differ only in the names of their parameters', () => {
    const ids = listOperations().map(({ entry }) => entry.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const shapes = Object.keys(api.paths).map((path) => path.replace(/\{\w+\}/g, '{}'));
    expect(new Set(shapes).size).toBe(shapes.length);
  });

  it('no object as complete: a later version may add fields', () => {
    expect(JSON.stringify(api)).not.toContain('"additionalProperties":false');
  });

  it('every parameter of every path, and uses only tags that it declares', () => {
    const tags = api.tags.map(({ name }) => name);
    for (const { path, entry } of listOperations()) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const inPath = entry.parameters.filter((parameter) => parameter.in === 'path');
      expect(
        inPath.map(({ name }) => name),
        path,
      ).toEqual(named);
      expect(tags, path).toEqual(expect.arrayContaining(entry.tags));
    }
  });

  it('fields with their types, ranges, defaults and choices', () => {
    expect(formSchema('/admin/services/webhooks/settings').properties).toMatchObject({
      notificationAttempts: { type: 'integer', minimum: 1, maximum: 5 },
      notificationElapsedTimeInSeconds: { type: 'integer', minimum: 0, maximum: 86_400 },
    });
    const { properties, required } = formSchema('/admin/services/webhooks/create');
    expect(required).toEqual(['name', 'hookUrl']);
    expect(properties).toMatchObject({
      name: { type: 'string', minLength: 1, maxLength: 128 },
      hookUrl: { type: 'string', format: 'uri', maxLength: 2048 },
      active: { type: 'boolean', default: true },
      contentType: { enum: ['application/json', 'application/x-www-form-urlencoded'] },
      signatureKey: { format: 'password' },
      f: { $ref: '#/components/schemas/f' },
      token: { $ref: '#/components/schemas/token' },
    });
    expect(findOperation('/admin/services/webhooks/{webhook}/deliveries', 'get').parameters).toContainEqual({
      name: 'num',
      in: 'query',
      required: false,
      description: 'How many to show.',
      schema: { type: 'integer', minimum: 1, maximum: 100, default: 25 },
    });
  });

  it('JSON in a field with its schema, and files as binary in multipart forms only', () => {
    const upgrade = '/admin/system/upgrades/upgrade';
    expect(formSchema(upgrade).properties).toMatchObject({
      versionManifest: { type: 'string', contentSchema: { type: 'object', required: ['id'] } },
      upgradeSettings: { type: 'string', contentSchema: { type: 'object' } },
    });
    expect(formSchema(upgrade).properties?.licenseFile?.format).toBeUndefined();
    expect(formSchema(upgrade, 'multipart/form-data').properties?.licenseFile).toMatchObject({
      format: 'binary',
    });
  });

  it('the role that an operation needs, its effect, and when it is refused', () => {
    const publish = findOperation('/admin/services/webhooks/publish', 'post');
    expect(publish.security).toEqual([{ bearer: ['publisher'] }, { session: ['publisher'] }]);
    expect(publish.responses['403']?.description).toBe('This needs the role publisher.');
    expect(publish).toMatchObject({
      'x-access': 'publisher',
      'x-effect': 'writes',
      'x-while-read-only': 'refused',
      'x-during-job': 'open',
    });
    expect(publish.description).toContain('Writes; refused in read-only mode.');
    expect(findOperation('/admin/system/upgrades/plan', 'post')).toMatchObject({
      'x-effect': 'reads',
      'x-during-job': 'closed',
    });
    expect(findOperation('/admin/mode', 'get').security).toContainEqual({ tokenField: ['member'] });
    expect(findOperation('/tokens/generateToken', 'post').security).toEqual([]);
  });

  it('every status, and one body for all errors', () => {
    const statuses = new Set(listOperations().flatMap(({ entry }) => Object.keys(entry.responses)));
    expect([...statuses].sort()).toEqual(
      ['200', '303', '400', '401', '403', '404', '409', '413', '415', '429', '503', 'default'].sort(),
    );
    expect(api.components.responses.MethodNotAllowed?.headers).toHaveProperty('Allow');
    for (const [name, { content }] of Object.entries(api.components.responses)) {
      const isRefusal = !['Found', 'Done', 'SeeOther'].includes(name);
      const json = JSON.stringify(content?.['application/json'] ?? {});
      expect(json.includes('#/components/schemas/Error'), name).toBe(isRefusal);
    }
    const signIn = findOperation('/tokens/generateToken', 'post').responses;
    expect(Object.keys(signIn)).toEqual(expect.arrayContaining(['401', '403', '429']));
    expect(Object.keys(findOperation('/tokens/revokeToken', 'post').responses)).toContain('403');
    expect(Object.keys(findOperation('/admin/security/users/update', 'post').responses)).toContain('429');
    expect(Object.keys(findOperation('/admin/mode', 'get').responses)).not.toContain('403');
  });
});

it('the server reports missing fields as the document describes them', async () => {
  const headers = { authorization: `Bearer ${server.token('administrator')}` };
  const withRequired = listOperations().filter(
    ({ path, method }) => method === 'post' && !path.includes('{') && formSchema(path).required,
  );
  expect(withRequired.length).toBeGreaterThan(8);
  for (const { path, entry } of withRequired) {
    const { statusCode, ...response } = await server.post(path, {}, headers);
    expect([statusCode, '400' in entry.responses], path).toEqual([400, true]);
    const missing = response
      .json<{ error: { details: string[] } }>()
      .error.details.filter((detail) => detail.endsWith(': is required.'));
    expect(missing, path).toEqual(formSchema(path).required?.map((name) => `${name}: is required.`));
  }
});
