// Every address that clients see: PUBLIC_URL and the configured paths. Links between pages are paths, so that a browser stays at the host
// whose session it has.

type UrlSettings = {
  readonly PUBLIC_URL?: string | undefined;
  readonly ADMIN_PATH: string;
  readonly CATALOG_PATH: string;
  readonly TOKENS_PATH: string;
};

export class PublicUrls {
  readonly #settings: UrlSettings;
  readonly #boundPort: () => number;

  constructor(settings: UrlSettings, boundPort: () => number) {
    this.#settings = settings;
    this.#boundPort = boundPort;
  }

  get base(): string {
    return this.#settings.PUBLIC_URL ?? `http://localhost:${this.#boundPort()}`;
  }

  get linkBase(): string {
    return new URL(this.base).pathname.replace(/\/$/, '');
  }

  get isHttps(): boolean {
    return this.base.startsWith('https:');
  }

  get homePath(): string {
    return this.linkBase + this.#settings.ADMIN_PATH || '/';
  }

  get catalog(): string {
    return this.base + this.#settings.CATALOG_PATH;
  }

  get catalogPagePath(): string {
    return this.linkBase + this.#settings.CATALOG_PATH || '/';
  }

  get servicesPath(): string {
    return `${this.linkBase}${this.#settings.ADMIN_PATH}/services`;
  }

  get admin(): string {
    return this.base + this.#settings.ADMIN_PATH;
  }

  get tokens(): string {
    return this.base + this.#settings.TOKENS_PATH;
  }

  get tokenService(): string {
    return `${this.tokens}/generateToken`;
  }

  tokensPath(
    path: 'generateToken' | 'revokeToken' | 'oidc' | 'oidc/start' | 'oidc/callback' | 'oidc/signOut',
  ): string {
    return `${this.linkBase}${this.#settings.TOKENS_PATH}/${path}`;
  }

  path(prefix: string, segments: readonly string[]): string {
    return [this.linkBase + prefix, ...segments.map(encodeURIComponent)].join('/') || '/';
  }

  /** The address stands between single quotes in a shell command. */
  shellUrl(prefix: string, segments: readonly string[]): string {
    return new URL(this.path(prefix, segments), this.base).href.replaceAll("'", '%27');
  }
}
