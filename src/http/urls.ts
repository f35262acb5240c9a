// Every address that clients see: PUBLIC_URL and the configured paths.
import type { Config } from '../config.ts';

export class PublicUrls {
  readonly #config: Pick<Config, 'publicUrl' | 'adminPath' | 'catalogPath' | 'tokensPath'>;
  readonly #boundPort: () => number;

  /** The port is known only once the server listens. */
  constructor(
    config: Pick<Config, 'publicUrl' | 'adminPath' | 'catalogPath' | 'tokensPath'>,
    boundPort: () => number,
  ) {
    this.#config = config;
    this.#boundPort = boundPort;
  }

  /** PUBLIC_URL, without a trailing slash. */
  get base(): string {
    return this.#config.publicUrl ?? `http://localhost:${this.#boundPort()}`;
  }

  /** The path of PUBLIC_URL, which every link begins with. */
  get linkBase(): string {
    return new URL(this.base).pathname.replace(/\/$/, '');
  }

  get isHttps(): boolean {
    return this.base.startsWith('https:');
  }

  /** The path of the admin root. */
  get homePath(): string {
    return this.linkBase + this.#config.adminPath || '/';
  }

  /** The address of the catalog, which the specification calls `{base_url}`. */
  get catalog(): string {
    return this.base + this.#config.catalogPath;
  }

  /** The address of the catalog's pages in the admin tree. */
  get catalogPages(): string {
    return `${this.base}${this.#config.adminPath}/services`;
  }

  get tokenService(): string {
    return `${this.base}${this.#config.tokensPath}/generateToken`;
  }

  /** The path of an operation of the token service. */
  tokensPath(operation: 'generateToken' | 'revokeToken'): string {
    return `${this.linkBase}${this.#config.tokensPath}/${operation}`;
  }

  /** The path of a page beneath `prefix`. */
  path(prefix: string, segments: readonly string[]): string {
    return [this.linkBase + prefix, ...segments.map(encodeURIComponent)].join('/') || '/';
  }

  /** The same as an absolute address that can stand between single quotes in a shell. */
  shellUrl(prefix: string, segments: readonly string[]): string {
    return new URL(this.path(prefix, segments), this.base).href.replaceAll("'", '%27');
  }
}
