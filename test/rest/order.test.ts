// The order of checks in docs/protocol.md#order-of-checks: path, method, body, form and f, token, role, read-only,
// ids, fields, state.
import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Server, startServer } from '../kit/server.ts';

let server: Server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

type Body = { status: string; error: { code: number; message: string; details: string[] } };

const form = 'application/x-www-form-urlencoded';

type Row = {
  what: string;
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS';
  url: string;
  headers?: Record<string, string>;
  payload?: string;
  status: number;
  code?: number;
  detail?: string;
};

const edit = '/admin/services/World.MapServer/edit';

describe('the first check that fails determines the response', () => {
  const rows: Row[] = [
    {
      what: 'an unknown path, even with a bad method, type and token',
      method: 'PUT',
      url: '/admin/nothing',
      payload: 'x',
      status: 404,
    },
    { what: 'a path below an operation', method: 'POST', url: `${edit}/more`, status: 404 },
    { what: 'a path that cannot be decoded', url: '/admin/services/%ff', status: 404 },
    { what: 'an empty segment', url: '/admin//services', status: 404 },
    {
      what: 'a wrong method before a wrong content type',
      method: 'PUT',
      url: edit,
      headers: { 'content-type': 'text/plain' },
      payload: 'x',
      status: 405,
    },
    { what: 'GET on an operation, for JSON', url: edit, status: 405 },
    {
      what: 'a wrong content type before a missing token',
      method: 'POST',
      url: edit,
      headers: { 'content-type': 'application/json' },
      payload: '{}',
      status: 415,
    },
    {
      what: 'a body that is too large before a missing token',
      method: 'POST',
      url: edit,
      headers: { 'content-type': form },
      payload: `a=${'x'.repeat(1024 ** 2)}`,
      status: 413,
    },
    {
      what: 'a repeated field before a missing token',
      method: 'POST',
      url: edit,
      headers: { 'content-type': form },
      payload: 'a=1&a=2',
      status: 400,
      detail: 'a: is given more than once.',
    },
    {
      what: 'an unknown f before a missing token',
      method: 'POST',
      url: edit,
      headers: { 'content-type': form },
      payload: 'f=xml',
      status: 400,
      detail: 'f: must be one of json, pjson, html.',
    },
    { what: 'a malformed query before a missing token', url: '/admin?x=%zz', status: 400 },
    {
      what: 'a missing token before an unknown id',
      method: 'POST',
      url: '/admin/services/None.Such/edit',
      status: 401,
      code: 499,
    },
    {
      what: 'a bad token before an unknown id',
      method: 'POST',
      url: '/admin/services/None.Such/edit',
      headers: { authorization: 'Bearer nonsense' },
      status: 401,
      code: 498,
    },
    {
      what: 'a missing role before an unknown id',
      method: 'POST',
      url: '/admin/services/None.Such/edit',
      headers: { authorization: 'Bearer token-of-the-member' },
      status: 403,
    },
    {
      what: 'an unknown id before bad fields',
      method: 'POST',
      url: '/admin/services/None.Such/edit',
      headers: { authorization: 'Bearer token-of-the-publisher', 'content-type': form },
      payload: 'access=nobody',
      status: 404,
    },
    {
      what: 'bad fields',
      method: 'POST',
      url: edit,
      headers: { authorization: 'Bearer token-of-the-publisher', 'content-type': form },
      payload: 'access=nobody',
      status: 400,
      detail: 'access: must be one of public, organization, administrators.',
    },
  ];
  it.each(rows)(
    '$what → $status',
    async ({ method = 'GET', url, headers = {}, payload, status, code, detail }) => {
      const response = await server.http.inject({
        method,
        url,
        headers,
        ...(payload !== undefined && { payload }),
      });
      expect(response.statusCode).toBe(status);
      const body = response.json<Body>();
      expect(body.status).toBe('error');
      expect(body.error.code).toBe(code ?? status);
      expect(Array.isArray(body.error.details)).toBe(true);
      if (detail) expect(body.error.details).toContain(detail);
    },
  );

  it('read-only mode is checked after the role and before the id', async () => {
    const token = server.token('administrator');
    await server.post('/admin/mode/update', { token, isReadOnly: 'true', message: 'back at noon' });
    const publisher = { authorization: `Bearer ${server.token('publisher')}` };
    const refused = await server.post('/admin/services/None.Such/edit', {}, publisher);
    expect(refused.statusCode).toBe(503);
    expect(refused.headers['retry-after']).toBe('60');
    expect(refused.json<Body>().error.details).toEqual(['back at noon']);
    const member = await server.post(
      '/admin/services/None.Such/edit',
      {},
      { authorization: `Bearer ${server.token('member')}` },
    );
    expect(member.statusCode).toBe(403);
    await server.post('/admin/mode/update', { token, isReadOnly: 'false', message: '' });
  });
});

it('an unknown f is reported before a bad bearer token if the request has no body', async () => {
  expect((await server.get('/admin?f=xml', { authorization: 'Bearer nonsense' })).statusCode).toBe(400);
});

it('the server accepts a request target that is a whole URL, or has an encoded prefix', async () => {
  const own = await startServer({ env: { ADMIN_PATH: '/a/b' } });
  const { hostname, port } = new URL(await own.listen());
  const headers = { authorization: `Bearer ${own.token('member')}` };
  const statusOf = async (path: string) => {
    const request = httpRequest({ hostname, port, path, headers }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  };
  expect(await statusOf('http://localhost/a/b/mode')).toBe(200);
  expect(await statusOf('/%61/b/mode')).toBe(200);
  await own.close();
});

it('the form of a write operation is available in read-only mode', async () => {
  const own = await startServer();
  await own.post('/admin/mode/update', { token: own.token('administrator'), isReadOnly: 'true' });
  const headers = { cookie: 'steward_session=token-of-the-publisher', accept: 'text/html' };
  expect((await own.get('/admin/services/createFolder', headers)).statusCode).toBe(200);
  await own.close();
});

it('the Allow header names every allowed method', async () => {
  const operation = await server.get(edit);
  expect(operation.headers.allow).toBe('POST');
  const resource = await server.http.inject({ method: 'DELETE', url: '/admin' });
  expect(resource.headers.allow).toBe('GET, HEAD, POST');
});

it('the response lists every problem of a request', async () => {
  const token = server.token('publisher');
  const response = await server.post('/admin/services/createService', {
    token,
    folderName: 'Nowhere',
    serviceName: 'a/b',
    type: '1st',
    url: 'ftp://example.com',
    access: 'nobody',
  });
  expect(response.statusCode).toBe(400);
  expect(response.json<Body>().error.details.map((detail) => detail.split(':')[0])).toEqual([
    'serviceName',
    'type',
    'url',
    'access',
    'folderName',
  ]);
});

it('with ERROR_STATUS=200 JSON errors of REST have the status 200 and the same body', async () => {
  const lenient = await startServer({ env: { ERROR_STATUS: '200' } });
  const json = await lenient.get('/admin');
  expect(json.statusCode).toBe(200);
  expect(json.json<Body>().error.code).toBe(499);
  expect((await lenient.get('/tokens/nothing')).statusCode).toBe(200);
  expect((await lenient.get('/admin/services/%ff')).json<Body>().error.code).toBe(404);
  expect((await lenient.get('/admin/services/%ff')).statusCode).toBe(200);
  expect((await lenient.get('/admin', { accept: 'text/html' })).statusCode).toBe(401);
  expect((await lenient.get('/nothing')).statusCode).toBe(404);
  expect((await lenient.soap('<Nothing/>')).statusCode).toBe(500);
  await lenient.close();
});
