// Tests the XML reader and the escaping of text.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/lib/errors.ts';
import { isXmlText } from '../../src/lib/text.ts';
import { escapeAttribute, escapeText } from '../../src/soap/xml/escape.ts';
import { readXml } from '../../src/soap/xml/reader.ts';
import { XML_NAMESPACE, print, writeAttributes } from '../kit/xml.ts';

const ACCEPTED: [behaviour: string, document: string, tree: string][] = [
  ['an empty element', '<a/>', 'a'],
  ['a start and an end tag', '<a></a>', 'a'],
  ['white space within tags', '<a\n\t\r /><!---->\n', 'a'],
  ['white space after the name of an end tag', '<a></a \n>', 'a'],
  ['children in order', '<a><b/><c><b/></c></a>', 'a (b, c (b))'],
  ['own text without that of children', '<a>1<b>2</b>3<b/>4</a>', 'a "134" (b "2", b)'],
  ['text, comments and CDATA in order', '<a>1<!--x-->2<![CDATA[<&]]>3<![CDATA[]]]]></a>', 'a "12<&3]]"'],
  ['the five entities', '<a b="&lt;&gt;&amp;&apos;">&lt;&gt;&amp;&quot;&apos;</a>', `a b="<>&'" "<>&\\"'"`],
  ['references to characters', '<a>&#65;&#x42;&#x1f600;&#x10FFFF;&#0067;</a>', 'a "AB😀\u{10FFFF}C"'],
  ['characters from references as text, not as markup', '<a>&#60;b/>&#38;amp;]]&gt;</a>', 'a "<b/>&amp;]]>"'],
  ['line ends as line feeds', '<a>1\r\n2\r3\n4<![CDATA[\r\n]]></a>', 'a "1\\n2\\n3\\n4\\n"'],
  ['carriage returns written as references', '<a>&#13;&#xD;&#10;</a>', 'a "\\r\\r\\n"'],
  ['white space in attribute values as spaces', '<a b=" \t\n\r\n\r "/>', 'a b="      "'],
  ['white space in attribute values written as references', '<a b="&#9;&#10;&#13;"/>', 'a b="\\t\\n\\r"'],
  ['either quotation mark', `<a b='"' c="'" d=''/>`, `a b="\\"" c="'" d=""`],
  ['white space around the equals sign', '<a b\n=\t"1"/>', 'a b="1"'],
  ['">" and "]]>" in attribute values', '<a b="]]>"/>', 'a b="]]>"'],
  [
    'names of properties that objects inherit',
    '<constructor __proto__="1"><toString/></constructor>',
    'constructor __proto__="1" (toString)',
  ],
  [
    'elements called __proto__',
    '<__proto__ constructor=""><__proto__/></__proto__>',
    '__proto__ constructor="" (__proto__)',
  ],
  ['prefixes that are names of inherited properties', '<__proto__:a xmlns:__proto__="u"/>', '{u}a'],
  ['names beyond ASCII', '<été·\u0300 ＿="1"><𐀀-𐀀.1/></été·\u0300>', 'été·\u0300 ＿="1" (𐀀-𐀀.1)'],
  ['the default namespace for elements only', '<a xmlns="u" b="1"><c/></a>', '{u}a b="1" ({u}c)'],
  ['the default namespace undone', '<a xmlns="u"><b xmlns=""><c/></b><d/></a>', '{u}a (b (c), {u}d)'],
  ['prefixes declared after their use', '<p:a p:b="1" xmlns:p="u"/>', '{u}a {u}b="1"'],
  [
    'prefixes declared anew',
    '<p:a xmlns:p="u"><p:b xmlns:p="v"><p:c/></p:b><p:d/></p:a>',
    '{u}a ({v}b ({v}c), {u}d)',
  ],
  [
    'prefixes declared anew by an empty element',
    '<p:a xmlns:p="u"><p:b xmlns:p="v"/><p:c/></p:a>',
    '{u}a ({v}b, {u}c)',
  ],
  [
    'one local name in several namespaces',
    '<a xmlns:p="u" xmlns:q="v" b="1" p:b="2" q:b="3"/>',
    'a b="1" {u}b="2" {v}b="3"',
  ],
  [
    'attributes of the default namespace as in none',
    '<a xmlns="u" xmlns:p="u" b="1" p:b="2"/>',
    '{u}a b="1" {u}b="2"',
  ],
  ['references in a namespace name', '<a xmlns="u&amp;&#x76;"/>', '{u&v}a'],
  ['the prefix xml', '<xml:a xml:lang="en"/>', `{${XML_NAMESPACE}}a {${XML_NAMESPACE}}lang="en"`],
  [
    'the prefix xml declared as what it is',
    `<a xmlns:xml="${XML_NAMESPACE}" xml:b=""/>`,
    `a {${XML_NAMESPACE}}b=""`,
  ],
  ['names that begin with xml', '<xmlA xmlnsb="1" xmlns:xmlc="u" xmlc:d=""/>', 'xmlA xmlnsb="1" {u}d=""'],
  ['an XML declaration', '<?xml version="1.0"?><a/>', 'a'],
  [
    'all of an XML declaration',
    `<?xml\r\nversion = '1.1'\tencoding='x-Any.1_2' standalone="no" ?>\n<a/>`,
    'a',
  ],
  ['comments around the root element', '<!-- - <a> & --><a/><!--\n-->', 'a'],
  ['32 levels', '<a>'.repeat(31) + '<b/>' + '</a>'.repeat(31), 'a ('.repeat(31) + 'b' + ')'.repeat(31)],
  ['1000 elements', `<a>${'<b/>'.repeat(999)}</a>`, `a (b${', b'.repeat(998)})`],
];

describe('readXml', () => {
  it.each(ACCEPTED)('reads %s', (_, document, tree) => {
    expect(print(readXml(document))).toBe(tree);
  });

  it('reads 64 attributes, namespace declarations among them', () => {
    expect(readXml(`<a xmlns:p="u"${writeAttributes(63)}/>`).attributes).toHaveLength(63);
  });

  it('returns namespace, name, attributes, children and text of every element', () => {
    expect(readXml('<p:a xmlns:p="u" b="1" p:c="2">3<d/></p:a>')).toEqual({
      namespace: 'u',
      name: 'a',
      attributes: [
        { namespace: '', name: 'b', value: '1' },
        { namespace: 'u', name: 'c', value: '2' },
      ],
      children: [{ namespace: '', name: 'd', attributes: [], children: [], text: '' }],
      text: '3',
    });
  });

  // With quadratic run time, each of these would exceed the time limit of the test many times over.
  it('reads long texts of any kind in one pass', () => {
    for (const part of ['&amp;', ']]', '<!---->', '<![CDATA[]]>', 'x\r', '-', ' ']) {
      readXml(`<a>${part.repeat(200_000)}</a>`);
    }
    for (const part of ['&', '<', '</', '<!--', '<?xml ', '<a ', '<a b="', '<![CDATA[', 'x:', ' ', '&#1']) {
      for (const start of ['', '<', '<a>', '<a b', '<a b="', '<?xml version="1.0"']) {
        expect(() => readXml(start + part.repeat(200_000))).toThrow(ServiceError);
      }
    }
  });
});

describe('escaping', () => {
  it('escapes the characters that text and attribute values must not contain', () => {
    expect(escapeText(`<a> & "b" 'c'\t\r\n`)).toBe(`&lt;a&gt; &amp; "b" 'c'\t&#13;\n`);
    expect(escapeAttribute(`<a> & "b" 'c'\t\r\n`)).toBe(`&lt;a&gt; &amp; &quot;b&quot; 'c'&#9;&#13;&#10;`);
  });

  it.each(['', 'a\t\n\r', '\x7F\x85\uD7FF\uE000\uFFFD', '😀\u{1FFFE}\u{10FFFF}'])(
    'accepts %j as text',
    (s) => {
      expect(isXmlText(s)).toBe(true);
    },
  );

  const NO_TEXT = [0, 8, 0xb, 0xc, 0xe, 0x1f, 0xd800, 0xdfff, 0xfffe, 0xffff].map((code) =>
    String.fromCharCode(code),
  );

  it.each([...NO_TEXT, '\uDE00\uD83D', 'a\0'])('does not accept %j as text', (s) => {
    expect(isXmlText(s)).toBe(false);
  });

  it('escapes every text so that the reader returns it unchanged', () => {
    const special = fc.constantFrom('\t', '\n', '\r', ' ', ...`< > & " ' ]]> &lt; \u0085 \u2028`.split(' '));
    const any = fc.nat({ max: 0x10ffff }).map((code) => String.fromCodePoint(code));
    const texts = fc.array(fc.oneof(special, any), { maxLength: 8 }).map((parts) => parts.join(''));
    const property = fc.property(texts.filter(isXmlText), (x) => {
      const read = readXml(`<a b="${escapeAttribute(x)}">${escapeText(x)}</a>`);
      return read.text === x && read.attributes[0]?.value === x;
    });
    fc.assert(property, { numRuns: 500 });
  });
});
