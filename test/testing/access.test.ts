// Who may call the control API: programs on this machine and pages of this server, with the token if one is configured.
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { startControl } from './kit.ts';

const token = 'a-token-of-the-tests';
const form = 'application/x-www-form-urlencoded';
const open = await startControl();
const guarded = await startControl({
  TEST_CONTROL_TOKEN: token,
  PUBLIC_URL: 'http://steward.example:8080/base',
});

/** fetch sends no Host and no Origin of its own choice. */
function statusOf(
  url: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(url, { headers, method }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

describe('without a token', () => {
  it.each([
    [{}, 200],
    [{ host: 'localhost' }, 200],
    [{ host: '[::1]:80' }, 200],
    [{ host: 'steward.example' }, 403],
    [{ host: '127.0.0.1.attacker.example' }, 403],
    [{ host: 'localhost.attacker.example' }, 403],
    [{ origin: 'http://attacker.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'sec-fetch-site': 'same-origin', origin: open.url }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{ 'x-forwarded-for': '192.0.2.1' }, 403],
    [{ 'X-Forwarded-Host': 'localhost' }, 403],
    [{ forwarded: 'for=192.0.2.1' }, 403],
  ])('headers %j give %i', async (headers, status) => {
    expect(await statusOf(`${open.url}/control/clock`, headers)).toBe(status);
    expect(await statusOf(`${open.url}/control`, headers)).toBe(status);
  });
});

describe('with TEST_CONTROL_TOKEN', () => {
  const authorization = `Bearer ${token}`;
  it.each([
    [{}, 401],
    [{ authorization: 'Bearer wrong' }, 401],
    [{ authorization: `Bearer ${guarded.token}` }, 401],
    [{ authorization }, 200],
    [{ authorization, host: 'steward.example:8080' }, 200],
    [{ authorization, 'x-forwarded-for': '192.0.2.1' }, 200],
    [{ authorization, host: 'other.example' }, 403],
  ])('headers %j give %i', async (headers, status) => {
    for (const path of ['', '/clock', '/snapshot'])
      expect(await statusOf(`${guarded.url}/control${path}`, headers), path).toBe(status);
  });
});

describe('a request', () => {
  it.each([
    ['POST', '/control/reset', {}, 415],
    ['POST', '/control/reset', { 'content-type': 'text/plain' }, 415],
    ['PUT', '/control/snapshot', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['POST', '/control/reset', { 'content-type': 'application/json; charset=utf-8' }, 200],
    ['POST', '/control?do=clear', { 'content-type': 'application/json', origin: open.url }, 415],
    ['POST', '/control?do=clear', { 'content-type': form }, 403],
    ['POST', '/control?do=clear', { 'content-type': form, origin: 'http://attacker.example' }, 403],
    ['POST', '/control?do=clear', { 'content-type': form, 'sec-fetch-site': 'none' }, 403],
    ['POST', '/control?do=clear', { 'content-type': form, origin: open.url }, 303],
    ['POST', '/control?do=clear', { 'content-type': form, 'sec-fetch-site': 'same-origin' }, 303],
    ['POST', '/control?do=nothing', { 'content-type': form, origin: open.url }, 400],
    ['GET', '/control/reset', {}, 405],
    ['POST', '/control/snapshot', { 'content-type': 'application/json' }, 405],
    ['GET', '/control/none', {}, 404],
    ['GET', '/control/', {}, 200],
    ['HEAD', '/control/clock', {}, 200],
    ['GET', '/controls', {}, 404],
  ])('%s %s with %j gives %i', async (method, path, headers, status) => {
    expect(await statusOf(open.url + path, headers, method)).toBe(status);
  });

  it('with two Host headers is refused', async () => {
    const socket = connect(Number(new URL(open.url).port), '127.0.0.1');
    socket.end(
      'GET /control/clock HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    );
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('Host: must be given once.');
  });

  it('gets the error body of the REST API and no CORS header', async () => {
    const response = await open.raw('/reset');
    expect(await response.json()).toEqual({
      status: 'error',
      error: { code: 405, message: 'The method GET is not allowed here.', details: [] },
    });
    expect(response.headers.get('allow')).toBe('POST');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('the log warns at the start', () => {
    expect(open.logLines.join('')).toContain('TEST_CONTROL is on');
  });
});
