// The tokens that a request of either protocol carries: a bearer token, a token in a field, and the cookie of a
// browser's session.
import type { FastifyRequest } from 'fastify';
import { type Credentials, type Identify, type Identity, bearerToken } from '../lib/caller.ts';
import { ServiceError } from '../lib/errors.ts';
import { clientAddress } from './client-address.ts';

export const sessionCookie = 'steward_session';

declare module 'fastify' {
  interface FastifyInstance {
    /** The header that may carry a bearer token too, in lower case. */
    tokenHeader: string;
  }
}

export function bearerOf({ headers, server }: FastifyRequest): string | undefined {
  return bearerToken(headers.authorization) ?? bearerToken(headers[server.tokenHeader]?.toString());
}

export function credentialsOf(request: FastifyRequest, field: string | undefined): Credentials {
  return {
    bearer: bearerOf(request),
    field: field?.trim() || undefined,
    cookie: cookieOf(request, sessionCookie),
    readsOnly: request.method !== 'POST',
    address: () => clientAddress(request),
    referer: request.headers.referer,
  };
}

/** The session of the browser counts here even where the request needs none, or may not use it. */
export async function identifySession(
  request: FastifyRequest,
  identify: Identify,
): Promise<Identity | undefined> {
  const credentials = credentialsOf(request, undefined);
  if (credentials.bearer === undefined && credentials.cookie === undefined) return undefined;
  try {
    return await identify({ ...credentials, readsOnly: true });
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

export function cookieAttributes(isHttps: boolean): string {
  return `Path=/; HttpOnly; SameSite=Strict${isHttps ? '; Secure' : ''}`;
}

export function sessionCookieOf(token: string, isHttps: boolean): string {
  return `${sessionCookie}=${token}; ${cookieAttributes(isHttps)}`;
}

export function cookieOf({ headers }: Pick<FastifyRequest, 'headers'>, name: string): string | undefined {
  const pair = headers.cookie?.split(';').find((part) => part.trim().startsWith(`${name}=`));
  return pair?.trim().slice(name.length + 1) || undefined;
}
