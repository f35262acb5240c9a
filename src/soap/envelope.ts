// SOAP envelopes, versions 1.1 and 1.2: the parts of a request, and the envelope of an answer.
import { ServiceError } from '../lib/errors.ts';
import { truncate } from '../lib/text.ts';
import { escapeAttribute } from './xml/escape.ts';
import type { XmlElement } from './xml/reader.ts';

export type SoapVersion = '1.1' | '1.2';

export const envelopeNamespaces: Record<SoapVersion, string> = {
  '1.1': 'http://schemas.xmlsoap.org/soap/envelope/',
  '1.2': 'http://www.w3.org/2003/05/soap-envelope',
};

export const soapContentTypes: Record<SoapVersion, string> = {
  '1.1': 'text/xml; charset=utf-8',
  '1.2': 'application/soap+xml; charset=utf-8',
};

const roles: Record<SoapVersion, { attribute: string; own: readonly string[] }> = {
  '1.1': { attribute: 'actor', own: ['', 'http://schemas.xmlsoap.org/soap/actor/next'] },
  '1.2': {
    attribute: 'role',
    own: [
      '',
      'http://www.w3.org/2003/05/soap-envelope/role/next',
      'http://www.w3.org/2003/05/soap-envelope/role/ultimateReceiver',
    ],
  },
};

export function versionOf(root: XmlElement): SoapVersion | undefined {
  if (root.name !== 'Envelope') return undefined;
  if (root.namespace === envelopeNamespaces['1.1']) return '1.1';
  if (root.namespace === envelopeNamespaces['1.2']) return '1.2';
  return undefined;
}

export function readEnvelope(
  root: XmlElement,
  version: SoapVersion,
): { headers: readonly XmlElement[]; body: XmlElement } {
  const { namespace } = root;
  refuseText(root);
  const isSoap = (element: XmlElement | undefined, name: string) =>
    element?.namespace === namespace && element.name === name;
  const [first, ...others] = root.children;
  const header = isSoap(first, 'Header') ? first : undefined;
  const [body, ...trailing] = header ? others : root.children;
  if (body === undefined || !isSoap(body, 'Body'))
    throw invalidElement(root, 'The Envelope must hold an optional Header and then a Body.');
  // SOAP 1.1 allows elements of other namespaces after the Body.
  const stray = trailing.find((element) => version === '1.2' || ['', namespace].includes(element.namespace));
  if (stray) throw invalidElement(stray, `The Envelope must not hold a ${shortName(stray)} after its Body.`);
  if (header) refuseText(header);
  return { headers: header?.children ?? [], body };
}

export function readPayload(body: XmlElement): XmlElement {
  refuseText(body);
  const [payload, second] = body.children;
  if (!payload) throw invalidElement(body, 'The Body is empty: it must hold the element of one operation.');
  if (second)
    throw invalidElement(second, `The Body must hold one element; it also has a ${shortName(second)}.`);
  return payload;
}

/** The server understands no header block. */
export function notUnderstood(headers: readonly XmlElement[], version: SoapVersion): XmlElement[] {
  const namespace = envelopeNamespaces[version];
  const { attribute: roleAttribute, own } = roles[version];
  return headers.filter((header) => {
    const attribute = (name: string) =>
      header.attributes.find((given) => given.namespace === namespace && given.name === name)?.value.trim();
    const must = attribute('mustUnderstand') ?? '0';
    return must !== '0' && must !== 'false' && own.includes(attribute(roleAttribute) ?? '');
  });
}

export function refuseText(element: XmlElement): void {
  if (/[^ \t\r\n]/.test(element.text))
    throw invalidElement(element, `The element ${shortName(element)} must not contain text.`);
}

export function invalidElement(element: XmlElement, message: string): ServiceError {
  return new ServiceError('invalid', message, { element: shortName(element) });
}

export function shortName({ name }: XmlElement): string {
  return truncate(name);
}

export function wrapEnvelope(version: SoapVersion, content: string): string {
  return envelopeTags(version).join(content);
}

/** What precedes and what follows the content of an answer. */
export function responseFrame(version: SoapVersion, operation: string, namespace: string): [string, string] {
  const element = `${operation}Response`;
  const [open, close] = envelopeTags(version);
  return [
    `${open}<soap:Body><${element} xmlns="${escapeAttribute(namespace)}">`,
    `</${element}></soap:Body>${close}`,
  ];
}

function envelopeTags(version: SoapVersion): [string, string] {
  const open = `<?xml version="1.0" encoding="utf-8"?>\n<soap:Envelope xmlns:soap="${envelopeNamespaces[version]}">`;
  return [open, '</soap:Envelope>'];
}
