// The address of the client, in one spelling.
import type { FastifyRequest } from 'fastify';
import { isIP } from 'node:net';
import { plainAddress } from '../lib/address.ts';

/**
 * X-Forwarded-For may contain entries that are no addresses. The server closes a connection without an address when it
 * begins, and Node keeps one that was read then (server.ts).
 */
export function clientAddress(request: FastifyRequest): string {
  const { remoteAddress = '' } = request.socket;
  if (request.headers['x-forwarded-for'] === undefined) return plainAddress(remoteAddress);
  const addresses = (request.ips ?? [request.ip]).map(plainAddress);
  return addresses.findLast((address) => isIP(address) !== 0) ?? remoteAddress;
}
