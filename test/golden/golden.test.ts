// What goes over the wire, kept as files: each folder holds a request and the answer it must get, byte for byte.
// `GOLDEN=write npx vitest run test/golden` writes the answers anew, for reading before they are committed.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Server, startServer } from '../kit/server.ts';

let open: Server;
let guarded: Server;
beforeAll(async () => {
  open = await startServer();
  guarded = await startServer({ env: { REQUIRE_TOKENS: 'true' } });
});
afterAll(() => Promise.all([open.close(), guarded.close()]));

const foldersIn = (path: string) => readdirSync(new URL(path, import.meta.url)).sort();

function hold(path: string, actual: string): void {
  const file = new URL(path, import.meta.url);
  if (process.env.GOLDEN === 'write') writeFileSync(file, actual);
  expect(actual).toBe(readFileSync(file, 'utf8'));
}

describe('soap', () => {
  const soap12 = 'http://www.w3.org/2003/05/soap-envelope';

  /** Beside a request may lie what is unusual about it: method, query, content type, and the status it gets. */
  type Unusual = { method?: 'POST' | 'PUT'; query?: string; contentType?: string; status?: number };

  function unusual(name: string): Unusual {
    const file = new URL(`soap/${name}/request.json`, import.meta.url);
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Unusual) : {};
  }

  /** Folders whose name begins with Guarded are asked of a server that requires tokens. */
  it.each(foldersIn('soap/'))('%s', async (name) => {
    const payload = readFileSync(new URL(`soap/${name}/request.xml`, import.meta.url));
    const server = name.startsWith('Guarded') ? guarded : open;
    const type = payload.includes(soap12) ? 'application/soap+xml; charset=utf-8' : 'text/xml; charset=utf-8';
    const { method = 'POST', query = '', contentType = type, status } = unusual(name);
    const headers = { 'content-type': contentType };
    const response = await server.http.inject({ method, url: `/services${query}`, headers, payload });
    hold(`soap/${name}/response.xml`, `${response.body}\n`);
    expect(response.headers['content-type']).toBe(type);
    const isSender = response.body.includes('soap:Sender');
    const usual = response.body.includes('soap:Fault') ? (isSender ? 400 : 500) : 200;
    expect(response.statusCode).toBe(status ?? usual);
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
    hold(`rest/${name}/response.http`, `${response.statusCode}\ncontent-type: ${type}\n\n${response.body.trimEnd()}\n`);
  });
});
