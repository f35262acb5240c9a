// Resolves the name of a host for an outgoing connection, and checks every address before one is used.
import { type LookupFunction, isIP } from 'node:net';
import { RequestError, addressNotAllowed } from './request-error.ts';

export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

/** Returns only addresses that it has checked, so that a name cannot resolve to another address between check and connection. */
export function createCheckedLookup(
  isForbidden: (address: string) => boolean,
  resolve: Resolve,
  signal: AbortSignal,
): LookupFunction {
  async function resolveAllowed(name: string) {
    const addresses = await resolve(name, signal).catch(() => []);
    const forbidden = addresses.find(isForbidden);
    if (forbidden !== undefined) throw addressNotAllowed(forbidden);
    const [first, ...others] = addresses.map((address) => ({ address, family: isIP(address) }));
    if (!first) throw new RequestError(`The name ${name} does not resolve.`);
    return [first, ...others] as const;
  }

  async function lookup(...[name, { all }, callback]: Parameters<LookupFunction>): Promise<void> {
    let addresses;
    try {
      addresses = await resolveAllowed(name);
    } catch (error) {
      callback(error as Error, '');
      return;
    }
    const [first, ...others] = addresses;
    if (all) callback(null, [first, ...others]);
    else callback(null, first.address, first.family);
  }
  return (...parameters) => void lookup(...parameters);
}
