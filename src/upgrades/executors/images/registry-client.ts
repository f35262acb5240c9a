// The HTTP client for registries and their token services. It follows no redirects, uses no proxy, limits time and
// size of every answer, and connects to loopback and link-local addresses only for hosts that the configuration
// names.
import { BlockList, type Socket, isIP } from 'node:net';
import { Client, buildConnector } from 'undici';
import { withTimeout } from '../../../lib/async.ts';
import { createGuardedConnector, type Resolve, resolveName } from '../../../lib/guarded-connector.ts';
import { readBody } from '../../../lib/read-body.ts';
import { RequestError, toRequestError } from '../../../lib/request-error.ts';
import type { Runtime } from '../../../lib/runtime.ts';

type RegistryClientOptions = {
  readonly runtime: Pick<Runtime, 'sleep'>;
  /** Hosts that are reached over plain HTTP, at any address. */
  readonly insecureHosts: ReadonlySet<string>;
  readonly userAgent: string;
  readonly resolve?: Resolve;
};

type RegistryRequest = {
  readonly method: 'GET' | 'HEAD';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
};

type RegistryResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** It is read only if the status is 200. */
  readonly body: Buffer;
};

const registryTimeoutMs = 10_000;

/** A token is the only body that is read. */
const maxBytes = 64 * 1024;

/**
 * What the raw bytes of an answer may have beside its body. Without this limit, a server could keep the parser busy
 * with chunk extensions until the timeout.
 */
const maxOverhead = 128 * 1024;

export class RegistryClient {
  readonly #options: RegistryClientOptions;

  constructor(options: RegistryClientOptions) {
    this.#options = options;
  }

  isInsecure(host: string): boolean {
    return this.#options.insecureHosts.has(host);
  }

  /** Rejects with a `RequestError` that names the host. */
  async send(request: RegistryRequest, stopping: AbortSignal): Promise<RegistryResponse> {
    const { host } = request.url;
    const late = `no complete answer came within ${registryTimeoutMs / 1000} seconds.`;
    try {
      return await withTimeout(this.#options.runtime, (signal) => this.#attempt(request, signal), {
        ms: registryTimeoutMs,
        message: late,
        stopping,
      });
    } catch (error) {
      const reason = error instanceof RequestError ? error.message : late;
      throw new RequestError(`${host}: ${reason}`, { cause: error });
    }
  }

  /** Uses a connection of its own, because a pool would continue to connect for a request that was aborted. */
  async #attempt({ method, url, headers }: RegistryRequest, signal: AbortSignal): Promise<RegistryResponse> {
    const closed = new AbortController();
    const client = new Client(url.origin, {
      connect: createGuardedConnector(
        { buildConnector },
        {
          isForbidden: (address, host) => !this.isInsecure(host) && isLocal(address),
          resolve: this.#options.resolve ?? resolveName,
          signal: closed.signal,
          onConnected: limitRawBytes,
        },
      ),
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    try {
      const response = await client.request({
        method,
        path: url.pathname + url.search,
        headers: { 'user-agent': this.#options.userAgent, 'accept-encoding': 'identity', ...headers },
        signal,
      });
      const { statusCode: status, body } = response;
      // The end of an unwanted body is an error if the connection is closed before.
      body.on('error', () => undefined);
      return {
        status,
        headers: flatten(response.headers),
        body: status === 200 ? await readBody(body, maxBytes) : Buffer.alloc(0),
      };
    } catch (error) {
      throw toRequestError(error as Error);
    } finally {
      closed.abort();
      await client.destroy();
    }
  }
}

const local = new BlockList();
local.addSubnet('127.0.0.0', 8, 'ipv4');
local.addSubnet('169.254.0.0', 16, 'ipv4');
// A connection to an unspecified address reaches this machine.
local.addSubnet('0.0.0.0', 8, 'ipv4');
local.addSubnet('fe80::', 10, 'ipv6');
// The metadata service of a cloud.
local.addAddress('fd00:ec2::254', 'ipv6');
// NAT64 translates these to the IPv4 addresses above. A cluster may reach all others of 64:ff9b::/96.
local.addSubnet('64:ff9b::7f00:0', 104, 'ipv6');
local.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6');
local.addSubnet('64:ff9b::', 104, 'ipv6');
// Others contain an IPv4 address too: local-use NAT64, 6to4, IPv4-compatible with :: and ::1, IPv4-translated.
local.addSubnet('64:ff9b:1::', 48, 'ipv6');
local.addSubnet('2002::', 16, 'ipv6');
local.addSubnet('::', 96, 'ipv6');
local.addSubnet('::ffff:0:0:0', 96, 'ipv6');

/**
 * Whether the address is loopback or link-local, or may be translated to such an address. A BlockList treats an
 * IPv4-mapped address like its IPv4 address.
 */
function isLocal(address: string): boolean {
  const version = isIP(address);
  // An address with a zone is link-local, but a BlockList ignores the zone.
  if (version === 0 || address.includes('%')) return true;
  return local.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/** undici reads the socket on the same event, so this listener reads nothing. */
function limitRawBytes(socket: Socket): void {
  const maxRawBytes = maxBytes + maxOverhead;
  socket.on('readable', () => {
    if (socket.bytesRead > maxRawBytes)
      socket.destroy(new RequestError(`The answer has more than ${maxRawBytes} bytes.`));
  });
}

function flatten(headers: Record<string, string | string[] | undefined>): RegistryResponse['headers'] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}
