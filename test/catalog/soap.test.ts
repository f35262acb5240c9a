// The seven operations over the wire (spec 4.2, contract 7).
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLibrarian } from '../../src/catalog/librarian.ts';
import { services } from '../../src/catalog/catalog.ts';
import { type Server, namespace, startServer } from '../kit/server.ts';

let server: Server;
let guarded: Server;
beforeAll(async () => {
  server = await startServer();
  guarded = await startServer({ env: { REQUIRE_TOKENS: 'true' } });
});
afterAll(() => Promise.all([server.close(), guarded.close()]));

const soap11 = 'http://schemas.xmlsoap.org/soap/envelope/';
const soap12 = 'http://www.w3.org/2003/05/soap-envelope';
const operations = ['GetMessageVersion', 'GetMessageFormats', 'GetTokenServiceURL', 'RequiresTokens'];
const guardedOperations = ['GetFolders', 'GetServiceDescriptions', 'GetServiceDescriptionsEx'];

function post(payload: string | Buffer, headers: Record<string, string | undefined> = {}, url = '/services') {
  const given = Object.entries({ 'content-type': 'text/xml; charset=utf-8', ...headers }).filter(
    ([, value]) => value,
  );
  return server.http.inject({
    method: 'POST',
    url,
    headers: Object.fromEntries(given) as Record<string, string>,
    payload,
  });
}

const envelope = (body: string, version = soap11) =>
  `<e:Envelope xmlns:e="${version}"><e:Body>${body}</e:Body></e:Envelope>`;
const call = (name: string, inside = '') => `<${name} xmlns="${namespace}">${inside}</${name}>`;
const namesIn = (body: string) => [...body.matchAll(/<Name>(.*?)<\/Name>/g)].map(([, name]) => name);

describe('requests of every manner are understood', () => {
  const plain = envelope(call('GetMessageVersion'));
  const rows: [string, string | Buffer, Record<string, string | undefined>?][] = [
    ['SOAPAction ""', plain, { soapaction: '""' }],
    ['SOAPAction "*"', plain, { soapaction: '"*"' }],
    ['SOAPAction of another kind', plain, { soapaction: 'urn:whatever' }],
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
      'another version of the namespace',
      envelope('<GetMessageVersion xmlns="http://www.example.com/schemas/Product/9.3"/>'),
    ],
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
      'a header for somebody else',
      `<e:Envelope xmlns:e="${soap11}"><e:Header><x xmlns="urn:x" e:mustUnderstand="1" e:actor="urn:somebody"/></e:Header><e:Body>${call('GetMessageVersion')}</e:Body></e:Envelope>`,
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

  it('SOAP 1.2 is answered in kind, by the namespace of the envelope', async () => {
    for (const type of ['application/soap+xml; charset=utf-8; action=""', 'text/xml']) {
      const response = await post(envelope(call('GetMessageVersion'), soap12), { 'content-type': type });
      expect(response.headers['content-type']).toBe('application/soap+xml; charset=utf-8');
      expect(response.body).toContain(`<soap:Envelope xmlns:soap="${soap12}">`);
    }
  });

  it('a client of another version is answered in its own namespace', async () => {
    const old = 'http://www.example.com/schemas/Product/9.3';
    const response = await post(envelope(`<GetFolders xmlns="${old}"/>`));
    expect(response.body).toContain(`<GetFoldersResponse xmlns="${old}"><FolderNames><String>Maps</String>`);
  });
});

describe('GetServiceDescriptionsEx', () => {
  const ex = async (inside: string) => (await post(envelope(call('GetServiceDescriptionsEx', inside)))).body;

  it.each([
    ['', 'absent'],
    ['<FolderName/>', 'empty'],
    ['<FolderName>/</FolderName>', 'a slash'],
    ['<FolderName xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"/>', 'nil'],
    [
      '<FolderName xmlns:i="http://www.w3.org/1999/XMLSchema-instance" i:null="1"/>',
      'null of an older schema',
    ],
  ])('%s (%s) is the root, its own services only', async (inside) => {
    expect(namesIn(await ex(inside))).toEqual(['Geometry', 'Places', 'World']);
  });

  it.each([
    ['<FolderName>Maps</FolderName>', 'qualified'],
    ['<FolderName xmlns="">Maps</FolderName>', 'unqualified'],
    ['<x:FolderName xmlns:x="urn:other">Maps</x:FolderName>', 'in another namespace'],
    ['<FolderName><![CDATA[Ma]]>&#112;s</FolderName>', 'as CDATA and references'],
  ])('%s (%s) is that folder', async (inside) => {
    expect(namesIn(await ex(inside))).toEqual([
      'Maps/Boundaries',
      'Maps/Boundaries',
      'Maps/Elevation',
      'Maps/Roads',
    ]);
  });

  it.each([
    ['<FolderName>maps</FolderName>', 'There is no folder named maps.'],
    ['<FolderName>Operations</FolderName>', 'There is no folder named Operations.'],
    [
      '<FolderName>Maps</FolderName><FolderName>Maps</FolderName>',
      'The argument FolderName is given more than once.',
    ],
    [
      '<Folder>Maps</Folder>',
      'GetServiceDescriptionsEx has no argument Folder; its arguments are FolderName.',
    ],
    ['<FolderName><b>Maps</b></FolderName>', 'The argument FolderName must be text; it holds a b.'],
    ['Maps', 'The element GetServiceDescriptionsEx must not contain text.'],
  ])('%s is a Client fault', async (inside, message) => {
    expect(await ex(inside)).toContain(
      `<faultcode>soap:Client</faultcode><faultstring>${message}</faultstring>`,
    );
  });
});

it('services are listed root first, then by folder, name and type, with addresses percent-encoded', async () => {
  const own = await startServer({
    env: { PUBLIC_URL: 'https://example.com/ops' },
    catalog: {
      folders: [{ folderName: 'Plän & Co', description: '' }],
      services: [
        {
          folderName: 'Plän & Co',
          serviceName: 'b c',
          type: 'T',
          description: '<&>',
          capabilities: '',
          parentType: '',
          url: null,
          access: 'public',
        },
        {
          folderName: '/',
          serviceName: 'z',
          type: 'U',
          description: '',
          capabilities: '',
          parentType: '',
          url: null,
          access: 'public',
        },
        {
          folderName: '/',
          serviceName: 'z',
          type: 'T',
          description: '',
          capabilities: '',
          parentType: '',
          url: 'http://a.example/?x=1&y=2',
          access: 'public',
        },
      ],
    },
  });
  const { body } = await own.soap(call('GetServiceDescriptions'));
  expect(namesIn(body)).toEqual(['z', 'z', 'Plän &amp; Co/b c']);
  expect([...body.matchAll(/<Url>(.*?)<\/Url>/g)].map(([, url]) => url)).toEqual([
    'http://a.example/?x=1&amp;y=2',
    'https://example.com/ops/services/z/U',
    'https://example.com/ops/services/Pl%C3%A4n%20%26%20Co/b%20c/T',
  ]);
  expect(body).toContain('<Description>&lt;&amp;&gt;</Description>');
  await own.close();
});

describe('tokens', () => {
  it.each(operations)('%s never needs one and ignores one', async (name) => {
    expect((await guarded.soap(call(name))).statusCode).toBe(200);
    expect((await guarded.soap(call(name), {}, '?token=nonsense')).statusCode).toBe(200);
  });

  it.each(guardedOperations)('%s needs a good one where tokens are required', async (name) => {
    const missing = await guarded.soap(call(name));
    expect(missing.statusCode).toBe(500);
    expect(missing.body).toContain(
      `<detail><Error xmlns="${namespace}"><Code>499</Code><Message>Token required.</Message></Error></detail>`,
    );
    const bad = await guarded.soap(call(name), { authorization: 'Bearer nonsense' });
    expect(bad.body).toContain('<Code>498</Code>');
    expect((await guarded.soap(call(name), {}, '?token=token-of-the-member')).statusCode).toBe(200);
    const twice = await guarded.soap(call(name), {}, '?token=token-of-the-member&token=token-of-the-member');
    expect(twice.body).toContain('<Code>498</Code>');
  });

  it.each(guardedOperations)('%s checks one that is given where none is required', async (name) => {
    expect((await server.soap(call(name), {}, '?token=nonsense')).body).toContain('<Code>498</Code>');
  });

  it.each([
    [undefined, 9],
    ['member', 11],
    ['publisher', 11],
    ['administrator', 12],
  ] as const)('%s sees %d services', async (role, count) => {
    const headers: Record<string, string> = role ? { authorization: `Bearer ${server.token(role)}` } : {};
    expect(namesIn((await server.soap(call('GetServiceDescriptions'), headers)).body)).toHaveLength(count);
  });

  it('a session cookie counts for nothing here', async () => {
    const cookie = { cookie: 'steward_session=token-of-the-administrator' };
    expect((await guarded.soap(call('GetFolders'), cookie)).body).toContain('<Code>499</Code>');
  });

  it('RequiresTokens tells, GetTokenServiceURL where to get one', async () => {
    expect((await server.soap(call('RequiresTokens'))).body).toContain('<Result>false</Result>');
    expect((await guarded.soap(call('RequiresTokens'))).body).toContain('<Result>true</Result>');
    expect((await guarded.soap(call('GetTokenServiceURL'))).body).toContain(
      '<TokenServiceURL>http://localhost:8080/tokens/generateToken</TokenServiceURL>',
    );
  });
});

describe('what cannot be served is a proper fault', () => {
  const rows: [string, string | Buffer, string, string, Record<string, string>?][] = [
    ['no XML', 'hello', 'Client', ''],
    ['an empty body', '', 'Client', 'The request has no body'],
    ['a DOCTYPE', `<!DOCTYPE x>${envelope(call('GetFolders'))}`, 'Client', 'DOCTYPE'],
    ['another document', '<a/>', 'Client', 'The document is a a, not a SOAP Envelope.'],
    ['an envelope of another version', '<Envelope xmlns="urn:other"/>', 'VersionMismatch', 'urn:other'],
    ['no Body', `<e:Envelope xmlns:e="${soap11}"/>`, 'Client', 'optional Header and then a Body'],
    ['an empty Body', envelope(''), 'Client', 'The Body is empty'],
    [
      'two bodies',
      `<e:Envelope xmlns:e="${soap11}"><e:Body>${call('GetFolders')}</e:Body><e:Body/></e:Envelope>`,
      'Client',
      'a Body after its Body',
    ],
    [
      'two operations',
      envelope(call('GetFolders') + call('RequiresTokens')),
      'Client',
      'it also has a RequiresTokens',
    ],
    [
      'an unknown operation',
      envelope(call('GetEverything')),
      'Client',
      'There is no operation GetEverything.',
    ],
    [
      'an operation called constructor',
      envelope(call('constructor')),
      'Client',
      'There is no operation constructor.',
    ],
    [
      'an operation called __proto__',
      envelope(call('__proto__')),
      'Client',
      'There is no operation __proto__.',
    ],
    [
      'a wrong namespace',
      envelope('<GetFolders xmlns="urn:x"/>'),
      'Client',
      `is in the namespace urn:x; it must be in ${namespace}.`,
    ],
    ['no namespace', envelope('<GetFolders/>'), 'Client', 'is in no namespace'],
    [
      'an argument for an operation without any',
      envelope(call('GetFolders', '<A/>')),
      'Client',
      'GetFolders has no argument A; it takes none.',
    ],
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
    [
      'a header that must be understood',
      `<e:Envelope xmlns:e="${soap11}"><e:Header><Sec xmlns="urn:sec" e:mustUnderstand="1"/></e:Header><e:Body>${call('GetFolders')}</e:Body></e:Envelope>`,
      'MustUnderstand',
      'Sec',
    ],
    [
      'a mustUnderstand that is not a plain no',
      `<e:Envelope xmlns:e="${soap11}"><e:Header><Sec xmlns="urn:sec" e:mustUnderstand="maybe"/></e:Header><e:Body>${call('GetFolders')}</e:Body></e:Envelope>`,
      'MustUnderstand',
      'Sec',
    ],
  ];
  it.each(rows)('%s', async (_what, payload, code, fragment, headers) => {
    const response = await post(payload, headers);
    expect(response.statusCode).toBe(500);
    expect(response.headers['content-type']).toBe('text/xml; charset=utf-8');
    expect(response.body).toContain(`<faultcode>soap:${code}</faultcode>`);
    expect(response.body).toContain(fragment);
    // Programs find the code in the detail; about header blocks SOAP 1.1 allows none.
    expect(response.body.includes('<detail><Error xmlns=')).toBe(code === 'Client');
    expect(response.body).not.toMatch(/at .*\.[jt]s|node_modules/);
  });

  it.each([soap11, soap12])('header blocks are looked at before the Body (%s)', async (version) => {
    const header = '<e:Header><Sec xmlns="urn:sec" e:mustUnderstand="1"/></e:Header>';
    const body = (inside: string) =>
      `<e:Envelope xmlns:e="${version}">${header}<e:Body>${inside}</e:Body></e:Envelope>`;
    for (const inside of ['', 'text', call('GetFolders').repeat(2)]) {
      expect((await post(body(inside))).body).toContain('soap:MustUnderstand');
    }
  });

  it('a block in the namespace of XML itself is named as one', async () => {
    const header = '<e:Header><xml:Sec e:mustUnderstand="1"/></e:Header>';
    const response = await post(`<e:Envelope xmlns:e="${soap12}">${header}<e:Body/></e:Envelope>`);
    expect(response.body).toContain('<soap:NotUnderstood qname="xml:Sec"/>');
  });

  it('what is no envelope is a VersionMismatch to SOAP 1.2, with the envelopes that are understood', async () => {
    const response = await post('<foo/>', { 'content-type': 'application/soap+xml' });
    expect(response.statusCode).toBe(500);
    expect(response.body).toContain('<soap:Value>soap:VersionMismatch</soap:Value>');
    expect(response.body).toContain(`<soap:SupportedEnvelope qname="e:Envelope" xmlns:e="${soap12}"/>`);
  });

  it('in SOAP 1.2 the sender’s mistakes have 400, header blocks are named', async () => {
    const type = { 'content-type': 'application/soap+xml' };
    const sender = await post(envelope(call('GetEverything'), soap12), type);
    expect(sender.statusCode).toBe(400);
    expect(sender.body).toContain('<soap:Code><soap:Value>soap:Sender</soap:Value></soap:Code>');
    const header = `<e:Header><x:Sec xmlns:x="urn:sec" e:mustUnderstand="true"/></e:Header>`;
    const must = await post(
      `<e:Envelope xmlns:e="${soap12}">${header}<e:Body>${call('GetFolders')}</e:Body></e:Envelope>`,
      type,
    );
    expect(must.statusCode).toBe(500);
    expect(must.body).toContain('<soap:NotUnderstood qname="h:Sec" xmlns:h="urn:sec"/>');
    expect((await post('nonsense', type)).body).toContain('soap:Sender');
  });

  it('too large is 413 with a fault, compressed or not', async () => {
    const large = envelope(`<!--${'x'.repeat(100_000)}-->${call('GetFolders')}`);
    for (const response of [await post(large), await post(gzipSync(large), { 'content-encoding': 'gzip' })]) {
      expect(response.statusCode).toBe(413);
      expect(response.body).toContain('<faultstring>A request must be at most 16384 bytes.</faultstring>');
    }
  });

  it('another content type or encoding is 415', async () => {
    expect((await post('{}', { 'content-type': 'application/json' })).statusCode).toBe(415);
    expect((await post('x', { 'content-encoding': 'br' })).statusCode).toBe(415);
  });

  it('another method is 405', async () => {
    const response = await server.http.inject({ method: 'PUT', url: '/services', payload: 'x' });
    expect(response.statusCode).toBe(405);
    expect(response.headers.allow).toBe('GET, HEAD, POST');
    const unheardOf = await server.http.inject({ method: 'PROPFIND' as 'GET', url: '/services' });
    expect(unheardOf.statusCode).toBe(405);
  });

  it('an address beneath the catalog is not served', async () => {
    const response = await server.get('/services/Maps/Roads/MapServer');
    expect(response.statusCode).toBe(404);
    expect(response.json()).toMatchObject({ status: 'error', error: { code: 404 } });
  });
});

describe('GET', () => {
  it.each(['?wsdl', '?WSDL', '?Wsdl=1', '?x=1&wsdl'])('%s serves the WSDL', async (query) => {
    const response = await server.get(`/services${query}`);
    expect(response.headers['content-type']).toBe('text/xml; charset=utf-8');
    expect(response.body).toContain('<soap:address location="http://localhost:8080/services"/>');
  });

  it('without a query shows a page for people', async () => {
    const response = await server.get('/services');
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(response.body).toContain('href="http://localhost:8080/services?wsdl"');
    for (const name of [...operations, ...guardedOperations]) expect(response.body).toContain(name);
  });
});

it('the neutral words become the names configured', async () => {
  const own = await startServer({ env: { VENDOR_PREFIX: 'acme', PRODUCT_NAME: 'Widget' } });
  const body = '<GetMessageVersion xmlns="http://www.example.com/schemas/Widget/10.0"/>';
  expect((await own.soap(body)).body).toContain('<MessageVersion>acmeWidgetVersion10</MessageVersion>');
  const wsdl = (await own.get('/services?wsdl')).body;
  expect(wsdl).toContain('<xs:simpleType name="acmeWidgetVersion">');
  expect(wsdl).not.toMatch(/svc|Product|\{/);
  await own.close();
});

it('what is made from the catalog is kept until the catalog changes', async () => {
  const librarian = createLibrarian(server.store);
  let made = 0;
  const ask = () => librarian.keep('listing', () => (made += 1));
  expect([ask(), ask(), ask()]).toEqual([1, 1, 1]);
  const [service] = server.store.all(services);
  if (service) await server.store.update((transaction) => transaction.put(services, service));
  expect([ask(), ask()]).toEqual([2, 2]);
});
