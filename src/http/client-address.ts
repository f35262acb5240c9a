// The address of the client, in one spelling.
import type { FastifyRequest } from 'fastify';
import { isIP } from 'node:net';
import { plainAddress } from '../lib/address.ts';

/**
 * X-Forwarded-For may contain entries that are no addresses. A connection that is closed has no address any more:
 * the result is empty.
 */
export function clientAddress(request: FastifyRequest): string {
  const { remoteAddress } = request.socket;
  if (remoteAddress === undefined) return '';
  if (request.headers['x-forwarded-for'] === undefined) return plainAddress(remoteAddress);
  const addresses = (request.ips ?? [request.ip]).map(plainAddress);
  return addresses.findLast((address) => isIP(address) !== 0) ?? '';
}
