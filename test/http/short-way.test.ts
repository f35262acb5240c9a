// The short way of a SOAP call answers, counts and logs what the long one does, which a slash at the end is enough to take.
import { once } from 'node:events';
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, envelope, soap12 } from '../catalog/soap-kit.ts';
import { type Server, operationNames, startServer } from '../kit/server.ts';

let server: Server;
let address: string;
beforeAll(async () => {
  server = await startServer();
  address = await server.listen();
});
afterAll(() => server.close());

type RequestedFields = { headers?: Record<string, string>; body: string | Buffer };

const xml = { 'content-type': 'text/xml; charset=utf-8' };
const version = envelope(call('GetMessageVersion'));
const descriptions = envelope(call('GetServiceDescriptions'));
const by = (token: string) => ({ authorization: `Bearer ${token}` });

const table: Record<string, RequestedFields> = {
  ...Object.fromEntries(operationNames.map((name) => [name, { body: envelope(call(name)) }])),
  'a call with a token': { headers: by('token-of-the-member'), body: descriptions },
  'a token that is none': { headers: by('nonsense'), body: descriptions },
  'an argument': { body: envelope(call('GetServiceDescriptionsEx', '<FolderName>Nowhere</FolderName>')) },
  'an argument that it does not have': { body: envelope(call('GetFolders', '<Other/>')) },
  'SOAP 1.2': {
    headers: { 'content-type': 'application/soap+xml' },
    body: envelope(call('GetMessageVersion'), soap12),
  },
  'gzip data': { headers: { 'content-encoding': 'gzip' }, body: gzipSync(version) },
  'an encoding that nobody knows': { headers: { 'content-encoding': 'br' }, body: version },
  'another content type': { headers: { 'content-type': 'application/json' }, body: '{}' },
  'no body': { body: '' },
  'what is no XML': { body: '<a' },
  'what is no envelope': { body: '<a/>' },
  'an operation that there is not': { body: envelope(call('Other')) },
  'more than may be, as its length tells': { body: ' '.repeat(16 * 1024 + 1) },
  'more than may be, in chunks': {
    headers: { 'transfer-encoding': 'chunked' },
    body: ' '.repeat(16 * 1024 + 1),
  },
};

async function ask(path: string, { headers = {}, body }: RequestedFields) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const length = 'transfer-encoding' in headers ? {} : { 'content-length': Buffer.byteLength(body) };
    httpRequest(address + path, { method: 'POST', headers: { ...xml, ...headers, ...length } }, resolve)
      .on('error', reject)
      .end(body);
  });
  const chunks = (await response.toArray()) as Buffer[];
  const { date: _date, ...kept } = response.headers;
  return { status: response.statusCode, headers: kept, body: Buffer.concat(chunks).toString() };
}

/** The last line of the log, without what differs each time. */
function lastLogged(): unknown {
  const {
    time: _time,
    ms: _ms,
    path,
    ...line
  } = JSON.parse(server.logLines.at(-1) ?? '') as {
    [key: string]: unknown;
    path: string;
  };
  return { ...line, path: path.replace(/\/$/, '') };
}

async function counted(status: number | undefined): Promise<number> {
  const line = `steward_http_requests_total{method="POST",route="/services",status="${status}"} `;
  const metrics = (await server.get('/metrics')).body;
  return Number(
    metrics
      .split('\n')
      .find((candidate) => candidate.startsWith(line))
      ?.slice(line.length) ?? 0,
  );
}

describe('the short way', () => {
  it.each(Object.entries(table))('answers like the long one: %s', async (_name, asked) => {
    const long = await ask('/services/', asked);
    await expect.poll(lastLogged).toMatchObject({ status: long.status, path: '/services' });
    const loggedThen = lastLogged();
    const lines = server.logLines.length;
    const before = await counted(long.status);
    expect(await ask('/services', asked)).toEqual(long);
    await expect.poll(() => server.logLines.length).toBe(lines + 2);
    expect(JSON.parse(server.logLines[lines] ?? '')).toMatchObject({ path: '/metrics' });
    expect(lastLogged()).toEqual(loggedThen);
    expect(await counted(long.status)).toBe(before + 1);
  });

  it('ends the connection of a call that is answered while the server closes', async () => {
    const own = await startServer();
    const agent = new Agent({ keepAlive: true });
    const headers = { ...xml, 'content-length': version.length };
    const begun = httpRequest(`${await own.listen()}/services`, { method: 'POST', headers, agent });
    begun.write(version.slice(0, 10));
    await once(own.http.server, 'request');
    const closed = own.close();
    begun.end(version.slice(10));
    const [response] = (await once(begun, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    expect(response.headers.connection).toBe('close');
    response.resume();
    await closed;
  });
});
