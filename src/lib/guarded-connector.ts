// Outgoing connections: resolves the name of a host, and checks every address before it connects to one.
import { Resolver, lookup as lookUpBySystem } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type * as Undici from 'undici';
import { RequestError, isOwnError } from './request-error.ts';

export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

type ConnectorOptions = {
  /** `host` has the port, if the address names one. */
  readonly isForbidden: (address: string, host: string) => boolean;
  readonly resolve: Resolve;
  /** Ends an attempt to connect. */
  readonly signal: AbortSignal;
  /** Default: the authorities of Node.js. */
  readonly secureContext?: SecureContext | undefined;
  readonly onConnected: (socket: Socket) => void;
};

export function createGuardedConnector(
  { buildConnector }: Pick<typeof Undici, 'buildConnector'>,
  { isForbidden, resolve, signal, secureContext, onConnected }: ConnectorOptions,
): Undici.buildConnector.connector {
  return (options, callback) => {
    const { hostname, host = '' } = options;
    const isForbiddenHere = (address: string) => isForbidden(address, host);
    // Node calls no lookup for an IP address.
    if (isIP(hostname) !== 0 && isForbiddenHere(hostname)) {
      callback(addressNotAllowed(hostname), null);
      return;
    }
    const lookup = createCheckedLookup(isForbiddenHere, resolve, signal);
    const limits = { lookup, signal, timeout: 0, maxCachedSessions: 0 };
    const connectTo = buildConnector({ ...limits, ...(secureContext && { secureContext }) });
    connectTo(options, (...result) => {
      const [, socket] = result;
      if (socket) onConnected(socket);
      callback(...result);
    });
  };
}

function addressNotAllowed(address: string): RequestError {
  return new RequestError(`The address ${address} is not allowed.`);
}

/**
 * Returns only addresses that it has checked, so that a name cannot resolve to another address between check and
 * connection.
 */
function createCheckedLookup(
  isForbidden: (address: string) => boolean,
  resolve: Resolve,
  signal: AbortSignal,
): LookupFunction {
  async function resolveAllowed(name: string) {
    const addresses = await resolve(name, signal).catch((error: unknown) => {
      if (isOwnError(error)) throw error;
      return [];
    });
    const forbidden = addresses.find(isForbidden);
    if (forbidden !== undefined) throw addressNotAllowed(forbidden);
    const [first, ...others] = addresses.map((address) => ({ address, family: isIP(address) }));
    if (!first) throw new RequestError(`The name ${name} does not resolve.`);
    return [first, ...others] as const;
  }

  return (name, { all }, callback) => {
    resolveAllowed(name).then(
      ([first, ...others]) =>
        all ? callback(null, [first, ...others]) : callback(null, first.address, first.family),
      (error: unknown) => callback(error as Error, ''),
    );
  };
}

const hostsFile = '/etc/hosts';

/** DNS does not know the name, or there is no DNS server. */
const unknownCodes = ['ENOTFOUND', 'ENODATA', 'ECONNREFUSED'];

/**
 * Asks the hosts file, then DNS, and the lookup of the operating system only if DNS does not know the name. That
 * lookup blocks one of few threads, so that a few names without an answer would block all others.
 */
export const resolveName: Resolve = async (name, signal) => {
  const known = findInHosts(await readFile(hostsFile, 'utf8').catch(() => ''), name);
  if (known.length > 0) return known;
  const resolver = new Resolver();
  const cancel = () => resolver.cancel();
  if (signal.aborted) return [];
  signal.addEventListener('abort', cancel);
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  signal.removeEventListener('abort', cancel);
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  const isUnknown = answers.every(
    (answer) =>
      answer.status === 'rejected' && unknownCodes.includes((answer.reason as { code: string }).code),
  );
  // The operating system may know more names, for example with search domains.
  return isUnknown ? (await lookUpBySystem(name, { all: true })).map(({ address }) => address) : found;
};

export function findInHosts(text: string, name: string): string[] {
  const wanted = name.toLowerCase().replace(/\.$/, '');
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = (line.split('#', 1)[0] ?? '').trim().split(/\s+/);
    return names.some((other) => other.toLowerCase() === wanted) ? [address] : [];
  });
}
