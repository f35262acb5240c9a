// What the two versions of SOAP, 1.1 and 1.2, write differently around an answer: namespace, content type, envelope.
import { escapeAttribute } from './xml/escape.ts';

export type SoapVersion = '1.1' | '1.2';

export const envelopeNamespaces: Record<SoapVersion, string> = {
  '1.1': 'http://schemas.xmlsoap.org/soap/envelope/',
  '1.2': 'http://www.w3.org/2003/05/soap-envelope',
};

export const soapContentTypes: Record<SoapVersion, string> = {
  '1.1': 'text/xml; charset=utf-8',
  '1.2': 'application/soap+xml; charset=utf-8',
};

export function wrapEnvelope(version: SoapVersion, content: string): string {
  return envelopeTags(version).join(content);
}

/** How the children of an answer are named: in the namespace of the answer, or without one. */
export type ChildForm = 'qualified' | 'unqualified';

/** What precedes and what follows the content of an answer. The elements of the content have no prefix. */
export function responseFrame(
  version: SoapVersion,
  operation: string,
  namespace: string,
  form: ChildForm,
): [string, string] {
  const prefix = form === 'qualified' ? '' : 'tns';
  const element = `${prefix && `${prefix}:`}${operation}Response`;
  const [open, close] = envelopeTags(version);
  return [
    `${open}<soap:Body><${element} xmlns${prefix && `:${prefix}`}="${escapeAttribute(namespace)}">`,
    `</${element}></soap:Body>${close}`,
  ];
}

function envelopeTags(version: SoapVersion): [string, string] {
  const open = `<?xml version="1.0" encoding="utf-8"?>\n<soap:Envelope xmlns:soap="${envelopeNamespaces[version]}">`;
  return [open, '</soap:Envelope>'];
}
