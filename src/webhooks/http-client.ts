// Every request that the server sends goes out here: to an address that was checked, once, without redirect, retry or proxy.
import { type BlockList, type LookupFunction, isIP } from 'node:net';
import { Client, buildConnector } from 'undici';
import type { Answer, Runtime } from '../runtime.ts';
import { isForbidden } from './target-policy.ts';
import { type Resolve, resolveName } from './resolver.ts';

/** How much of an answer's body is waited for, and how much of it is handed on. */
export const readBytes = 16 * 1024;
export const keptBytes = 1024;

/** `close` ends what is under way. */
export type HttpClient = { readonly post: Runtime['post']; readonly close: () => Promise<void> };

/**
 * One connection and no queue: a pool would let a request wait for another's connection, and would go on connecting
 * for a request that was given up.
 */
type Line = {
  readonly origin: string;
  readonly client: Client;
  readonly end: AbortController;
};

// Shorter than receivers keep an idle connection, so that they do not close it just as a request sets out.
const idleMs = 1000;

/** An error whose message is for people as it is. */
class EgressError extends Error {}

export function createHttpClient(allowed: BlockList, resolve: Resolve = resolveName): HttpClient {
  const lines = new Set<Line>();
  const idle = new Map<string, Line[]>();

  function open(origin: string): Line {
    const end = new AbortController();
    const client = new Client(origin, {
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      connect: (options, callback) => {
        // A connection to a literal asks no lookup.
        const { hostname } = options;
        if (isIP(hostname) !== 0 && isForbidden(hostname, allowed)) return callback(refuse(hostname), null);
        // Only the signal ends a connection in the making.
        const { signal } = end;
        buildConnector({ lookup: guard(allowed, resolve, signal), signal, timeout: 0, maxCachedSessions: 0 })(
          options,
          callback,
        );
      },
    });
    const line: Line = { origin, client, end };
    client.on('disconnect', () => {
      if (idle.get(origin)?.includes(line)) void drop(line);
    });
    lines.add(line);
    return line;
  }

  function release(line: Line): void {
    if (!lines.has(line)) return;
    const others = idle.get(line.origin);
    if (others) others.push(line);
    else idle.set(line.origin, [line]);
  }

  function drop(line: Line): Promise<void> {
    const others = idle.get(line.origin)?.filter((other) => other !== line) ?? [];
    if (others.length > 0) idle.set(line.origin, others);
    else idle.delete(line.origin);
    lines.delete(line);
    const gone = line.client.destroy();
    line.end.abort();
    return gone;
  }

  function send(...[outgoing, signal]: Parameters<Runtime['post']>): Promise<Answer> {
    const { headers, body } = outgoing;
    const { protocol, origin, pathname, search } = new URL(outgoing.url);
    if (!/^https?:$/.test(protocol)) throw new EgressError('The address is not http or https.');
    const line = idle.get(origin)?.pop() ?? open(origin);
    return new Promise((resolve, reject) => {
      let status = 0;
      let read = 0;
      const kept: Buffer[] = [];
      const succeed = () => {
        signal.removeEventListener('abort', stop);
        resolve({ status, body: Buffer.concat(kept) });
      };
      const fail = (error: Error) => {
        signal.removeEventListener('abort', stop);
        reject(explain(error));
        void drop(line);
      };
      const stop = () => fail(givenUp(signal));
      signal.addEventListener('abort', stop);
      line.client.dispatch(
        { method: 'POST', path: pathname + search, headers, body },
        {
          onRequestStart: () => undefined,
          onResponseStart: (_, code) => void (status = code),
          onResponseData: (_, chunk) => {
            if (read < keptBytes) kept.push(chunk.subarray(0, keptBytes - read));
            read += chunk.length;
            if (read < readBytes) return;
            succeed();
            void drop(line);
          },
          onResponseEnd: () => {
            release(line);
            succeed();
          },
          onResponseError: (_, error) => fail(error),
        },
      );
    });
  }

  return {
    post: async (outgoing, signal) => {
      if (signal.aborted) throw givenUp(signal);
      return send(outgoing, signal);
    },
    close: async () => {
      await Promise.all([...lines].map(drop));
    },
  };
}

/** Gives a connection the addresses that were checked, so that a name cannot change its mind in between. */
function guard(allowed: BlockList, resolve: Resolve, signal: AbortSignal): LookupFunction {
  async function check(name: string) {
    const addresses = await resolve(name, signal).catch(() => []);
    const forbidden = addresses.find((address) => isForbidden(address, allowed));
    if (forbidden !== undefined) throw refuse(forbidden);
    const [first, ...others] = addresses.map((address) => ({ address, family: isIP(address) }));
    if (!first) throw new EgressError(`The name ${name} does not resolve.`);
    return [first, ...others] as const;
  }
  return (name, { all }, callback) => {
    check(name).then(
      ([first, ...others]) => {
        if (all) callback(null, [first, ...others]);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => callback(error as Error, ''),
    );
  };
}

function refuse(address: string): EgressError {
  return new EgressError(`The address ${address} is not allowed.`);
}

function givenUp({ reason }: AbortSignal): EgressError {
  return new EgressError('The request was given up before its answer was complete.', { cause: reason });
}

const explanations: readonly (readonly [codes: RegExp, text: string])[] = [
  [/^ECONNREFUSED$/, 'The connection was refused.'],
  [/^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'The connection was not made in time.'],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, 'The address cannot be reached.'],
  [
    /^(ECONNRESET|EPIPE|UND_ERR_(SOCKET|RES_CONTENT_LENGTH_MISMATCH))$/,
    'The connection was closed before the answer was complete.',
  ],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'The headers of the answer are too large.'],
  [/^HTTPParserError$/, 'The answer is not valid HTTP.'],
  [/^(EPROTO|ERR_SSL_.*)$/, 'The TLS handshake failed.'],
  [/^UND_ERR_DESTROYED$/, 'The request was given up: the server is stopping.'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'The certificate is not valid: it is for another name.'],
];

/** Says what happened without the request's path, query or headers, which may hold secrets. */
function explain(error: Error): EgressError {
  if (error instanceof EgressError) return error;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const known = explanations.find(([codes]) => codes.test(code))?.[1];
  // What OpenSSL says of a certificate is short; after a semicolon Node adds advice for its command line.
  const [said = ''] = error.message.split(';', 1);
  const isCertificate = /^(?!ERR_).*CERT|^UNABLE_TO_|^INVALID_(CA|PURPOSE)$/.test(code);
  const text = isCertificate ? `The certificate is not valid: ${said}.` : `The request failed: ${code}.`;
  return new EgressError(known ?? text, { cause: error });
}
