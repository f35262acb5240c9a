// Namespaces in XML 1.0: what prefixes an element declares, and what names mean.
import { cut } from '../text.ts';
import { type Cursor, refuse } from './cursor.ts';

export type XmlAttribute = { readonly namespace: string; readonly name: string; readonly value: string };

/** One object per namespace name and document, so that equal names are the same object. */
export type Namespace = { readonly uri: string };
/** The prefixes an element declares, if any. */
export type Declared = Map<string, Namespace> | undefined;

/** The elements around the cursor, outermost first, and the namespaces of the document by name. */
export type Scopes = Cursor & {
  readonly open: readonly { readonly declared: Declared }[];
  readonly namespaces: Map<string, Namespace>;
};

export type RawAttribute = { readonly tag: string; readonly value: string };

export const XML: Namespace = { uri: 'http://www.w3.org/XML/1998/namespace' };
const XMLNS_URI = 'http://www.w3.org/2000/xmlns/';
const NO_NAMESPACE: Namespace = { uri: '' };

export function declareNamespace(
  reader: Scopes,
  declared: NonNullable<Declared>,
  name: string,
  uri: string,
): void {
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

export function resolvePrefix(reader: Scopes, declared: Declared, name: string): Namespace {
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

export function resolveAttributes(reader: Scopes, declared: Declared, raw: RawAttribute[]): XmlAttribute[] {
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

export function localPart(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}
