// A SOAP call: bytes → envelope → operation → envelope. Document/literal: the name of the body's element selects
// the operation.
import { gunzipSync } from 'node:zlib';
import type { Caller } from '../lib/caller.ts';
import { ServiceError } from '../lib/errors.ts';
import { truncate } from '../lib/text.ts';
import { type ChildForm, type SoapVersion, envelopeNamespaces, responseFrame } from './envelope.ts';
import { type Fault, toFault } from './faults.ts';
import { decodeXml } from './xml/decode.ts';
import { type XmlElement, readXml } from './xml/reader.ts';

export const maxRequestBytes = 16 * 1024;

type Arguments = Readonly<Record<string, string | undefined>>;

type SoapCall = {
  readonly arguments: Arguments;
  readonly caller: Caller;
};

export type SoapOperation = {
  readonly arguments: readonly string[];
  readonly access: 'open' | 'token';
  /** The content of the response element. */
  readonly answer: (call: SoapCall) => Promise<Buffer>;
};

/** What the HTTP headers say about a message. The envelope may contradict the version. */
export type MessageFormat = {
  readonly version: SoapVersion;
  readonly charset: string | undefined;
  readonly isGzip: boolean;
};

/** An envelope in parts. Answers share their content, whatever the namespace of the request. */
type AnsweredCall = {
  readonly version: SoapVersion;
  readonly parts: readonly Buffer[];
  /** The part that identifies the whole envelope. Undefined if the request has not used the server's own namespace. */
  readonly sharedContent: Buffer | undefined;
};

export type FailedCall = {
  readonly version: SoapVersion;
  readonly fault: Fault;
  /** Undefined for a fault that only SOAP knows. */
  readonly error: unknown;
};

type Frame = readonly [before: Buffer, after: Buffer];

type NamedOperation = SoapOperation & {
  /** The envelope around an answer in the server's own namespace. */
  readonly frames: Readonly<Record<SoapVersion, Frame>>;
};

export class SoapHandler {
  readonly namespace: string;
  readonly #operations: ReadonlyMap<string, NamedOperation>;
  readonly #form: ChildForm;
  readonly #isOurNamespace: (candidate: string) => boolean;

  constructor(
    namespace: string,
    operations: Readonly<Record<string, SoapOperation>>,
    form: ChildForm = 'qualified',
  ) {
    this.namespace = namespace;
    this.#form = form;
    const named = Object.entries(operations).map(([name, operation]) => {
      const frames = {
        '1.1': frameOf('1.1', name, namespace, form),
        '1.2': frameOf('1.2', name, namespace, form),
      };
      return [name, { ...operation, frames }] as const;
    });
    this.#operations = new Map(named);
    this.#isOurNamespace = namespaceMatcher(namespace);
  }

  /** `identify` is called once, if the operation asks who calls. */
  async call(
    bytes: Buffer,
    format: MessageFormat,
    identify: () => Promise<Caller>,
  ): Promise<AnsweredCall | FailedCall> {
    let { version } = format;
    let { namespace } = this;
    try {
      const root = readXml(decodeXml(decompress(bytes, format), format.charset));
      const found = versionOf(root);
      if (found === undefined) return refuseRoot(root, version, namespace);
      version = found;
      const { headers, body } = readEnvelope(root, version);
      const unknown = notUnderstood(headers, version);
      if (unknown.length > 0) return { version, fault: mustUnderstand(unknown), error: undefined };
      const payload = readPayload(body);
      const operation = this.#findOperation(payload);
      namespace = payload.namespace;
      const caller = operation.access === 'open' ? undefined : await identify();
      const content = await operation.answer({
        arguments: bindArguments(payload, operation.arguments),
        caller,
      });
      const isOwn = namespace === this.namespace;
      const [before, after] = isOwn
        ? operation.frames[version]
        : frameOf(version, payload.name, namespace, this.#form);
      return { version, parts: [before, content, after], sharedContent: isOwn ? content : undefined };
    } catch (error) {
      const known = error instanceof ServiceError ? error : undefined;
      return { version, fault: toFault(known, namespace), error };
    }
  }

  get operations(): readonly string[] {
    return [...this.#operations.keys()];
  }

  #findOperation(payload: XmlElement): NamedOperation {
    if (!this.#isOurNamespace(payload.namespace)) {
      const given =
        payload.namespace === '' ? 'no namespace' : `the namespace ${truncate(payload.namespace, 200)}`;
      throw invalidElement(
        payload,
        `The element ${shortName(payload)} is in ${given}; it must be in ${this.namespace}.`,
      );
    }
    const operation = this.#operations.get(payload.name);
    if (operation === undefined) {
      const known = this.operations.join(', ');
      throw invalidElement(
        payload,
        `There is no operation ${shortName(payload)}. The operations are ${known}.`,
      );
    }
    return operation;
  }
}

function decompress(bytes: Buffer, { isGzip }: MessageFormat): Buffer {
  if (bytes.length === 0) throw new ServiceError('invalid', 'The request has no body: send a SOAP Envelope.');
  if (!isGzip) return bytes;
  try {
    return gunzipSync(bytes, { maxOutputLength: maxRequestBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw requestTooLarge();
    throw new ServiceError('invalid', 'The body is not valid gzip data.');
  }
}

export function requestTooLarge(): ServiceError {
  return new ServiceError('too-large', `A request must be at most ${maxRequestBytes} bytes.`);
}

function frameOf(version: SoapVersion, operation: string, namespace: string, form: ChildForm): Frame {
  const [before, after] = responseFrame(version, operation, namespace, form);
  return [Buffer.from(before), Buffer.from(after)];
}

/**
 * An envelope of an unknown version is answered in 1.1; any other document in the version that the content type
 * names.
 */
function refuseRoot(root: XmlElement, version: SoapVersion, namespace: string): FailedCall {
  const element = shortName(root);
  if (root.name === 'Envelope') {
    const given = root.namespace === '' ? 'no namespace' : truncate(root.namespace, 200);
    const message = `The Envelope is in ${given}; SOAP 1.1 and 1.2 are understood.`;
    return { version: '1.1', fault: { code: 'VersionMismatch', message, element }, error: undefined };
  }
  const message = `The document is a ${element}, not a SOAP Envelope.`;
  if (version === '1.2')
    return { version, fault: { code: 'VersionMismatch', message, element }, error: undefined };
  const error = invalidElement(root, message);
  return { version, fault: toFault(error, namespace), error };
}

function mustUnderstand(headers: readonly XmlElement[]): Fault {
  const element = headers.map(shortName).join(', ');
  return {
    code: 'MustUnderstand',
    message: `These header blocks are not understood: ${element}.`,
    headers,
    element,
  };
}

/** If the namespace ends in a version, the server also serves clients made for another version. */
function namespaceMatcher(namespace: string): (candidate: string) => boolean {
  const stem = stemOf(namespace);
  return (candidate) => candidate === namespace || (stem !== undefined && stemOf(candidate) === stem);
}

/** The part before the version. Undefined without a version. */
function stemOf(namespace: string): string | undefined {
  const end = namespace.lastIndexOf('/');
  return /^\/[0-9]+(\.[0-9]+)*$/.test(namespace.slice(end)) ? namespace.slice(0, end) : undefined;
}

/** Clients send arguments with and without a namespace, so only the local name counts. */
function bindArguments(payload: XmlElement, names: readonly string[]): Arguments {
  refuseText(payload);
  const bound: Record<string, string | undefined> = {};
  for (const child of payload.children) {
    if (!names.includes(child.name)) {
      const known = names.length > 0 ? `its arguments are ${names.join(', ')}` : 'it takes none';
      throw invalidElement(child, `${payload.name} has no argument ${shortName(child)}; ${known}.`);
    }
    if (Object.hasOwn(bound, child.name))
      throw invalidElement(child, `The argument ${child.name} is given more than once.`);
    const [inner] = child.children;
    if (inner)
      throw invalidElement(inner, `The argument ${child.name} must be text; it holds a ${shortName(inner)}.`);
    bound[child.name] = isNil(child) ? undefined : child.text;
  }
  return bound;
}

function isNil({ attributes }: XmlElement): boolean {
  return attributes.some(
    ({ namespace, name, value }) =>
      namespace.endsWith('/XMLSchema-instance') &&
      ['nil', 'null'].includes(name) &&
      ['true', '1'].includes(value.trim()),
  );
}

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

function versionOf(root: XmlElement): SoapVersion | undefined {
  if (root.name !== 'Envelope') return undefined;
  if (root.namespace === envelopeNamespaces['1.1']) return '1.1';
  if (root.namespace === envelopeNamespaces['1.2']) return '1.2';
  return undefined;
}

function readEnvelope(
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

function readPayload(body: XmlElement): XmlElement {
  refuseText(body);
  const [payload, second] = body.children;
  if (!payload) throw invalidElement(body, 'The Body is empty: it must hold the element of one operation.');
  if (second)
    throw invalidElement(second, `The Body must hold one element; it also has a ${shortName(second)}.`);
  return payload;
}

/** The server understands no header block. */
function notUnderstood(headers: readonly XmlElement[], version: SoapVersion): XmlElement[] {
  const namespace = envelopeNamespaces[version];
  const { attribute: roleAttribute, own } = roles[version];
  return headers.filter((header) => {
    const attribute = (name: string) =>
      header.attributes.find((given) => given.namespace === namespace && given.name === name)?.value.trim();
    const must = attribute('mustUnderstand') ?? '0';
    return must !== '0' && must !== 'false' && own.includes(attribute(roleAttribute) ?? '');
  });
}

function refuseText(element: XmlElement): void {
  if (/[^ \t\r\n]/.test(element.text))
    throw invalidElement(element, `The element ${shortName(element)} must not contain text.`);
}

function invalidElement(element: XmlElement, message: string): ServiceError {
  return new ServiceError('invalid', message, { element: shortName(element) });
}

function shortName({ name }: XmlElement): string {
  return truncate(name);
}
