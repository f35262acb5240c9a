// Validates every SOAP response against the schema in the server's WSDL.
import { XmlDocument, XmlElement, XsdValidator } from 'libxml2-wasm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InitialCatalog } from '../../src/catalog/catalog.ts';
import { sampleCatalog } from '../../src/catalog/sample.ts';
import { perFile } from '../kit/cleanup.ts';
import { type Server, namespace, operationNames as operations, startServer } from '../kit/server.ts';

const versions = [
  { version: 1.1, envelope: 'http://schemas.xmlsoap.org/soap/envelope/', mediaType: 'text/xml' },
  { version: 1.2, envelope: 'http://www.w3.org/2003/05/soap-envelope', mediaType: 'application/soap+xml' },
];
type Version = (typeof versions)[number];

const profiles = ['plain', 'family'] as const;

const awkwardFolder = "R & D's [1]; ö ]]&gt;";
const awkwardText = `<b>"5 > 4" & '3 < 4'</b> ]]> &amp; <![CDATA[x]]> \t\r\n \u{1F5FA}`;
const awkwardCatalog: InitialCatalog = {
  folders: [{ folderName: awkwardFolder, description: awkwardText }],
  services: ['/', awkwardFolder].map((folderName) => ({
    folderName,
    serviceName: "Fish & chips'; &lt;",
    type: 'MapServer',
    parentType: '',
    capabilities: 'Map,<Query>,"Data"&more',
    description: awkwardText,
    url: 'http://example.com/a?b=1&c=2',
    access: 'public',
  })),
};

const catalogs: [kind: string, catalog: InitialCatalog, folder: string][] = [
  ['the sample catalog', sampleCatalog, 'Maps'],
  ['an empty catalog', { folders: [], services: [] }, ''],
  ['a catalog full of mark-up characters', awkwardCatalog, awkwardFolder],
];

async function schemaOf(server: Server): Promise<XsdValidator> {
  const { payload } = await server.get('/services?wsdl');
  using wsdl = XmlDocument.fromString(payload);
  const schema = elementAt(wsdl, '//xs:schema', { xs: 'http://www.w3.org/2001/XMLSchema' });
  // The prefixes of the schema are declared outside of it; the canonical form includes their declarations.
  using xsd = XmlDocument.fromString(schema.canonicalizeToString());
  return XsdValidator.fromDoc(xsd);
}

async function ask(server: Server, { envelope, mediaType }: Version, operation: string, folder: string) {
  const escaped = folder.replaceAll('&', '&amp;');
  const fields = operation === 'GetServiceDescriptionsEx' ? `<FolderName>${escaped}</FolderName>` : '';
  const { statusCode, headers, payload } = await server.http.inject({
    method: 'POST',
    url: '/services',
    headers: { 'content-type': `${mediaType}; charset=utf-8` },
    payload:
      `<e:Envelope xmlns:e="${envelope}"><e:Body>` +
      `<${operation} xmlns="${namespace}">${fields}</${operation}></e:Body></e:Envelope>`,
  });
  expect({ statusCode, type: headers['content-type'] }).toEqual({
    statusCode: 200,
    type: `${mediaType}; charset=utf-8`,
  });
  return payload;
}

function elementAt(document: XmlDocument, path: string, prefixes: Record<string, string>): XmlElement {
  const node = document.get(path, prefixes);
  if (!(node instanceof XmlElement)) throw new Error(`The document has no element ${path}.`);
  return node;
}

describe.each(profiles.flatMap((PROFILE) => catalogs.map((entry) => [PROFILE, ...entry] as const)))(
  'with PROFILE=%s the responses for %s',
  (PROFILE, _kind, catalog, folder) => {
    const server = perFile(() => startServer({ catalog, env: { PROFILE } }));
    let schema: XsdValidator;
    beforeAll(async () => {
      schema = await schemaOf(server);
    });
    afterAll(() => {
      schema.dispose();
    });

    describe.each(versions)('in SOAP $version', (version) => {
      const bodyOf = (answer: XmlDocument) =>
        elementAt(answer, '/e:Envelope/e:Body/*', { e: version.envelope });

      it.each(operations)('are valid for %s', async (operation) => {
        using answer = XmlDocument.fromString(await ask(server, version, operation, folder));
        const body = bodyOf(answer);
        expect(body.name).toBe(`${operation}Response`);
        expect(() => schema.validate(body)).not.toThrow();
      });

      it('fail the validation if a field is missing, misplaced or of another type', async () => {
        const valid = await ask(server, version, 'RequiresTokens', folder);
        const otherForm = PROFILE === 'plain' ? ' xmlns=""' : ` xmlns="${namespace}"`;
        const broken = [
          valid.replace('<Result', `<Result${otherForm}`),
          valid.replace('<Result>false</Result>', ''),
          valid.replace('<Result>false</Result>', '<Other/><Result>false</Result>'),
          valid.replace('false', 'no'),
        ];
        for (const xml of broken) {
          using answer = XmlDocument.fromString(xml);
          const body = bodyOf(answer);
          expect(() => schema.validate(body)).toThrow();
        }
      });
    });
  },
);

it.each(versions)('mark-up characters arrive unchanged in SOAP $version', async (version) => {
  const server = await startServer({ catalog: awkwardCatalog });
  const prefixes = { c: namespace };
  using folders = XmlDocument.fromString(await ask(server, version, 'GetFolders', ''));
  expect(elementAt(folders, '//c:String', prefixes).content).toBe(awkwardFolder);

  using services = XmlDocument.fromString(
    await ask(server, version, 'GetServiceDescriptionsEx', awkwardFolder),
  );
  const fieldOf = (name: string) => elementAt(services, `//c:ServiceDescription/c:${name}`, prefixes).content;
  expect(fieldOf('Name')).toBe(`${awkwardFolder}/Fish & chips'; &lt;`);
  expect(fieldOf('Url')).toBe('http://example.com/a?b=1&c=2');
  expect(fieldOf('Capabilities')).toBe('Map,<Query>,"Data"&more');
  expect(fieldOf('Description')).toBe(awkwardText);
});
