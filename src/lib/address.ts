// IP addresses: one spelling for each, the subnet and the network of an address, and lists of networks.
import { type BlockList, isIP, isIPv4 } from 'node:net';

/** A dual-stack socket reports an IPv4 client in IPv6 notation. */
export function plainAddress(address: string): string {
  if (isIPv4(address)) return address;
  if (address.startsWith('::ffff:') && isIPv4(address.slice('::ffff:'.length)))
    return address.slice('::ffff:'.length);
  if (!URL.canParse(`http://[${address}]`)) return address.toLowerCase();
  const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled) ?? [];
  if (high === undefined || low === undefined) return spelled;
  return [high, low].flatMap((half) => [parseInt(half, 16) >> 8, parseInt(half, 16) & 0xff]).join('.');
}

/** The address must have the spelling of `plainAddress`. */
export function isListed(address: string, list: BlockList): boolean {
  const version = isIP(address);
  return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/** The addresses that one client usually has: an IPv4 address, or an IPv6 /64. */
export function subnetOf(address: string): string {
  return isIP(address) === 6 ? `${groupsOf(address).slice(0, 4).join(':')}::/64` : address;
}

/** The addresses that one organization usually has: an IPv4 /24, or an IPv6 /48. */
export function networkOf(address: string): string {
  if (isIPv4(address)) return `${address.slice(0, address.lastIndexOf('.'))}.0/24`;
  return isIP(address) === 6 ? `${groupsOf(address).slice(0, 3).join(':')}::/48` : address;
}

function groupsOf(address: string): string[] {
  const [front = '', back] = address.split('::');
  const given = (part: string) => part.split(':').filter((group) => group !== '');
  const missing = back === undefined ? 0 : 8 - given(front).length - given(back).length;
  return [...given(front), ...Array.from({ length: missing }, () => '0'), ...given(back ?? '')];
}

/** `host` is a host name or an IP address; an IPv6 address may be in brackets. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  const address = plainAddress(name);
  return name === 'localhost' || address === '::1' || (isIPv4(address) && address.startsWith('127.'));
}
