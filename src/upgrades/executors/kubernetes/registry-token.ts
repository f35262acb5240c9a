// Answers the challenge of a registry: with the credentials themselves, or with a token that its token service
// issues for them.
import { RequestError } from '../../../lib/request-error.ts';
import type { RegistryCredentials } from './registry-auth.ts';
import type { RegistryClient } from './registry-client.ts';

type Challenge = { readonly scheme: string; readonly parameters: ReadonlyMap<string, string> };

type AuthorizationRequest = {
  readonly client: RegistryClient;
  readonly host: string;
  readonly repository: string;
  readonly challenges: readonly Challenge[];
  readonly credentials: RegistryCredentials | undefined;
  readonly stopping: AbortSignal;
};

const maxHeader = 4096;

/** The value of a `WWW-Authenticate` header. */
export function parseChallenges(header = ''): Challenge[] {
  const challenges: { scheme: string; parameters: Map<string, string> }[] = [];
  const parts = /([A-Za-z][A-Za-z0-9_-]*)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/g;
  for (const [, name = '', quoted, plain] of header.slice(0, maxHeader).matchAll(parts)) {
    const value = quoted?.replace(/\\(.)/g, '$1') ?? plain;
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: new Map() });
    else challenges.at(-1)?.parameters.set(name.toLowerCase(), value);
  }
  return challenges;
}

/** The `Authorization` header for the registry, or undefined if there are no credentials that it could accept. */
export async function authorize(request: AuthorizationRequest): Promise<string | undefined> {
  const { challenges, credentials } = request;
  const bearer = challenges.find(({ scheme }) => scheme === 'bearer');
  if (bearer) return `Bearer ${await fetchToken(request, bearer)}`;
  return credentials && challenges.some(({ scheme }) => scheme === 'basic') ? basic(credentials) : undefined;
}

function basic({ username, password }: RegistryCredentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** Asks for the right to pull this repository and nothing else, whatever scope the registry names. */
async function fetchToken(
  { client, host, repository, credentials, stopping }: AuthorizationRequest,
  { parameters }: Challenge,
): Promise<string> {
  const url = readRealm(parameters.get('realm') ?? '', client);
  if (!url)
    throw new RequestError(
      `${host} names a token service that is not an https address, or plain http of a host in REGISTRY_INSECURE.`,
    );
  const service = parameters.get('service');
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('scope', `repository:${repository}:pull`);
  const response = await client.send(
    {
      method: 'GET',
      url,
      headers: { accept: 'application/json', ...(credentials && { authorization: basic(credentials) }) },
    },
    stopping,
  );
  const name = `${url.host}, the token service of ${host},`;
  if (response.status !== 200) throw new RequestError(`${name} answers ${response.status}.`);
  const token = readToken(response.body);
  if (token === undefined) throw new RequestError(`${name} returns no valid token.`);
  return token;
}

function readRealm(realm: string, client: RegistryClient): URL | undefined {
  const url = URL.canParse(realm) ? new URL(realm) : undefined;
  if (url?.username !== '' || url.password !== '') return undefined;
  return url.protocol === 'https:' || (url.protocol === 'http:' && client.isInsecure(url.host))
    ? url
    : undefined;
}

function readToken(body: Buffer): string | undefined {
  try {
    const { token, access_token: accessToken } = JSON.parse(body.toString()) as Record<string, unknown>;
    const value = token ?? accessToken;
    // Other characters could not be sent in a header.
    return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
