// The variants of SOAP requests that clients send, and the form of their answers.
import { describe, expect, it } from 'vitest';
import { gzipSync } from 'node:zlib';
import { perFile } from '../kit/cleanup.ts';
import { namespace, startServer } from '../kit/server.ts';
import { call, envelope, postTo, soap11, soap12 } from './soap-kit.ts';

const server = perFile(startServer);

const post = postTo(() => server);

describe('the SOAP endpoint accepts', () => {
  const plain = envelope(call('GetMessageVersion'));
  const rows: [string, string | Buffer, Record<string, string | undefined>?][] = [
    ['SOAPAction ""', plain, { soapaction: '""' }],
    ['SOAPAction "*"', plain, { soapaction: '"*"' }],
    ['another SOAPAction', plain, { soapaction: 'urn:whatever' }],
    ['application/xml', plain, { 'content-type': 'application/xml' }],
    ['no content type', plain, { 'content-type': undefined }],
    ['a quoted charset', plain, { 'content-type': 'TEXT/XML; charset="UTF-8"' }],
    ['a byte order mark', `\uFEFF${plain}`],
    [
      'UTF-16 little endian',
      Buffer.from(`\uFEFF<?xml version="1.0" encoding="utf-16"?>${plain}`, 'utf16le'),
      { 'content-type': 'text/xml; charset=utf-16' },
    ],
    ['UTF-16 big endian', Buffer.from(`\uFEFF${plain}`, 'utf16le').swap16(), { 'content-type': 'text/xml' }],
    ['gzip', gzipSync(plain), { 'content-encoding': 'gzip' }],
    [
      'a default namespace for everything',
      `<Envelope xmlns="${soap11}"><Body><GetMessageVersion xmlns="${namespace}"/></Body></Envelope>`,
    ],
    ['a prefix for the operation', envelope(`<x:GetMessageVersion xmlns:x="${namespace}"/>`)],
    [
      'encodingStyle and xsi:type',
      envelope(
        `<GetMessageVersion xmlns="${namespace}" xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns:t="${namespace}" i:type="t:x" xmlns:e="${soap11}" e:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"/>`,
      ),
    ],
    [
      'comments and white space',
      envelope(
        `\n <!-- hello --> <GetMessageVersion xmlns="${namespace}">\n<!-- nothing -->\n</GetMessageVersion>\n`,
      ),
    ],
    [
      'a header that need not be understood',
      `<e:Envelope xmlns:e="${soap11}"><e:Header><x xmlns="urn:x" e:mustUnderstand="0"/></e:Header><e:Body>${call('GetMessageVersion')}</e:Body></e:Envelope>`,
    ],
    [
      'a header for another actor',
      `<e:Envelope xmlns:e="${soap11}"><e:Header><x xmlns="urn:x" e:mustUnderstand="1" e:actor="urn:other"/></e:Header><e:Body>${call('GetMessageVersion')}</e:Body></e:Envelope>`,
    ],
    [
      'a foreign element after the 1.1 body',
      `<e:Envelope xmlns:e="${soap11}"><e:Body>${call('GetMessageVersion')}</e:Body><x xmlns="urn:x"/></e:Envelope>`,
    ],
  ];
  it.each(rows)('%s', async (_what, payload, headers) => {
    const response = await post(payload, headers);
    expect(response.statusCode, response.body).toBe(200);
    expect(response.headers['content-type']).toBe('text/xml; charset=utf-8');
    expect(response.body).toContain('<MessageVersion>svcProductVersion10</MessageVersion>');
    expect(response.body.startsWith('<?xml version="1.0" encoding="utf-8"?>')).toBe(true);
  });

  it('SOAP 1.2 by the namespace of the envelope, and answers in SOAP 1.2', async () => {
    for (const type of ['application/soap+xml; charset=utf-8; action=""', 'text/xml']) {
      const response = await post(envelope(call('GetMessageVersion'), soap12), { 'content-type': type });
      expect(response.headers['content-type']).toBe('application/soap+xml; charset=utf-8');
      expect(response.body).toContain(`<soap:Envelope xmlns:soap="${soap12}">`);
    }
  });
});
