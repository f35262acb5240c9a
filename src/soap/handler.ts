// A SOAP call: bytes → envelope → operation → envelope. Document/literal: the name of the body's element selects the operation.
import { gunzipSync } from 'node:zlib';
import type { Caller } from '../caller.ts';
import { ServiceError } from '../errors.ts';
import { truncate } from '../lib/text.ts';
import { type Arguments, bindArguments } from './arguments.ts';
import {
  type SoapVersion,
  notUnderstood,
  readEnvelope,
  readPayload,
  responseFrame,
  shortName,
  versionOf,
} from './envelope.ts';
import { SoapFaultError } from './faults.ts';
import { decodeXml } from './xml/decode.ts';
import { type XmlElement, readXml } from './xml/reader.ts';

export const maxRequestBytes = 16 * 1024;

export type SoapCall = {
  readonly arguments: Arguments;
  readonly caller: Caller;
};

export type SoapOperation = {
  readonly arguments: readonly string[];
  readonly access: 'open' | 'token';
  /** The content of the response element, in parts. */
  readonly answer: (call: SoapCall) => Promise<readonly Buffer[]>;
};

export type SoapRequest = {
  readonly version: SoapVersion;
  readonly payload: XmlElement;
  readonly operation: SoapOperation;
};

export type MessageFormat = {
  readonly mediaType: string;
  readonly version: SoapVersion;
  readonly charset: string | undefined;
  readonly isGzip: boolean;
};

export class SoapHandler {
  readonly namespace: string;
  readonly #operations: ReadonlyMap<string, SoapOperation>;
  readonly #isOurNamespace: (candidate: string) => boolean;

  constructor(namespace: string, operations: Readonly<Record<string, SoapOperation>>) {
    this.namespace = namespace;
    this.#operations = new Map(Object.entries(operations));
    this.#isOurNamespace = namespaceMatcher(namespace);
  }

  /** `onVersion` runs before the rest of the envelope is read, because a fault about the rest needs the version. */
  read(bytes: Buffer, format: MessageFormat, onVersion: (version: SoapVersion) => void): SoapRequest {
    const root = readXml(decodeXml(decompress(bytes, format), format.charset));
    const version = versionOf(root);
    if (version === undefined) throw refuseRoot(root, format.version);
    onVersion(version);
    const { headers, body } = readEnvelope(root, version);
    const unknown = notUnderstood(headers, version);
    if (unknown.length > 0) throw refuseHeaders(unknown);
    const payload = readPayload(body);
    return { version, payload, operation: this.#findOperation(payload) };
  }

  /** Returns the envelope in parts. Answers share the content, whatever the namespace of the request. */
  async answer({ version, payload, operation }: SoapRequest, caller: Caller): Promise<readonly Buffer[]> {
    const { name, namespace } = payload;
    const content = await operation.answer({
      arguments: bindArguments(payload, operation.arguments),
      caller,
    });
    const [before, after] = responseFrame(version, name, namespace);
    return [Buffer.from(before), ...content, Buffer.from(after)];
  }

  #findOperation(payload: XmlElement): SoapOperation {
    if (!this.#isOurNamespace(payload.namespace)) {
      const given =
        payload.namespace === '' ? 'no namespace' : `the namespace ${truncate(payload.namespace, 200)}`;
      throw new ServiceError(
        'invalid',
        `The element ${shortName(payload)} is in ${given}; it must be in ${this.namespace}.`,
        { element: shortName(payload) },
      );
    }
    const operation = this.#operations.get(payload.name);
    if (operation === undefined) {
      const known = [...this.#operations.keys()].join(', ');
      throw new ServiceError(
        'invalid',
        `There is no operation ${shortName(payload)}. The operations are ${known}.`,
        { element: shortName(payload) },
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

/** An envelope of an unknown version is answered in 1.1; any other document in the version that the content type names. */
function refuseRoot(root: XmlElement, version: SoapVersion): Error {
  if (root.name === 'Envelope') {
    const given = root.namespace === '' ? 'no namespace' : truncate(root.namespace, 200);
    const message = `The Envelope is in ${given}; SOAP 1.1 and 1.2 are understood.`;
    return new SoapFaultError({ code: 'VersionMismatch', message, element: root.name }, '1.1');
  }
  const message = `The document is a ${shortName(root)}, not a SOAP Envelope.`;
  return version === '1.1'
    ? new ServiceError('invalid', message, { element: shortName(root) })
    : new SoapFaultError({ code: 'VersionMismatch', message, element: shortName(root) });
}

function refuseHeaders(headers: readonly XmlElement[]): SoapFaultError {
  const message = `These header blocks are not understood: ${headers.map(shortName).join(', ')}.`;
  const element = headers.map(shortName).join(', ');
  return new SoapFaultError({ code: 'MustUnderstand', message, headers, element });
}

/** If the namespace ends in a version, the server also serves clients made for another version. */
function namespaceMatcher(namespace: string): (candidate: string) => boolean {
  const version = /\/[0-9]+(\.[0-9]+)*$/;
  if (!version.test(namespace)) return (candidate) => candidate === namespace;
  const stem = namespace.replace(version, '');
  return (candidate) =>
    candidate === namespace || (candidate.replace(version, '') === stem && version.test(candidate));
}
