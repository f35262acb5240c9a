// Decides which receivers a webhook may have. Special addresses are forbidden unless the configuration allows them.
import { BlockList, isIP } from 'node:net';
import { httpUrlRule, isHttpUrl } from '../../lib/text.ts';

/** The IANA special-purpose registry, multicast, and the former 6to4 relays. */
const special4 = listOf('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]);

/** The allocated global unicast addresses. All others are local, translated or unused. */
const global6 = listOf('ipv6', ['2000::/3']);
const special6 = listOf('ipv6', [
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
]);
const mapped = listOf('ipv6', ['::ffff:0:0/96']);

function listOf(family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** A BlockList treats an IPv4-mapped address like its IPv4 address. */
export function isForbidden(address: string, allowed: BlockList): boolean {
  const version = isIP(address);
  // An address with a zone is local to this machine, but a BlockList ignores the zone.
  if (version === 0 || address.includes('%')) return true;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  if (allowed.check(address, family)) return false;
  if (version === 4 || mapped.check(address, family)) return special4.check(address, family);
  return !global6.check(address, family) || special6.check(address, family);
}

const refused =
  'loopback, private and other special addresses are refused unless WEBHOOK_ALLOW_CIDRS allows them.';

/** The HTTP client checks host names when it connects, because their addresses may change. */
export function receiverProblem(url: string, allowed: BlockList): string | undefined {
  if (!isHttpUrl(url)) return `must be ${httpUrlRule}.`;
  // `URL` normalises every spelling of an IP address.
  const { username, password, hostname, port } = new URL(url);
  if (username !== '' || password !== '') return 'must not contain a user name or password.';
  if (port === '0') return 'must not have the port 0.';
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) {
    return isForbidden(host, allowed) ? `must not point to the address ${host}: ${refused}` : undefined;
  }
  const isLocal = host.split('.').findLast((label) => label !== '') === 'localhost';
  const mayBeLocal = ['127.0.0.1', '::1'].some((address) => !isForbidden(address, allowed));
  return isLocal && !mayBeLocal ? `must not point to ${host}: ${refused}` : undefined;
}

export function receiverOf(url: string): string {
  return new URL(url).origin;
}
