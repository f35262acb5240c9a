// Who a session belongs to, where a request needs none: a refused token counts as no session, a defect does not.
import type { FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import { identifySession } from '../../src/http/credentials.ts';
import { ServiceError } from '../../src/lib/errors.ts';

const request = { method: 'GET', headers: { authorization: 'Bearer x' } } as unknown as FastifyRequest;

it('ignores a token that is refused', async () => {
  const refuse = () => Promise.reject(new ServiceError('token-invalid', 'Invalid token.'));
  expect(await identifySession(request, refuse)).toBeUndefined();
});

it('reports every other error', async () => {
  const fail = () => Promise.reject(new TypeError('a defect'));
  await expect(identifySession(request, fail)).rejects.toThrow('a defect');
});
