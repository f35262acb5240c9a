// The reasons for which the XML reader refuses a document, and what only it refuses: libxml2.test.ts compares which
// documents are refused as malformed.
import { describe, it } from 'vitest';
import { readXml } from '../../src/soap/xml/reader.ts';
import { XML_NAMESPACE, XMLNS_NAMESPACE, expectRefusal, nestElements, writeAttributes } from '../kit/xml.ts';

const REFUSED: Record<string, [document: string, message: string][]> = {
  'a document without exactly one root element': [
    [' \n ', 'There is no root element (line 2).'],
    ['<a/><b/>', 'There is more than one root element (line 1).'],
    ['<a/>text', 'There is text outside the root element'],
    ['\n\nx<a/>', '(line 3).'],
    ['\uFEFF<a/>', 'There is text outside the root element'],
    ['<a/><![CDATA[]]>', 'There is a CDATA section outside the root element'],
  ],
  'tags that do not match': [
    ['<Foo>\n\n</Bar>', 'The element Foo is closed by </Bar> (line 3).'],
    [`<${'x'.repeat(100)}></y>`, `The element ${'x'.repeat(64)} is closed by </y>`],
    [`<x${'𐀀'.repeat(50)}></y>`, `The element x${'𐀀'.repeat(31)} is closed by </y>`],
    ['</a>', 'No element is open at </a>'],
    ['<a>', 'The element a is not closed'],
  ],
  'malformed tags': [
    ['<a', 'The start tag of a is not complete'],
    ['<a></a', 'The end tag of a is not complete'],
    ['< a/>', 'A name is missing in a tag'],
    ['<a/ >', 'White space is missing in the start tag of a'],
  ],
  'malformed attributes': [
    ['<a b/>', 'The attribute b has no value'],
    ['<a b=1/>', 'The value of b is not in quotation marks'],
    ['<a b="1/>', 'The value of b has no closing quotation mark'],
    ['<a b="<"/>', 'The value of b contains "<"'],
  ],
  'attributes given twice': [
    ['<a b="1" b="1"/>', 'The attribute b is given twice on one element'],
    ['<a __proto__="" __proto__=""/>', 'The attribute __proto__ is given twice'],
    [`<a${` xmlns:xml="${XML_NAMESPACE}"`.repeat(2)}/>`, 'The attribute xmlns:xml is given twice'],
    ['<a xmlns:p="u" xmlns:q="u" p:b="" q:b=""/>', 'The attribute q:b is given twice'],
    ['<a xmlns:p="u v" xmlns:q="u\nv" p:b="" q:b=""/>', 'The attribute q:b is given twice'],
  ],
  'invalid names': [
    ['<1a/>', '"1a" is not a valid name'],
    ['<\u{F0000}/>', '"\u{F0000}" is not a valid name'],
    ['<a:b:c xmlns:a="u"/>', '"a:b:c" is not a valid name'],
    [`<${'1'.repeat(200)}/>`, `"${'1'.repeat(64)}" is not a valid name`],
  ],
  'misused namespaces': [
    ['<p:a/>', 'The prefix p of p:a is not declared (line 1).'],
    ['<a><b xmlns:p="u"/><p:c/></a>', 'The prefix p of p:c is not declared'],
    ['<__proto__:a/>', 'The prefix __proto__ of __proto__:a is not declared'],
    ['<xmlns:a/>', 'The prefix xmlns of xmlns:a is not declared'],
    ['<a xmlns:p=""/>', 'The attribute xmlns:p must not be empty'],
    ['<a xmlns:xml="u"/>', 'The attribute xmlns:xml must not be "u"'],
    ['<a xmlns:xmlns="u"/>', 'The attribute xmlns:xmlns must not be "u"'],
    [`<a xmlns:p="${XMLNS_NAMESPACE}"/>`, 'The attribute xmlns:p must not be'],
    [`<a xmlns="${XMLNS_NAMESPACE}"/>`, 'The attribute xmlns must not be'],
  ],
  'malformed references and unknown entities': [
    ['<a>\n&nbsp;</a>', '&nbsp; is not known (line 2).'],
    ['<a>&constructor;</a>', '&constructor; is not known'],
    ['<a>&#-1;</a>', '&#-1; is not known'],
    ['<a>a & b</a>', 'An "&" must be written "&amp;"'],
    ['<a>&#0;</a>', '&#0; is to no character of XML'],
    [`<a>&#${'9'.repeat(1000)};</a>`, `&#${'9'.repeat(62)} is to no character of XML`],
  ],
  'forbidden characters anywhere': [
    ['<a>\n\0</a>', 'The character U+0000 is not allowed in XML (line 2).'],
    ['<a>\uD800</a>', 'The character U+D800 is not allowed in XML'],
  ],
  'malformed text, comments and CDATA sections': [
    ['<a>]]></a>', 'In text "]]>" must be written "]]&gt;"'],
    ['<a><!-- -- --></a>', 'A comment contains "--"'],
    ['<a><!-- </a>', 'A comment is not closed'],
    ['<a><![CDATA[ ]]</a>', 'A CDATA section is not closed'],
    ['<a><![cdata[]]></a>', 'A "<!" begins neither a comment nor a CDATA section'],
  ],
  'a malformed XML declaration': [
    ['<?xml?><a/>', 'The XML declaration is malformed (line 1).'],
    ['<?xml version="2.0"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1."?><a/>', 'The XML declaration is malformed'],
    [`<?xml version="1.0'?><a/>`, 'The XML declaration is malformed'],
    ['<?xml version="1.0" encoding=""?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0"encoding="UTF-8"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" standalone="yes" encoding="UTF-8"?><a/>', 'The XML declaration is malformed'],
    ['<?xml version="1.0" standalone="true"?><a/>', 'The XML declaration is malformed'],
    ['\n<?xml version="1.0"?><a/>', 'The XML declaration is not at the very start (line 2).'],
    ['<a><?xml version="1.0"?></a>', 'The XML declaration is not at the very start'],
  ],
  'constructs and sizes that a SOAP message must not have': [
    ['<!DOCTYPE a><a/>', 'A DOCTYPE is not allowed in a SOAP message.'],
    ['<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 'A DOCTYPE is not allowed in a SOAP message.'],
    ['<?pi?><a/>', 'A processing instruction is not allowed in a SOAP message.'],
    ['<?XML version="1.0"?><a/>', 'A processing instruction is not allowed in a SOAP message.'],
    [nestElements(33), 'a is over 32 levels deep'],
    [nestElements(10_000), 'a is over 32 levels deep'],
    ['<a>'.repeat(31) + '<b><c/></b>' + '</a>'.repeat(31), 'c is over 32 levels deep'],
    [`<a>${'<b/>'.repeat(1000)}</a>`, 'There are over 1000 elements'],
    [`<a${writeAttributes(65)}/>`, 'a has over 64 attributes'],
    [`<a xmlns="u" xmlns:p="v"${writeAttributes(63)}/>`, 'a has over 64 attributes'],
  ],
};

describe('readXml', () => {
  for (const [what, documents] of Object.entries(REFUSED)) {
    for (const [document, message] of documents) {
      it(`refuses ${what}: ${JSON.stringify(document.slice(0, 80))}`, () => {
        expectRefusal(() => readXml(document), 'invalid', message);
      });
    }
  }
});
