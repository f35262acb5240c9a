// Requests that the SOAP endpoint refuses, and their faults, except those in test/golden/soap.
import { describe, expect, it } from 'vitest';
import { gzipSync } from 'node:zlib';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';
import { call, envelope, postTo, soap11, soap12 } from './soap-kit.ts';

const server = perFile(startServer);

const post = postTo(() => server);

describe('a fault is returned for', () => {
  type Row = [string, string | Buffer, string, string, Record<string, string>?];
  const rows: Row[] = [
    ['text that is not XML', 'hello', 'Client', ''],
    ['an empty body', '', 'Client', 'The request has no body'],
    ['no Body', `<e:Envelope xmlns:e="${soap11}"/>`, 'Client', 'optional Header and then a Body'],
    [
      'two bodies',
      `<e:Envelope xmlns:e="${soap11}"><e:Body>${call('GetFolders')}</e:Body><e:Body/></e:Envelope>`,
      'Client',
      'a Body after its Body',
    ],
    ...['GetEverything', 'constructor', '__proto__'].map((name): Row => {
      const fault = `There is no operation ${name}.`;
      return [`the unknown operation ${name}`, envelope(call(name)), 'Client', fault];
    }),
    ['no namespace', envelope('<GetFolders/>'), 'Client', 'is in no namespace'],
    [
      'text in the Body',
      envelope(`hello${call('GetFolders')}`),
      'Client',
      'The element Body must not contain text.',
    ],
    ['thousands of nested elements', envelope('<a>'.repeat(5000)), 'Client', ''],
    ['broken gzip', 'not gzip', 'Client', 'not valid gzip', { 'content-encoding': 'gzip' }],
    [
      'an unknown charset',
      envelope(call('GetFolders')),
      'Client',
      'iso-8859-1',
      { 'content-type': 'text/xml; charset=iso-8859-1' },
    ],
    ...['1', 'maybe'].map((value): Row => {
      const header = `<e:Header><Sec xmlns="urn:sec" e:mustUnderstand="${value}"/></e:Header>`;
      const text = `<e:Envelope xmlns:e="${soap11}">${header}<e:Body>${call('GetFolders')}</e:Body></e:Envelope>`;
      return [`a header with mustUnderstand="${value}"`, text, 'MustUnderstand', 'Sec'];
    }),
  ];
  it.each(rows)('%s', async (_what, payload, code, fragment, headers) => {
    const response = await post(payload, headers);
    expect(response.statusCode).toBe(500);
    expect(response.headers['content-type']).toBe('text/xml; charset=utf-8');
    expect(response.body).toContain(`<faultcode>soap:${code}</faultcode>`);
    expect(response.body).toContain(fragment);
    // SOAP 1.1 allows no detail for faults about header blocks.
    expect(response.body.includes('<detail><Error xmlns=')).toBe(code === 'Client');
    expect(response.body).not.toMatch(/at .*\.[jt]s|node_modules/);
  });

  it.each([soap11, soap12])('header blocks before problems of the Body (%s)', async (version) => {
    const header = '<e:Header><Sec xmlns="urn:sec" e:mustUnderstand="1"/></e:Header>';
    const body = (inside: string) =>
      `<e:Envelope xmlns:e="${version}">${header}<e:Body>${inside}</e:Body></e:Envelope>`;
    for (const inside of ['', 'text', call('GetFolders').repeat(2)]) {
      expect((await post(body(inside))).body).toContain('soap:MustUnderstand');
    }
  });

  it('a header block in the XML namespace, with its name', async () => {
    const header = '<e:Header><xml:Sec e:mustUnderstand="1"/></e:Header>';
    const response = await post(`<e:Envelope xmlns:e="${soap12}">${header}<e:Body/></e:Envelope>`);
    expect(response.body).toContain('<soap:NotUnderstood qname="xml:Sec"/>');
  });

  it('a SOAP 1.2 request without an envelope, with the supported envelopes', async () => {
    const response = await post('<foo/>', { 'content-type': 'application/soap+xml' });
    expect(response.statusCode).toBe(500);
    expect(response.body).toContain('<soap:Value>soap:VersionMismatch</soap:Value>');
    expect(response.body).toContain(`<soap:SupportedEnvelope qname="e:Envelope" xmlns:e="${soap12}"/>`);
  });

  it('a request that is too large, compressed or not, with status 413', async () => {
    const large = envelope(`<!--${'x'.repeat(100_000)}-->${call('GetFolders')}`);
    for (const response of [await post(large), await post(gzipSync(large), { 'content-encoding': 'gzip' })]) {
      expect(response.statusCode).toBe(413);
      expect(response.body).toContain('<faultstring>A request must be at most 16384 bytes.</faultstring>');
    }
  });

  it('another content type or encoding, with status 415', async () => {
    expect((await post('{}', { 'content-type': 'application/json' })).statusCode).toBe(415);
    expect((await post('x', { 'content-encoding': 'br' })).statusCode).toBe(415);
  });
});
