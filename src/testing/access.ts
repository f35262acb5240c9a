// Who may call /control: programs on this machine and pages of this server, with the token if one is configured.
import type { FastifyRequest } from 'fastify';
import { isLoopbackHost } from '../lib/address.ts';
import { bearerToken } from '../lib/caller.ts';
import { ServiceError } from '../lib/errors.ts';
import { isSameSecret } from '../lib/secret.ts';

export type ControlAccess = { readonly publicUrl: () => string; readonly token: string | undefined };

/**
 * A page of another site could otherwise control the server through the browser, also under a name that resolves to
 * this machine.
 */
export function checkAccess(
  { headers }: Pick<FastifyRequest, 'headers'>,
  { publicUrl, token }: ControlAccess,
): void {
  const { host = '', origin, 'sec-fetch-site': site } = headers;
  const own = new URL(publicUrl());
  const hostname = hostnameOf(host);
  if (hostname === undefined || !(isLoopbackHost(hostname) || hostname === own.hostname))
    throw forbidden('Host', `must be a loopback address or ${own.hostname}, the host of PUBLIC_URL.`);
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw forbidden('Sec-Fetch-Site', 'must be same-origin or none.');
  if (origin !== undefined && ![own.origin, `http://${host}`, `https://${host}`].includes(origin))
    throw forbidden('Origin', `must be that of this server.`);
  if (token === undefined) return refuseProxied(headers);
  const given = bearerToken(headers.authorization);
  if (given === undefined)
    throw new ServiceError('token-missing', 'Token required.', { problems: [tokenProblem] });
  if (!isSameSecret(given, token))
    throw new ServiceError('token-invalid', 'Invalid token.', { problems: [tokenProblem] });
}

/** Any site could send a form without a header that names the origin, if a browser sent one. */
export function checkFormOrigin({ headers }: Pick<FastifyRequest, 'headers'>): void {
  if (headers.origin === undefined && headers['sec-fetch-site'] !== 'same-origin')
    throw forbidden('Origin', 'must be given with a form.');
}

const tokenProblem = {
  field: 'Authorization',
  message: 'must be Bearer and the value of TEST_CONTROL_TOKEN.',
};

/** Behind a proxy, every client seems to be on this machine. */
function refuseProxied(headers: FastifyRequest['headers']): void {
  const header = Object.keys(headers).find((name) => /^(x-forwarded-.*|forwarded)$/.test(name));
  if (header !== undefined)
    throw forbidden(header, 'must not be given unless the server has a TEST_CONTROL_TOKEN.');
}

function hostnameOf(host: string): string | undefined {
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : undefined;
}

function forbidden(field: string, message: string): ServiceError {
  return new ServiceError('forbidden', 'The control API refuses this request.', {
    problems: [{ field, message }],
  });
}
