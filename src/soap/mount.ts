// Hangs a document/literal service on Fastify: POST dispatches on the body element's name, GET ?wsdl serves the description.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, type Identify, type Identity, bearerOf } from '../caller.ts';
import type { SecondLook } from '../second-look.ts';
import { ServiceError, methodNotAllowed } from '../errors.ts';
import {
  type Fault,
  type SoapVersion,
  contentTypeOf,
  faultOf,
  named,
  notUnderstood,
  openEnvelope,
  payloadOf,
  refuseText,
  renderFault,
  responseFrame,
  versionOf,
} from './envelope.ts';
import { cut } from '../text.ts';
import { decodeXml } from './decode.ts';
import {
  refusalOf,
  bytesOf,
  charsetOf,
  guessVersion,
  readBody,
  refuseMediaType,
  tokenOf,
} from './request.ts';
import { type XmlElement, readXml } from './xml.ts';

const methods = ['GET', 'HEAD', 'POST'];

export type Arguments = Readonly<Record<string, string | undefined>>;

/** What stands inside the response element. It is made once for its key and kept until what it shows changes. */
export type Content = { readonly key: string; readonly make: () => string };

export type SoapOperation = {
  readonly arguments: readonly string[];
  /** `open` operations need no token and ignore one. */
  readonly access: 'open' | 'token';
  readonly answer: (call: { arguments: Arguments; caller: Caller }) => Content;
};

export type SoapOptions = {
  readonly path: string;
  readonly namespace: string;
  readonly operations: Readonly<Record<string, SoapOperation>>;
  readonly requireTokens: boolean;
  readonly identify: Identify;
  readonly secondLook: SecondLook;
  readonly addressOf: (request: FastifyRequest) => string;
  readonly keep: <T>(key: string, make: () => T) => T;
  readonly wsdl: () => Buffer;
  /** What a browser is shown. */
  readonly showPage: (reply: FastifyReply) => FastifyReply;
};

export function mountSoap(scope: FastifyInstance, options: SoapOptions): void {
  const { path, namespace, operations } = options;
  const isOurNamespace = namespaceMatcher(namespace);

  // A call is answered before Fastify reads its body: to read few bytes as they are takes much less than its parsers do.
  scope.addHook('onRequest', (request, reply, done) => {
    request.routeLabel = path;
    if (!methods.includes(request.method)) throw methodNotAllowed(request.method, methods);
    if (request.method !== 'POST') return done();
    refuseMediaType(request);
    readBody(request, (body) => {
      if (body instanceof Buffer) answer(request, reply, body);
      else reply.header('connection', 'close').send(body);
    });
  });
  scope.setErrorHandler((error, request, reply) => {
    sendFault(reply, guessVersion(request), faultOf(refusalOf(error, request), namespace), error);
  });

  scope.all(path, (request, reply) => {
    const wantsWsdl = Object.keys(request.query as object).some((key) => key.toLowerCase() === 'wsdl');
    return wantsWsdl
      ? reply.header('content-type', 'text/xml; charset=utf-8').send(options.wsdl())
      : options.showPage(reply);
  });

  /** Undefined where the answer comes later. */
  function answer(request: FastifyRequest, reply: FastifyReply, given: Buffer): FastifyReply | undefined {
    let version = guessVersion(request);
    let replyNamespace = namespace;
    const fail = (error: unknown) =>
      sendFault(reply, version, faultOf(refusalOf(error, request), replyNamespace), error);
    try {
      const root = readXml(decodeXml(bytesOf(request, given), charsetOf(request)));
      const ownVersion = versionOf(root);
      if (ownVersion === undefined) return refuseEnvelope(reply, root, version);
      version = ownVersion;
      const { headers, body } = openEnvelope(root, version);
      const foreign = notUnderstood(headers, version);
      if (foreign.length > 0) return sendFault(reply, version, mustUnderstand(foreign));

      const payload = payloadOf(body);
      const operation = operationFor(payload);
      replyNamespace = payload.namespace;
      const respond = (caller: Caller) => {
        const content = operation.answer({ arguments: bindArguments(payload, operation.arguments), caller });
        const envelope = keepEnvelope(ownVersion, payload, content);
        return reply.header('content-type', contentTypeOf(ownVersion)).send(envelope);
      };
      if (operation.access === 'open') return respond(undefined);
      const identity = identityOf(request);
      if (!(identity instanceof Promise)) return respond(callerOf(identity));
      void identity.then((found) => respond(callerOf(found))).catch((error: unknown) => void fail(error));
      return undefined;
    } catch (error) {
      return fail(error);
    }
  }

  /** Envelopes in our own namespace are kept whole; for a client of another version its frame is put around the kept content. */
  function keepEnvelope(version: SoapVersion, payload: XmlElement, { key, make }: Content): Buffer {
    const frame = (content: Buffer) => {
      const [before, after] = responseFrame(version, payload.name, payload.namespace);
      return Buffer.concat([Buffer.from(before), content, Buffer.from(after)]);
    };
    if (payload.namespace === namespace) {
      return options.keep(`${version} ${payload.name} ${key}`, () => frame(Buffer.from(make())));
    }
    return frame(options.keep(`content ${payload.name} ${key}`, () => Buffer.from(make())));
  }

  function operationFor(payload: XmlElement): SoapOperation {
    if (!isOurNamespace(payload.namespace)) {
      const given =
        payload.namespace === '' ? 'no namespace' : `the namespace ${cut(payload.namespace, 200)}`;
      throw new ServiceError(
        'invalid',
        `The element ${named(payload)} is in ${given}; it must be in ${namespace}.`,
      );
    }
    const operation = Object.hasOwn(operations, payload.name) ? operations[payload.name] : undefined;
    if (operation === undefined) {
      const known = Object.keys(operations).join(', ');
      throw new ServiceError(
        'invalid',
        `There is no operation ${named(payload)}. The operations are ${known}.`,
      );
    }
    return operation;
  }

  /** At once where the token is known; to look for it a second time takes a while. */
  function identityOf(request: FastifyRequest): Identity | undefined | Promise<Identity | undefined> {
    return options.secondLook(() =>
      options.identify({
        bearer: bearerOf(request.headers.authorization),
        field: tokenOf(request),
        cookie: undefined,
        readsOnly: true,
        connection: request.socket,
        address: () => options.addressOf(request),
        referer: request.headers.referer,
      }),
    );
  }

  function callerOf(identity: Identity | undefined): Caller {
    if (!identity && options.requireTokens) throw new ServiceError('token-missing', 'Token required.');
    return identity?.caller;
  }
}

function sendFault(reply: FastifyReply, version: SoapVersion, fault: Fault, cause?: unknown): FastifyReply {
  const { status, xml } = renderFault(version, fault);
  if (cause instanceof ServiceError) {
    if (cause.allow) void reply.header('allow', cause.allow.join(', '));
    if (cause.retryAfterSeconds !== undefined)
      void reply.header('retry-after', String(cause.retryAfterSeconds));
  }
  return reply.code(status).header('content-type', contentTypeOf(version)).send(xml);
}

/** An envelope of an unknown version is answered in 1.1; no envelope at all, in the version the content type names. */
function refuseEnvelope(reply: FastifyReply, root: XmlElement, guessed: SoapVersion): FastifyReply {
  if (root.name === 'Envelope') {
    const given = root.namespace === '' ? 'no namespace' : cut(root.namespace, 200);
    const message = `The Envelope is in ${given}; SOAP 1.1 and 1.2 are understood.`;
    return sendFault(reply, '1.1', { code: 'VersionMismatch', message });
  }
  const message = `The document is a ${named(root)}, not a SOAP Envelope.`;
  if (guessed === '1.1') throw new ServiceError('invalid', message);
  return sendFault(reply, '1.2', { code: 'VersionMismatch', message });
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

/** Binds by local name, qualified or not; `xsi:nil` counts as absent. */
function bindArguments(payload: XmlElement, names: readonly string[]): Arguments {
  refuseText(payload);
  const bound: Record<string, string | undefined> = {};
  for (const child of payload.children) {
    if (!names.includes(child.name)) {
      const known = names.length > 0 ? `its arguments are ${names.join(', ')}` : 'it takes none';
      throw new ServiceError('invalid', `${payload.name} has no argument ${named(child)}; ${known}.`);
    }
    if (Object.hasOwn(bound, child.name)) {
      throw new ServiceError('invalid', `The argument ${child.name} is given more than once.`);
    }
    const [inner] = child.children;
    if (inner)
      throw new ServiceError(
        'invalid',
        `The argument ${child.name} must be text; it holds a ${named(inner)}.`,
      );
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
