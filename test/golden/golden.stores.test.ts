// Compares responses with golden files: every folder holds a request and the expected response, byte for byte.
// `GOLDEN=write npx vitest run test/golden` overwrites the responses; review the differences before committing them.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const open = perFile(startServer);
const guarded = perFile(() => startServer({ env: { REQUIRE_TOKENS: 'true' } }));
const family = perFile(() => startServer({ env: { PROFILE: 'family' } }));
const guardedFamily = perFile(() => startServer({ env: { REQUIRE_TOKENS: 'true', PROFILE: 'family' } }));

const foldersIn = (path: string) => readdirSync(new URL(path, import.meta.url)).sort();

function expectGolden(path: string, actual: string): void {
  const file = new URL(path, import.meta.url);
  if (process.env.GOLDEN === 'write') writeFileSync(file, actual);
  expect(actual).toBe(readFileSync(file, 'utf8'));
}

describe('soap', () => {
  const soap12 = 'http://www.w3.org/2003/05/soap-envelope';

  /** request.json beside a request overrides the method, query, content type and expected status. */
  type Overrides = { method?: 'POST' | 'PUT'; query?: string; contentType?: string; status?: number };

  function overridesOf(name: string): Overrides {
    const file = new URL(`soap/${name}/request.json`, import.meta.url);
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Overrides) : {};
  }

  const forms = [
    { file: 'response.xml', isFamily: false },
    { file: 'response-family.xml', isFamily: true },
  ];

  /** Requests in folders that begin with Guarded go to a server that requires tokens. */
  it.each(foldersIn('soap/').flatMap((name) => forms.map((form) => ({ name, ...form }))))('$name/$file', async ({ name, file, isFamily }) => {
    const payload = readFileSync(new URL(`soap/${name}/request.xml`, import.meta.url));
    const plain = name.startsWith('Guarded') ? guarded : open;
    const server = isFamily ? (name.startsWith('Guarded') ? guardedFamily : family) : plain;
    const type = payload.includes(soap12) ? 'application/soap+xml; charset=utf-8' : 'text/xml; charset=utf-8';
    const { method = 'POST', query = '', contentType = type, status } = overridesOf(name);
    const headers = { 'content-type': contentType };
    const response = await server.http.inject({ method, url: `/services${query}`, headers, payload });
    expectGolden(`soap/${name}/${file}`, `${response.body}\n`);
    expect(response.headers['content-type']).toBe(type);
    const isSender = response.body.includes('soap:Sender');
    const defaultStatus = response.body.includes('soap:Fault') ? (isSender ? 400 : 500) : 200;
    expect(response.statusCode).toBe(status ?? defaultStatus);
  });
});

describe('rest', () => {
  /** A request file: the request line, headers, an empty line, the body. */
  it.each(foldersIn('rest/'))('%s', async (name) => {
    const [head = '', payload = ''] = readFileSync(new URL(`rest/${name}/request.http`, import.meta.url), 'utf8').split('\n\n');
    const [line = '', ...headerLines] = head.trim().split('\n');
    const [method, url] = line.split(' ') as ['GET', string];
    const headers = Object.fromEntries(headerLines.map((header) => header.split(': ') as [string, string]));
    const response = await open.http.inject({ method, url, headers, payload: payload.trim() });
    const type = String(response.headers['content-type']);
    expectGolden(`rest/${name}/response.http`, `${response.statusCode}\ncontent-type: ${type}\n\n${response.body.trimEnd()}\n`);
  });
});
