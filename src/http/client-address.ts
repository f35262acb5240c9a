// The address of the client, in one spelling.
import type { FastifyRequest } from 'fastify';
import { isIP } from 'node:net';
import { plainAddress } from '../lib/address.ts';

/** X-Forwarded-For may contain entries that are no addresses. */
export function clientAddress(request: FastifyRequest): string {
  if (request.headers['x-forwarded-for'] === undefined)
    return plainAddress(request.socket.remoteAddress ?? '');
  const addresses = (request.ips ?? [request.ip]).map(plainAddress);
  return addresses.findLast((address) => isIP(address) !== 0) ?? '';
}
