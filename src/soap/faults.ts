// SOAP faults, in the form of each version.
import { type ErrorKind, type ServiceError, errorHeaders, formatProblem } from '../lib/errors.ts';
import { type SoapVersion, soapContentTypes, envelopeNamespaces, wrapEnvelope } from './envelope.ts';
import { escapeAttribute, escapeText } from './xml/escape.ts';
import { XML_URI, type XmlElement } from './xml/reader.ts';

type FaultCode = 'Client' | 'Server' | 'MustUnderstand' | 'VersionMismatch';

export type Fault = {
  readonly code: FaultCode;
  readonly message: string;
  /** Only a fault about the body may have a detail. */
  readonly detail?: string | undefined;
  readonly headers?: readonly XmlElement[];
  readonly status?: number | undefined;
  /** The element of the request that caused the fault. */
  readonly element?: string | undefined;
};

const table: Record<ErrorKind, { code: 'Client' | 'Server'; errorCode: number; status?: number }> = {
  invalid: { code: 'Client', errorCode: 400 },
  'wrong-credentials': { code: 'Client', errorCode: 400 },
  'token-missing': { code: 'Client', errorCode: 499 },
  'token-invalid': { code: 'Client', errorCode: 498 },
  forbidden: { code: 'Client', errorCode: 403 },
  'not-found': { code: 'Client', errorCode: 404 },
  'method-not-allowed': { code: 'Client', errorCode: 405, status: 405 },
  conflict: { code: 'Client', errorCode: 409 },
  'too-large': { code: 'Client', errorCode: 413, status: 413 },
  'unsupported-media-type': { code: 'Client', errorCode: 415, status: 415 },
  'too-many-requests': { code: 'Client', errorCode: 429 },
  'read-only': { code: 'Server', errorCode: 503 },
  unavailable: { code: 'Server', errorCode: 503 },
};

/** SOAP 1.1 requires a detail in every fault about the body. An undefined error is a defect of the server. */
export function toFault(error: ServiceError | undefined, namespace: string): Fault {
  const { code, errorCode, status } = error ? table[error.kind] : { code: 'Server' as const, errorCode: 500 };
  const message = error
    ? [error.message, ...error.problems.map(formatProblem)].join(' ')
    : 'The server failed to handle this request.';
  const detail =
    `<Error xmlns="${escapeAttribute(namespace)}"><Code>${errorCode}</Code>` +
    `<Message>${escapeText(message)}</Message></Error>`;
  return { code, message, detail, status, element: error?.element };
}

type FaultResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export function toFaultResponse(version: SoapVersion, fault: Fault, error?: ServiceError): FaultResponse {
  const { status, xml } = version === '1.1' ? renderFault11(fault) : renderFault12(fault);
  const headers = { 'content-type': soapContentTypes[version], ...(error && errorHeaders(error)) };
  return { status: fault.status ?? status, headers, body: xml };
}

function renderFault11({ code, message, detail }: Fault): { status: number; xml: string } {
  const parts = [
    `<faultcode>soap:${code}</faultcode><faultstring>${escapeText(message)}</faultstring>`,
    detail === undefined ? '' : `<detail>${detail}</detail>`,
  ];
  const body = `<soap:Body><soap:Fault>${parts.join('')}</soap:Fault></soap:Body>`;
  return { status: 500, xml: wrapEnvelope('1.1', body) };
}

const codes12: Record<FaultCode, string> = {
  Client: 'Sender',
  Server: 'Receiver',
  MustUnderstand: 'MustUnderstand',
  VersionMismatch: 'VersionMismatch',
};

function renderFault12({ code, message, detail, headers = [] }: Fault): { status: number; xml: string } {
  const parts = [
    `<soap:Code><soap:Value>soap:${codes12[code]}</soap:Value></soap:Code>`,
    `<soap:Reason><soap:Text xml:lang="en">${escapeText(message)}</soap:Text></soap:Reason>`,
    detail === undefined ? '' : `<soap:Detail>${detail}</soap:Detail>`,
  ];
  const blocks = code === 'VersionMismatch' ? upgradeBlock : headers.map(renderNotUnderstood).join('');
  const header = blocks === '' ? '' : `<soap:Header>${blocks}</soap:Header>`;
  const body = `<soap:Body><soap:Fault>${parts.join('')}</soap:Fault></soap:Body>`;
  return { status: code === 'Client' ? 400 : 500, xml: wrapEnvelope('1.2', header + body) };
}

const upgradeBlock =
  '<soap:Upgrade>' +
  Object.values(envelopeNamespaces)
    .map((namespace) => `<soap:SupportedEnvelope qname="e:Envelope" xmlns:e="${namespace}"/>`)
    .join('') +
  '</soap:Upgrade>';

function renderNotUnderstood({ namespace, name }: XmlElement): string {
  if (namespace === XML_URI) return `<soap:NotUnderstood qname="xml:${escapeAttribute(name)}"/>`;
  return namespace === ''
    ? `<soap:NotUnderstood qname="${escapeAttribute(name)}"/>`
    : `<soap:NotUnderstood qname="h:${escapeAttribute(name)}" xmlns:h="${escapeAttribute(namespace)}"/>`;
}
