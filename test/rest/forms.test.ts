// How parameters come in: query, urlencoded, multipart; f; blanks and repeats.
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prefersHtml } from '../../src/rest/reply.ts';
import { type Server, startServer } from '../kit/server.ts';

let server: Server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

type Part = { name: string; value: string | Buffer; filename?: string; type?: string };

function multipart(parts: Part[]): { headers: Record<string, string>; payload: Buffer } {
  const chunks = parts.flatMap(({ name, value, filename, type }) => [
    Buffer.from(
      `--xyz\r\nContent-Disposition: form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}\r\n` +
        (type === undefined ? '' : `Content-Type: ${type}\r\n`) +
        '\r\n',
    ),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ]);
  return {
    headers: { 'content-type': 'multipart/form-data; boundary=xyz' },
    payload: Buffer.concat([...chunks, Buffer.from('--xyz--\r\n')]),
  };
}

function send(url: string, body: { headers: Record<string, string>; payload: Buffer | string }) {
  return server.http.inject({ method: 'POST', url, ...body });
}

const token = 'token-of-the-administrator';
const mode = '/admin/mode';
const details = (response: { json: () => unknown }) =>
  (response.json() as { error: { details: string[] } }).error.details;

describe('multipart', () => {
  it('serves every operation as well as urlencoded', async () => {
    const parts = [
      { name: 'token', value: token },
      { name: 'folderName', value: 'Überblick' },
    ];
    expect((await send('/admin/services/createFolder', multipart(parts))).json()).toEqual({
      status: 'success',
    });
    const folder = await server.get(`/admin/services/${encodeURIComponent('Überblick')}?token=${token}`);
    expect(folder.json()).toEqual({ folderName: 'Überblick', description: '', folders: [], services: [] });
  });

  it('reads a text field that comes as a file part', async () => {
    const response = await send(mode, multipart([{ name: 'token', value: token, filename: 'token.txt' }]));
    expect(response.statusCode).toBe(200);
  });

  it('reads a text field that calls itself JSON as the text it is', async () => {
    const parts = [
      { name: 'token', value: token },
      { name: 'isReadOnly', value: 'FALSE', type: 'application/json' },
      { name: 'message', value: '{"a": 1.0,"b":12345678901234567890}', type: 'application/json' },
      { name: 'other', value: '{', type: 'application/json' },
    ];
    expect((await send('/admin/mode/update', multipart(parts))).statusCode).toBe(200);
    const { message } = (await server.get(`${mode}?token=${token}`)).json<{ message: string }>();
    expect(message).toBe('{"a": 1.0,"b":12345678901234567890}');
    await server.post('/admin/mode/update', { token, isReadOnly: 'false', message: '' });
  });

  it('tells an empty text, which empties, from an empty file, which is absent', async () => {
    await server.post('/admin/mode/update', { token, isReadOnly: 'false', message: 'kept' });
    const update = (part: Part) => [
      { name: 'token', value: token },
      { name: 'isReadOnly', value: 'false' },
      part,
    ];
    const message = async () =>
      (await server.get(`${mode}?token=${token}`)).json<{ message: string }>().message;
    await send('/admin/mode/update', multipart(update({ name: 'message', value: '', filename: '' })));
    expect(await message()).toBe('kept');
    await send('/admin/mode/update', multipart(update({ name: 'message', value: '' })));
    expect(await message()).toBe('');
  });

  it.each(['constructor', '__proto__', 'toString'])('ignores a part called %s', async (name) => {
    const parts = [
      { name, value: 'x' },
      { name: 'token', value: token },
      { name: `${name}2`, value: 'y', filename: 'f' },
    ];
    expect((await send(mode, multipart(parts))).statusCode).toBe(200);
  });

  it('takes an empty file part for an absent field', async () => {
    const response = await send(mode, multipart([{ name: 'token', value: '', filename: '' }]));
    expect(response.statusCode).toBe(401);
  });

  it('ignores unknown fields and files', async () => {
    const parts = [
      { name: 'token', value: token },
      { name: 'other', value: 'x' },
      { name: 'file', value: Buffer.alloc(100_000), filename: 'x.bin' },
    ];
    expect((await send(mode, multipart(parts))).statusCode).toBe(200);
  });

  it('refuses a repeated field', async () => {
    const parts = [
      { name: 'token', value: token },
      { name: 'token', value: token },
    ];
    const response = await send(mode, multipart(parts));
    expect(response.statusCode).toBe(400);
    expect(details(response)).toEqual(['token: is given more than once.']);
  });

  it.each([
    ['a field of more than 1 MiB', [{ name: 'token', value: 'x'.repeat(1024 ** 2 + 1) }], 413],
    [
      'a text of more than 1 MiB in a file part',
      [{ name: 'token', value: 'x'.repeat(1024 ** 2 + 1), filename: 'a' }],
      413,
    ],
    [
      'a file larger than a file may be',
      [{ name: 'x', value: Buffer.alloc(10 * 1024 ** 2 + 1), filename: 'a' }],
      413,
    ],
    ['65 parts', Array.from({ length: 65 }, (_, i) => ({ name: `p${i}`, value: '' })), 413],
    [
      'a file part that is not UTF-8',
      [{ name: 'token', value: Buffer.from([0xff, 0xfe]), filename: 'a' }],
      400,
    ],
    ['a part that is not UTF-8', [{ name: 'token', value: Buffer.from([0xff, 0xfe]) }], 400],
  ])('answers %s', async (_what, parts, status) => {
    const response = await send(mode, multipart(parts));
    expect(response.statusCode).toBe(status);
    expect(details(response)).toHaveLength(1);
  });

  it('takes 64 parts and a text of 1 MiB', async () => {
    const parts = Array.from({ length: 62 }, (_, i) => ({ name: `p${i}`, value: '' }));
    const whole = [...parts, { name: 'token', value: token }, { name: 'x', value: 'x'.repeat(1024 ** 2) }];
    expect((await send(mode, multipart(whole))).statusCode).toBe(200);
  });

  it.each([
    [
      'a body cut short',
      'multipart/form-data; boundary=xyz',
      '--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\nx',
    ],
    ['a missing boundary', 'multipart/form-data', '--xyz--'],
    ['a boundary that is not there', 'multipart/form-data; boundary=abc', '--xyz--\r\n'],
    ['no multipart at all', 'multipart/form-data; boundary=xyz', 'hello'],
  ])('refuses %s as malformed', async (_what, type, payload) => {
    const response = await send(mode, { headers: { 'content-type': type }, payload });
    expect(response.statusCode).toBe(400);
  });

  it('reads 16 forms of callers without a good bearer header at once, and gives each 60 seconds', async () => {
    const own = await startServer();
    const address = new URL(await own.listen());
    const open = () => {
      const request = httpRequest({
        ...{ host: address.hostname, port: address.port, path: mode, method: 'POST' },
        headers: { 'content-type': 'multipart/form-data; boundary=xyz' },
      });
      request.write('--xyz\r\n');
      const status = new Promise<number>((resolve) => {
        request.on('response', (response) => resolve(response.resume().statusCode ?? 0));
        request.on('error', () => resolve(0));
      });
      return { request, status };
    };
    let arrived = 0;
    own.http.server.on('request', () => (arrived += 1));
    const slow = Array.from({ length: 16 }, open);
    await expect.poll(() => arrived).toBe(16);
    const seventeenth = await own.http.inject({ method: 'POST', url: mode, ...multipart([]) });
    expect(seventeenth.statusCode).toBe(503);
    // The limit is one for all trees.
    const elsewhere = await own.http.inject({ method: 'POST', url: '/tokens/revokeToken', ...multipart([]) });
    expect(elsewhere.statusCode).toBe(503);
    const good = multipart([]);
    good.headers.authorization = `Bearer ${own.token('member')}`;
    expect((await own.http.inject({ method: 'POST', url: mode, ...good })).statusCode).toBe(200);
    await own.world.advance(60_000);
    expect(await Promise.all(slow.map(({ status }) => status))).toEqual(Array(16).fill(400));
    for (const { request } of slow) request.destroy();
    await own.close();
  });
});

describe('urlencoded and query', () => {
  it.each([
    ['a bad percent escape', 'token=%zz', 'token: must be percent-encoded UTF-8 text.'],
    ['bytes that are not UTF-8', 'token=%ff', 'token: must be percent-encoded UTF-8 text.'],
    ['a repeated field', 'f=json&f=json', 'f: is given more than once.'],
    ['a name that is none', '%zz=1', 'A field name: must be percent-encoded UTF-8 text.'],
    ['a long name', `${'x'.repeat(500)}=%zz`, `${'x'.repeat(64)}: must be percent-encoded UTF-8 text.`],
  ])('refuses %s', async (_what, payload, problem) => {
    const response = await send(mode, {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload,
    });
    expect(response.statusCode).toBe(400);
    expect(details(response)).toEqual([problem]);
  });

  it('tells every field that is wrong', async () => {
    const payload = 'a=1&a=2&b=%zz&c=3';
    const response = await send(mode, {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload,
    });
    expect(details(response)).toEqual([
      'a: is given more than once.',
      'b: must be percent-encoded UTF-8 text.',
    ]);
  });

  it('needs no content type for an empty POST', async () => {
    const response = await server.http.inject({
      method: 'POST',
      url: mode,
      headers: { authorization: `Bearer ${token}` },
    });
    expect(response.statusCode).toBe(200);
  });

  it('tells an empty body from one without a content type also where no length is given', async () => {
    const own = await startServer();
    const address = `${await own.listen()}${mode}`;
    const post = async (chunks: string[]) => {
      const body = ReadableStream.from(chunks.map((chunk) => Buffer.from(chunk)));
      const request = { method: 'POST', body, duplex: 'half', headers: { authorization: `Bearer ${token}` } };
      return (await fetch(address, request as RequestInit)).status;
    };
    expect(await post([])).toBe(200);
    expect(await post(['a', 'b'])).toBe(415);
    await own.close();
  });

  it('reads only f from the query of a POST, and only where the form has none', async () => {
    expect((await server.post(`${mode}?token=${token}`)).statusCode).toBe(401);
    expect((await server.post(`${mode}?f=pjson`, { token })).body).toContain('\n  "isReadOnly"');
    expect((await server.post(`${mode}?f=pjson`, { token, f: 'json' })).body).not.toContain('\n');
    expect((await server.post(`${mode}?x=1&x=2&y=%zz`, { token })).statusCode).toBe(200);
  });

  it('ignores one trailing slash everywhere', async () => {
    for (const path of ['/health', '/admin', '/admin/mode', '/admin/services/Maps', '/tokens']) {
      expect((await server.get(`${path}/?token=${token}`)).statusCode, path).toBe(200);
    }
    expect((await server.get('/services/?wsdl')).statusCode).toBe(200);
    expect((await server.get(`/admin/mode//?token=${token}`)).statusCode).toBe(404);
  });

  it('keeps names that mean something to JavaScript apart', async () => {
    const response = await server.post(mode, { token, ['__proto__']: 'x', constructor: 'y', toString: 'z' });
    expect(response.statusCode).toBe(200);
    expect((await server.get(`/admin/constructor?token=${token}`)).statusCode).toBe(404);
    expect((await server.get(`/admin/__proto__?token=${token}`)).statusCode).toBe(404);
  });
});

describe('the response format', () => {
  it.each([
    ['json', 'application/json; charset=utf-8'],
    ['PJSON', 'application/json; charset=utf-8'],
    ['Html', 'text/html; charset=utf-8'],
  ])('f=%s', async (f, type) => {
    expect((await server.get(`${mode}?token=${token}&f=${f}`)).headers['content-type']).toBe(type);
  });

  it.each([
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
    ['*/*', false],
    ['application/json', false],
    ['text/html;q=0.5, application/json', false],
    ['text/*, application/json;q=0.9', true],
    ['TEXT/HTML', true],
    ['text/html;q=nonsense', false],
    ['', false],
  ])('Accept: %s prefers HTML: %s', (accept, expected) => {
    expect(prefersHtml(accept)).toBe(expected);
  });

  it('sends JSON that nobody may keep, sniff or read from another site', async () => {
    const { headers } = await server.get(`${mode}?token=${token}`);
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(headers).not.toHaveProperty('access-control-allow-origin');
  });

  it('answers HEAD like GET without a body', async () => {
    const own = await startServer();
    const response = await fetch(`${await own.listen()}${mode}?token=${token}`, { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-length')).toBe('47');
    expect(await response.text()).toBe('');
    await own.close();
  });
});
