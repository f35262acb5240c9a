// A document/literal service: a call is dispatched on the body element's name, and answered with an envelope or a fault.
import type { FastifyBaseLogger } from 'fastify';
import type { IncomingMessage } from 'node:http';
import { after } from '../after.ts';
import { type Caller, type Identify, type Identity, bearerToken } from '../caller.ts';
import { ServiceError, errorHeaders } from '../errors.ts';
import type { RetryAfterRefresh } from '../store/refresh.ts';
import { truncate } from '../lib/text.ts';
import { type Arguments, bindArguments } from './arguments.ts';
import { decodeXml } from './xml/decode.ts';
import {
  type Fault,
  type SoapVersion,
  contentTypeOf,
  faultOf,
  named,
  notUnderstood,
  openEnvelope,
  payloadOf,
  renderFault,
  responseFrame,
  versionOf,
} from './envelope.ts';
import { bytesOf, charsetOf, guessVersion, readBody, refuseMediaType } from './request.ts';
import { type XmlElement, readXml } from './xml/reader.ts';

/** What stands inside the response element. It is made once for its key and kept until what it shows changes. */
export type Content = { readonly key: string; readonly make: () => string };

export type SoapOperation = {
  readonly arguments: readonly string[];
  /** `open` operations need no token and ignore one. */
  readonly access: 'open' | 'token';
  readonly answer: (call: { arguments: Arguments; caller: Caller }) => Content;
};

export type EndpointOptions = {
  readonly namespace: string;
  readonly operations: Readonly<Record<string, SoapOperation>>;
  readonly requireTokens: boolean;
  readonly identify: Identify;
  readonly retryAfterRefresh: RetryAfterRefresh;
  readonly addressOf: (request: IncomingMessage) => string;
  readonly keep: <T>(key: string, make: () => T) => T;
  readonly logger: FastifyBaseLogger;
};

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
};

export type Endpoint = {
  /** Reads a call and answers it once. `token` is that of the query. */
  call: (request: IncomingMessage, send: (answer: Answer) => void, token?: string) => void;
  /** The fault for what was refused before it came here. */
  refuse: (request: IncomingMessage, error: unknown) => Answer;
};

export function createEndpoint(options: EndpointOptions): Endpoint {
  const { namespace, logger } = options;
  const operations = new Map(Object.entries(options.operations));
  const isOurNamespace = namespaceMatcher(namespace);

  /** Undefined for what is our own fault, which is logged. */
  function refusalOf(error: unknown): ServiceError | undefined {
    if (error instanceof ServiceError) return error;
    logger.error({ err: error }, 'request failed');
    return undefined;
  }

  function refuse(request: IncomingMessage, error: unknown): Answer {
    return faultAnswer(guessVersion(request), faultOf(refusalOf(error), namespace), error);
  }

  function call(request: IncomingMessage, send: (answer: Answer) => void, token?: string): void {
    try {
      refuseMediaType(request);
    } catch (error) {
      return send(refuse(request, error));
    }
    readBody(request, (body) => {
      if (body instanceof Buffer) return answer(request, send, token, body);
      const refusal = refuse(request, body);
      send({ ...refusal, headers: { ...refusal.headers, connection: 'close' } });
    });
  }

  function answer(
    request: IncomingMessage,
    send: (answer: Answer) => void,
    token: string | undefined,
    given: Buffer,
  ): void {
    let version = guessVersion(request);
    let replyNamespace = namespace;
    const fail = (error: unknown) =>
      send(faultAnswer(version, faultOf(refusalOf(error), replyNamespace), error));
    try {
      const root = readXml(decodeXml(bytesOf(request, given), charsetOf(request)));
      const ownVersion = versionOf(root);
      if (ownVersion === undefined) return send(refuseEnvelope(root, version));
      version = ownVersion;
      const { headers, body } = openEnvelope(root, version);
      const foreign = notUnderstood(headers, version);
      if (foreign.length > 0) return send(faultAnswer(version, mustUnderstand(foreign)));

      const payload = payloadOf(body);
      const operation = operationFor(payload);
      replyNamespace = payload.namespace;
      const respond = (caller: Caller) => {
        const content = operation.answer({ arguments: bindArguments(payload, operation.arguments), caller });
        const envelope = keepEnvelope(ownVersion, payload, content);
        send({ status: 200, headers: { 'content-type': contentTypeOf(ownVersion) }, body: envelope });
      };
      if (operation.access === 'open') return respond(undefined);
      const answered = after(identityOf(request, token), (identity) => respond(callerOf(identity)));
      if (answered) answered.catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  /** Envelopes in our own namespace are kept whole; for a client of another version its frame is put around the kept content. */
  function keepEnvelope(version: SoapVersion, payload: XmlElement, { key, make }: Content): string | Buffer {
    const frame = (content: Buffer) => {
      const [head, tail] = responseFrame(version, payload.name, payload.namespace);
      return Buffer.concat([Buffer.from(head), content, Buffer.from(tail)]);
    };
    if (payload.namespace === namespace) {
      return options.keep(`${version} ${payload.name} ${key}`, () => sendable(frame(Buffer.from(make()))));
    }
    return frame(options.keep(`content ${payload.name} ${key}`, () => Buffer.from(make())));
  }

  function operationFor(payload: XmlElement): SoapOperation {
    if (!isOurNamespace(payload.namespace)) {
      const given =
        payload.namespace === '' ? 'no namespace' : `the namespace ${truncate(payload.namespace, 200)}`;
      throw new ServiceError(
        'invalid',
        `The element ${named(payload)} is in ${given}; it must be in ${namespace}.`,
      );
    }
    const operation = operations.get(payload.name);
    if (operation === undefined) {
      const known = [...operations.keys()].join(', ');
      throw new ServiceError(
        'invalid',
        `There is no operation ${named(payload)}. The operations are ${known}.`,
      );
    }
    return operation;
  }

  /** At once where the token is known; to look for it a second time takes a while. */
  function identityOf(
    request: IncomingMessage,
    token: string | undefined,
  ): Identity | undefined | Promise<Identity | undefined> {
    return options.retryAfterRefresh(() =>
      options.identify({
        bearer: bearerToken(request.headers.authorization),
        field: token,
        cookie: undefined,
        readsOnly: true,
        address: options.addressOf(request),
        referer: request.headers.referer,
      }),
    );
  }

  function callerOf(identity: Identity | undefined): Caller {
    if (!identity && options.requireTokens) throw new ServiceError('token-missing', 'Token required.');
    return identity?.caller;
  }

  return { call, refuse };
}

/** Short ones as text, which leaves in one piece with the headers; of a long one another copy would be made each time. */
function sendable(envelope: Buffer): string | Buffer {
  return envelope.length < 8 * 1024 ? envelope.toString() : envelope;
}

function faultAnswer(version: SoapVersion, fault: Fault, cause?: unknown): Answer {
  const { status, xml } = renderFault(version, fault);
  const own = cause instanceof ServiceError ? errorHeaders(cause) : {};
  return { status, headers: { 'content-type': contentTypeOf(version), ...own }, body: xml };
}

/** An envelope of an unknown version is answered in 1.1; no envelope at all, in the version the content type names. */
function refuseEnvelope(root: XmlElement, guessed: SoapVersion): Answer {
  if (root.name === 'Envelope') {
    const given = root.namespace === '' ? 'no namespace' : truncate(root.namespace, 200);
    const message = `The Envelope is in ${given}; SOAP 1.1 and 1.2 are understood.`;
    return faultAnswer('1.1', { code: 'VersionMismatch', message });
  }
  const message = `The document is a ${named(root)}, not a SOAP Envelope.`;
  if (guessed === '1.1') throw new ServiceError('invalid', message);
  return faultAnswer('1.2', { code: 'VersionMismatch', message });
}

function mustUnderstand(headers: XmlElement[]): Fault {
  const names = headers.map(named).join(', ');
  return { code: 'MustUnderstand', message: `These header blocks are not understood: ${names}.`, headers };
}

/** Where the namespace ends in a version, clients made for another version are served too. */
function namespaceMatcher(namespace: string): (candidate: string) => boolean {
  const version = /\/[0-9]+(\.[0-9]+)*$/;
  if (!version.test(namespace)) return (candidate) => candidate === namespace;
  const stem = namespace.replace(version, '');
  return (candidate) =>
    candidate === namespace || (candidate.replace(version, '') === stem && version.test(candidate));
}
