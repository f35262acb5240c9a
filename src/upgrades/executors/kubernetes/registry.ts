// Looks up one image in its registry, with the OCI distribution API.
import { RequestError } from '../../../lib/request-error.ts';
import type { RegistryReference } from './image.ts';
import type { RegistryCredentials } from './registry-auth.ts';
import type { RegistryClient } from './registry-client.ts';
import { authorize, parseChallenges } from './registry-token.ts';

export type Lookup =
  | { readonly state: 'found' | 'missing' }
  /** Nothing is known about the image. */
  | { readonly state: 'unknown'; readonly cause: string };

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
    return { state: 'unknown', cause: `${host} answers ${status}${explain(status, credentials)}.` };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { state: 'unknown', cause: error.message };
  }
}

function explain(status: number, credentials: RegistryCredentials | undefined): string {
  if (status === 401 || status === 403)
    return credentials
      ? ' to the credentials of REGISTRY_AUTH_FILE'
      : ', and REGISTRY_AUTH_FILE has no credentials for it';
  return status >= 300 && status < 400 ? ', a redirect, which Steward does not follow' : '';
}
