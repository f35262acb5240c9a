// Reads the credentials for registries from a file in the format of `docker login`.
import { readFile } from 'node:fs/promises';
import { isRegistryHost } from './image.ts';

export type RegistryCredentials = { readonly username: string; readonly password: string };

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
  const file = parseObject(text);
  if (!file)
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
  if (!isObject(auths))
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
  return isRegistryHost(host) ? host : undefined;
}

function readCredentials(entry: unknown): RegistryCredentials | string {
  if (!isObject(entry)) return 'must be an object';
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

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || (isObject(value) && Object.keys(value).length === 0);
}
