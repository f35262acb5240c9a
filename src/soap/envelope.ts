// SOAP envelopes in and out, versions 1.1 and 1.2, and faults in the form of each.
import { type ErrorKind, ServiceError, formatProblem } from '../errors.ts';
import { truncate } from '../lib/text.ts';
import { escapeAttribute, escapeText } from './xml/escape.ts';
import { XML_URI } from './xml/namespaces.ts';
import type { XmlElement } from './xml/reader.ts';

export type SoapVersion = '1.1' | '1.2';

const versions = {
  '1.1': {
    namespace: 'http://schemas.xmlsoap.org/soap/envelope/',
    contentType: 'text/xml; charset=utf-8',
    roleAttribute: 'actor',
    ownRoles: ['', 'http://schemas.xmlsoap.org/soap/actor/next'],
  },
  '1.2': {
    namespace: 'http://www.w3.org/2003/05/soap-envelope',
    contentType: 'application/soap+xml; charset=utf-8',
    roleAttribute: 'role',
    ownRoles: [
      '',
      'http://www.w3.org/2003/05/soap-envelope/role/next',
      'http://www.w3.org/2003/05/soap-envelope/role/ultimateReceiver',
    ],
  },
} as const;

export function contentTypeOf(version: SoapVersion): string {
  return versions[version].contentType;
}

/** The version of an envelope by its namespace; undefined for an envelope of another version, or none. */
export function versionOf(root: XmlElement): SoapVersion | undefined {
  if (root.name !== 'Envelope') return undefined;
  if (root.namespace === versions['1.1'].namespace) return '1.1';
  if (root.namespace === versions['1.2'].namespace) return '1.2';
  return undefined;
}

type Parts = { headers: readonly XmlElement[]; body: XmlElement };

/** The header blocks and the Body; throws when the envelope is built wrongly. */
export function openEnvelope(root: XmlElement, version: SoapVersion): Parts {
  const { namespace } = root;
  refuseText(root);
  const isSoap = (element: XmlElement | undefined, name: string) =>
    element?.namespace === namespace && element.name === name;
  const [first, ...others] = root.children;
  const header = isSoap(first, 'Header') ? first : undefined;
  const [body, ...trailing] = header ? others : root.children;
  if (body === undefined || !isSoap(body, 'Body')) {
    throw new ServiceError('invalid', 'The Envelope must hold an optional Header and then a Body.');
  }
  // SOAP 1.1 lets foreign elements follow the Body; nothing else may.
  const stray = trailing.find((element) => version === '1.2' || ['', namespace].includes(element.namespace));
  if (stray)
    throw new ServiceError('invalid', `The Envelope must not hold a ${named(stray)} after its Body.`);
  if (header) refuseText(header);
  return { headers: header?.children ?? [], body };
}

/** The one element of a Body. Header blocks are looked at first. */
export function payloadOf(body: XmlElement): XmlElement {
  refuseText(body);
  const [payload, second] = body.children;
  if (!payload)
    throw new ServiceError('invalid', 'The Body is empty: it must hold the element of one operation.');
  if (second)
    throw new ServiceError('invalid', `The Body must hold one element; it also has a ${named(second)}.`);
  return payload;
}

/** The header blocks meant for us that must be understood. We understand none. */
export function notUnderstood(headers: readonly XmlElement[], version: SoapVersion): XmlElement[] {
  const { namespace, roleAttribute, ownRoles } = versions[version];
  const own: readonly string[] = ownRoles;
  return headers.filter((header) => {
    const attribute = (name: string) =>
      header.attributes.find((given) => given.namespace === namespace && given.name === name)?.value.trim();
    const must = attribute('mustUnderstand') ?? '0';
    return must !== '0' && must !== 'false' && own.includes(attribute(roleAttribute) ?? '');
  });
}

/** White space between elements means nothing; other text has no place in them. */
export function refuseText(element: XmlElement): void {
  if (/[^ \t\r\n]/.test(element.text)) {
    throw new ServiceError('invalid', `The element ${named(element)} must not contain text.`);
  }
}

export function named({ name }: XmlElement): string {
  return truncate(name);
}

function wrap(version: SoapVersion, content: string): string {
  const { namespace } = versions[version];
  const open = `<?xml version="1.0" encoding="utf-8"?>\n<soap:Envelope xmlns:soap="${namespace}">`;
  return `${open}${content}</soap:Envelope>`;
}

/** What stands before and after the content of a response element, ready to be joined with it. */
export function responseFrame(version: SoapVersion, operation: string, namespace: string): [string, string] {
  const mark = '\0';
  const response = `<${operation}Response xmlns="${escapeAttribute(namespace)}">${mark}</${operation}Response>`;
  const [before = '', after = ''] = wrap(version, `<soap:Body>${response}</soap:Body>`).split(mark);
  return [before, after];
}

export type FaultCode = 'Client' | 'Server' | 'MustUnderstand' | 'VersionMismatch';

export type Fault = {
  readonly code: FaultCode;
  readonly message: string;
  /** An element for programs, as text; only for what went wrong with the body. */
  readonly detail?: string;
  /** With MustUnderstand: the header blocks in question. */
  readonly headers?: readonly XmlElement[];
  /** An HTTP status other than the usual one of the code. */
  readonly status?: number;
};

const codes12 = { Client: 'Sender', Server: 'Receiver' } as const;

export function renderFault(version: SoapVersion, fault: Fault): { status: number; xml: string } {
  const { code, message, detail } = fault;
  if (version === '1.1') {
    const parts = [
      `<faultcode>soap:${code}</faultcode><faultstring>${escapeText(message)}</faultstring>`,
      detail === undefined ? '' : `<detail>${detail}</detail>`,
    ];
    const body = `<soap:Body><soap:Fault>${parts.join('')}</soap:Fault></soap:Body>`;
    return { status: fault.status ?? 500, xml: wrap('1.1', body) };
  }
  const value = code === 'Client' || code === 'Server' ? codes12[code] : code;
  const parts = [
    `<soap:Code><soap:Value>soap:${value}</soap:Value></soap:Code>`,
    `<soap:Reason><soap:Text xml:lang="en">${escapeText(message)}</soap:Text></soap:Reason>`,
    detail === undefined ? '' : `<soap:Detail>${detail}</soap:Detail>`,
  ];
  const blocks =
    code === 'VersionMismatch' ? upgrade : (fault.headers ?? []).map(renderNotUnderstood).join('');
  const header = blocks === '' ? '' : `<soap:Header>${blocks}</soap:Header>`;
  const body = `<soap:Body><soap:Fault>${parts.join('')}</soap:Fault></soap:Body>`;
  return { status: fault.status ?? (code === 'Client' ? 400 : 500), xml: wrap('1.2', header + body) };
}

/** Which envelopes would be understood. */
const upgrade =
  '<soap:Upgrade>' +
  Object.values(versions)
    .map(({ namespace }) => `<soap:SupportedEnvelope qname="e:Envelope" xmlns:e="${namespace}"/>`)
    .join('') +
  '</soap:Upgrade>';

function renderNotUnderstood({ namespace, name }: XmlElement): string {
  if (namespace === XML_URI) return `<soap:NotUnderstood qname="xml:${escapeAttribute(name)}"/>`;
  return namespace === ''
    ? `<soap:NotUnderstood qname="${escapeAttribute(name)}"/>`
    : `<soap:NotUnderstood qname="h:${escapeAttribute(name)}" xmlns:h="${escapeAttribute(namespace)}"/>`;
}

/** Whose mistake each kind is, its code for programs, and an HTTP status where the usual one will not do. */
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
  unavailable: { code: 'Server', errorCode: 503 },
};

/**
 * The fault of an error that kept the body from being served; SOAP 1.1 wants a detail in each of those.
 * Undefined stands for our own fault, of which nothing is revealed.
 */
export function faultOf(error: ServiceError | undefined, namespace: string): Fault {
  const { code, errorCode, status } = error ? table[error.kind] : { code: 'Server' as const, errorCode: 500 };
  const message = error
    ? [error.message, ...error.problems.map(formatProblem)].join(' ')
    : 'The server failed to handle this request.';
  const detail =
    `<Error xmlns="${escapeAttribute(namespace)}"><Code>${errorCode}</Code>` +
    `<Message>${escapeText(message)}</Message></Error>`;
  return { code, message, detail, ...(status !== undefined && { status }) };
}
