// Helpers for the tests of the XML reader: documents, trees as text, and expected errors.
import { expect } from 'vitest';
import { ServiceError } from '../../src/lib/errors.ts';
import type { XmlElement } from '../../src/soap/xml/reader.ts';

export const XML_NAMESPACE = 'http://www.w3.org/XML/1998/namespace';
export const XMLNS_NAMESPACE = 'http://www.w3.org/2000/xmlns/';

/** Formats a tree in one line: {namespace}name, sorted attributes, text in quotation marks, (children). */
export function print({ namespace, name, attributes, children, text }: XmlElement): string {
  const list = attributes.map((a) => ` ${printName(a.namespace, a.name)}=${JSON.stringify(a.value)}`).sort();
  const ownText = text === '' ? '' : ` ${JSON.stringify(text)}`;
  const inner = children.length === 0 ? '' : ` (${children.map(print).join(', ')})`;
  return printName(namespace, name) + list.join('') + ownText + inner;
}

export function printName(namespace: string, name: string): string {
  return namespace === '' ? name : `{${namespace}}${name}`;
}

export function expectRefusal(run: () => unknown, kind: string, message: string): void {
  let thrown: unknown;
  try {
    run();
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(ServiceError);
  expect(thrown).toMatchObject({ kind, message: expect.stringContaining(message) as string });
}

export function nestElements(depth: number): string {
  return '<a>'.repeat(depth) + '</a>'.repeat(depth);
}

export function writeAttributes(count: number): string {
  return Array.from({ length: count }, (_, i) => ` a${i}=""`).join('');
}
