// Reads XML 1.0 with namespaces into a small tree, strictly and in one linear pass. It refuses DOCTYPE, processing
// instructions and documents over its limits. fast-xml-parser does not read requests, because it accepts much
// that is not well-formed, and is several times slower. Tests compare this reader with libxml2.
import { ServiceError } from '../../lib/errors.ts';
import { forbiddenInXml, isXmlText, truncate } from '../../lib/text.ts';
import { readXmlDeclaration } from './decode.ts';

export type XmlElement = {
  readonly namespace: string;
  readonly name: string;
  readonly attributes: readonly XmlAttribute[];
  readonly children: readonly XmlElement[];
  readonly text: string;
};

type GrowingElement = Omit<XmlElement, 'children' | 'text'> & { children: GrowingElement[]; text: string };
type OpenElement = { tag: string; element: GrowingElement; outside: Declared };
type Reader = {
  readonly text: string;
  /** The position in the text. */
  at: number;
  /** Most texts contain neither, and then no part is searched for them. */
  readonly hasAmpersand: boolean;
  readonly hasCdataEnd: boolean;
  count: number;
  /** The elements that are not closed yet, the innermost last. */
  readonly open: OpenElement[];
  declared: Declared;
};

const MAX_DEPTH = 32;
const MAX_ELEMENTS = 1000;
const MAX_ATTRIBUTES = 64;

const NO_ATTRIBUTES: readonly XmlAttribute[] = Object.freeze([]);

export function readXml(source: string): XmlElement {
  const text = source.includes('\r') ? source.replace(/\r\n?/g, '\n') : source;
  const reader: Reader = {
    text,
    hasAmpersand: text.includes('&'),
    hasCdataEnd: text.includes(']]>'),
    at: 0,
    count: 0,
    open: [],
    declared: undefined,
  };
  refuseForbidden(reader);
  if (text.startsWith('<?xml')) skipDeclaration(reader);
  let root: GrowingElement | undefined;
  for (readText(reader); reader.at < text.length; readText(reader)) {
    const next = text[reader.at + 1];
    if (next === '/') readEndTag(reader);
    else if (next === '!') readCommentOrCdata(reader);
    else if (next === '?') refuseInstruction(reader);
    else if (root === undefined) root = readStartTag(reader);
    else if (reader.open.length > 0) readStartTag(reader);
    else refuse(reader, 'There is more than one root element');
  }
  const unclosed = reader.open.at(-1)?.tag;
  if (unclosed !== undefined) refuse(reader, `The element ${truncate(unclosed)} is not closed`);
  if (root === undefined) refuse(reader, 'There is no root element');
  return root;
}

function refuseForbidden(reader: Reader): void {
  const at = reader.text.search(forbiddenInXml);
  if (at < 0) return;
  const code = reader.text.charCodeAt(at).toString(16).toUpperCase().padStart(4, '0');
  refuse(reader, `The character U+${code} is not allowed in XML`, at);
}

function skipDeclaration(reader: Reader): void {
  const { text } = reader;
  const declaration = readXmlDeclaration(text);
  if (declaration) reader.at = declaration.length;
  else if (/^<\?xml[ \t\n?]/.test(text)) refuse(reader, 'The XML declaration is malformed');
}

function readText(reader: Reader): void {
  const { text, at: start } = reader;
  const markup = text.indexOf('<', start);
  const end = markup < 0 ? text.length : markup;
  if (end === start) return;
  const raw = text.slice(start, end);
  const element = reader.open.at(-1)?.element;
  if (element === undefined) {
    const other = raw.search(/[^ \t\n]/);
    if (other >= 0) refuse(reader, 'There is text outside the root element', start + other);
  } else {
    const wrong = reader.hasCdataEnd ? raw.indexOf(']]>') : -1;
    if (wrong >= 0) refuse(reader, 'In text "]]>" must be written "]]&gt;"', start + wrong);
    element.text += reader.hasAmpersand ? expandReferences(reader, raw, start) : raw;
  }
  reader.at = end;
}

function readCommentOrCdata(reader: Reader): void {
  const { text, at: start } = reader;
  let end: number;
  if (text.startsWith('<!--', start)) {
    end = text.indexOf('--', start + 4);
    if (end < 0) refuse(reader, 'A comment is not closed');
    if (text[end + 2] !== '>') refuse(reader, 'A comment contains "--"', end);
  } else if (text.startsWith('<![CDATA[', start)) {
    const element = reader.open.at(-1)?.element;
    if (element === undefined) refuse(reader, 'There is a CDATA section outside the root element');
    end = text.indexOf(']]>', start + 9);
    if (end < 0) refuse(reader, 'A CDATA section is not closed');
    element.text += text.slice(start + 9, end);
  } else if (text.startsWith('<!DOCTYPE', start)) {
    throw new ServiceError('invalid', 'A DOCTYPE is not allowed in a SOAP message.');
  } else {
    refuse(reader, 'A "<!" begins neither a comment nor a CDATA section');
  }
  reader.at = end + 3;
}

function refuseInstruction(reader: Reader): never {
  const isDeclaration = /^<\?xml[ \t\n?]/.test(reader.text.slice(reader.at, reader.at + 6));
  if (isDeclaration) refuse(reader, 'The XML declaration is not at the very start');
  throw new ServiceError('invalid', 'A processing instruction is not allowed in a SOAP message.');
}

function readStartTag(reader: Reader): GrowingElement {
  const { text, open, at: start } = reader;
  reader.at++;
  const tag = readName(reader);
  if (open.length >= MAX_DEPTH)
    refuse(reader, `The element ${truncate(tag)} is over ${MAX_DEPTH} levels deep`);
  if (++reader.count > MAX_ELEMENTS) refuse(reader, `There are over ${MAX_ELEMENTS} elements`);
  const outside = reader.declared;
  const attributes: RawAttribute[] = [];
  for (let count = 0; ; count++) {
    const isSpaced = skipWhiteSpace(reader);
    if (text[reader.at] === '>' || text.startsWith('/>', reader.at)) break;
    if (reader.at >= text.length) refuse(reader, `The start tag of ${truncate(tag)} is not complete`, start);
    if (!isSpaced) refuse(reader, `White space is missing in the start tag of ${truncate(tag)}`);
    if (count === MAX_ATTRIBUTES)
      refuse(reader, `The element ${truncate(tag)} has over ${MAX_ATTRIBUTES} attributes`);
    const name = readName(reader);
    const value = readAttributeValue(reader, name);
    if (name !== 'xmlns' && !name.startsWith('xmlns:')) attributes.push({ tag: name, value });
    else declareNamespace(reader, outside, name, value);
  }
  const element: GrowingElement = {
    namespace: namespaceOf(reader, tag),
    name: localPart(tag),
    attributes: attributes.length === 0 ? NO_ATTRIBUTES : resolveAttributes(reader, attributes),
    children: [],
    text: '',
  };
  open.at(-1)?.element.children.push(element);
  const isEmpty = text[reader.at] === '/';
  if (isEmpty) reader.declared = outside;
  else open.push({ tag, element, outside });
  reader.at += isEmpty ? 2 : 1;
  return element;
}

function readEndTag(reader: Reader): void {
  const { text, at: start } = reader;
  const closed = reader.open.pop();
  const tag = closed?.tag;
  reader.declared = closed?.outside;
  reader.at += 2;
  if (tag !== undefined && text.startsWith(tag, reader.at)) {
    reader.at += tag.length;
    skipWhiteSpace(reader);
    if (text[reader.at++] === '>') return;
    reader.at = start + 2;
  }
  // The error names this element.
  if (closed) reader.open.push(closed);
  const closing = readName(reader);
  if (tag === undefined) refuse(reader, `No element is open at </${truncate(closing)}>`);
  if (closing === tag) refuse(reader, `The end tag of ${truncate(tag)} is not complete`);
  refuse(reader, `The element ${truncate(tag)} is closed by </${truncate(closing)}>`);
}

function readAttributeValue(reader: Reader, name: string): string {
  const { text } = reader;
  skipWhiteSpace(reader);
  if (text[reader.at] !== '=') refuse(reader, `The attribute ${truncate(name)} has no value`);
  reader.at++;
  skipWhiteSpace(reader);
  const quote = text[reader.at];
  if (quote !== '"' && quote !== "'")
    refuse(reader, `The value of ${truncate(name)} is not in quotation marks`);
  const start = reader.at + 1;
  const end = text.indexOf(quote, start);
  if (end < 0) refuse(reader, `The value of ${truncate(name)} has no closing quotation mark`);
  const raw = text.slice(start, end);
  reader.at = end + 1;
  if (!/[<&\t\n]/.test(raw)) return raw;
  if (raw.includes('<')) refuse(reader, `The value of ${truncate(name)} contains "<"`, start);
  return expandReferences(reader, raw.replace(/[\t\n]/g, ' '), start);
}

type XmlAttribute = { readonly namespace: string; readonly name: string; readonly value: string };

/** A linked list, so that the end of an element restores the declarations outside it. */
type Declared = { readonly prefix: string; readonly uri: string; readonly before: Declared } | undefined;

type RawAttribute = { readonly tag: string; readonly value: string };

export const XML_URI = 'http://www.w3.org/XML/1998/namespace';
const XMLNS_URI = 'http://www.w3.org/2000/xmlns/';

function declareNamespace(reader: Reader, outside: Declared, name: string, uri: string): void {
  const prefix = name.slice(6);
  for (let given = reader.declared; given !== outside; given = given?.before) {
    if (given?.prefix === prefix)
      refuse(reader, `The attribute ${truncate(name)} is given twice on one element`);
  }
  if (prefix === 'xmlns' || uri === XMLNS_URI || (prefix === 'xml') !== (uri === XML_URI)) {
    refuse(reader, `The attribute ${truncate(name)} must not be "${truncate(uri)}"`);
  }
  if (prefix !== '' && uri === '') refuse(reader, `The attribute ${truncate(name)} must not be empty`);
  reader.declared = { prefix, uri, before: reader.declared };
}

function namespaceOf(reader: Reader, name: string): string {
  const prefix = name.slice(0, Math.max(name.indexOf(':'), 0));
  for (let given = reader.declared; given !== undefined; given = given.before) {
    if (given.prefix === prefix) return given.uri;
  }
  if (prefix === '') return '';
  if (prefix === 'xml') return XML_URI;
  refuse(reader, `The prefix ${truncate(prefix)} of ${truncate(name)} is not declared`);
}

function resolveAttributes(reader: Reader, raw: readonly RawAttribute[]): XmlAttribute[] {
  const attributes: XmlAttribute[] = [];
  for (const { tag, value } of raw) {
    const namespace = tag.includes(':') ? namespaceOf(reader, tag) : '';
    const name = localPart(tag);
    if (attributes.some((other) => other.name === name && other.namespace === namespace)) {
      refuse(reader, `The attribute ${truncate(tag)} is given twice on one element`);
    }
    attributes.push({ namespace, name, value });
  }
  return attributes;
}

function localPart(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

const NAME_START =
  'A-Z_a-z\\xC0-\\xD6\\xD8-\\xF6\\xF8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF\\u200C-\\u200D\\u2070-\\u218F' +
  '\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD\\u{10000}-\\u{EFFFF}';
const NC_NAME = `[${NAME_START}][\\u0300-\\u036F${NAME_START}\\-.0-9\\xB7\\u203F\\u2040]*`;
const NAME = new RegExp(`${NC_NAME}(?::${NC_NAME})?`, 'uy');
const REFERENCE = /&(?:#(?:x([0-9A-Fa-f]+)|([0-9]+))|(amp|lt|gt|quot|apos));/y;
const ENTITIES = new Map(Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }));

function readName(reader: Reader): string {
  const { text, at: start } = reader;
  NAME.lastIndex = start;
  const end = NAME.test(text) ? NAME.lastIndex : start;
  if (end === start || text[end] === ':') {
    const found = /^[^\s<>/="']*/.exec(text.slice(start, start + 100))?.[0];
    refuse(reader, found ? `"${truncate(found)}" is not a valid name` : 'A name is missing in a tag');
  }
  reader.at = end;
  return text.slice(start, end);
}

function skipWhiteSpace(reader: Reader): boolean {
  const { text, at: start } = reader;
  let at = start;
  for (let c = text.charCodeAt(at); c === 0x20 || c === 0x0a || c === 0x09; c = text.charCodeAt(at)) at++;
  reader.at = at;
  return at > start;
}

function expandReferences(reader: Reader, raw: string, start: number): string {
  let expanded = '';
  let from = 0;
  for (let at = raw.indexOf('&'); at >= 0; at = raw.indexOf('&', from)) {
    REFERENCE.lastIndex = at;
    const [all, hexadecimal, decimal, entity] = REFERENCE.exec(raw) ?? [];
    if (all === undefined) {
      const found = /^&[^\s&;]+;/.exec(raw.slice(at, at + 100))?.[0];
      const what = found ? `The reference ${truncate(found)} is not known` : 'An "&" must be written "&amp;"';
      refuse(reader, what, start + at);
    }
    const code = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16);
    const character = ENTITIES.get(entity ?? '') ?? (code <= 0x10ffff ? String.fromCodePoint(code) : '\0');
    if (!isXmlText(character))
      refuse(reader, `The reference ${truncate(all)} is to no character of XML`, start + at);
    expanded += raw.slice(from, at) + character;
    from = at + all.length;
  }
  return from === 0 ? raw : expanded + raw.slice(from);
}

function refuse(reader: Reader, what: string, at = reader.at): never {
  const tag = reader.open.at(-1)?.tag;
  throw new ServiceError('invalid', `${what} (line ${reader.text.slice(0, at).split('\n').length}).`, {
    element: tag === undefined ? undefined : truncate(tag),
  });
}
