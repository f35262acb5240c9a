// The HTTP client for webhook deliveries. It sends each request once, to an address that the target policy allows,
// without redirects, retries or proxies: sending again within one attempt could deliver twice.
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type BlockList, Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type * as Undici from 'undici';
import { createGuardedConnector, type Resolve, resolveName } from '../../lib/guarded-connector.ts';
import { RequestError, isOwnError, toRequestError } from '../../lib/request-error.ts';
import { maxValueLength } from './headers.ts';
import { isForbidden } from './target-policy.ts';

export type HttpClient = {
  /** Called when there are webhooks, before the first request. */
  load(): Promise<unknown>;
  /**
   * Rejects with a `RequestError` if the receiver or the way to it failed, with another error if this process did. Rejects at
   * once when the signal is aborted.
   */
  post(request: OutgoingRequest, signal: AbortSignal): Promise<ReceivedResponse>;
  close(): Promise<void>;
};

export type OutgoingRequest = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type ReceivedResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
};

/** A response counts as complete after this many bytes, even if its body continues. */
const readBytes = 16 * 1024;
/**
 * Attempts record 1 KiB. A value of a custom header that begins within it is complete in these bytes, so that it
 * can be masked.
 */
const keptBytes = 1024 + maxValueLength;

/**
 * The raw bytes of a response: 16 KiB of headers, `readBytes` of body, and 64 KiB for anything else. Without this
 * limit, a receiver could keep the parser busy with chunk extensions until the timeout.
 */
const maxRawBytes = 16 * 1024 + readBytes + 64 * 1024;
const maxInformational = 10;

// Shorter than the keep-alive timeout of usual servers. Otherwise a receiver could close a connection just as a
// request is sent on it.
const idleMs = 1000;

type HttpClientOptions = {
  readonly resolve?: Resolve;
  /** Certificates of authorities that are trusted in addition to those of Node.js, in PEM format. */
  readonly authorities?: readonly string[];
};

/**
 * One undici client per connection. An undici pool would let a request wait for the connection of another one, and
 * would continue to connect for a request that was aborted.
 */
type Connection = {
  readonly origin: string;
  readonly client: Undici.Client;
  readonly abort: AbortController;
  socket: Socket | undefined;
  /** The value of `socket.bytesRead` when the request was sent. */
  readBefore: number;
};

export class GuardedHttpClient implements HttpClient {
  readonly #allowed: BlockList;
  readonly #resolve: Resolve;
  readonly #authorities: readonly string[];
  /** Absent: the authorities of Node.js. Made once, because parsing all certificates takes long. */
  #secureContext: SecureContext | undefined;
  readonly #connections = new Set<Connection>();
  readonly #idle = new Map<string, Connection[]>();
  #undici: typeof Undici | undefined;

  constructor(allowed: BlockList, { resolve = resolveName, authorities = [] }: HttpClientOptions = {}) {
    this.#allowed = allowed;
    this.#resolve = resolve;
    this.#authorities = authorities;
  }

  /**
   * Loads undici, also the parser that it reads from a file with its first connection: this one leads nowhere. With the
   * first event, it would be too late: by then, the files may be those of another version, or missing.
   */
  async load(): Promise<typeof Undici> {
    if (this.#undici) return this.#undici;
    const undici = await import('undici');
    const client = new undici.Client('http://localhost', {
      connect: (_options, callback) => callback(null, new Socket()),
    });
    client.dispatch(
      { method: 'GET', path: '/' },
      { onRequestStart: () => undefined, onResponseError: () => undefined },
    );
    await client.destroy();
    if (this.#authorities.length > 0) {
      // An import at the top would read the certificates of all authorities into memory.
      const { createSecureContext, rootCertificates } = await import('node:tls');
      this.#secureContext = createSecureContext({ ca: [...rootCertificates, ...this.#authorities] });
    }
    return (this.#undici = undici);
  }

  async post(request: OutgoingRequest, signal: AbortSignal): Promise<ReceivedResponse> {
    const undici = await this.load();
    if (signal.aborted) throw requestAborted(signal);
    const url = new URL(request.url);
    const { protocol, origin } = url;
    if (!/^https?:$/.test(protocol)) throw new RequestError('The address is not http or https.');
    const connection = this.#idle.get(origin)?.pop() ?? this.#open(undici, origin);
    return this.#send(connection, url, request, signal);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#connections].map((connection) => this.#drop(connection)));
  }

  #open(undici: typeof Undici, origin: string): Connection {
    const abort = new AbortController();
    const client = new undici.Client(origin, {
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      connect: createGuardedConnector(undici, {
        isForbidden: (address) => isForbidden(address, this.#allowed),
        resolve: this.#resolve,
        signal: abort.signal,
        secureContext: this.#secureContext,
        onConnected: (socket) => limitRawBytes(connection, socket),
      }),
    });
    const connection: Connection = { origin, client, abort, socket: undefined, readBefore: 0 };
    client.on('disconnect', () => {
      if (this.#idle.get(origin)?.includes(connection)) void this.#drop(connection);
    });
    this.#connections.add(connection);
    return connection;
  }

  #send(
    connection: Connection,
    { pathname, search }: URL,
    { headers, body }: OutgoingRequest,
    signal: AbortSignal,
  ): Promise<ReceivedResponse> {
    return new Promise((resolve, reject) => {
      let status = 0;
      let responseHeaders: ReceivedResponse['headers'] = {};
      let received = 0;
      let informational = 0;
      connection.readBefore = connection.socket?.bytesRead ?? 0;
      const kept: Buffer[] = [];
      const succeed = () => {
        signal.removeEventListener('abort', onAbort);
        resolve({ status, headers: responseHeaders, body: Buffer.concat(kept) });
      };
      const fail = (error: Error) => {
        signal.removeEventListener('abort', onAbort);
        reject(isOwnError(error) ? error : toRequestError(error));
        void this.#drop(connection);
      };
      const onAbort = () => fail(requestAborted(signal));
      signal.addEventListener('abort', onAbort);
      connection.client.dispatch(
        { method: 'POST', path: pathname + search, headers, body },
        {
          onRequestStart: () => undefined,
          onResponseStart: (_, code, received) => {
            status = code;
            responseHeaders = received;
            if (code < 200 && (informational += 1) > maxInformational)
              fail(new RequestError(`The answer has more than ${maxInformational} informational responses.`));
          },
          onResponseData: (_, chunk) => {
            if (received < keptBytes) kept.push(chunk.subarray(0, keptBytes - received));
            received += chunk.length;
            if (received < readBytes) return;
            succeed();
            void this.#drop(connection);
          },
          onResponseEnd: () => {
            this.#release(connection);
            succeed();
          },
          onResponseError: (_, error) => fail(error),
        },
      );
    });
  }

  /** The connection may have been dropped before the response ended. */
  #release(connection: Connection): void {
    if (!this.#connections.has(connection)) return;
    const others = this.#idle.get(connection.origin) ?? [];
    this.#idle.set(connection.origin, [...others, connection]);
  }

  #drop(connection: Connection): Promise<void> {
    const { origin, client, abort } = connection;
    const others = this.#idle.get(origin)?.filter((other) => other !== connection) ?? [];
    if (others.length > 0) this.#idle.set(origin, others);
    else this.#idle.delete(origin);
    this.#connections.delete(connection);
    const destroyed = client.destroy();
    abort.abort();
    return destroyed;
  }
}

/** undici reads the socket on the same event, so this listener reads nothing. */
function limitRawBytes(connection: Connection, socket: Socket): void {
  connection.socket = socket;
  connection.readBefore = socket.bytesRead;
  socket.on('readable', () => {
    if (socket.bytesRead - connection.readBefore > maxRawBytes)
      socket.destroy(new RequestError(`The answer has more than ${maxRawBytes} bytes.`));
  });
}

function requestAborted({ reason }: AbortSignal): RequestError {
  return new RequestError('The request was cancelled before the answer was complete.', { cause: reason });
}

type Authorities = { readonly authorities: readonly string[] } | { readonly problems: readonly string[] };

/** Reads WEBHOOK_CA_FILE, the certificates of authorities that receivers may have theirs from. */
export async function readAuthorities(path: string | undefined): Promise<Authorities> {
  if (path === undefined) return { authorities: [] };
  try {
    return parseAuthorities(await readFile(path, 'utf8'));
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    return { problems: [`WEBHOOK_CA_FILE cannot be read: ${code}.`] };
  }
}

const begin = '-----BEGIN CERTIFICATE-----';
const end = '-----END CERTIFICATE-----';

/** Text around the certificates is ignored: many files have comments. */
function parseAuthorities(text: string): Authorities {
  const found = text
    .split(begin)
    .slice(1)
    .map((rest) => begin + rest.slice(0, rest.indexOf(end) + end.length));
  if (found.length === 0)
    return { problems: ['WEBHOOK_CA_FILE must contain certificates in PEM format (BEGIN CERTIFICATE).'] };
  const problems = found.flatMap((pem, index) =>
    isCertificate(pem) ? [] : `WEBHOOK_CA_FILE: the certificate ${index + 1} cannot be read.`,
  );
  return problems.length > 0 ? { problems } : { authorities: found };
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== '';
  } catch {
    return false;
  }
}
