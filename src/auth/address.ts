// The address a request comes from (contract 3: X-Forwarded-For is believed from trusted proxies only).
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

/** One spelling for each address; an IPv4 address that came as IPv6 is the IPv4 address. */
export function plainAddress(address: string): string {
  if (isIPv4(address)) return address;
  if (!URL.canParse(`http://[${address}]`)) return address.toLowerCase();
  const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled) ?? [];
  if (high === undefined || low === undefined) return spelled;
  return [high, low].flatMap((half) => [parseInt(half, 16) >> 8, parseInt(half, 16) & 0xff]).join('.');
}

function isTrusted(address: string, trusted: BlockList): boolean {
  const version = isIP(address);
  return version !== 0 && trusted.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/** An IPv4 address as it is, of an IPv6 address the first half, which one client may have as a whole. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [front = '', back] = address.split('::');
  const given = (part: string) => part.split(':').filter((group) => group !== '');
  const missing = back === undefined ? 0 : 8 - given(front).length - given(back).length;
  const groups = [...given(front), ...Array.from({ length: missing }, () => '0'), ...given(back ?? '')];
  return `${groups.slice(0, 4).join(':')}::/64`;
}
