// Every request takes the same path through Fastify: routes, hooks, log and metrics.
import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { describe, expect, it } from 'vitest';
import { walk } from '../../src/rest/tree.ts';
import { call, envelope, soap12 } from '../catalog/soap-kit.ts';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const server = perFile(startServer);

describe('a method that a path does not allow', () => {
  it.each([
    ['/health', 'GET, HEAD'],
    ['/metrics', 'GET, HEAD'],
    ['/admin/openapi.json', 'GET, HEAD'],
    ['/admin/assets/steward.css', 'GET, HEAD'],
    ['/admin/services/Maps', 'GET, HEAD, POST'],
    ['/admin/services/webhooks/settings/', 'GET, HEAD, POST'],
    ['/tokens/generateToken', 'GET, HEAD, POST'],
    ['/services', 'GET, HEAD, POST'],
  ])('%s allows %s', async (url, allow) => {
    for (const method of ['DELETE', 'OPTIONS', 'QUERY', 'PROPFIND']) {
      const response = await server.http.inject({ method: method as 'GET', url });
      expect(response.statusCode).toBe(405);
      expect(response.headers.allow).toBe(allow);
    }
  });

  it('is a fault at the SOAP endpoint, in the version of the request', async () => {
    const send = (type: string) =>
      server.http.inject({ method: 'PUT', url: '/services', headers: { 'content-type': type } });
    expect((await send('text/xml')).body).toContain('<faultcode>soap:Client</faultcode>');
    expect((await send('application/soap+xml')).body).toContain('<soap:Value>soap:Sender</soap:Value>');
  });
});

it('a request target that is not a path gets the usual error body', async () => {
  const { hostname, port } = new URL(await server.listen());
  const request = httpRequest({ hostname, port, path: 'http://' }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(404);
  const body = Buffer.concat((await response.toArray()) as Buffer[]).toString();
  expect(JSON.parse(body)).toMatchObject({ status: 'error', error: { code: 404, details: [] } });
});

it('an address below the SOAP endpoint gets the usual error body, not a fault', async () => {
  const response = await server.get('/services/Roads/MapServer');
  expect(response.statusCode).toBe(404);
  expect(response.json()).toMatchObject({ status: 'error', error: { code: 404 } });
});

it('every resource and operation is a Fastify route', () => {
  const routes = server.http.printRoutes({ commonPrefix: false });
  for (const name of ['createFolder', 'deleteImportedManifest', 'generateToken', 'rotateKey', 'history'])
    expect(routes).toContain(name);
  for (const [prefix, root] of Object.entries(server.app.trees)) {
    for (const { route, items, operation } of walk(root)) {
      if (items.length > 0) continue;
      const url = route === '' ? `/${prefix}` : `/${prefix}/${route}`;
      expect(server.http.hasRoute({ method: 'POST', url })).toBe(true);
      if (!operation) expect(server.http.hasRoute({ method: 'HEAD', url })).toBe(true);
    }
  }
});

describe('a SOAP call', () => {
  const kinds = [
    { name: 'that succeeds', body: envelope(call('GetFolders')), type: 'text/xml', status: 200 },
    {
      name: 'of version 1.2 that fails',
      body: envelope(call('Other'), soap12),
      type: 'application/soap+xml',
      status: 400,
    },
    { name: 'of another content type', body: '{}', type: 'application/json', status: 415 },
    { name: 'that is too large', body: ' '.repeat(16 * 1024 + 1), type: 'text/xml', status: 413 },
  ];

  it.each(kinds)('$name is logged and counted once, and answered with nosniff', async (sent) => {
    const count = async () => {
      const line = `steward_http_requests_total{method="POST",route="/services",status="${sent.status}"} `;
      const { body } = await server.get('/metrics');
      return Number(body.split(line)[1]?.split('\n')[0] ?? 0);
    };
    const before = await count();
    const lines = server.logLines.length;
    const response = await server.http.inject({
      method: 'POST',
      url: '/services',
      headers: { 'content-type': sent.type },
      payload: sent.body,
    });
    expect(response.statusCode).toBe(sent.status);
    expect(response.headers['x-content-type-options']).toBe('nosniff');
    const logged = server.logLines.slice(lines).map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatchObject({ method: 'POST', path: '/services', status: sent.status });
    expect(await count()).toBe(before + 1);
  });
});
