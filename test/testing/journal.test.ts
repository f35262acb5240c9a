// The journal: every request with its answer, secrets masked, filters and limits.
import { connect } from 'node:net';
import { beforeEach, expect, it } from 'vitest';
import { Journal, noMessage } from '../../src/testing/journal.ts';
import { noteRecord, noteSecret } from '../kit/leaks.ts';
import { namespace } from '../kit/server.ts';
import { password } from '../kit/server.ts';
import { createWebhook, envelope, startControl } from './kit.ts';

const server = await startControl({ REQUIRE_TOKENS: 'true' });
const { control, send, post, soap } = server;
beforeEach(() => control.clearRequests());

const newest = async () => {
  const { requests } = await control.requests({ num: 1 });
  if (!requests[0]) throw new Error('The journal is empty.');
  return requests[0];
};

it('records requests and answers, newest first, without those to /control', async () => {
  await send('/admin/mode?f=pjson');
  await post('/admin/services/createFolder', { folderName: 'Kept' });
  await control.clock();
  const { requests, total } = await control.requests();
  expect(total).toBe(2);
  expect(requests).toMatchObject([
    { method: 'POST', route: '/admin/services/createFolder', request: { body: 'folderName=Kept' } },
    {
      method: 'GET',
      path: '/admin/mode?f=pjson',
      route: '/admin/mode',
      status: 200,
      soapOperation: null,
      fault: null,
      response: { headers: { 'content-type': 'application/json; charset=utf-8' } },
    },
  ]);
  expect(requests[1]?.response.body).toContain('"isReadOnly": false');
});

it('completes the entry of a request whose client leaves before its turn on the connection', async () => {
  await control.addFailure({ match: { route: '/admin/mode' }, respond: { delayMs: 60_000 }, times: 1 });
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  const body = envelope(`<GetMessageVersion xmlns="${namespace}"/>`);
  const head = `POST /services HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/xml\r\ncontent-length: ${body.length}`;
  socket.write(`GET /admin/mode HTTP/1.1\r\nhost: localhost\r\n\r\n${head}\r\n\r\n${body}`);
  await expect.poll(async () => (await control.requests()).total).toBe(2);
  socket.destroy();
  const completed = async () => (await control.requests({ soapOperation: 'GetMessageVersion' })).total;
  await expect.poll(completed).toBe(1);
});

it('filters by route, status and SOAP operation, in pages', async () => {
  await send('/admin/services/None.MapServer');
  await send('/admin/mode');
  await send('/unknown');
  await soap(`<GetMessageVersion xmlns="${namespace}"/>`);
  const paths = async (filter: object) => (await control.requests(filter)).requests.map(({ path }) => path);
  expect(await paths({ route: '/admin/services/{name}.{type}' })).toEqual(['/admin/services/None.MapServer']);
  expect(await paths({ status: 404 })).toEqual(['/unknown', '/admin/services/None.MapServer']);
  expect(await paths({ soapOperation: 'GetMessageVersion' })).toEqual(['/services']);
  expect(await paths({ start: 1, num: 2 })).toEqual(['/unknown', '/admin/mode']);
  await expect(control.requests({ num: 0 })).rejects.toThrow('num: must be an integer from 1 to 1000.');
  await expect(control.requests({ state: 1 } as object)).rejects.toThrow('state: is not known here.');
  await expect(control.requests({ route: '/admin/nope' })).rejects.toThrow('route: must be a path template');
  await expect(control.requests({ soapOperation: 'GetFoldr' })).rejects.toThrow(
    'soapOperation: must be one of GetMessageVersion, ',
  );
});

it('masks secrets in both directions', async () => {
  const given = 'another secret of the tests';
  const signedIn = await post('/tokens/generateToken', { username: 'admin', password });
  const { token } = (await signedIn.json()) as { token: string };
  const page = await send('/tokens/generateToken', {
    method: 'POST',
    body: new URLSearchParams({ username: 'admin', password, f: 'html' }),
    redirect: 'manual',
  });
  const cookie = /steward_session=([^;]+)/.exec(page.headers.get('set-cookie') ?? '')?.[1] ?? '';
  await send('/admin/services/createFolder', {
    headers: { cookie: `steward_session=${token}`, accept: 'text/html', authorization: 'none' },
  });
  await send(`/admin/mode?token=${token}`, { headers: { referer: `http://a.example/?token=${token}` } });
  await createWebhook(server, 'https://hooks.example/in', 'first');
  const form = new FormData();
  form.set('username', 'someone');
  form.set('password', given);
  form.set('role', 'member');
  await send('/admin/security/users/add', { method: 'POST', body: form });
  const json = {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: JSON.stringify({ password: given, customHeaders: { 'x-any': given } }),
  };
  await send('/admin/security/users/add', json);
  await post('/admin/security/self/changePassword', { password, newPassword: given });
  // The page shows the key, and the headers in its curl command.
  await post('/admin/services/webhooks/create', {
    name: 'second',
    hookUrl: 'https://hooks.example/in',
    changeTypes: '*',
    signatureKey: `key: ${given}`,
    headers: JSON.stringify({ 'x-any': given }),
    f: 'html',
  });
  const element = `<w:Password xmlns:w="urn:w" Type="Text">`;
  await soap(`<GetFolders xmlns="${namespace}">${element}${given}</w:Password></GetFolders>`);
  const text = JSON.stringify(await control.requests());
  for (const secret of [password, given, token, server.token, cookie]) {
    expect(secret).not.toBe('');
    expect(text).not.toContain(secret);
    expect(text).not.toContain(encodeURIComponent(secret).replaceAll('%20', '+'));
    noteSecret(secret);
  }
  expect(text).not.toMatch(/whsec_[A-Za-z0-9]|form_[A-Za-z0-9]/);
  expect(text).toContain('someone');
  noteRecord(text);
  await control.reset();
});

it('shows the operation, the reason and the element of SOAP faults', async () => {
  await soap(`<GetFolders xmlns="${namespace}"/>`);
  expect(await newest()).toMatchObject({
    soapOperation: 'GetFolders',
    fault: 'Token required.',
    faultElement: null,
  });
  await soap(`<GetVersion xmlns="${namespace}"/>`);
  expect(await newest()).toMatchObject({
    status: 500,
    soapOperation: 'GetVersion',
    faultElement: 'GetVersion',
  });
  expect((await newest()).fault).toMatch(/^There is no operation GetVersion\./);
  await soap(`<GetMessageVersion xmlns="${namespace}"><Wrong/></GetMessageVersion>`);
  expect(await newest()).toMatchObject({ faultElement: 'Wrong' });
  await soap(`<GetMessageVersion xmlns="${namespace}">`);
  expect(await newest()).toMatchObject({ soapOperation: null, faultElement: 'GetMessageVersion' });
  await control.addFailure({ match: { route: '/services' }, respond: { fault: 'Server' }, times: 1 });
  await soap(`<GetMessageVersion xmlns="${namespace}"/>`);
  expect(await newest()).toMatchObject({
    soapOperation: 'GetMessageVersion',
    fault: 'A failure rule answered this request.',
  });
});

it('keeps 64 KiB of a body, and the body of a refused request', async () => {
  await post('/admin/services/createFolder', { folderName: 'x'.repeat(100_000) });
  expect((await newest()).request.body).toHaveLength(64 * 1024);
  await send('/admin/mode/update', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"a":1}',
  });
  expect((await newest()).request.body).toBe('{"a":1}');
});

it('holds 1,000 requests and 32 MiB', () => {
  const journal = new Journal();
  const entry = (body: string) => ({
    at: 0,
    method: 'GET',
    path: '/',
    route: null,
    status: 200,
    soapOperation: null,
    fault: null,
    faultElement: null,
    request: { headers: {}, body },
    response: noMessage,
  });
  for (let number = 0; number < 1001; number += 1) journal.add(entry(''));
  expect(journal.page({}, 0, 1).total).toBe(1000);
  for (let number = 0; number < 600; number += 1) journal.complete(journal.add(entry('x'.repeat(64 * 1024))));
  expect(journal.page({}, 0, 1).total).toBeLessThan(260);
});

it('shows the beginning of a compressed answer as text', async () => {
  const { status } = await send('/admin/openapi.json', { headers: { 'accept-encoding': 'gzip' } });
  expect(status).toBe(200);
  const { response } = await newest();
  expect(response.headers['content-encoding']).toBe('gzip');
  expect(response.body).toMatch(/^\{"openapi":"3\.1/);
  expect(response.body).toHaveLength(64 * 1024);
});
