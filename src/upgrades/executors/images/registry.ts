// Looks up one image in its registry, with the OCI distribution API: the request, the answer to the challenge of the
// registry, and the file with the credentials, in the format of `docker login`.
import { readFile } from 'node:fs/promises';
import { isJsonObject, parseJson } from '../../../lib/json.ts';
import { RequestError } from '../../../lib/request-error.ts';
import { type RegistryReference, hostOfRegistry, isRegistryHost } from './image.ts';
import type { RegistryClient } from './registry-client.ts';

export type Lookup =
  | { readonly state: 'found' | 'missing' }
  /** Nothing is known about the image. */
  | { readonly state: 'unknown'; readonly cause: string; readonly isTransient: boolean };

type LookupOptions = {
  readonly client: RegistryClient;
  readonly credentials: RegistryCredentials | undefined;
  readonly stopping: AbortSignal;
};

const manifestTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

/**
 * Believes a 200 to a request by digest: a registry finds manifests by the digest of their content, and nodes verify
 * it. Sends the request again with an authorization if the registry asks for one.
 */
export async function lookUpImage(
  { host, repository, version }: RegistryReference,
  { client, credentials, stopping }: LookupOptions,
): Promise<Lookup> {
  const scheme = client.isInsecure(new URL(`http://${host}`).host) ? 'http' : 'https';
  const url = new URL(`${scheme}://${host}/v2/${repository}/manifests/${version}`);
  const ask = (authorization?: string) => {
    const headers = { accept: manifestTypes, ...(authorization !== undefined && { authorization }) };
    return client.send({ method: 'HEAD', url, headers }, stopping);
  };
  try {
    const first = await ask();
    let { status } = first;
    if (status === 401) {
      const challenges = parseChallenges(first.headers['www-authenticate']);
      const authorization = await authorize({ client, host, repository, challenges, credentials, stopping });
      if (authorization !== undefined) ({ status } = await ask(authorization));
    }
    if (status === 200) return { state: 'found' };
    if (status === 404) return { state: 'missing' };
    const isTransient = status === 429 || status >= 500;
    return {
      state: 'unknown',
      cause: `${host} answers ${status}${explain(status, credentials)}.`,
      isTransient,
    };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { state: 'unknown', cause: error.message, isTransient: true };
  }
}

function explain(status: number, credentials: RegistryCredentials | undefined): string {
  if (status === 401 || status === 403)
    return credentials
      ? ' to the credentials of REGISTRY_AUTH_FILE'
      : ', and REGISTRY_AUTH_FILE has no credentials for it';
  return status >= 300 && status < 400 ? ', a redirect, which Steward does not follow' : '';
}

type Challenge = { readonly scheme: string; readonly parameters: ReadonlyMap<string, string> };

type AuthorizationRequest = LookupOptions &
  Pick<RegistryReference, 'host' | 'repository'> & { readonly challenges: readonly Challenge[] };

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
async function authorize(request: AuthorizationRequest): Promise<string | undefined> {
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
  const answer = parseJson(body.toString());
  const value = isJsonObject(answer) ? (answer.token ?? answer.access_token) : undefined;
  // Other characters could not be sent in a header.
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value) ? value : undefined;
}

type RegistryCredentials = { readonly username: string; readonly password: string };

/** By host, with the port if it is not the default. */
export type RegistryAuth = ReadonlyMap<string, RegistryCredentials>;

type AuthResult = { readonly auth: RegistryAuth } | { readonly problems: readonly string[] };

export async function readRegistryAuth(path: string | undefined): Promise<AuthResult> {
  if (path === undefined) return { auth: new Map() };
  try {
    return parseRegistryAuth(await readFile(path, 'utf8'));
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    return { problems: [`REGISTRY_AUTH_FILE cannot be read: ${code}.`] };
  }
}

/** The problems quote no value of the file: it contains passwords. */
export function parseRegistryAuth(text: string): AuthResult {
  const file = parseJson(text);
  if (!isJsonObject(file))
    return {
      problems: [
        'REGISTRY_AUTH_FILE must be a JSON object as docker login writes it: {"auths":{"registry.example.com":{"auth":"…"}}}.',
      ],
    };
  const problems = ['credsStore', 'credHelpers']
    .filter((name) => !isEmpty(file[name]))
    .map(
      (name) =>
        `REGISTRY_AUTH_FILE: ${name} names credential helpers, which Steward does not run; write the credentials into auths.`,
    );
  const auths = file.auths ?? {};
  if (!isJsonObject(auths))
    return {
      problems: [...problems, 'REGISTRY_AUTH_FILE: auths must be an object, with an entry for each host.'],
    };
  const auth = new Map<string, RegistryCredentials>();
  for (const [key, entry] of Object.entries(auths)) {
    const host = hostOf(key);
    const credentials = readCredentials(entry);
    if (host === undefined)
      problems.push(`REGISTRY_AUTH_FILE: auths["${key}"] must be a host, such as registry.example.com:5000.`);
    else if (typeof credentials === 'string')
      problems.push(`REGISTRY_AUTH_FILE: auths["${key}"] ${credentials}.`);
    else auth.set(host, credentials);
  }
  return problems.length > 0 ? { problems } : { auth };
}

/** `docker login` also writes addresses such as `https://registry.example.com/v1/`. */
function hostOf(key: string): string | undefined {
  const host = key
    .toLowerCase()
    .replace(/^https?:\/\//, '')
    .replace(/(?:\/v[12])?\/?$/, '');
  return isRegistryHost(host) ? hostOfRegistry(host) : undefined;
}

function readCredentials(entry: unknown): RegistryCredentials | string {
  if (!isJsonObject(entry)) return 'must be an object';
  const { auth, username, password, identitytoken, registrytoken } = entry;
  if (identitytoken !== undefined || registrytoken !== undefined)
    return 'has an identitytoken or registrytoken, which Steward does not use; write a user name and a password';
  if (typeof auth === 'string' && auth !== '') {
    const decoded = Buffer.from(auth, 'base64').toString();
    const colon = decoded.indexOf(':');
    return colon > 0
      ? { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) }
      : 'must have an auth that is the base64 form of user:password';
  }
  return typeof username === 'string' && username !== '' && typeof password === 'string'
    ? { username, password }
    : 'must have auth, or username and password';
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || (isJsonObject(value) && Object.keys(value).length === 0);
}
