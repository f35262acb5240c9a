// Tests the escaping of text, and what the XML reader reads that libxml2.test.ts does not compare in generated documents.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/lib/errors.ts';
import { isXmlText } from '../../src/lib/text.ts';
import { escapeAttribute, escapeText } from '../../src/soap/xml/escape.ts';
import { readXml } from '../../src/soap/xml/reader.ts';
import { XML_NAMESPACE, print, writeAttributes } from '../kit/xml.ts';

const ACCEPTED: [behaviour: string, document: string, tree: string][] = [
  ['characters from references as text, not as markup', '<a>&#60;b/>&#38;amp;]]&gt;</a>', 'a "<b/>&amp;]]>"'],
  ['carriage returns written as references', '<a>&#13;&#xD;&#10;</a>', 'a "\\r\\r\\n"'],
  ['white space in attribute values written as references', '<a b="&#9;&#10;&#13;"/>', 'a b="\\t\\n\\r"'],
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
  ['the prefix xml', '<xml:a xml:lang="en"/>', `{${XML_NAMESPACE}}a {${XML_NAMESPACE}}lang="en"`],
  [
    'the prefix xml declared as what it is',
    `<a xmlns:xml="${XML_NAMESPACE}" xml:b=""/>`,
    `a {${XML_NAMESPACE}}b=""`,
  ],
  ['names that begin with xml', '<xmlA xmlnsb="1" xmlns:xmlc="u" xmlc:d=""/>', 'xmlA xmlnsb="1" {u}d=""'],
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
