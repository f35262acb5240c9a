// The XML reader and the escaping of text: what is refused and why, what is read, and that both agree.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { escapeAttribute, escapeText } from '../../src/soap/escape.ts';
import { readXml } from '../../src/soap/xml.ts';
import { isXmlText } from '../../src/text.ts';
import {
  XML_NAMESPACE,
  XMLNS_NAMESPACE,
  expectRefusal,
  nestElements,
  print,
  writeAttributes,
} from '../kit/xml.ts';

const REFUSED: Record<string, [document: string, message: string][]> = {
  'a document without exactly one root element': [
    ['', 'There is no root element (line 1).'],
    [' \n ', 'There is no root element (line 2).'],
    ['<!-- only this -->', 'There is no root element'],
    ['<?xml version="1.0"?>', 'There is no root element'],
    ['<a/><b/>', 'There is more than one root element (line 1).'],
    ['<a></a><a></a>', 'There is more than one root element'],
    ['<a/>text', 'There is text outside the root element'],
    ['text<a/>', 'There is text outside the root element'],
    ['\n\nx<a/>', '(line 3).'],
    ['\uFEFF<a/>', 'There is text outside the root element'],
    ['<a/>&#32;', 'There is text outside the root element'],
    ['<a/>\u00A0', 'There is text outside the root element'],
    ['<a/><![CDATA[]]>', 'There is a CDATA section outside the root element'],
    ['<![CDATA[]]><a/>', 'There is a CDATA section outside the root element'],
  ],
  'tags that do not match': [
    ['<Foo>\n\n</Bar>', 'The element Foo is closed by </Bar> (line 3).'],
    ['<a><b></a></b>', 'The element b is closed by </a>'],
    ['<a></ab>', 'The element a is closed by </ab>'],
    ['<ab></a>', 'The element ab is closed by </a>'],
    ['<a></A>', 'The element a is closed by </A>'],
    ['<p:a xmlns:p="u" xmlns:q="u"></q:a>', 'The element p:a is closed by </q:a>'],
    [`<${'x'.repeat(100)}></y>`, `The element ${'x'.repeat(64)} is closed by </y>`],
    [`<x${'𐀀'.repeat(50)}></y>`, `The element x${'𐀀'.repeat(31)} is closed by </y>`],
    ['</a>', 'No element is open at </a>'],
    ['<a/></a>', 'No element is open at </a>'],
    ['<a>', 'The element a is not closed'],
    ['<a><b></b>', 'The element a is not closed'],
    ['<a>text', 'The element a is not closed'],
  ],
  'malformed tags': [
    ['<a', 'The start tag of a is not complete'],
    ['<a ', 'The start tag of a is not complete'],
    ['<a b="1"', 'The start tag of a is not complete'],
    ['<a></a', 'The end tag of a is not complete'],
    ['<a></a b="">', 'The end tag of a is not complete'],
    ['<a></a/>', 'The end tag of a is not complete'],
    ['<a></>', 'A name is missing in a tag'],
    ['<a></ a>', 'A name is missing in a tag'],
    ['<', 'A name is missing in a tag'],
    ['< a/>', 'A name is missing in a tag'],
    ['<a / >', 'A name is missing in a tag'],
    ['<a/ >', 'White space is missing in the start tag of a'],
    ['<a<b/></a>', 'White space is missing in the start tag of a'],
    ['<a <b/></a>', 'A name is missing in a tag'],
    ['<a>1 < 2</a>', 'A name is missing in a tag'],
  ],
  'malformed attributes': [
    ['<a b/>', 'The attribute b has no value'],
    ['<a b></a>', 'The attribute b has no value'],
    ['<a b=/>', 'The value of b is not in quotation marks'],
    ['<a b=1/>', 'The value of b is not in quotation marks'],
    ['<a b="1/>', 'The value of b has no closing quotation mark'],
    [`<a b="1'/>`, 'The value of b has no closing quotation mark'],
    ['<a b="<"/>', 'The value of b contains "<"'],
    ['<a b="1"c="2"/>', 'White space is missing in the start tag of a'],
    ['<a b="1""/>', 'White space is missing in the start tag of a'],
    ['<a ="1"/>', 'A name is missing in a tag'],
    ['<a "1"/>', 'A name is missing in a tag'],
  ],
  'attributes given twice': [
    ['<a b="1" b="1"/>', 'The attribute b is given twice on one element'],
    ['<a constructor="" constructor=""/>', 'The attribute constructor is given twice'],
    ['<a __proto__="" __proto__=""/>', 'The attribute __proto__ is given twice'],
    ['<a xmlns="u" xmlns="u"/>', 'The attribute xmlns is given twice'],
    ['<a xmlns:p="u" xmlns:p="v"/>', 'The attribute xmlns:p is given twice'],
    [`<a${` xmlns:xml="${XML_NAMESPACE}"`.repeat(2)}/>`, 'The attribute xmlns:xml is given twice'],
    ['<a p:b="" xmlns:p="u" p:b=""/>', 'The attribute p:b is given twice'],
    ['<a xmlns:p="u" xmlns:q="u" p:b="" q:b=""/>', 'The attribute q:b is given twice'],
    ['<a xmlns:p="u"><b q:b="" p:b="" xmlns:q="&#117;"/></a>', 'The attribute p:b is given twice'],
    ['<a xmlns:p="u v" xmlns:q="u\nv" p:b="" q:b=""/>', 'The attribute q:b is given twice'],
  ],
  'names that are none': [
    ['<1a/>', '"1a" is not a valid name'],
    ['<-a/>', '"-a" is not a valid name'],
    ['<.a/>', '".a" is not a valid name'],
    ['<·a/>', '"·a" is not a valid name'],
    ['<\u0300/>', '"\u0300" is not a valid name'],
    ['<\u{F0000}/>', '"\u{F0000}" is not a valid name'],
    ['<a $="1"/>', '"$" is not a valid name'],
    ['<a$/>', 'White space is missing in the start tag of a'],
    ['<a×/>', 'White space is missing in the start tag of a'],
    ['<a\u037E/>', 'White space is missing in the start tag of a'],
    ['<a\u{F0000}/>', 'White space is missing in the start tag of a'],
    ['<a\u00A0b="1"/>', 'White space is missing in the start tag of a'],
    ['<:a/>', '":a" is not a valid name'],
    ['<a:/>', '"a:" is not a valid name'],
    ['<a:1 xmlns:a="u"/>', '"a:1" is not a valid name'],
    ['<a:b:c xmlns:a="u"/>', '"a:b:c" is not a valid name'],
    ['<a :b="1"/>', '":b" is not a valid name'],
    ['<a b:="1"/>', '"b:" is not a valid name'],
    ['<a xmlns:="u"/>', '"xmlns:" is not a valid name'],
    ['<a xmlns:p:q="u"/>', '"xmlns:p:q" is not a valid name'],
    [`<${'1'.repeat(200)}/>`, `"${'1'.repeat(64)}" is not a valid name`],
  ],
  'misused namespaces': [
    ['<p:a/>', 'The prefix p of p:a is not declared (line 1).'],
    ['<a p:b=""/>', 'The prefix p of p:b is not declared'],
    ['<a><b xmlns:p="u"/><p:c/></a>', 'The prefix p of p:c is not declared'],
    ['<a><b xmlns:p="u"></b><p:c/></a>', 'The prefix p of p:c is not declared'],
    ['<constructor:a/>', 'The prefix constructor of constructor:a is not declared'],
    ['<__proto__:a/>', 'The prefix __proto__ of __proto__:a is not declared'],
    ['<xmlns:a/>', 'The prefix xmlns of xmlns:a is not declared'],
    ['<XML:a/>', 'The prefix XML of XML:a is not declared'],
    ['<a xmlns:p=""/>', 'The attribute xmlns:p must not be empty'],
    ['<a xmlns:p="u"><b xmlns:p=""/></a>', 'The attribute xmlns:p must not be empty'],
    ['<a xmlns:xml="u"/>', 'The attribute xmlns:xml must not be "u"'],
    ['<a xmlns:xml=""/>', 'The attribute xmlns:xml must not be ""'],
    ['<a xmlns:xmlns="u"/>', 'The attribute xmlns:xmlns must not be "u"'],
    [`<a xmlns:xmlns="${XMLNS_NAMESPACE}"/>`, 'The attribute xmlns:xmlns must not be'],
    [`<a xmlns:p="${XMLNS_NAMESPACE}"/>`, 'The attribute xmlns:p must not be'],
    [`<a xmlns="${XMLNS_NAMESPACE}"/>`, 'The attribute xmlns must not be'],
    [`<a xmlns:p="${XML_NAMESPACE}"/>`, 'The attribute xmlns:p must not be'],
    [`<a xmlns="${XML_NAMESPACE}"/>`, 'The attribute xmlns must not be'],
  ],
  'malformed references and unknown entities': [
    ['<a>\n&nbsp;</a>', '&nbsp; is not known (line 2).'],
    ['<a b="&eacute;"/>', '&eacute; is not known'],
    ['<a>&constructor;</a>', '&constructor; is not known'],
    ['<a>&AMP;</a>', '&AMP; is not known'],
    ['<a>&#;</a>', '&#; is not known'],
    ['<a>&#x;</a>', '&#x; is not known'],
    ['<a>&#X41;</a>', '&#X41; is not known'],
    ['<a>&#4A;</a>', '&#4A; is not known'],
    ['<a>&#-1;</a>', '&#-1; is not known'],
    ['<a>a & b</a>', 'An "&" must be written "&amp;"'],
    ['<a>&</a>', 'An "&" must be written "&amp;"'],
    ['<a>&;</a>', 'An "&" must be written "&amp;"'],
    ['<a>&amp</a>', 'An "&" must be written "&amp;"'],
    ['<a>&amp&lt;</a>', 'An "&" must be written "&amp;"'],
    ['<a>&#65</a>', 'An "&" must be written "&amp;"'],
    ['<a b="?x=1&y=2"/>', 'An "&" must be written "&amp;"'],
    ['<a xmlns="?x=1&y=2"/>', 'An "&" must be written "&amp;"'],
    ['<a>&#0;</a>', '&#0; is to no character of XML'],
    ['<a>&#8;</a>', '&#8; is to no character of XML'],
    ['<a>&#xD800;</a>', '&#xD800; is to no character of XML'],
    ['<a>&#xD83D;&#xDE00;</a>', '&#xD83D; is to no character of XML'],
    ['<a>&#xFFFE;</a>', '&#xFFFE; is to no character of XML'],
    ['<a>&#xFFFF;</a>', '&#xFFFF; is to no character of XML'],
    ['<a>&#x110000;</a>', '&#x110000; is to no character of XML'],
    ['<a b="&#1114112;"/>', '&#1114112; is to no character of XML'],
    [`<a>&#${'9'.repeat(1000)};</a>`, `&#${'9'.repeat(62)} is to no character of XML`],
  ],
  'forbidden characters anywhere': [
    ['<a>\n\0</a>', 'The character U+0000 is not allowed in XML (line 2).'],
    ['<a b="\x01"/>', 'The character U+0001 is not allowed in XML'],
    ['<a><!-- \x0B --></a>', 'The character U+000B is not allowed in XML'],
    ['<a><![CDATA[\x1F]]></a>', 'The character U+001F is not allowed in XML'],
    ['<a\x08/>', 'The character U+0008 is not allowed in XML'],
    ['<a/>\x1A', 'The character U+001A is not allowed in XML'],
    ['<a>\uD800</a>', 'The character U+D800 is not allowed in XML'],
    ['<a>\uDC00\uD800</a>', 'The character U+DC00 is not allowed in XML'],
    ['<a>\uFFFE</a>', 'The character U+FFFE is not allowed in XML'],
    ['<a>\uFFFF</a>', 'The character U+FFFF is not allowed in XML'],
  ],
  'malformed text, comments and CDATA sections': [
    ['<a>]]></a>', 'In text "]]>" must be written "]]&gt;"'],
    ['<a>]]]></a>', 'In text "]]>" must be written "]]&gt;"'],
    ['<a><![CDATA[]]>]]></a>', 'In text "]]>" must be written "]]&gt;"'],
    ['<a><!-- -- --></a>', 'A comment contains "--"'],
    ['<a><!-- ---></a>', 'A comment contains "--"'],
    ['<!----><!-- --', 'A comment contains "--"'],
    ['<a><!-- </a>', 'A comment is not closed'],
    ['<!-->', 'A comment is not closed'],
    ['<!--->', 'A comment is not closed'],
    ['<a><![CDATA[ ]]</a>', 'A CDATA section is not closed'],
    ['<a><![cdata[]]></a>', 'A "<!" begins neither a comment nor a CDATA section'],
    ['<a><!- - -></a>', 'A "<!" begins neither a comment nor a CDATA section'],
    ['<!doctype a><a/>', 'A "<!" begins neither a comment nor a CDATA section'],
    ['<!', 'A "<!" begins neither a comment nor a CDATA section'],
  ],
  'a malformed XML declaration': [
    ['<?xml?><a/>', 'The XML declaration is malformed (line 1).'],
    ['<?xml ?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0"><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0"', 'The XML declaration is malformed'],
    ['<?xml version=1.0?><a/>', 'The XML declaration is malformed'],
    [`<?xml version="1.0'?><a/>`, 'The XML declaration is malformed'],
    ['<?xml version="2.0"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1."?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version=""?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0a"?><a/>', 'The XML declaration is malformed'],
    ['<?xml Version="1.0"?><a/>', 'The XML declaration is malformed'],
    ['<?xml encoding="UTF-8"?><a/>', 'The XML declaration is malformed'],
    ['<?xml encoding="UTF-8" version="1.0"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" standalone="yes" encoding="UTF-8"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0"encoding="UTF-8"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" encoding="UTF-8"standalone="yes"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" encoding=""?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" encoding="8-UTF"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" encoding="UTF 8"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" encoding="ÜTF-8"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" standalone="true"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" standalone="YES"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" other=""?><a/>', 'The XML declaration is malformed'],
    ['\n<?xml version="1.0"?><a/>', 'The XML declaration is not at the very start (line 2).'],
    ['<!-- --><?xml version="1.0"?><a/>', 'The XML declaration is not at the very start'],
    ['<a><?xml version="1.0"?></a>', 'The XML declaration is not at the very start'],
    ['<a/><?xml version="1.0"?>', 'The XML declaration is not at the very start'],
  ],
  'what a SOAP message must not have': [
    ['<!DOCTYPE a><a/>', 'A DOCTYPE is not allowed in a SOAP message.'],
    [
      '<?xml version="1.0"?>\n<!DOCTYPE a SYSTEM "file:///x"><a/>',
      'A DOCTYPE is not allowed in a SOAP message.',
    ],
    ['<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 'A DOCTYPE is not allowed in a SOAP message.'],
    ['<a/><!DOCTYPE a>', 'A DOCTYPE is not allowed in a SOAP message.'],
    ['<?pi?><a/>', 'A processing instruction is not allowed in a SOAP message.'],
    ['<?xml-stylesheet href="x"?><a/>', 'A processing instruction is not allowed in a SOAP message.'],
    ['<a><?pi x?></a>', 'A processing instruction is not allowed in a SOAP message.'],
    ['<a/><?pi x?>', 'A processing instruction is not allowed in a SOAP message.'],
    ['<?XML version="1.0"?><a/>', 'A processing instruction is not allowed in a SOAP message.'],
    [nestElements(33), 'a is over 32 levels deep'],
    [nestElements(10_000), 'a is over 32 levels deep'],
    ['<a>'.repeat(31) + '<b><c/></b>' + '</a>'.repeat(31), 'c is over 32 levels deep'],
    [`<a>${'<b/>'.repeat(1000)}</a>`, 'There are over 1000 elements'],
    [`<a${writeAttributes(65)}/>`, 'a has over 64 attributes'],
    [`<a xmlns="u" xmlns:p="v"${writeAttributes(63)}/>`, 'a has over 64 attributes'],
  ],
};

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
  ['what references stand for not as markup', '<a>&#60;b/>&#38;amp;]]&gt;</a>', 'a "<b/>&amp;]]>"'],
  ['line ends as line feeds', '<a>1\r\n2\r3\n4<![CDATA[\r\n]]></a>', 'a "1\\n2\\n3\\n4\\n"'],
  ['carriage returns written as references', '<a>&#13;&#xD;&#10;</a>', 'a "\\r\\r\\n"'],
  ['white space in attribute values as spaces', '<a b=" \t\n\r\n\r "/>', 'a b="      "'],
  ['white space in attribute values written as references', '<a b="&#9;&#10;&#13;"/>', 'a b="\\t\\n\\r"'],
  ['either quotation mark', `<a b='"' c="'" d=''/>`, `a b="\\"" c="'" d=""`],
  ['white space around the equals sign', '<a b\n=\t"1"/>', 'a b="1"'],
  ['">" and "]]>" in attribute values', '<a b="]]>"/>', 'a b="]]>"'],
  [
    'names objects inherit',
    '<constructor __proto__="1"><toString/></constructor>',
    'constructor __proto__="1" (toString)',
  ],
  [
    'elements called __proto__',
    '<__proto__ constructor=""><__proto__/></__proto__>',
    '__proto__ constructor="" (__proto__)',
  ],
  ['prefixes objects inherit', '<__proto__:a xmlns:__proto__="u"/>', '{u}a'],
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
  for (const [what, documents] of Object.entries(REFUSED)) {
    for (const [document, message] of documents) {
      it(`refuses ${what}: ${JSON.stringify(document.slice(0, 80))}`, () => {
        expectRefusal(() => readXml(document), 'invalid', message);
      });
    }
  }

  it.each(ACCEPTED)('reads %s', (_, document, tree) => {
    expect(print(readXml(document))).toBe(tree);
  });

  it('reads 64 attributes, namespace declarations among them', () => {
    expect(readXml(`<a xmlns:p="u"${writeAttributes(63)}/>`).attributes).toHaveLength(63);
  });

  it('gives namespace, name, attributes, children and text of every element', () => {
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

  // Each of these would outlast the test's time limit many times over if any part were read again and again.
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
  it('escapes what text and attribute values cannot hold', () => {
    expect(escapeText(`<a> & "b" 'c'\t\r\n`)).toBe(`&lt;a&gt; &amp; "b" 'c'\t&#13;\n`);
    expect(escapeAttribute(`<a> & "b" 'c'\t\r\n`)).toBe(`&lt;a&gt; &amp; &quot;b&quot; 'c'&#9;&#13;&#10;`);
  });

  it.each(['', 'a\t\n\r', '\x7F\x85\uD7FF\uE000\uFFFD', '😀\u{1FFFE}\u{10FFFF}'])('knows %j as text', (s) => {
    expect(isXmlText(s)).toBe(true);
  });

  const NO_TEXT = [0, 8, 0xb, 0xc, 0xe, 0x1f, 0xd800, 0xdfff, 0xfffe, 0xffff].map((code) =>
    String.fromCharCode(code),
  );

  it.each([...NO_TEXT, '\uDE00\uD83D', 'a\0'])('knows that %j is no text', (s) => {
    expect(isXmlText(s)).toBe(false);
  });

  it('escapes every text so that the reader gives it back', () => {
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
