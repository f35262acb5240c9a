// Where a request may carry a token: header, field, cookie and form token, and what each allows.
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { Agent, type IncomingMessage, get, request as httpRequest } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { Role } from '../../src/lib/caller.ts';
import { perTest } from '../kit/cleanup.ts';
import { namespace, password, startServer } from '../kit/server.ts';
import type { Failure } from './tokens-kit.ts';

const server = perTest(startServer);

describe('tokens in requests', () => {
  const admin = { authorization: 'Bearer token-of-the-administrator' };

  it('the bearer header has precedence over the field, the field over the cookie', async () => {
    const users = '/admin/security/users';
    const member = 'token-of-the-member';
    const cookie = `steward_session=${member}`;
    expect((await server.get(`${users}?token=${member}`, admin)).statusCode).toBe(200);
    expect((await server.get(`${users}?token=token-of-the-administrator`, { cookie })).statusCode).toBe(200);
    expect((await server.get(users, { cookie })).statusCode).toBe(403);
    expect((await server.get(`${users}?token=`, { cookie })).statusCode).toBe(403);
  });

  it('the token is checked for every request of a connection', async () => {
    const address = await server.listen();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    const statusFor = (role: Role) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { authorization: `Bearer ${server.token(role)}` };
        get(`${address}/admin/security/users`, { agent, headers }, (response) => {
          ports.add(response.socket.localPort);
          response.resume().on('end', () => resolve(response.statusCode));
        }).on('error', reject);
      });
    expect(await statusFor('administrator')).toBe(200);
    expect(await statusFor('member')).toBe(403);
    expect(await statusFor('administrator')).toBe(200);
    await server.post('/tokens/revokeToken', { token: server.token('administrator') });
    expect(await statusFor('administrator')).toBe(401);
    expect(ports.size).toBe(1);
    agent.destroy();
  });

  it('the header of the vendor carries a bearer token too, in any case, after Authorization', async () => {
    const users = '/admin/security/users';
    const [low, high] = ['Bearer token-of-the-member', 'Bearer token-of-the-administrator'];
    expect((await server.get(users, { 'x-svc-authorization': high })).statusCode).toBe(200);
    expect((await server.get(`${users}?token=made-up`, { 'X-SVC-Authorization': high })).statusCode).toBe(
      200,
    );
    expect((await server.get(users, { authorization: low, 'x-svc-authorization': high })).statusCode).toBe(
      403,
    );
    const basic = { authorization: 'Basic dXNlcjpwYXNz', 'x-svc-authorization': high };
    expect((await server.post('/admin/mode/update', { isReadOnly: 'false' }, basic)).statusCode).toBe(200);
    expect((await server.get(users, { 'x-svc-authorization': 'Bearer nonsense' })).statusCode).toBe(401);
    expect((await server.get(users, { 'x-acme-authorization': high })).statusCode).toBe(401);
    const acme = await startServer({ env: { VENDOR_PREFIX: 'Acme', REQUIRE_TOKENS: 'true' } });
    expect((await acme.get(users, { 'x-acme-authorization': high })).statusCode).toBe(200);
    const called = await acme.soap(`<GetFolders xmlns="${namespace}"/>`, { 'X-Acme-Authorization': high });
    expect(called.body).toContain('<String>Operations</String>');
  });

  it.each([
    ['plain', 200],
    ['family', 498],
  ])('with PROFILE=%s a bound token in a field and no Referer gets %d', async (PROFILE, code) => {
    const strict = await startServer({ env: { PROFILE } });
    const signIn = { username: 'member', password, client: 'referer', f: 'json' };
    const issue = async (referer: string) =>
      (await strict.post('/admin/generateToken', { ...signIn, referer })).json<{ token: string }>().token;
    const codeOf = async (path: string, headers = {}) => {
      const answer = await strict.get(`${path}&f=json`, headers);
      return answer.json<Partial<Failure>>().error?.code ?? answer.statusCode;
    };
    const bound = await issue('https://app.example.com/page');
    const inField = `/admin?token=${bound}`;
    expect(await codeOf(inField)).toBe(code);
    expect(await codeOf(inField, { referer: 'https://app.example.com/' })).toBe(200);
    expect(await codeOf(inField, { referer: 'https://other.example.com/' })).toBe(498);
    expect(await codeOf('/admin?x=1', { authorization: `Bearer ${bound}` })).toBe(200);
    // A text that is no address has no origin.
    expect(await codeOf(`/admin?token=${await issue('referer')}`)).toBe(200);
  });

  it('other authorization schemes are ignored', async () => {
    const authorization = 'Basic dXNlcjpwYXNz';
    expect((await server.get('/admin', { authorization })).json<Failure>().error.code).toBe(499);
    expect((await server.get('/admin?token=token-of-the-member', { authorization })).statusCode).toBe(200);
  });

  it('the cookie alone allows reading only', async () => {
    const cookie = 'steward_session=token-of-the-administrator';
    expect((await server.get('/admin', { cookie })).statusCode).toBe(200);
    expect((await server.post('/admin', {}, { cookie })).json<Failure>().error.code).toBe(499);
    expect((await server.post('/admin/mode/update', { isReadOnly: 'true' }, { cookie })).statusCode).toBe(
      401,
    );
  });

  it('a form token allows POST, together with the cookie it belongs to', async () => {
    const session = 'token-of-the-administrator';
    const cookie = `steward_session=${session}`;
    const token = `form_${createHmac('sha256', session).update('form').digest('base64url')}`;
    const update = { token, isReadOnly: 'false' };
    expect((await server.post('/admin/mode/update', update, { cookie })).statusCode).toBe(200);
    expect((await server.post('/admin/mode/update', update)).json<Failure>().error.code).toBe(498);
    const other = { cookie: 'steward_session=token-of-the-publisher' };
    expect((await server.post('/admin/mode/update', update, other)).json<Failure>().error.code).toBe(498);
    expect((await server.get(`/admin?token=${token}`, { cookie })).json<Failure>().error.code).toBe(498);
    expect((await server.get('/admin', { authorization: `Bearer ${token}`, cookie })).statusCode).toBe(401);
  });

  it('a bad bearer token is refused before the body is read', async () => {
    const response = await server.http.inject({
      method: 'POST',
      url: '/admin/mode/update',
      headers: { authorization: 'Bearer nonsense', 'content-type': 'application/json' },
      payload: '{}',
    });
    expect(response.json<Failure>().error.code).toBe(498);
  });
});

it('a bearer token that is revoked while the body arrives is refused', async () => {
  const own = await startServer();
  const token = own.token('administrator');
  const body = 'isReadOnly=true';
  const request = httpRequest(`${await own.listen()}/admin/mode/update`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': body.length,
    },
  });
  request.write(body.slice(0, 5));
  await once(own.http.server, 'request');
  await own.post('/tokens/revokeToken', { token });
  request.end(body.slice(5));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(401);
  response.resume();
  expect((await own.get(`/admin/mode?token=${own.token('member')}`)).json()).toMatchObject({
    isReadOnly: false,
  });
});
