// The order of checks in docs/protocol.md#order-of-checks: path, method, body, form and f, token, role, read-only,
// ids, fields, state.
import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { describe, expect, it } from 'vitest';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const server = perFile(startServer);

type Body = { error: { code: number; message: string; details: string[] } };

const edit = '/admin/services/World.MapServer/edit';
const unknown = '/admin/services/None.Such/edit';

type Row = [what: string, request: string, rest: Request, status: number, expected?: Expected];
type Request = { type?: string; payload?: string; token?: string };
type Expected = { code?: number; detail?: string; allow?: string };

describe('the first check that fails determines the response', () => {
  it.each<Row>([
    [
      'an unknown path, even with a bad method, type and token',
      'PUT /admin/nothing',
      { type: 'text/plain', payload: 'x', token: 'nonsense' },
      404,
    ],
    ['a path below an operation', `POST ${edit}/more`, {}, 404],
    ['a path that cannot be decoded', 'GET /admin/services/%ff', {}, 404],
    ['an empty segment', 'GET /admin//services', {}, 404],
    ['a wrong method before a wrong content type', `PUT ${edit}`, { type: 'text/plain', payload: 'x' }, 405],
    ['GET on an operation, for JSON', `GET ${edit}`, {}, 405, { allow: 'POST' }],
    ['DELETE on a resource', 'DELETE /admin', {}, 405, { allow: 'GET, HEAD, POST' }],
    [
      'a wrong content type before a missing token',
      `POST ${edit}`,
      { type: 'application/json', payload: '{}' },
      415,
    ],
    [
      'a body that is too large before a missing token',
      `POST ${edit}`,
      { payload: `a=${'x'.repeat(1024 ** 2)}` },
      413,
    ],
    [
      'a repeated field before a missing token',
      `POST ${edit}`,
      { payload: 'a=1&a=2' },
      400,
      { detail: 'a: is given more than once.' },
    ],
    [
      'an unknown f before a missing token',
      `POST ${edit}`,
      { payload: 'f=xml' },
      400,
      { detail: 'f: must be one of json, pjson, html.' },
    ],
    ['an unknown f before a bad token, without a body', 'GET /admin?f=xml', { token: 'nonsense' }, 400],
    ['a malformed query before a missing token', 'GET /admin?x=%zz', {}, 400],
    ['a missing token before an unknown id', `POST ${unknown}`, {}, 401, { code: 499 }],
    ['a bad token before an unknown id', `POST ${unknown}`, { token: 'nonsense' }, 401, { code: 498 }],
    ['a missing role before an unknown id', `POST ${unknown}`, { token: 'token-of-the-member' }, 403],
    [
      'an unknown id before bad fields',
      `POST ${unknown}`,
      { token: 'token-of-the-publisher', payload: 'access=nobody' },
      404,
    ],
    [
      'bad fields',
      `POST ${edit}`,
      { token: 'token-of-the-publisher', payload: 'access=nobody' },
      400,
      { detail: 'access: must be one of public, organization, administrators.' },
    ],
  ])('%s: %s', async (_what, request, { type, payload, token }, status, expected = {}) => {
    const [method, url = ''] = request.split(' ');
    const response = await server.http.inject({
      method: method as 'GET',
      url,
      headers: {
        ...(payload !== undefined && { 'content-type': type ?? 'application/x-www-form-urlencoded' }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(payload !== undefined && { payload }),
    });
    const { error } = response.json<Body>();
    expect([response.statusCode, error.code]).toEqual([status, expected.code ?? status]);
    if (expected.detail) expect(error.details).toContain(expected.detail);
    if (expected.allow) expect(response.headers.allow).toBe(expected.allow);
  });

  it('read-only mode is checked after the role and before the id, and forms are shown', async () => {
    const token = server.token('administrator');
    await server.post('/admin/mode/update', { token, isReadOnly: 'true', message: 'back at noon' });
    const publisher = { authorization: `Bearer ${server.token('publisher')}` };
    const refused = await server.post(unknown, {}, publisher);
    expect(refused.statusCode).toBe(503);
    expect(refused.headers['retry-after']).toBe('60');
    expect(refused.json<Body>().error.details).toEqual(['back at noon']);
    const member = { authorization: `Bearer ${server.token('member')}` };
    expect((await server.post(unknown, {}, member)).statusCode).toBe(403);
    // The form is available.
    const browser = { cookie: 'steward_session=token-of-the-publisher', accept: 'text/html' };
    expect((await server.get('/admin/services/createFolder', browser)).statusCode).toBe(200);
    await server.post('/admin/mode/update', { token, isReadOnly: 'false', message: '' });
  });
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

it('with PROFILE=family JSON errors of REST have the status 200 and the same body', async () => {
  const lenient = await startServer({ env: { PROFILE: 'family' } });
  const json = await lenient.get('/admin?f=json');
  expect(json.statusCode).toBe(200);
  expect(json.json<Body>().error.code).toBe(499);
  expect((await lenient.get('/tokens/nothing')).statusCode).toBe(200);
  expect((await lenient.get('/admin/nothing?f=json')).json<Body>().error.code).toBe(404);
  expect((await lenient.get('/admin/nothing?f=json')).statusCode).toBe(200);
  expect((await lenient.get('/admin', { accept: 'text/html' })).statusCode).toBe(401);
  expect((await lenient.get('/nothing')).statusCode).toBe(404);
  expect((await lenient.soap('<Nothing/>')).statusCode).toBe(500);
});
