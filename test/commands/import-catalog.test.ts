// Tests `steward import-catalog`: the round trip with Steward, answers in other forms, and what it refuses.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readCatalogFile } from '../../src/app/catalog-file.ts';
import type { InitialCatalog } from '../../src/catalog/catalog.ts';
import { sampleCatalog } from '../../src/catalog/sample.ts';
import type { CommandError } from '../../src/commands/command-error.ts';
import { importCatalog } from '../../src/commands/import-catalog.ts';
import { answerLimits } from '../../src/commands/remote.ts';
import { type ServerOptions, startServer } from '../kit/server.ts';

async function start(options: ServerOptions) {
  const server = await startServer(options);
  onTestFinished(() => server.close());
  return server;
}

type Answer = { readonly status?: number; readonly headers?: Record<string, string>; readonly body: string };

/** A server that answers a SOAP operation, or `GET`, with what `answers` returns. */
async function startStub(answers: (operation: string, body: string) => Answer | undefined): Promise<string> {
  const stub = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const operation = /<(\w+) xmlns="/.exec(body)?.[1] ?? 'GET';
      const answer = answers(operation, body);
      if (!answer) return;
      response.writeHead(answer.status ?? 200, answer.headers ?? {});
      response.end(answer.body);
    });
  });
  await new Promise<void>((listening) => stub.listen(0, '127.0.0.1', listening));
  onTestFinished(() => {
    stub.closeAllConnections();
    stub.close();
  });
  return `http://127.0.0.1:${(stub.address() as AddressInfo).port}/catalog`;
}

/** Answers like Steward: with these elements of an operation. */
const envelope = (operation: string, content: string): Answer => ({
  body: `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><${operation}Response xmlns="urn:x">${content}</${operation}Response></e:Body></e:Envelope>`,
});
const golden = (name: string) =>
  readFileSync(new URL(`../golden/soap/${name}/response.xml`, import.meta.url), 'utf8');
const importPublic = (address: string, limits = answerLimits, env: Record<string, string> = {}) =>
  importCatalog({ address, token: undefined, access: 'public', env }, limits);

function readText(text: string): InitialCatalog {
  const result = readCatalogFile(text);
  if ('problems' in result) throw new Error(JSON.stringify(result.problems));
  return result.catalog;
}

const trickyCatalog: InitialCatalog = {
  folders: [
    ...sampleCatalog.folders,
    { folderName: 'Ärchiv & Co', description: '' },
    { folderName: 'Empty', description: '' },
  ],
  services: [
    ...sampleCatalog.services,
    {
      folderName: 'Ärchiv & Co',
      serviceName: "v1.2 'old' 🗺",
      type: 'MapServer',
      description: 'Line one\nline two\r ]]> &amp; "quoted"\ttab \u009B2J \u202Eright to left',
      capabilities: 'Map,Query',
      parentType: 'ImageServer',
      url: 'https://maps.example.com/x?a=1&b=<2>',
      access: 'public',
    },
  ],
};

it('prints a catalog file from which another Steward serves the same catalog', async () => {
  const origin = await start({ catalog: trickyCatalog, env: { CATALOG_NAMESPACE: 'urn:some:catalog' } });
  const address = `${await origin.listen()}/services`;
  const token = origin.token('administrator');
  const text = await importCatalog({ address, token, access: 'public' });
  // A terminal would obey control characters.
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  const imported = readText(text);
  const traits = { description: '', capabilities: '', parentType: '', url: null };
  const exact = (services: InitialCatalog['services']) =>
    services
      .map(({ definition: _definition, ...service }) => ({ ...traits, ...service, access: 'public' }))
      .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  // SOAP has no other members.
  expect(exact(imported.services)).toEqual(exact(trickyCatalog.services));
  expect(imported.folders.map(({ folderName }) => folderName).sort()).toEqual(
    trickyCatalog.folders.map(({ folderName }) => folderName).sort(),
  );

  const copy = await start({ catalog: imported });
  const list = '<GetServiceDescriptions xmlns="http://www.example.com/schemas/Product/10.0"/>';
  const everything = await origin.soap(list.replace(/http[^"]*/, 'urn:some:catalog'), {
    authorization: `Bearer ${token}`,
  });
  expect((await copy.soap(list)).body.replaceAll('http://www.example.com/schemas/Product/10.0', '')).toBe(
    everything.body.replaceAll('urn:some:catalog', ''),
  );
});

it('imports what the token may see, with the given access', async () => {
  const server = await start({});
  const address = `${await server.listen()}/services?wsdl`;
  const publicOnes = readText(await importCatalog({ address, token: undefined, access: 'organization' }));
  expect(publicOnes.services).toHaveLength(9);
  expect(new Set(publicOnes.services.map(({ access }) => access))).toEqual(new Set(['organization']));
  const all = readText(
    await importCatalog({ address, token: server.token('administrator'), access: 'public' }),
  );
  expect(all.services).toHaveLength(12);
});

it('reads the golden answers with other prefixes and namespaces, CDATA and references', async () => {
  const transform = (xml: string) =>
    xml
      .replaceAll('soap:', 'SOAP-ENV:')
      .replace('xmlns:soap=', 'xmlns:SOAP-ENV=')
      .replace(/<(\/?)(Get|Folder|String|Service|Name|Type|Url|Parent|Cap|Desc)/g, '<$1ns1:$2')
      .replace(/ xmlns="[^"]*"/, ' xmlns:ns1="http://vendor.example.org/Catalog/9.3"')
      .replace('Maps for printing.', '<![CDATA[Maps & plans]]> for&#x20;printing&#46;')
      .replace(/><(?!!)/g, '>\n  <');
  const address = await startStub((operation, body) => {
    if (operation === 'GetFolders') return { body: transform(golden('GetFolders')) };
    if (operation !== 'GetServiceDescriptionsEx')
      return { status: 404, body: '<html>not here</html>', headers: { 'content-type': 'text/html' } };
    if (body.includes('<FolderName></FolderName>'))
      return { body: transform(golden('GetServiceDescriptionsEx-root')) };
    const isTools = body.includes('<FolderName>Tools</FolderName>');
    return {
      body: transform(golden('GetServiceDescriptionsEx')).replace(
        isTools ? /^$/ : /<ns1:ServiceDescription>[^]*<\/ns1:ServiceDescription>/,
        '',
      ),
    };
  });
  const { folders, services } = readText(await importPublic(address));
  expect(folders.map(({ folderName }) => folderName)).toEqual(['Maps', 'Tools']);
  expect(services.map(({ folderName, serviceName, type }) => `${folderName} ${serviceName}.${type}`)).toEqual(
    [
      '/ Geometry.GeometryServer',
      '/ Places.GeocodeServer',
      '/ World.MapServer',
      'Tools Printing.GPServer',
      'Tools Routing.NAServer',
    ],
  );
  expect(services[3]).toMatchObject({
    description: 'Maps & plans for printing.',
    url: 'http://localhost:8080/services/Tools/Printing/GPServer',
  });
});

it('uses the namespace and the address of the WSDL', async () => {
  const requests: string[] = [];
  const address = await startStub((operation, body) => {
    requests.push(body);
    if (operation === 'GetFolders') return envelope(operation, '<FolderNames/>');
    if (operation === 'GetServiceDescriptionsEx')
      return envelope(
        operation,
        '<ServiceDescriptions><ServiceDescription><Name>A B</Name><Type>MapServer</Type>' +
          '<Url>https://public.example.com/catalog/A%20B/MapServer</Url></ServiceDescription></ServiceDescriptions>',
      );
    return {
      body:
        '<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" targetNamespace="urn:x">' +
        '<wsdl:service name="Catalog"><wsdl:port name="P"><s:address location="https://public.example.com/catalog"/></wsdl:port></wsdl:service></wsdl:definitions>',
    };
  });
  const { services } = readText(await importPublic(address));
  expect(services).toMatchObject([{ serviceName: 'A B', url: null, parentType: '', capabilities: '' }]);
  expect(requests[1]).toContain('<GetFolders xmlns="urn:x">');
});

it('escapes the namespace of the WSDL in its requests', async () => {
  const requests: string[] = [];
  const address = await startStub((operation, body) => {
    requests.push(body);
    return operation === 'GET'
      ? { body: '<definitions targetNamespace="u&quot; a=&quot;&amp;#65;&lt;&#x9;"/>' }
      : { status: 404, body: '' };
  });
  await expect(importPublic(address)).rejects.toThrow('HTTP 404');
  expect(requests[1]).toContain('<GetFolders xmlns="u&quot; a=&quot;&amp;#65;&lt;&#9;">');
});

it('refuses redirects, late and large answers, faults and answers that are no SOAP', async () => {
  const importFrom = async (answer: Answer | undefined, timeoutMs = answerLimits.timeoutMs) => {
    const address = await startStub((operation) =>
      operation === 'GET' ? { status: 404, body: '' } : answer,
    );
    const limits = { ...answerLimits, timeoutMs, bytes: 1024 ** 2 };
    return importPublic(address, limits).catch((error: unknown) => (error as Error).message);
  };
  const redirect = { status: 302, headers: { location: 'http://127.0.0.1:1/' }, body: '' };
  expect(await importFrom(redirect)).toMatch(/redirects to http:\/\/127\.0\.0\.1:1\/ \(302\)/);
  expect(await importFrom({ body: 'x'.repeat(1024 ** 2 + 1) })).toContain(
    'The answer has more than 1048576 bytes.',
  );
  expect(await importFrom(undefined, 300)).toContain('not complete within 0.3 seconds');
  for (const body of ['', 'text', '<a>', '<a', '<a><b>x</b>', '<s:a xmlns:s="urn:s"><b/><c>x</c>'])
    expect(await importFrom({ body })).toContain('GetFolders (HTTP 200): The answer is not XML');
  for (const body of ['<s:a xmlns:s="urn:s">x</s:a >\n', '<a><b/></a><!-- the end -->'])
    expect(await importFrom({ body })).toContain('not a SOAP envelope');
  expect(await importFrom({ body: '<a/>' })).toContain('not a SOAP envelope');
  expect(await importFrom({ body: '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>' })).toContain('document type');
  expect(await importFrom(envelope('GetFolders', '<FolderNames><s>F</s></FolderNames>'))).toContain(
    'The answer has s where only String may be.',
  );
  const fault = { status: 500, body: golden('GuardedFault-token-required-12') };
  expect(await importFrom(fault)).toMatch(
    /HTTP 500\): The server answered with a fault: .* Give a valid token in STEWARD_TOKEN/,
  );
  await expect(importPublic('ftp://x')).rejects.toThrow('must be an http or https address');
});

it('lists the entries that Steward does not accept', async () => {
  const services =
    '<ServiceDescriptions><ServiceDescription><Name>a:b</Name><Type>1</Type></ServiceDescription></ServiceDescriptions>';
  const address = await startStub((operation) =>
    envelope(operation, operation === 'GetFolders' ? '<FolderNames/>' : services),
  );
  const failed = importPublic(address).catch((error: unknown) => error);
  const { problems } = (await failed) as CommandError;
  expect(problems).toEqual([
    expect.stringContaining('services[0].serviceName'),
    expect.stringContaining('services[0].type'),
  ]);
});

describe('a server without end', () => {
  const service = '<ServiceDescription><Name>A</Name><Type>MapServer</Type></ServiceDescription>';

  /** Answers with these folders, and with the same services in each. Returns the number of requests. */
  async function importEndless(
    { folders, services }: { folders: number; services: string },
    env: Record<string, string> = {},
    limits = answerLimits,
  ) {
    let requests = 0;
    const address = await startStub((operation) => {
      requests += 1;
      return envelope(
        operation,
        operation === 'GetFolders'
          ? `<FolderNames>${'<String>F</String>'.repeat(folders)}</FolderNames>`
          : `<ServiceDescriptions>${services}</ServiceDescriptions>`,
      );
    });
    const failed = importPublic(address, limits, env);
    return { message: await failed.catch((error: unknown) => (error as Error).message), requests };
  }

  it('is asked for no more folders and services than the catalog may have', async () => {
    // The WSDL, the folders and the root.
    expect(await importEndless({ folders: 50_001, services: '' })).toEqual({
      message: 'The catalog is too large: MAX_SERVICES allows 50000 folders.',
      requests: 3,
    });
    expect(
      await importEndless({ folders: 90, services: service.repeat(3) }, { MAX_SERVICES: '100' }),
    ).toEqual({ message: 'The catalog is too large: MAX_SERVICES allows 100 services.', requests: 36 });
    expect(
      await importEndless(
        { folders: 9, services: service.replace('A', 'A'.repeat(700)) },
        { MAX_SERVICES: '9' },
      ),
    ).toMatchObject({ message: 'The catalog is too large: MAX_SERVICES allows 6048 bytes.' });
  });

  it('is asked until the deadline', async () => {
    const limits = { ...answerLimits, allTimeoutMs: 300 };
    const { message } = await importEndless({ folders: 50_000, services: '' }, {}, limits);
    expect(message).toMatch(/: All answers together were not complete within 0.3 seconds\.$/);
  });

  it.each([
    ['elements', '<a/>'.repeat(500_000)],
    ['attributes', `<a${" b=''".repeat(500_000)}/>`],
  ])('may not answer with too many %s', async (_parts, services) => {
    const { message } = await importEndless({ folders: 0, services });
    expect(message).toContain('The answer has more than 500000 elements and attributes.');
  });
});
