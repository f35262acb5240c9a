// Namespaces in XML 1.0: the prefixes that an element declares, and the namespace of a name.
import { truncate } from '../../lib/text.ts';
import { type Cursor, refuse } from './cursor.ts';

export type XmlAttribute = { readonly namespace: string; readonly name: string; readonly value: string };

/** A linked list, so that the end of an element restores the declarations outside it. */
export type Declared =
  { readonly prefix: string; readonly uri: string; readonly before: Declared } | undefined;

export type Scope = Cursor & { declared: Declared };

export type RawAttribute = { readonly tag: string; readonly value: string };

export const XML_URI = 'http://www.w3.org/XML/1998/namespace';
const XMLNS_URI = 'http://www.w3.org/2000/xmlns/';

export function declareNamespace(scope: Scope, outside: Declared, name: string, uri: string): void {
  const prefix = name.slice(6);
  for (let given = scope.declared; given !== outside; given = given?.before) {
    if (given?.prefix === prefix)
      refuse(scope, `The attribute ${truncate(name)} is given twice on one element`);
  }
  if (prefix === 'xmlns' || uri === XMLNS_URI || (prefix === 'xml') !== (uri === XML_URI)) {
    refuse(scope, `The attribute ${truncate(name)} must not be "${truncate(uri)}"`);
  }
  if (prefix !== '' && uri === '') refuse(scope, `The attribute ${truncate(name)} must not be empty`);
  scope.declared = { prefix, uri, before: scope.declared };
}

export function namespaceOf(scope: Scope, name: string): string {
  const prefix = name.slice(0, Math.max(name.indexOf(':'), 0));
  for (let given = scope.declared; given !== undefined; given = given.before) {
    if (given.prefix === prefix) return given.uri;
  }
  if (prefix === '') return '';
  if (prefix === 'xml') return XML_URI;
  refuse(scope, `The prefix ${truncate(prefix)} of ${truncate(name)} is not declared`);
}

export function resolveAttributes(scope: Scope, raw: readonly RawAttribute[]): XmlAttribute[] {
  const attributes: XmlAttribute[] = [];
  for (const { tag, value } of raw) {
    const namespace = tag.includes(':') ? namespaceOf(scope, tag) : '';
    const name = localPart(tag);
    if (attributes.some((other) => other.name === name && other.namespace === namespace)) {
      refuse(scope, `The attribute ${truncate(tag)} is given twice on one element`);
    }
    attributes.push({ namespace, name, value });
  }
  return attributes;
}

export function localPart(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}
