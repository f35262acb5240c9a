// The address a request comes from (contract 3: X-Forwarded-For is believed from trusted proxies only).
import { type BlockList, isIP } from 'node:net';

/** The last address that is not itself a trusted proxy, reading from the connection backwards. */
export function clientAddress(peer: string, forwardedFor: string | undefined, trusted: BlockList): string {
  let client = plainAddress(peer);
  const hops = forwardedFor?.split(',').reverse() ?? [];
  for (const hop of hops) {
    if (!isTrusted(client, trusted)) break;
    const address = plainAddress(hop.trim());
    if (isIP(address) === 0) break;
    client = address;
  }
  return client;
}

/** An IPv4 address that came as IPv6 is the IPv4 address. */
export function plainAddress(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  return mapped !== undefined && isIP(mapped) === 4 ? mapped : address.toLowerCase();
}

function isTrusted(address: string, trusted: BlockList): boolean {
  const version = isIP(address);
  return version !== 0 && trusted.check(address, version === 4 ? 'ipv4' : 'ipv6');
}
