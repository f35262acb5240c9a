// Renders docs/reference/soap.md: the operations of the catalog with requests and answers of the golden files.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { catalogNames, catalogOperations } from '../../../src/catalog/soap.ts';
import { maxRequestBytes } from '../../../src/soap/handler.ts';
import { namespace } from '../../kit/server.ts';
import { block, code, formatPage, table } from './markdown.ts';

const golden = new URL('../../golden/soap/', import.meta.url);

function read(folder: string, file: 'request.xml' | 'response.xml'): string {
  return readFileSync(new URL(`${folder}/${file}`, golden), 'utf8');
}

/** The page is run against a server of its own. */
const server = '<!-- server: ADMIN_PASSWORD="correct horse" -->';

const intro = `
The operations of the SOAP catalog with their exact requests and answers, its faults, tokens and limits: for authors of SOAP clients.

The catalog is one SOAP endpoint at \`{PUBLIC_URL}{CATALOG_PATH}\`, by default \`http://localhost:8080/services\`. \`GET ?wsdl\` on that address returns its WSDL 1.1 (\`wsdl/ServiceCatalog.wsdl\` is the template); most toolkits need nothing else. The style is document/literal, and every \`SOAPAction\` is accepted. The rules are in [the protocol](../protocol.md#soap-catalog), the numbers of faults in [errors and codes](errors-and-codes.md#soap-faults).

A first call with curl, and its answer:
`;

const firstCall = `curl -s http://localhost:8080/services -H 'Content-Type: text/xml' -d '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><GetFolders xmlns="${namespace}"/></s:Body></s:Envelope>'`;

const operations = catalogOperations({
  catalogCache: undefined as never,
  names: catalogNames('svc', 'Product'),
  requireTokens: false,
  baseUrl: () => '',
  tokenServiceUrl: () => '',
});

function operationsPart(): string {
  const rows = Object.entries(operations).map(([name, { purpose, arguments: names, access, response }]) => {
    return [
      `[${code(name)}](#${name.toLowerCase()})`,
      names.map((argument) => `${code(argument)}: string`).join(', '),
      `${code(response.field)}: ${response.type}`,
      access === 'token' ? 'with `REQUIRE_TOKENS`' : 'never',
      purpose,
    ];
  });
  const head = ['Operation', 'Argument', 'Response field', 'Needs a token', 'Meaning'];
  return ['## Operations', table(head, rows)].join('\n\n');
}

const maxServices = 2;

/** One element per line. Only for reading: the answers on the wire have no white space between elements. */
export function indent(xml: string): string {
  let depth = 0;
  const lines = xml
    .replace(/>\s+</g, '><')
    .replace(
      /(<ServiceDescription>.*?<\/ServiceDescription>)(.*)(?=<\/ServiceDescriptions>)/s,
      (all: string) => shorten(all),
    )
    .split(/(?<=>)(?=<)/)
    .map((part) => {
      if (part.startsWith('</')) depth -= 1;
      const line = '  '.repeat(depth) + part.trim();
      if (/^<[^/?!]/.test(part) && !part.includes('</') && !part.trim().endsWith('/>')) depth += 1;
      return line;
    });
  // An element without content is one line.
  return lines.join('\n').replace(/(<(\S+?)>)\n\s*(<\/\2>)/g, '$1$3');
}

function shorten(services: string): string {
  const all = services.split(/(?<=<\/ServiceDescription>)/);
  const rest = all.length - maxServices;
  return rest <= 0 ? services : `${all.slice(0, maxServices).join('')}<!-- ${rest} more -->`;
}

function exchange(folder: string): string {
  return [
    block('xml', indent(read(folder, 'request.xml'))),
    'Answer:',
    block('xml', indent(read(folder, 'response.xml'))),
  ].join('\n\n');
}

function examplesPart(): string {
  const parts = Object.entries(operations).map(([name, { purpose }]) =>
    [`### ${name}`, purpose, exchange(name)].join('\n\n'),
  );
  const soap12 = [
    '### The same in SOAP 1.2',
    'The content type of request and answer is `application/soap+xml`.',
    'The namespace of the envelope selects the version, and the answer has the same version.',
    exchange('GetMessageVersion-12'),
  ];
  return [
    '## Requests and answers',
    'The examples are the golden files in `test/golden/soap/`, which a test compares byte for byte with the server. White space is added here for reading, and long lists are cut.',
    ...parts,
    ...soap12,
  ].join('\n\n');
}

const causes: Readonly<Record<string, string>> = {
  'Fault-bad-token': 'the token is unknown or expired',
  'Fault-doctype': 'the request has a DOCTYPE',
  'Fault-empty-body': 'the `Body` is empty',
  'Fault-malformed': 'the XML is malformed',
  'Fault-media-type': 'the content type is not XML',
  'Fault-method': 'the method is neither POST, GET nor HEAD',
  'Fault-must-understand': 'a header block must be understood',
  'Fault-not-an-envelope': 'the document is not an envelope',
  'Fault-repeated-argument': 'an argument is given twice',
  'Fault-too-large': `the request is larger than ${maxRequestBytes} bytes`,
  'Fault-two-operations': 'the `Body` has two elements',
  'Fault-unknown-argument': 'the operation does not have the argument',
  'Fault-unknown-folder': 'the folder does not exist, or the caller may not see it',
  'Fault-unknown-operation': 'the operation does not exist',
  'Fault-version-mismatch': 'the envelope is neither SOAP 1.1 nor 1.2',
  'Fault-wrong-namespace': 'the operation is in another namespace',
  'GuardedFault-token-required': 'the operation needs a token and the request has none',
};

function faultRow(folder: string): string[] {
  const answer = read(folder, 'response.xml');
  const file = new URL(`${folder}/request.json`, golden);
  const { status } = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { status?: number }) : {};
  const name = /(?:faultcode|soap:Value)>soap:(\w+)/.exec(answer)?.[1] ?? '';
  const detail = /<Code>(\d+)<\/Code>/.exec(answer)?.[1] ?? '';
  const text = /<(?:faultstring|soap:Text)[^>]*>([^<]*)</.exec(answer)?.[1] ?? '';
  return [
    answer.includes('www.w3.org/2003/05') ? '1.2' : '1.1',
    causes[folder.replace(/-12$/, '')] ?? '',
    code(name),
    String(status ?? (name === 'Sender' ? 400 : 500)),
    detail,
    code(text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')),
  ];
}

function faultsPart(): string {
  const rows = readdirSync(golden)
    .filter((name) => name.includes('Fault-'))
    .map(faultRow)
    .sort((a, b) => (`${a[2]} ${a[1]} ${a[0]}` < `${b[2]} ${b[1]} ${b[0]}` ? -1 : 1));
  return [
    '## Faults',
    'A fault in SOAP 1.1, with HTTP status 500:',
    block('xml', indent(read('GuardedFault-token-required', 'response.xml'))),
    'The same in SOAP 1.2, with HTTP status 400:',
    block('xml', indent(read('GuardedFault-token-required-12', 'response.xml'))),
    'All faults:',
    table(['SOAP', 'When', 'Fault code', 'HTTP status', '`Code` in the detail', 'Text'], rows),
  ].join('\n\n');
}

const outro = `
## Tokens

- Send a token as \`?token=…\` in the address of the catalog, or in the header \`Authorization: Bearer …\`. If both are given, the header counts. Cookies are not read.
- The operations that never need a token ignore one. The others check a token that is given, and need one with \`REQUIRE_TOKENS=true\`.
- The token decides which services the caller sees: without one the services with \`access\` \`public\`, with one also those with \`organization\`, and administrators see all.
- A missing token is a fault with \`Code\` 499, a bad or expired one a fault with \`Code\` 498.

## Limits

| Limit | Value |
| --- | --- |
| Size of a request, after decompression | ${maxRequestBytes} bytes, then HTTP 413 with a fault |
| Content types | \`text/xml\`, \`application/xml\`, \`application/soap+xml\`, or none; others get HTTP 415 with a fault |
| Content encodings | none, \`gzip\` |
| XML | no DOCTYPE, no processing instructions, no entities of its own, at most 32 levels, 1,000 elements and 64 attributes of an element |

## Names

\`VENDOR_PREFIX\` and \`PRODUCT_NAME\` change the names of the types: with \`acme\` and \`Widget\` the version is \`acmeWidgetVersion10\`, the message format \`acmeServiceCatalogMessageFormatSoap\`, and the default namespace \`http://www.example.com/schemas/Widget/10.0\`. Where the namespace ends in a version, the catalog accepts a request with any other version there and answers in the namespace of the request.
`;

export function soapPage(): Promise<string> {
  return formatPage(
    'Profile and catalog',
    'src/catalog/soap.ts and test/golden/soap',
    server,
    intro,
    block('sh', firstCall),
    block('xml', read('GetFolders', 'response.xml')),
    operationsPart(),
    examplesPart(),
    faultsPart(),
    outro,
  );
}
