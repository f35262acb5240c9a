// Requests that are in progress when the server closes.
import { once } from 'node:events';
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { call, envelope } from '../catalog/soap-kit.ts';
import { type Server, startServer } from '../kit/server.ts';

const soapBody = envelope(call('GetMessageVersion'));
const formBody = 'f=json&token=token-of-the-member';

const requests = [
  { name: 'a SOAP call', path: '/services', type: 'text/xml; charset=utf-8', body: soapBody },
  { name: 'a form', path: '/admin/mode', type: 'application/x-www-form-urlencoded', body: formBody },
];

/** Sends the first bytes of a request on a connection that is to be kept alive. */
async function begin(
  server: Server,
  { path, type, body }: (typeof requests)[number],
): Promise<ClientRequest> {
  const request = httpRequest(`${await server.listen()}${path}`, {
    method: 'POST',
    agent: new Agent({ keepAlive: true }),
    headers: { 'content-type': type, 'content-length': Buffer.byteLength(body) },
  });
  request.write(body.slice(0, 10));
  await once(server.http.server, 'request');
  return request;
}

describe.each(requests)('$name that is in progress when the server closes', (sent) => {
  it('is answered, and its connection is closed', async () => {
    const server = await startServer();
    const request = await begin(server, sent);
    const closed = server.close();
    request.end(sent.body.slice(10));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    expect(response.headers.connection).toBe('close');
    response.resume();
    await closed;
  });
});

it('a connection on which no request has come does not delay the end', async () => {
  const server = await startServer();
  const address = new URL(await server.listen());
  const accepted = once(server.http.server, 'connection');
  const socket = connect(Number(address.port), address.hostname);
  await accepted;
  await Promise.all([server.close(), once(socket, 'close')]);
});
