// The address of a client, behind trusted and other proxies.
import { describe, expect, it } from 'vitest';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const server = perFile(() => startServer({ env: { TRUSTED_PROXIES: '10.0.0.0/8,fd00::/8' } }));

/** The log names the client of a refused request. */
async function loggedAddress(remoteAddress: string, forwarded: string | undefined): Promise<unknown> {
  await server.http.inject({
    url: '/admin',
    remoteAddress,
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  });
  return (JSON.parse(server.logLines.at(-1) ?? '') as { address?: unknown }).address;
}

describe('the address of a client', () => {
  it.each<[string, string | undefined, string, string]>([
    ['198.51.100.1', undefined, '198.51.100.1', 'the address of the connection'],
    ['198.51.100.1', '203.0.113.9', '198.51.100.1', 'the header of an untrusted proxy is ignored'],
    ['10.0.0.1', '203.0.113.9', '203.0.113.9', 'the header of a trusted proxy is used'],
    ['10.0.0.1', '1.1.1.1, 203.0.113.9', '203.0.113.9', 'an entry that the client wrote is ignored'],
    ['10.0.0.1', '203.0.113.9, 10.0.0.2', '203.0.113.9', 'a chain of proxies'],
    ['10.0.0.1', '10.0.0.3,10.0.0.2', '10.0.0.3', 'the farthest proxy if all are trusted'],
    ['10.0.0.1', 'nonsense', '10.0.0.1', 'an invalid entry ends the chain'],
    ['10.0.0.1', '203.0.113.9, nonsense', '10.0.0.1', 'entries beyond an invalid one are ignored'],
    ['::ffff:10.0.0.1', '::ffff:203.0.113.9', '203.0.113.9', 'IPv4 written as IPv6'],
    ['fd00::1', '2001:DB8::1', '2001:db8::1', 'IPv6'],
    ['10.0.0.1', '::ffff:cb00:7109', '203.0.113.9', 'IPv4 written as IPv6 in hexadecimal'],
    ['10.0.0.1', '2001:0db8:0:0::0001', '2001:db8::1', 'IPv6 spelled out'],
  ])('%s forwarded for %s is %s: %s', async (peer, forwarded, expected) => {
    expect(await loggedAddress(peer, forwarded)).toBe(expected);
  });
});
