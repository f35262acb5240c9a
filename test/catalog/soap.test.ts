// The answers of the SOAP operations that list the catalog, the WSDL, and the catalog cache.
import { describe, expect, it } from 'vitest';
import { CatalogCache } from '../../src/catalog/catalog-cache.ts';
import { services } from '../../src/catalog/catalog.ts';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';
import { call, envelope, namesIn, postTo } from './soap-kit.ts';

const server = perFile(startServer);

const post = postTo(() => server);

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
  ])('%s (%s) lists the services of the root only', async (inside) => {
    expect(namesIn(await ex(inside))).toEqual(['Geometry', 'Places', 'World']);
  });

  it.each([
    ['<FolderName>Maps</FolderName>', 'qualified'],
    ['<FolderName xmlns="">Maps</FolderName>', 'unqualified'],
    ['<x:FolderName xmlns:x="urn:other">Maps</x:FolderName>', 'in another namespace'],
    ['<FolderName><![CDATA[Ma]]>&#112;s</FolderName>', 'as CDATA and references'],
  ])('%s (%s) lists the services of the folder', async (inside) => {
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

it('services are sorted: root first, then by folder, name and type; addresses are percent-encoded', async () => {
  const texts = { description: '', capabilities: '', parentType: '' };
  const service = { ...texts, folderName: '/', url: null, access: 'public' } as const;
  const own = await startServer({
    env: { PUBLIC_URL: 'https://example.com/ops' },
    catalog: {
      folders: [{ folderName: 'Plän & Co', description: '' }],
      services: [
        { ...service, folderName: 'Plän & Co', serviceName: 'b c', type: 'T', description: '<&>' },
        { ...service, serviceName: 'z', type: 'U' },
        { ...service, serviceName: 'z', type: 'T', url: 'http://a.example/?x=1&y=2' },
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
});

describe('GET', () => {
  it.each(['?wsdl', '?WSDL', '?Wsdl=1', '?x=1&wsdl'])('%s returns the WSDL', async (query) => {
    const response = await server.get(`/services${query}`);
    expect(response.headers['content-type']).toBe('text/xml; charset=utf-8');
    expect(response.body).toContain('<soap:address location="http://localhost:8080/services"/>');
  });
});

it('names contain VENDOR_PREFIX and PRODUCT_NAME', async () => {
  const own = await startServer({ env: { VENDOR_PREFIX: 'acme', PRODUCT_NAME: 'Widget' } });
  const body = '<GetMessageVersion xmlns="http://www.example.com/schemas/Widget/10.0"/>';
  expect((await own.soap(body)).body).toContain('<MessageVersion>acmeWidgetVersion10</MessageVersion>');
  const wsdl = (await own.get('/services?wsdl')).body;
  expect(wsdl).toContain('<xs:simpleType name="acmeWidgetVersion">');
  expect(wsdl).not.toMatch(/svc|Product|\{/);
});

it('the catalog cache keeps a value until the catalog changes', async () => {
  const catalogCache = new CatalogCache(server.store, server.runtime);
  let made = 0;
  const read = async () => String(await catalogCache.content('text', () => [String((made += 1))]));
  expect([await read(), await read(), await read()]).toEqual(['1', '1', '1']);
  const [service] = server.store.all(services);
  if (service) await server.store.update((transaction) => transaction.put(services, service));
  expect(await Promise.all([read(), read()])).toEqual(['2', '2']);
});
