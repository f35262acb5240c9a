// Addresses outside the two APIs, the log, time limits and internal errors.
import { beforeAll, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/lib/errors.ts';
import { ask } from '../hard/wire.ts';
import { perFile } from '../kit/cleanup.ts';
import { type Server, namespace, password, startServer } from '../kit/server.ts';
import { createTestStore } from '../kit/store.ts';

const server = perFile(startServer);

describe('probes', () => {
  it.each([
    ['/health', { status: 'ok' }],
    ['/ready', { status: 'ready', version: '0.0.0', commit: 'c0ffee' }],
  ])('%s answers GET and HEAD, and refuses POST', async (path, body) => {
    const response = await server.get(path);
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual(body);
    expect((await server.http.inject({ method: 'HEAD', url: path })).statusCode).toBe(200);
    const post = await server.post(path);
    expect(post.statusCode).toBe(405);
    expect(post.headers.allow).toBe('GET, HEAD');
  });

  it('/metrics counts requests by route and status, without ids or names', async () => {
    await server.get('/admin/services/Maps?token=token-of-the-member');
    await server.soap(`<GetFolders xmlns="${namespace}"/>`);
    await server.get('/nowhere/at/all');
    const { body, headers } = await server.get('/metrics');
    expect(headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(body).toContain(
      'steward_http_requests_total{method="GET",route="/admin/services/{folder}",status="200"} 1',
    );
    expect(body).toContain('steward_http_requests_total{method="POST",route="/services",status="200"} 1');
    expect(body).toContain('steward_http_requests_total{method="GET",route="unknown",status="404"} 1');
    expect(body).toContain('steward_http_request_duration_seconds_bucket{le="0.001"');
    expect(body).toContain('steward_build_info{version="0.0.0",commit="c0ffee"} 1');
    expect(body).toContain('\nsteward_ready 1\n');
    expect(body).not.toMatch(/Maps|nowhere/);
    const names = body.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(names.filter((line) => !line.startsWith('steward_'))).toEqual([]);
  });

  it('/metrics is rendered once a second at most', async () => {
    const busy = await startServer({ metricsMaxAgeMs: 60_000 });
    const [first, second] = await Promise.all([busy.get('/metrics'), busy.get('/metrics')]);
    await busy.get('/health');
    expect(second.body).toBe(first.body);
    expect((await busy.get('/metrics')).body).toBe(first.body);
  });

  it('/metrics is at METRICS_PORT only, without anything else', async () => {
    const divided = await startServer({ env: { METRICS_PORT: '0' } });
    expect((await divided.get('/metrics')).statusCode).toBe(404);
    await divided.get('/health');
    const listener = divided.app.metricsHttp;
    const { body } = (await listener?.inject({ url: '/metrics' })) ?? { body: '' };
    expect(body).toContain('steward_http_requests_total{method="GET",route="/health",status="200"} 1');
    for (const url of ['/', '/health', '/admin', '/services?wsdl'])
      expect((await listener?.inject({ url }))?.statusCode).toBe(404);
  });
});

describe('addresses', () => {
  it('/ redirects to the admin directory, below the path of PUBLIC_URL', async () => {
    expect((await server.get('/')).headers.location).toBe('/admin');
    const proxied = await startServer({ env: { PUBLIC_URL: 'https://example.com/ops' } });
    const response = await proxied.get('/');
    expect(response.statusCode).toBe(302);
    expect(response.headers.location).toBe('/ops/admin');
  });

  it('an unknown address gets 404 with the error body, or with a page for a browser', async () => {
    const json = await server.get('/nothing?token=secret');
    expect(json.statusCode).toBe(404);
    expect(json.json()).toEqual({
      status: 'error',
      error: { code: 404, message: 'There is nothing at this address.', details: [] },
    });
    const page = await server.get('/nothing', { accept: 'text/html' });
    expect(page.statusCode).toBe(404);
    expect(page.body).toContain('<!doctype html>');
    expect((await server.get('/%zz')).statusCode).toBe(404);
    expect((await server.post('/nothing', { a: 'b' })).statusCode).toBe(404);
    expect((await server.http.inject({ method: 'QUERY' as 'GET', url: '/nothing' })).statusCode).toBe(404);
    expect((await server.http.inject({ method: 'QUERY' as 'GET', url: '/health' })).statusCode).toBe(405);
  });

  it('with an empty ADMIN_PATH the admin directory is at the root', async () => {
    const own = await startServer({ env: { ADMIN_PATH: '', CATALOG_PATH: '/catalog' } });
    expect((await own.get('/?token=token-of-the-member')).json()).toMatchObject({ currentVersion: '10.9.1' });
    expect((await own.get('/services?token=token-of-the-member')).json()).toMatchObject({ folderName: '/' });
    expect((await own.get('/nothing')).statusCode).toBe(404);
    expect((await own.get('/health')).json()).toEqual({ status: 'ok' });
    expect((await own.get('/catalog?wsdl')).statusCode).toBe(200);
    const signedIn = await own.post('/tokens/generateToken', { username: 'member', password, f: 'html' });
    expect(signedIn.headers.location).toBe('/');
  });

  it('a directory without data of its own lists its resources', async () => {
    expect((await server.get('/admin/security?token=token-of-the-administrator')).json()).toEqual({
      resources: ['keys', 'self', 'users'],
    });
  });
});

describe('mode', () => {
  it('is set by an administrator, can be read by a member, and keeps its message', async () => {
    const own = await startServer();
    const token = own.token('administrator');
    const mode = async () => (await own.get(`/admin/mode?token=${own.token('member')}`)).json<unknown>();
    expect(await mode()).toEqual({ isReadOnly: false, reason: null, message: '' });
    await own.post('/admin/mode/update', { token, isReadOnly: 'TRUE', message: 'maintenance' });
    expect(await mode()).toEqual({ isReadOnly: true, reason: 'administrator', message: 'maintenance' });
    expect((await own.soap(`<GetFolders xmlns="${namespace}"/>`)).statusCode).toBe(200);
    await own.post('/admin/mode/update', { token, isReadOnly: 'false' });
    expect(await mode()).toEqual({ isReadOnly: false, reason: null, message: '' });
  });
});

it('the log contains no query, no token and no password', async () => {
  const own = await startServer();
  await own.get('/admin?token=token-of-the-member');
  await own.soap(`<GetFolders xmlns="${namespace}"/>`, {}, '?token=token-of-the-member');
  await own.get('/admin', {
    authorization: 'Bearer token-of-the-member',
    cookie: 'steward_session=token-of-the-member',
  });
  await own.post('/tokens/generateToken?password=another-secret', { username: 'member', password });
  await own.get('/nothing?token=token-of-the-member');
  await own.get('/health;token=token-of-the-member');
  await own.get('/admin%3Ftoken=token-of-the-member');
  await own.get('/%zz');
  const log = own.logLines.join('');
  expect(log).toContain('"path":"unknown"');
  expect(log).toContain('"path":"/admin"');
  expect(log).not.toMatch(/token-of-the|another-secret|\?/);
  expect(log).not.toContain(password);
});

describe('bytes of a request', () => {
  const authorization = 'Authorization: Bearer token-of-the-administrator\r\n';
  const own = perFile(() => startServer({ env: { TRUSTED_PROXIES: '127.0.0.1' } }));
  let port: number;
  beforeAll(async () => {
    port = Number(new URL(await own.listen()).port);
  });

  /** The response, and the path in the log. */
  async function send(target: string, headers = '', body = '') {
    own.logLines.length = 0;
    const method = body === '' ? 'GET' : 'POST';
    const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`;
    const head = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`;
    const answer = await ask(port, `${head}${authorization}${length}${headers}\r\n${body}`);
    const line = own.logLines[0] === undefined ? {} : (JSON.parse(own.logLines[0]) as { path?: string });
    return { status: answer?.status, body: answer?.body ?? '', path: line.path, log: own.logLines.join('') };
  }

  it.each([
    '/admin#x',
    '/admin#x/security/users',
    '/admin/mode#',
    '/admin?f=json#x',
    '/#',
    '/services#?wsdl',
    '/admin/services/Maps#',
    'http://host/admin#x',
  ])('the target %s is not found, because it contains #', async (target) => {
    expect(await send(target)).toMatchObject({ status: 404, path: 'unknown' });
  });

  it('a target with # changes nothing', async () => {
    const form = 'Content-Type: application/x-www-form-urlencoded\r\n';
    const added = 'username=ghost&password=a+good+password&role=member';
    expect((await send('/admin#x/security/users/add', form, added)).status).toBe(404);
    expect((await send('/admin/security/users')).body).not.toContain('ghost');
  });

  it.each([
    ['/admin&token=secret', 404, 'unknown'],
    ['/admin/%253ftoken=secret', 404, 'unknown'],
    ['/admin/token=secret', 404, 'unknown'],
    ['/secret', 404, 'unknown'],
    ['/admin/services/%zzsecret', 404, 'unknown'],
    ['//user:secret@host/admin', 404, 'unknown'],
    ['/admin/mode?token%3Dsecret', 200, '/admin/mode'],
    ['/admin/services/a&token=secret', 404, '/admin/services/a'],
    ['/admin/services/token=secret', 404, '/admin/services/token'],
    ['/admin/services/a%3Ftoken%3Dsecret', 404, '/admin/services/a'],
    ['/admin/services/a%253ftoken%253dsecret', 404, '/admin/services/a'],
    ['/admin/services/a%25253Ftoken=secret', 404, '/admin/services/a'],
    ['/admin/services/a%26token%3Dsecret', 404, '/admin/services/a'],
    ['/admin/services/a;token=secret', 404, '/admin/services/a'],
    ['HTTP://user:secret@host/admin', 200, '/admin'],
    ['http://user:secret@host/admin/mode?token=secret', 200, '/admin/mode'],
    ['http://user:secret@host', 302, '/'],
    ['http://user:secret@', 404, undefined],
  ])('%s gets %d and is logged as %s', async (target, status, path) => {
    const answer = await send(target);
    expect(answer).toMatchObject({ status, path });
    expect(answer.log).not.toContain('secret');
  });

  it('too many headers are refused, so that none is ignored', async () => {
    const forwarded = 'X-Forwarded-For: 192.0.2.1\r\n';
    const others = 'a:b\r\n'.repeat(2100);
    // Node 22 and newer answer 431 by themselves.
    expect((await send('/admin', others + forwarded)).status).toBeOneOf([400, 431]);
  });

  it.each([
    ['', 400],
    [' HTTP/0.9', 400],
    [' HTTP/2.0', 400],
    [' HTTP/1.0', 200],
  ])('a request line that ends with "%s" gets %d', async (version, status) => {
    const answer = await ask(port, `GET /health${version}\r\nHost: localhost\r\n\r\n`);
    expect(answer?.status).toBe(status);
  });

  it('bytes that are not HTTP get a short response, are counted, and logged once a second', async () => {
    const own = await startServer();
    const { port: ownPort } = new URL(await own.listen());
    const badHttp = () => own.logLines.filter((line) => line.includes('no HTTP'));
    for (let sent = 0; sent < 2; sent += 1) {
      const answer = await ask(Number(ownPort), 'NONSENSE\r\n\r\n');
      expect(answer?.status).toBe(400);
      expect(answer?.body).toContain('{"status":"error","error":{"code":400');
    }
    const facts = { level: 40, code: 'HPE_INVALID_METHOD', address: '127.0.0.1' };
    expect(badHttp().map((line) => JSON.parse(line) as unknown)).toMatchObject([facts]);
    expect((await own.get('/metrics')).body).toContain(
      'steward_http_parse_errors_total{code="HPE_INVALID_METHOD"} 2',
    );
    await own.runtime.advance(1000);
    await ask(Number(ownPort), 'NONSENSE\r\n\r\n');
    expect(badHttp()).toHaveLength(2);
  });

  it('two Host headers are refused', async () => {
    const answer = await send('/admin', 'hOsT: other\r\n');
    expect(answer.status).toBe(400);
    expect(answer.body).toContain('Host: must be given once.');
  });
});

it('the server sets time limits for clients', () => {
  const { headersTimeout, requestTimeout, keepAliveTimeout, timeout } = server.http.server;
  expect([headersTimeout, requestTimeout, keepAliveTimeout]).toEqual([10_000, 300_000, 72_000]);
  expect(timeout).toBe(120_000);
});

it('an internal error is logged with its stack, and the response does not reveal it', async () => {
  const own = await startServer();
  // A fault of SOAP 1.1 has status 500 too, and is not counted below.
  expect((await own.soap('<Unknown/>')).statusCode).toBe(500);
  Object.assign(own.store, {
    read: () => {
      throw new Error('the store exploded');
    },
  });
  const rest = await own.get('/admin/mode?token=token-of-the-member');
  expect(rest.statusCode).toBe(500);
  expect(rest.json()).toEqual({
    status: 'error',
    error: {
      code: 500,
      message: 'The server failed to handle this request.',
      details: [`The log of the server says more about the request ${String(rest.headers['x-request-id'])}.`],
    },
  });
  const page = await own.get('/admin/mode?token=token-of-the-member', { accept: 'text/html' });
  expect(page.statusCode).toBe(500);
  expect(page.body).toContain(`about the request ${String(page.headers['x-request-id'])}.`);
  Object.assign(own.store, {
    version: () => {
      throw new Error('the store exploded');
    },
  });
  const soap = await own.soap(`<GetFolders xmlns="${namespace}"/>`);
  expect(soap.statusCode).toBe(500);
  expect(soap.body).toContain('<faultcode>soap:Server</faultcode>');
  expect(soap.body).not.toContain('exploded');
  const logged = own.logLines.filter(
    (line) => line.includes('the store exploded') && line.includes('request failed'),
  );
  // The page of the error reads the store too, so its request is logged twice.
  expect(logged).toHaveLength(4);
  expect(logged[0]).toContain('"stack"');
  expect(logged[0]).toContain(`"requestId":"${String(rest.headers['x-request-id'])}"`);
  const { failures } = await own.app.loadMetrics();
  expect((await failures.get()).values).toMatchObject([{ value: 4 }]);
});

describe('the id of a request', () => {
  const idOf = async (own: Server, headers: Record<string, string> = {}) =>
    (await own.get('/health', headers)).headers['x-request-id'];

  it('is in the answer and in the log', async () => {
    const own = await startServer();
    const [first, second] = [await idOf(own), await idOf(own)];
    expect(first).not.toBe(second);
    const lines = own.logLines.filter((line) => line.includes('"path":"/health"'));
    expect(lines.map((line) => (JSON.parse(line) as { requestId: string }).requestId)).toEqual([
      first,
      second,
    ]);
  });

  it('comes from a trusted proxy only, and only if it is short and visible', async () => {
    expect(await idOf(server, { 'x-request-id': 'of-a-stranger' })).not.toBe('of-a-stranger');
    const own = await startServer({ env: { TRUSTED_PROXIES: '127.0.0.1' } });
    expect(await idOf(own, { 'x-request-id': 'of-the-proxy' })).toBe('of-the-proxy');
    for (const bad of ['two words', 'x'.repeat(129), ''])
      expect(await idOf(own, { 'x-request-id': bad })).toMatch(/^req-/);
  });
});

it.each([
  ['a warning', new ServiceError('unavailable', 'The database cannot be reached.'), 40],
  ['an error', new Error('a defect'), 50],
])('a background task that fails is logged as %s', async (_kind, error, level) => {
  const store = await createTestStore();
  store.deliveries.forgetEvents = () => Promise.reject(error);
  const failing = await startServer({ store });
  const logged = () => failing.logLines.map((line) => JSON.parse(line) as { level: number; task?: string });
  await expect.poll(logged).toContainEqual(
    expect.objectContaining({
      level,
      msg: 'background task failed',
      task: 'sweep of remembered event ids',
    }),
  );
  const { body } = await failing.get('/metrics');
  expect(body).toContain(`\nsteward_unexpected_failures_total ${level === 50 ? 1 : 0}\n`);
});
