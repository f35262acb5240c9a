// Every address that clients see: PUBLIC_URL and the configured paths.

/** `publicUrl` is undefined where it follows from the port. */
export type UrlSettings = {
  readonly publicUrl: string | undefined;
  readonly adminPath: string;
  readonly catalogPath: string;
  readonly tokensPath: string;
};

export class PublicUrls {
  readonly #settings: UrlSettings;
  readonly #boundPort: () => number;

  /** The port is known only once the server listens. */
  constructor(settings: UrlSettings, boundPort: () => number) {
    this.#settings = settings;
    this.#boundPort = boundPort;
  }

  /** PUBLIC_URL, without a trailing slash. */
  get base(): string {
    return this.#settings.publicUrl ?? `http://localhost:${this.#boundPort()}`;
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
    return this.linkBase + this.#settings.adminPath || '/';
  }

  /** The address of the catalog, which the specification calls `{base_url}`. */
  get catalog(): string {
    return this.base + this.#settings.catalogPath;
  }

  /** The address of the catalog's pages in the admin tree. */
  get catalogPages(): string {
    return `${this.base}${this.#settings.adminPath}/services`;
  }

  get tokenService(): string {
    return `${this.base}${this.#settings.tokensPath}/generateToken`;
  }

  /** The path of an operation of the token service. */
  tokensPath(operation: 'generateToken' | 'revokeToken'): string {
    return `${this.linkBase}${this.#settings.tokensPath}/${operation}`;
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
