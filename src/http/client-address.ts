// The address of the client, in one spelling.
import type { FastifyRequest } from 'fastify';
import { isIP } from 'node:net';
import { plainAddress } from '../lib/address.ts';

/** The last address that a trusted proxy vouches for. An entry of X-Forwarded-For that is no address does not count. */
export function clientAddress(request: FastifyRequest): string {
  const addresses = (request.ips ?? [request.ip]).map(plainAddress);
  return addresses.findLast((address) => isIP(address) !== 0) ?? '';
}
