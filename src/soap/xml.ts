// The XML reader and writer: strict XML 1.0 with namespaces to a small tree in one linear pass, without
// DOCTYPE and processing instructions and within limits. decode.ts turns bytes into text.
import { ServiceError } from '../errors.ts';
import { XML_DECLARATION } from './decode.ts';

export type XmlAttribute = { readonly namespace: string; readonly name: string; readonly value: string };

export type XmlElement = {
  /** '' when none. */
  readonly namespace: string;
  /** The local name. */
  readonly name: string;
  /** Without the namespace declarations. */
  readonly attributes: readonly XmlAttribute[];
  readonly children: readonly XmlElement[];
  /** Its own character data in order, without that of its children. */
  readonly text: string;
};

type GrowingElement = Omit<XmlElement, 'children' | 'text'> & { children: GrowingElement[]; text: string };
/** One object per namespace name and document, so that equal names are the same object. */
type Namespace = { readonly uri: string };
/** The prefixes an element declares, if any. */
type Declared = Map<string, Namespace> | undefined;
type OpenElement = { tag: string; element: GrowingElement; declared: Declared };
type RawAttribute = { tag: string; value: string };
type Reader = {
  readonly text: string;
  /** Whether there is any "&" or "]]>" in the whole text; most have none, so that no part is searched. */
  readonly hasAmpersand: boolean;
  readonly hasCdataEnd: boolean;
  at: number;
  count: number;
  readonly open: OpenElement[];
  readonly namespaces: Map<string, Namespace>;
};

const MAX_DEPTH = 32;
const MAX_ELEMENTS = 1000;
const MAX_ATTRIBUTES = 64;

const XML: Namespace = { uri: 'http://www.w3.org/XML/1998/namespace' };
const XMLNS_URI = 'http://www.w3.org/2000/xmlns/';
const NO_NAMESPACE: Namespace = { uri: '' };
const NO_ATTRIBUTES: readonly XmlAttribute[] = Object.freeze([]);

const NAME_START =
  'A-Z_a-z\\xC0-\\xD6\\xD8-\\xF6\\xF8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF\\u200C-\\u200D\\u2070-\\u218F' +
  '\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD\\u{10000}-\\u{EFFFF}';
const NC_NAME = `[${NAME_START}][\\u0300-\\u036F${NAME_START}\\-.0-9\\xB7\\u203F\\u2040]*`;
const NAME = new RegExp(`${NC_NAME}(?::${NC_NAME})?`, 'uy');
const CONTROLS = '\\x00-\\x08\\x0B\\x0C\\x0E-\\x1F';
const FORBIDDEN = new RegExp(`[${CONTROLS}\\uD800-\\uDFFF\\uFFFE\\uFFFF]`, 'u');
const REFERENCE = /&(?:#(?:x([0-9A-Fa-f]+)|([0-9]+))|(amp|lt|gt|quot|apos));/y;
const ENTITIES = new Map(Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }));

/** Whether XML 1.0 allows every character: no lone surrogates, no controls but tab and line ends. */
export function isXmlText(s: string): boolean {
  return !FORBIDDEN.test(s);
}

export function escapeText(s: string): string {
  return /[&<>\r]/.test(s) ? s.replace(/[&<>\r]/g, escapeCharacter) : s;
}

export function escapeAttribute(s: string): string {
  return /[&<>"\t\n\r]/.test(s) ? s.replace(/[&<>"\t\n\r]/g, escapeCharacter) : s;
}

function escapeCharacter(c: string): string {
  if (c === '&') return '&amp;';
  if (c === '<') return '&lt;';
  if (c === '>') return '&gt;';
  return c === '"' ? '&quot;' : `&#${c.charCodeAt(0)};`;
}

/** Reads a document. A refusal is a ServiceError `invalid` that says what is wrong and in which line. */
export function readXml(source: string): XmlElement {
  const text = source.includes('\r') ? source.replace(/\r\n?/g, '\n') : source;
  const hasAmpersand = text.includes('&');
  const hasCdataEnd = text.includes(']]>');
  const reader: Reader = {
    text,
    hasAmpersand,
    hasCdataEnd,
    at: 0,
    count: 0,
    open: [],
    namespaces: new Map(),
  };
  const bad = text.search(FORBIDDEN);
  if (bad >= 0) {
    const code = text.charCodeAt(bad).toString(16).toUpperCase().padStart(4, '0');
    refuse(reader, `The character U+${code} is not allowed in XML`, bad);
  }
  if (/^<\?xml[ \t\n?]/.test(text)) {
    if (!XML_DECLARATION.test(text)) refuse(reader, 'The XML declaration is malformed');
    reader.at = text.indexOf('?>') + 2;
  }
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
  if (unclosed !== undefined) refuse(reader, `The element ${cut(unclosed)} is not closed`);
  if (root === undefined) refuse(reader, 'There is no root element');
  return root;
}

/** Reads up to the next `<`. */
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
  if (open.length >= MAX_DEPTH) refuse(reader, `The element ${cut(tag)} is over ${MAX_DEPTH} levels deep`);
  if (++reader.count > MAX_ELEMENTS) refuse(reader, `There are over ${MAX_ELEMENTS} elements`);
  const attributes: RawAttribute[] = [];
  let declared: Declared;
  for (let count = 0; ; count++) {
    const isSpaced = skipWhiteSpace(reader);
    if (text[reader.at] === '>' || text.startsWith('/>', reader.at)) break;
    if (reader.at >= text.length) refuse(reader, `The start tag of ${cut(tag)} is not complete`, start);
    if (!isSpaced) refuse(reader, `White space is missing in the start tag of ${cut(tag)}`);
    if (count === MAX_ATTRIBUTES)
      refuse(reader, `The element ${cut(tag)} has over ${MAX_ATTRIBUTES} attributes`);
    const name = readName(reader);
    const value = readAttributeValue(reader, name);
    if (name !== 'xmlns' && !name.startsWith('xmlns:')) attributes.push({ tag: name, value });
    else declareNamespace(reader, (declared ??= new Map<string, Namespace>()), name, value);
  }
  const element: GrowingElement = {
    namespace: resolvePrefix(reader, declared, tag).uri,
    name: localPart(tag),
    attributes: attributes.length === 0 ? NO_ATTRIBUTES : resolveAttributes(reader, declared, attributes),
    children: [],
    text: '',
  };
  open.at(-1)?.element.children.push(element);
  const isEmpty = text[reader.at] === '/';
  if (!isEmpty) open.push({ tag, element, declared });
  reader.at += isEmpty ? 2 : 1;
  return element;
}

function readEndTag(reader: Reader): void {
  const { text, at: start } = reader;
  const tag = reader.open.pop()?.tag;
  reader.at += 2;
  if (tag !== undefined && text.slice(reader.at, reader.at + tag.length) === tag) {
    reader.at += tag.length;
    skipWhiteSpace(reader);
    if (text[reader.at++] === '>') return;
    reader.at = start + 2;
  }
  const closing = readName(reader);
  if (tag === undefined) refuse(reader, `No element is open at </${cut(closing)}>`);
  if (closing === tag) refuse(reader, `The end tag of ${cut(tag)} is not complete`);
  refuse(reader, `The element ${cut(tag)} is closed by </${cut(closing)}>`);
}

function readAttributeValue(reader: Reader, name: string): string {
  const { text } = reader;
  skipWhiteSpace(reader);
  if (text[reader.at] !== '=') refuse(reader, `The attribute ${cut(name)} has no value`);
  reader.at++;
  skipWhiteSpace(reader);
  const quote = text[reader.at];
  if (quote !== '"' && quote !== "'") refuse(reader, `The value of ${cut(name)} is not in quotation marks`);
  const start = reader.at + 1;
  const end = text.indexOf(quote, start);
  if (end < 0) refuse(reader, `The value of ${cut(name)} has no closing quotation mark`);
  const raw = text.slice(start, end);
  reader.at = end + 1;
  if (!/[<&\t\n]/.test(raw)) return raw;
  if (raw.includes('<')) refuse(reader, `The value of ${cut(name)} contains "<"`, start);
  return expandReferences(reader, raw.replace(/[\t\n]/g, ' '), start);
}

function declareNamespace(reader: Reader, declared: NonNullable<Declared>, name: string, uri: string): void {
  const prefix = name.slice(6);
  if (declared.has(prefix)) refuse(reader, `The attribute ${cut(name)} is given twice on one element`);
  if (prefix === 'xmlns' || uri === XMLNS_URI || (prefix === 'xml') !== (uri === XML.uri)) {
    refuse(reader, `The attribute ${cut(name)} must not be "${cut(uri)}"`);
  }
  if (prefix !== '' && uri === '') refuse(reader, `The attribute ${cut(name)} must not be empty`);
  let namespace = uri === '' ? NO_NAMESPACE : reader.namespaces.get(uri);
  if (namespace === undefined) reader.namespaces.set(uri, (namespace = { uri }));
  declared.set(prefix, namespace);
}

function resolvePrefix(reader: Reader, declared: Declared, name: string): Namespace {
  const prefix = name.slice(0, Math.max(name.indexOf(':'), 0));
  let namespace = declared?.get(prefix);
  for (let i = reader.open.length - 1; i >= 0 && namespace === undefined; i--) {
    namespace = reader.open[i]?.declared?.get(prefix);
  }
  if (namespace !== undefined) return namespace;
  if (prefix === '') return NO_NAMESPACE;
  if (prefix === 'xml') return XML;
  refuse(reader, `The prefix ${cut(prefix)} of ${cut(name)} is not declared`);
}

function resolveAttributes(reader: Reader, declared: Declared, raw: RawAttribute[]): XmlAttribute[] {
  const namespaces: Namespace[] = [];
  const attributes: XmlAttribute[] = [];
  for (const { tag, value } of raw) {
    const namespace = tag.includes(':') ? resolvePrefix(reader, declared, tag) : NO_NAMESPACE;
    const name = localPart(tag);
    if (attributes.some((other, i) => other.name === name && namespaces[i] === namespace)) {
      refuse(reader, `The attribute ${cut(tag)} is given twice on one element`);
    }
    namespaces.push(namespace);
    attributes.push({ namespace: namespace.uri, name, value });
  }
  return attributes;
}

function localPart(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

function readName(reader: Reader): string {
  const { text, at: start } = reader;
  NAME.lastIndex = start;
  const end = NAME.test(text) ? NAME.lastIndex : start;
  if (end === start || text[end] === ':') {
    const found = /^[^\s<>/="']*/.exec(text.slice(start, start + 100))?.[0];
    refuse(reader, found ? `"${cut(found)}" is not a valid name` : 'A name is missing in a tag');
  }
  reader.at = end;
  return text.slice(start, end);
}

/** Returns whether there was any. */
function skipWhiteSpace(reader: Reader): boolean {
  const { text, at: start } = reader;
  let at = start;
  for (let c = text.charCodeAt(at); c === 0x20 || c === 0x0a || c === 0x09; c = text.charCodeAt(at)) at++;
  reader.at = at;
  return at > start;
}

/** Of a part of the text that begins at `start`. */
function expandReferences(reader: Reader, raw: string, start: number): string {
  let expanded = '';
  let from = 0;
  for (let at = raw.indexOf('&'); at >= 0; at = raw.indexOf('&', from)) {
    REFERENCE.lastIndex = at;
    const [all, hexadecimal, decimal, entity] = REFERENCE.exec(raw) ?? [];
    if (all === undefined) {
      const found = /^&[^\s&;]+;/.exec(raw.slice(at, at + 100))?.[0];
      const what = found ? `The reference ${cut(found)} is not known` : 'An "&" must be written "&amp;"';
      refuse(reader, what, start + at);
    }
    const code = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16);
    const character = ENTITIES.get(entity ?? '') ?? (code <= 0x10ffff ? String.fromCodePoint(code) : '\0');
    if (!isXmlText(character))
      refuse(reader, `The reference ${cut(all)} is to no character of XML`, start + at);
    expanded += raw.slice(from, at) + character;
    from = at + all.length;
  }
  return from === 0 ? raw : expanded + raw.slice(from);
}

/** At most 64 characters of it. */
function cut(s: string): string {
  return s.length > 64 ? s.slice(0, 64).replace(/[\uD800-\uDBFF]$/, '') : s;
}

function refuse(reader: Reader, what: string, at = reader.at): never {
  throw new ServiceError('invalid', `${what} (line ${reader.text.slice(0, at).split('\n').length}).`);
}
