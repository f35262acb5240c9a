// Generates SOAP requests of both versions: every operation, every encoding, oversized, malformed and corrupted.
import fc from 'fast-check';
import { gzipSync } from 'node:zlib';
import { namespace, operationNames } from '../kit/server.ts';
import { among, anyBytes, mostly, mutated, stretch } from './fuzz-bytes.ts';
import { toHeader } from './fuzz-forms.ts';

export type SoapBody = { type: string | undefined; coding: string | undefined; body: string };

const soap11 = 'http://schemas.xmlsoap.org/soap/envelope/';
const soap12 = 'http://www.w3.org/2003/05/soap-envelope';

/** Documents are built as texts and encoded at the end. */
const texts = (list: string) => among(list).map((bytes) => Buffer.from(bytes, 'latin1').toString());
const longText = stretch.map((bytes) => Buffer.from(bytes, 'latin1').toString());

const envelope = mostly(
  20,
  fc.constantFrom(soap11, soap12),
  texts('¦urn:x¦http://www.w3.org/2000/xmlns/¦http://www.w3.org/XML/1998/namespace'),
);

const ownNamespace = mostly(
  20,
  fc.constant(namespace),
  texts(`${namespace}.1¦${namespace.replace('10.0', '9')}¦${namespace}/1/2¦urn:x¦`),
  fc.nat({ max: 3000 }).map((times) => `${namespace}${'/1.1'.repeat(times)}`),
  fc.nat({ max: 12_000 }).map((times) => `${namespace}${'1'.repeat(times)}x`),
);

const folder = mostly(
  3,
  texts('Maps¦/¦¦ ¦Tools¦Operations¦nowhere¦<![CDATA[Maps]]>¦&#77;aps¦é¦M&amp;m'),
  texts('&nbsp;¦&#0;¦&#xD800;¦&#x110000;¦&#99999999999999999999;¦&;¦&#x;¦]]>¦\ufffe¦\0'),
  fc.string({ unit: 'grapheme', maxLength: 10 }),
  longText,
  longText,
);

const attributes = mostly(
  12,
  fc.constant(''),
  texts(
    ' a="1"¦ a="1" a="1"¦ x:a="1"¦ xmlns=""¦ xmlns:x="u"¦ xmlns:x=""¦ xml:lang="en"¦ a=1¦ a¦ xmlns:xml="u"',
  ),
  texts(' i:nil="true" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"'),
  texts(` s:mustUnderstand="1" xmlns:s="${soap11}"¦ s:mustUnderstand="true" s:role="" xmlns:s="${soap12}"`),
  fc.tuple(fc.constantFrom(63, 64, 65, 900), texts('a¦xmlns:a¦xml:a')).map(([count, name]) => {
    return Array.from({ length: count }, (_, index) => ` ${name}${index}="u"`).join('');
  }),
);

const operation = mostly(
  20,
  fc.constantFrom(...operationNames, 'GetServiceDescriptionsEx', 'GetServiceDescriptionsEx'),
  texts('constructor¦__proto__¦toString¦Nothing¦a:b¦a:b:c¦:¦1¦é¦xml'),
  fc.constantFrom(70, 5000).map((length) => 'N'.repeat(length)),
);

const inside = mostly(
  4,
  fc.constant(''),
  ...[1, 2, 3, 4].map(() =>
    fc.tuple(attributes, folder).map(([list, value]) => `<FolderName${list}>${value}</FolderName>`),
  ),
  texts('<FolderName/><FolderName/>¦<Other/>¦<FolderName><a/></FolderName>¦text¦<!-- x -->'),
  texts('<!-- -- -->¦<?pi x?>¦<!DOCTYPE a>¦<![CDATA[x¦<!ELEMENT a>¦<a>¦</a>'),
  fc.constantFrom(29, 30, 2000).map((depth) => '<a>'.repeat(depth) + '</a>'.repeat(depth)),
  fc.constantFrom(996, 997, 3000).map((count) => '<a/>'.repeat(count)),
  longText,
);

const manyBlocks = (uri: string) =>
  `<e:Header>${`<x:h${'x'.repeat(90)} xmlns:x="urn:x" m:mustUnderstand="1" xmlns:m="${uri}"/>`.repeat(40)}</e:Header>`;

const header = mostly(
  12,
  fc.constant(''),
  attributes.map((list) => `<e:Header><x:h xmlns:x="urn:x"${list}/></e:Header>`),
  texts('<e:Header/>¦<e:Header>x</e:Header>¦<e:Header/><e:Header/>¦<e:Body/>¦<x/>'),
  fc.constantFrom(soap11, soap12).map(manyBlocks),
);

const prolog = mostly(
  12,
  texts('¦<?xml version="1.0" encoding="utf-8"?>\n'),
  texts(
    '<?xml version="1.0" encoding="UTF-16"?>¦<?xml version="1.0" encoding="x"?>¦<?xml?>¦<?xml version="2.0"?>¦ ',
  ),
  texts('<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]>¦<!DOCTYPE a SYSTEM "file:///etc/passwd">'),
  texts(
    `<?xml version="1.0"${' '.repeat(9000)}encoding="utf-8"?>¦<?xml version="1.0" encoding="${'a'.repeat(9000)}"?>`,
  ),
);

const document = fc
  .record({ prolog, envelope, ownNamespace, header, operation, attributes, inside })
  .map((part) => {
    const payload = `<${part.operation} xmlns="${part.ownNamespace}"${part.attributes}>${part.inside}</${part.operation}>`;
    return `${part.prolog}<e:Envelope xmlns:e="${part.envelope}">${part.header}<e:Body>${payload}</e:Body></e:Envelope>`;
  });

const encoders: ((document: string) => Buffer)[] = [
  (xml) => Buffer.from(`\uFEFF${xml}`),
  (xml) => Buffer.from(`\uFEFF${xml}`, 'utf16le'),
  (xml) => Buffer.from(`\uFEFF${xml}`, 'utf16le').swap16(),
  (xml) => Buffer.from(xml, 'utf16le'),
  (xml) => Buffer.from(xml, 'latin1'),
];

const encoded = fc
  .tuple(
    document,
    mostly(
      6,
      fc.constant((xml: string) => Buffer.from(xml)),
      fc.constantFrom(...encoders),
    ),
  )
  .map(([xml, encode]) => encode(xml).toString('latin1'));

const type: fc.Arbitrary<string | undefined> = mostly(
  20,
  fc.constantFrom('text/xml', 'text/xml; charset=utf-8', 'application/soap+xml', undefined),
  among(
    'application/xml¦TEXT/XML;charset="UTF-16"¦text/xml;charset=us-ascii¦text/xml; charset=x¦text/xml;charset=¦application/json',
  ),
  among(
    'text¦/¦;¦text/xml, text/xml¦application/soap+xml;action="¦multipart/form-data¦application/x-www-form-urlencoded',
  ),
  stretch.map((bytes) => `text/xml;${toHeader(bytes)}charset=utf-8`),
);

const zip = (bytes: string | Buffer) => gzipSync(Buffer.from(bytes as string, 'latin1')).toString('latin1');
const zipBomb = zip(Buffer.alloc(1024 ** 2, ' '));

const plain = fc.constant<string | undefined>(undefined);

export const soapBody: fc.Arbitrary<SoapBody> = mostly(
  8,
  fc.record({ type, coding: plain, body: encoded }),
  ...[1, 2, 3, 4].map(() => fc.record({ type, coding: plain, body: mutated(encoded) })),
  fc.record({ type, coding: plain, body: anyBytes }),
  fc.record({ type, coding: among('gzip¦x-gzip¦GZIP'), body: encoded.map(zip) }),
  fc.record({
    type,
    coding: among('gzip¦gzip, gzip¦br¦ gzip ¦¦identity'),
    body: mostly(1, fc.constantFrom(zipBomb, '', '\x1f\x8b'), mutated(encoded.map(zip))),
  }),
);
