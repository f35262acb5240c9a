// Client addresses: which one a request comes from, its canonical spelling, and the network it belongs to.
import { type BlockList, isIP, isIPv4 } from 'node:net';

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

/** The canonical spelling of an address. An IPv4-mapped IPv6 address becomes the IPv4 address. */
export function plainAddress(address: string): string {
  if (isIPv4(address)) return address;
  if (!URL.canParse(`http://[${address}]`)) return address.toLowerCase();
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical) ?? [];
  if (high === undefined || low === undefined) return canonical;
  return [high, low].flatMap((half) => [parseInt(half, 16) >> 8, parseInt(half, 16) & 0xff]).join('.');
}

function isTrusted(address: string, trusted: BlockList): boolean {
  const version = isIP(address);
  return version !== 0 && trusted.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/** The /64 network of an IPv6 address, because one client may own all of it; an IPv4 address unchanged. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [front = '', back] = address.split('::');
  const groupsOf = (part: string) => part.split(':').filter((group) => group !== '');
  const missing = back === undefined ? 0 : 8 - groupsOf(front).length - groupsOf(back).length;
  const groups = [...groupsOf(front), ...Array.from({ length: missing }, () => '0'), ...groupsOf(back ?? '')];
  return `${groups.slice(0, 4).join(':')}::/64`;
}
