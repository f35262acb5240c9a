// Answers are compressed for clients that accept gzip, except pages.
import Fastify from 'fastify';
import { expect, it } from 'vitest';
import { gunzipSync } from 'node:zlib';
import { sampleCatalog } from '../../src/catalog/sample.ts';
import { SharedAnswers } from '../../src/http/answers.ts';
import { call, envelope, postTo, soap12 } from '../catalog/soap-kit.ts';
import { perFile } from '../kit/cleanup.ts';
import { namespace, startServer } from '../kit/server.ts';

const service = {
  folderName: '/',
  type: 'MapServer',
  description: 'A service that many texts of the catalog describe.',
  capabilities: 'Map,Query,Data',
  parentType: '',
  url: null,
  access: 'public' as const,
};
const many = Array.from({ length: 100 }, (_, n) => ({ ...service, serviceName: `Many${n}` }));

const server = perFile(() =>
  startServer({
    catalog: { ...sampleCatalog, services: [...sampleCatalog.services, ...many] },
  }),
);

const post = postTo(() => server);
const get = (url: string, headers: Record<string, string> = {}) => server.http.inject({ url, headers });
const gzip = { 'accept-encoding': 'gzip, deflate, br' };
const asAdministrator = () => ({ authorization: `Bearer ${server.token('administrator')}` });
const descriptions = call('GetServiceDescriptions');

it.each([
  ['JSON', '/admin/services'],
  ['the OpenAPI document', '/admin/openapi.json'],
  ['the WSDL', '/services?wsdl'],
])('%s is compressed', async (_kind, url) => {
  const plain = await get(url, asAdministrator());
  expect(plain.headers).not.toHaveProperty('content-encoding');
  const { headers, rawPayload } = await get(url, { ...asAdministrator(), ...gzip });
  expect(headers).toMatchObject({
    'content-encoding': 'gzip',
    'content-type': plain.headers['content-type'],
    vary: 'accept-encoding',
  });
  expect(rawPayload.length).toBeLessThan(plain.rawPayload.length / 2);
  expect(gunzipSync(rawPayload).equals(plain.rawPayload)).toBe(true);
});

it.each(['1.1', '1.2'])(
  'a SOAP answer of version %s is compressed, and again after a change',
  async (version) => {
    const text = version === '1.1' ? envelope(descriptions) : envelope(descriptions, soap12);
    const plain = await post(text);
    const first = await post(text, gzip);
    expect(first.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(first.rawPayload).equals(plain.rawPayload)).toBe(true);
    expect((await post(text, gzip)).rawPayload.equals(first.rawPayload)).toBe(true);
    const changed = { folderName: '/', serviceName: `New in ${version}`, type: 'MapServer' };
    expect((await server.post('/admin/services/createService', changed, asAdministrator())).statusCode).toBe(
      200,
    );
    expect(gunzipSync((await post(text, gzip)).rawPayload).toString()).toContain(`New in ${version}`);
  },
);

it('bytes that many answers share are compressed once', async () => {
  let readings = 0;
  class Parts extends Array<Buffer> {
    override [Symbol.iterator]() {
      readings += 1;
      return super[Symbol.iterator]();
    }
  }
  const parts = Parts.of(Buffer.alloc(2048, 'a'));
  const answers = new SharedAnswers();
  const app = Fastify();
  app.get('/', (_request, reply) => answers.bodyFor(reply, parts, parts[0]));
  for (let requests = 0; requests < 3; requests += 1)
    expect((await app.inject({ url: '/', headers: gzip })).headers['content-encoding']).toBe('gzip');
  expect(readings).toBe(1);
  await app.close();
});

it('a SOAP answer in another namespace is not compressed', async () => {
  const other = envelope(`<GetServiceDescriptions xmlns="${namespace.replace('10.0', '9.3')}"/>`);
  const { headers, body } = await post(other, gzip);
  expect(headers).not.toHaveProperty('content-encoding');
  expect(body).toContain('Product/9.3');
});

it.each([
  ['a client that refuses gzip', '/admin/openapi.json', { 'accept-encoding': 'gzip;q=0, br' }],
  [
    'a client that prefers the plain text',
    '/admin/openapi.json',
    { 'accept-encoding': 'identity, gzip;q=0.5' },
  ],
  ['a short answer', '/health', gzip],
  ['a page', '/admin/services', { ...gzip, accept: 'text/html' }],
  ['an unknown path', '/none', gzip],
])('%s gets no compressed answer', async (_kind, url, headers) => {
  expect((await get(url, { ...asAdministrator(), ...headers })).headers).not.toHaveProperty(
    'content-encoding',
  );
});
