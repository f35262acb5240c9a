// Generates documents for the XML reader: well-formed, broken, and in different encodings.
import fc from 'fast-check';
import { XML_NAMESPACE, XMLNS_NAMESPACE, nestElements, writeAttributes } from '../kit/xml.ts';

const space = fc.constantFrom('', '', '', ' ', '\n', '\t ', '\r\n', '\r');
const gap = fc.constantFrom(' ', ' ', ' ', '\n  ', '\t', '\r\n', '\r');
const local = fc.constantFrom(
  ...'a b Body a-b.c_1 constructor __proto__ toString xmlA été ａ 𐀀 a·\u0300'.split(' '),
);
const prefix = fc.constantFrom(...'p p p q q xml __proto__ é xmlnsx'.split(' '));
const uri = fc.constantFrom(
  ...'urn:p urn:p urn:q urn&#58;p http://example.org/a?b&amp;c http://example.org/ u'.split(' '),
);
const name = fc.oneof(
  local,
  local,
  fc.tuple(prefix, local).map((parts) => parts.join(':')),
);
const reference = fc.constantFrom(
  ...'&amp; &lt; &gt; &quot; &apos; &#65; &#x1F600; &#13; &#xA; &#9; &#0032;'.split(' '),
);
const characters = fc.oneof(
  fc.constantFrom(
    ' ',
    '\n',
    '\r\n',
    '\r',
    '\t',
    '\u0085',
    '\u2028',
    '\uFFFD',
    ...`a text > ] ]] - -- ; # " ' é € 😀`.split(' '),
  ),
  fc.string({ unit: 'grapheme-composite', maxLength: 4 }).map((s) => s.replace(/[<&>]/g, '')),
);
const text = fc
  .array(fc.oneof(characters, characters, reference), { maxLength: 4 })
  .map((parts) => parts.join('').replaceAll(']]>', ''));
const comment = characters.map((s) => `<!--${s.replace(/-/g, '')} <a> & -->`);
const cdata = fc
  .array(fc.oneof(characters, fc.constantFrom('<a>', '&', '&amp;', '<![CDATA[')), { maxLength: 3 })
  .map((parts) => `<![CDATA[${parts.join('').replaceAll(']]>', '')}]]>`);
const value = text.map((s) => (s.includes('"') ? `'${s.replaceAll("'", '')}'` : `"${s}"`));
const declaredUri = uri.map((s) => `"${s}"`);
const attributes = fc
  .uniqueArray(
    fc.oneof(
      { weight: 6, arbitrary: fc.tuple(name, value, gap, space) },
      {
        weight: 2,
        arbitrary: fc.tuple(
          prefix.map((p) => `xmlns:${p}`),
          declaredUri,
          gap,
          space,
        ),
      },
      { weight: 1, arbitrary: fc.tuple(fc.constant('xmlns'), declaredUri, gap, space) },
      { weight: 1, arbitrary: fc.tuple(fc.constant('xmlns'), fc.constant('""'), gap, space) },
    ),
    { maxLength: 3, selector: ([key]) => key },
  )
  .map((list) =>
    list.map(([key, quoted, before, around]) => `${before}${key}${around}=${around}${quoted}`).join(''),
  );
const { content } = fc.letrec<{ content: string; element: string }>((tie) => ({
  content: fc
    .array(fc.oneof({ maxDepth: 4 }, text, comment, cdata, tie('element'), tie('element')), {
      maxLength: 4,
    })
    .map((parts) => parts.join('')),
  element: fc
    .tuple(name, attributes, space, fc.option(tie('content')))
    .map(([tag, list, end, inner]) =>
      inner === null ? `<${tag}${list}${end}/>` : `<${tag}${list}${end}>${inner}</${tag}${end}>`,
    ),
}));
const declaration = fc
  .tuple(
    fc.constantFrom('1.0', '1.0', '1.1', '1.25'),
    fc.constantFrom('', '', ' encoding="UTF-8"', "\tencoding = 'utf-8'"),
    fc.constantFrom('', '', ' standalone="yes"', "\nstandalone='no' "),
  )
  .map(([version, encoding, standalone]) => `<?xml version="${version}"${encoding}${standalone}?>`);
const prefixes =
  ' xmlns:p="urn:p" xmlns:q="urn:q" xmlns:__proto__="urn:o" xmlns:é="urn:e" xmlns:xmlnsx="urn:x"';
export const generated = fc
  .tuple(
    fc.option(declaration, { nil: '' }),
    fc.oneof(space, comment),
    fc.constantFrom('root', 'p:root'),
    fc.constantFrom(prefixes, prefixes, prefixes, ' xmlns:p="urn:p" xmlns:q="urn:p"'),
    content,
    fc.oneof(space, comment),
  )
  .map(
    ([start, before, tag, list, inner, after]) => `${start}${before}<${tag}${list}>${inner}</${tag}>${after}`,
  );

const SOAP_DOCUMENTS = [
  `<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:cat="urn:example:catalog">
  <soapenv:Header/>
  <soapenv:Body>
    <cat:createItem><cat:name>Ship &amp; crew</cat:name><cat:count>3</cat:count></cat:createItem>
  </soapenv:Body>
</soapenv:Envelope>`,
  `<Envelope xmlns="http://www.w3.org/2003/05/soap-envelope" xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'>\r
<Body><list xmlns="urn:example:catalog" xsi:nil="true" xml:lang="en"><!-- none --><f><![CDATA[a < b]]></f></list></Body>\r
</Envelope>\r
`,
  `<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Body S:encodingStyle="">` +
    `<n:get xmlns:n="urn:n" n:id='&#49;&#x32;' id="3"/></S:Body></S:Envelope>`,
];

// Separated by line feeds; some begin with a space.
const MARKUP = `
<\n>\n/\n&\n;\n"\n'\n=\n:\n-\n--\n!\n?\n[\n]\n]]\n]]>\n#\n.\n1\n_\na\np:\nxml\nxmlns\n/>\n</\n<a>\n</a>\n<a/>\n<p:a/>\n<!--\n-->
<!-- x -->\n<![CDATA[\n<![CDATA[x]]>\n<?\n?>\n<?pi x?>\n<?pi x?>\n<?xml version="1.0"?>\n<!DOCTYPE a>\n<!\n=""
&amp;\n&lt\n&#\n&#x\n&#0;\n&#65;\n&#xD800;\n&#x110000;\n&#xFFFF;\n&nbsp;
 a="1"\n a="2"\n p:a="1"\n q:a='1'\n xml:lang="x"\n xml:id="1"\n standalone="yes"\n encoding="UTF-8"
 xmlns=""\n xmlns="u"\n xmlns:p=""\n xmlns:p="urn:p"\n xmlns:q="urn:p"\n xmlns:xml="u"\n xmlns:xmlns="u"
 xmlns:xml="${XML_NAMESPACE}"\n xmlns:p="${XML_NAMESPACE}"\n xmlns="${XMLNS_NAMESPACE}"`
  .split('\n')
  .slice(1);
const CHARACTERS = [
  0, 9, 10, 11, 13, 32, 0x7f, 0x85, 0xa0, 0xb7, 0xd7, 0xe9, 0x300, 0x37e, 0x200d, 0x2028, 0x203f,
]
  .concat([0x3000, 0xd7ff, 0xd800, 0xdc00, 0xfeff, 0xfffd, 0xfffe, 0xffff, 0x10000, 0xeffff, 0xf0000])
  .map((code) => String.fromCodePoint(code));
const fragment = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...MARKUP) },
  { weight: 4, arbitrary: fc.constantFrom(...CHARACTERS) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('<a>'.repeat(33), nestElements(33), '<a/>'.repeat(1001), writeAttributes(65)),
  },
);
const mutation = fc.tuple(
  fc.constantFrom('insert', 'insert', 'insert', 'replace', 'delete', 'duplicate', 'swap', 'cut'),
  fc.nat({ max: 9999 }),
  fc.constantFrom(1, 1, 1, 2, 3, 5, 20),
  fragment,
);

function mutate(document: string, [kind, place, length, inserted]: [string, number, number, string]): string {
  const at = Math.floor((place / 9999) * document.length);
  const before = document.slice(0, at);
  const part = document.slice(at, at + length);
  const after = document.slice(at + length);
  if (kind === 'insert') return before + inserted + part + after;
  if (kind === 'replace') return before + inserted + after;
  if (kind === 'delete') return before + after;
  if (kind === 'duplicate') return before + part + part + after;
  if (kind === 'swap') return before + after.slice(0, length) + part + after.slice(length);
  return before; // cut
}

export const broken = fc
  .tuple(
    fc.oneof(generated, fc.constantFrom(...SOAP_DOCUMENTS)),
    fc.array(mutation, { minLength: 1, maxLength: 2 }),
  )
  .map(([document, mutations]) => mutations.reduce(mutate, document));

const encode = fc.constantFrom<(document: string) => Buffer>(
  (document) => Buffer.from(document),
  (document) => Buffer.from(`\uFEFF${document}`),
  (document) => Buffer.from(`\uFEFF${document}`, 'utf16le'),
  (document) => Buffer.from(`\uFEFF${document}`, 'utf16le').swap16(),
  (document) => Buffer.from(document, 'utf16le'),
  (document) => Buffer.from(document, 'utf16le').swap16(),
);
const encoding = fc.constantFrom(
  ...'UTF-8 utf-8 utf8 UTF-16 UTF-16 utf-16 US-ASCII us-ascii ISO-8859-1 x-any'.split(' '),
);
const byteMutation = fc.tuple(
  fc.nat({ max: 9999 }),
  fc.constantFrom(0, 1, 2),
  fc.array(fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(0, 0x3c, 0x80, 0xc0, 0xed, 0xf4, 0xfe)), {
    maxLength: 1,
  }),
);

function mutateBytes(bytes: Buffer, [place, removed, inserted]: [number, number, number[]]): Buffer {
  const at = Math.floor((place / 9999) * bytes.length);
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(inserted), bytes.subarray(at + removed)]);
}

export const encoded = fc
  .tuple(
    fc.oneof(generated, fc.constantFrom(...SOAP_DOCUMENTS)),
    fc.option(encoding),
    encode,
    fc.array(byteMutation, { maxLength: 2 }),
  )
  .map(([document, declared, toBytes, mutations]) => {
    const start = declared === null ? '' : `<?xml version="1.0" encoding="${declared}"?>`;
    return mutations.reduce<Buffer>(mutateBytes, toBytes(start + document.replace(/^<\?xml[^>]*>\s*/, '')));
  });
