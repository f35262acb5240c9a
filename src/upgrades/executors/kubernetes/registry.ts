// Looks up one image in its registry, with the OCI distribution API.
import { createHash } from 'node:crypto';
import { RequestError } from '../../../lib/request-error.ts';
import { type RegistryReference, isImageDigest } from './image.ts';
import type { RegistryCredentials } from './registry-auth.ts';
import { LateAnswerError, type RegistryClient, type RegistryResponse } from './registry-client.ts';
import { authorize, parseChallenges } from './registry-token.ts';

export type Lookup =
  | { readonly state: 'found' }
  /** `tagDigest` is what the tag of the reference points to, if the reference has a digest too. */
  | { readonly state: 'missing'; readonly tagDigest: string | undefined }
  | { readonly state: 'different'; readonly digest: string }
  /** Nothing is known about the image. If `isLasting`, further requests to this host would end in the same way. */
  | { readonly state: 'unknown'; readonly cause: string; readonly isLasting: boolean };

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

const maxManifestBytes = 4 * 1024 * 1024;

export async function lookUpImage(reference: RegistryReference, options: LookupOptions): Promise<Lookup> {
  try {
    return await new ImageLookup(reference, options).run();
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { state: 'unknown', cause: error.message, isLasting: error instanceof LateAnswerError };
  }
}

class ImageLookup {
  readonly #reference: RegistryReference;
  readonly #options: LookupOptions;
  #authorization: string | undefined;

  constructor(reference: RegistryReference, options: LookupOptions) {
    this.#reference = reference;
    this.#options = options;
  }

  async run(): Promise<Lookup> {
    const { tag = '', digest } = this.#reference;
    const head = await this.#ask('HEAD', digest ?? tag);
    if (head.status === 404) return { state: 'missing', tagDigest: await this.#findTagDigest() };
    if (head.status !== 200) return this.#unknown(head.status);
    return digest === undefined ? { state: 'found' } : this.#compare(digest, head);
  }

  /** Without a digest of the same kind in the answer, the manifest itself is read and hashed. */
  async #compare(wanted: string, head: RegistryResponse): Promise<Lookup> {
    const [algorithm = ''] = wanted.split(':', 1);
    let digest = digestOf(head);
    if (digest?.startsWith(`${algorithm}:`) !== true) {
      const { status, body } = await this.#ask('GET', wanted);
      if (status !== 200) return this.#unknown(status);
      digest = `${algorithm}:${createHash(algorithm).update(body).digest('hex')}`;
    }
    return digest === wanted ? { state: 'found' } : { state: 'different', digest };
  }

  /** Helps to find out which of tag and digest is wrong. The image is missing, whatever comes of this. */
  async #findTagDigest(): Promise<string | undefined> {
    const { tag, digest } = this.#reference;
    if (tag === undefined || digest === undefined) return undefined;
    try {
      const head = await this.#ask('HEAD', tag);
      return head.status === 200 ? digestOf(head) : undefined;
    } catch (error) {
      if (error instanceof RequestError) return undefined;
      throw error;
    }
  }

  /** Sends the request again with an authorization if the registry asks for one. */
  async #ask(method: 'GET' | 'HEAD', version: string): Promise<RegistryResponse> {
    const { client, credentials, stopping } = this.#options;
    const { host, repository } = this.#reference;
    const first = await this.#send(method, version);
    if (first.status !== 401 || this.#authorization !== undefined) return first;
    const challenges = parseChallenges(first.headers['www-authenticate']);
    this.#authorization = await authorize({ client, host, repository, challenges, credentials, stopping });
    return this.#authorization === undefined ? first : this.#send(method, version);
  }

  #send(method: 'GET' | 'HEAD', version: string): Promise<RegistryResponse> {
    const { client, stopping } = this.#options;
    const { host, repository } = this.#reference;
    const scheme = client.isInsecure(new URL(`http://${host}`).host) ? 'http' : 'https';
    return client.send(
      {
        method,
        url: new URL(`${scheme}://${host}/v2/${repository}/manifests/${version}`),
        headers: {
          accept: manifestTypes,
          ...(this.#authorization !== undefined && { authorization: this.#authorization }),
        },
        maxBytes: maxManifestBytes,
      },
      stopping,
    );
  }

  #unknown(status: number): Lookup {
    const { host } = this.#reference;
    const { credentials } = this.#options;
    const isRefused = status === 401 || status === 403;
    const reason = isRefused
      ? credentials
        ? ' to the credentials of REGISTRY_AUTH_FILE'
        : ', and REGISTRY_AUTH_FILE has no credentials for it'
      : status >= 300 && status < 400
        ? ', a redirect, which Steward does not follow'
        : '';
    // A registry that limits requests is not asked again, because that would extend the limit.
    return { state: 'unknown', cause: `${host} answers ${status}${reason}.`, isLasting: status === 429 };
  }
}

function digestOf({ headers }: RegistryResponse): string | undefined {
  const digest = headers['docker-content-digest'] ?? '';
  return isImageDigest(digest) ? digest : undefined;
}
