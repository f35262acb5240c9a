// Parameters in queries and urlencoded forms, and the format of responses.
import { describe, expect, it } from 'vitest';
import { prefersHtml } from '../../src/http/answers.ts';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';
import { details, mode, sendTo, token } from './forms-kit.ts';

const server = perFile(startServer);

const send = sendTo(() => server);
const form = { 'content-type': 'application/x-www-form-urlencoded' };

describe('requests with a query or an urlencoded form', () => {
  it.each([
    ['a bad percent escape', 'token=%zz', ['token: must be percent-encoded UTF-8 text.']],
    ['bytes that are not UTF-8', 'token=%ff', ['token: must be percent-encoded UTF-8 text.']],
    ['a repeated field', 'f=json&f=json', ['f: is given more than once.']],
    ['an invalid name', '%zz=1', ['A field name: must be percent-encoded UTF-8 text.']],
    [
      'a bad value of a field with a long name, which the message truncates',
      `${'x'.repeat(500)}=%zz`,
      [`${'x'.repeat(64)}: must be percent-encoded UTF-8 text.`],
    ],
    [
      'all invalid fields at once',
      'a=1&a=2&b=%zz&c=3',
      ['a: is given more than once.', 'b: must be percent-encoded UTF-8 text.'],
    ],
  ])('are refused for %s', async (_what, payload, problems) => {
    const response = await send(mode, { headers: form, payload });
    expect(response.statusCode).toBe(400);
    expect(details(response)).toEqual(problems);
  });

  it.each(['gzip', 'br', 'deflate', 'nonsense', 'identity, gzip'])(
    'are refused with the content encoding %s',
    async (coding) => {
      for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
        const response = await send(mode, {
          headers: { 'content-type': type, 'content-encoding': coding },
          payload: `token=${token}`,
        });
        expect(response.statusCode).toBe(415);
        expect(details(response)).toEqual(['Content-Encoding: must be identity or absent.']);
      }
    },
  );

  it('may have the content encoding identity', async () => {
    const response = await send(mode, {
      headers: { ...form, 'content-encoding': 'Identity' },
      payload: `token=${token}`,
    });
    expect(response.statusCode).toBe(200);
  });

  it('need no content type if they are an empty POST', async () => {
    const response = await server.http.inject({
      method: 'POST',
      url: mode,
      headers: { authorization: `Bearer ${token}` },
    });
    expect(response.statusCode).toBe(200);
  });

  it('need a content type only if the body is not empty, also without a content length', async () => {
    const own = await startServer();
    const address = `${await own.listen()}${mode}`;
    const post = async (chunks: string[]) => {
      const body = ReadableStream.from(chunks.map((chunk) => Buffer.from(chunk)));
      const request = { method: 'POST', body, duplex: 'half', headers: { authorization: `Bearer ${token}` } };
      return (await fetch(address, request as RequestInit)).status;
    };
    expect(await post([])).toBe(200);
    expect(await post(['a', 'b'])).toBe(415);
  });

  it('may have fields of a POST in the query, in the body, or with the same value in both', async () => {
    expect((await server.post(`${mode}?token=${token}`)).statusCode).toBe(200);
    expect((await server.post(`${mode}?f=pjson`, { token })).body).toContain('\n  "isReadOnly"');
    expect((await server.post(`${mode}?f=json`, { token, f: 'json' })).statusCode).toBe(200);
    const differs = await server.post(`${mode}?f=pjson`, { token, f: 'json' });
    expect(differs.statusCode).toBe(400);
    expect(differs.json()).toMatchObject({
      error: { details: ['f: has another value in the query than in the body.'] },
    });
    for (const bad of ['x=1&x=2', 'y=%zz', 'f=json&f=json', 'token=1&token=2'])
      expect((await server.post(`${mode}?${bad}`, { token })).statusCode, bad).toBe(400);
    const both = await server.post(`${mode}/update?isReadOnly=true`, { token, message: 'In the body' });
    expect(both.statusCode).toBe(200);
    expect((await server.get(`${mode}?token=${token}`)).json()).toMatchObject({
      isReadOnly: true,
      message: 'In the body',
    });
    await server.post(`${mode}/update?isReadOnly=false&token=${token}`);
  });

  it.each(['password', 'newPassword', 'signatureKey', 'key'])(
    'must not have %s in the query of a POST',
    async (name) => {
      const answer = await server.post(`${mode}/update?isReadOnly=true&${name}=x`, { token });
      expect(answer.statusCode).toBe(400);
      expect(answer.json()).toMatchObject({
        error: { details: [`${name}: must be sent in the body, never in the address.`] },
      });
    },
  );

  it('may have one trailing slash in the path', async () => {
    for (const path of ['/health', '/admin', '/admin/mode', '/admin/services/Maps', '/tokens']) {
      expect((await server.get(`${path}/?token=${token}`)).statusCode, path).toBe(200);
    }
    expect((await server.get('/services/?wsdl')).statusCode).toBe(200);
    expect((await server.get(`/admin/mode//?token=${token}`)).statusCode).toBe(404);
  });

  it('may use the names of JavaScript properties, which have no effect', async () => {
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
  ])('for f=%s is %s', async (f, type) => {
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
  ])('for Accept: %s is HTML: %s', (accept, expected) => {
    expect(prefersHtml(accept)).toBe(expected);
  });

  it('has headers for JSON that forbid caching, sniffing and reading by other sites', async () => {
    const { headers } = await server.get(`${mode}?token=${token}`);
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(headers).not.toHaveProperty('access-control-allow-origin');
  });

  it('is the same for HEAD, without the body', async () => {
    const own = await startServer();
    const response = await fetch(`${await own.listen()}${mode}?token=${token}`, { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-length')).toBe('47');
    expect(await response.text()).toBe('');
  });
});
