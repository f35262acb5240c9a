// IP addresses: one spelling for each, the network of an address, and lists of networks.
import { type BlockList, isIP, isIPv4 } from 'node:net';

/** The one spelling of an address; an IPv4 address in IPv6 notation becomes the IPv4 address. */
export function plainAddress(address: string): string {
  if (isIPv4(address)) return address;
  if (!URL.canParse(`http://[${address}]`)) return address.toLowerCase();
  const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled) ?? [];
  if (high === undefined || low === undefined) return spelled;
  return [high, low].flatMap((half) => [parseInt(half, 16) >> 8, parseInt(half, 16) & 0xff]).join('.');
}

/** Whether the list covers the address, which must be spelled as `plainAddress` does. */
export function isListed(address: string, list: BlockList): boolean {
  const version = isIP(address);
  return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/** The network of one client: an IPv4 address itself, and the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [front = '', back] = address.split('::');
  const given = (part: string) => part.split(':').filter((group) => group !== '');
  const missing = back === undefined ? 0 : 8 - given(front).length - given(back).length;
  const groups = [...given(front), ...Array.from({ length: missing }, () => '0'), ...given(back ?? '')];
  return `${groups.slice(0, 4).join(':')}::/64`;
}
