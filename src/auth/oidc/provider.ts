// The identity provider: an OpenID Connect issuer, called through openid-client.
import * as library from 'openid-client';
import { ServiceError } from '../../lib/errors.ts';
import { readBody } from '../../lib/read-body.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { type Attempt, derive } from './attempt.ts';
import { type ClaimRules, accountOf, isComplete } from './claims.ts';

const timeoutSeconds = 10;
const maxAnswerBytes = 1024 ** 2;
/** Endpoints change rarely. The library reads new signing keys when it needs them. */
const discoverEveryMs = 3_600_000;
const discoverAgainMs = 2_000;

type ProviderSettings = {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined: a public client. */
  readonly clientSecret: string | undefined;
  readonly scopes: string;
  readonly claims: ClaimRules;
};

type ProviderOptions = ProviderSettings & {
  /** Called for every failure of the provider. The details contain no token. */
  readonly onFailure: (failure: ProviderFailure) => void;
  readonly runtime: Pick<Runtime, 'now'>;
};

type ProviderFailure = Readonly<Record<'message' | 'code' | 'error' | 'reason', string>>;

/** A user whom the provider has authenticated. */
export type ProvidedUser = {
  readonly subject: { readonly issuer: string; readonly id: string };
  /** Undefined: the user has no role here. */
  readonly account: ReturnType<typeof accountOf>;
};

export class IdentityProvider {
  readonly #options: ProviderOptions;
  #known: { readonly until: number; readonly configuration: Promise<library.Configuration> } | undefined;

  constructor(options: ProviderOptions) {
    this.#options = options;
  }

  /** Where the browser signs in. */
  async authorizationUrl(redirectUri: string, attempt: Attempt): Promise<string> {
    const configuration = await this.#connect();
    const build = async () =>
      library.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: this.#options.scopes,
        state: derive(attempt, 'state'),
        nonce: derive(attempt, 'nonce'),
        code_challenge: await library.calculatePKCECodeChallenge(derive(attempt, 'verifier')),
        code_challenge_method: 'S256',
      }).href;
    return this.#call(build, alwaysUnavailable);
  }

  /** `callback` is the address that the provider has sent the browser to. */
  async authenticate(callback: URL, attempt: Attempt): Promise<ProvidedUser> {
    const { claims: rules } = this.#options;
    const configuration = await this.#connect();
    const tokens = await this.#call(() =>
      library.authorizationCodeGrant(configuration, callback, {
        expectedState: derive(attempt, 'state'),
        expectedNonce: derive(attempt, 'nonce'),
        pkceCodeVerifier: derive(attempt, 'verifier'),
        idTokenExpected: true,
      }),
    );
    const idToken = tokens.claims();
    if (!idToken || !isSubject(idToken.sub)) throw failureOf('wrong-credentials');
    const { iss: issuer, sub: id } = idToken;
    // Many providers keep id tokens small.
    const needsUserInfo =
      !isComplete(idToken, rules) && configuration.serverMetadata().userinfo_endpoint !== undefined;
    const more = needsUserInfo
      ? await this.#call(() => library.fetchUserInfo(configuration, tokens.access_token, id))
      : {};
    return { account: accountOf({ ...more, ...idToken }, rules), subject: { issuer, id } };
  }

  /** Where the browser signs out. Undefined if the provider has no such page. */
  async signOutUrl(returnTo: string): Promise<string | undefined> {
    const configuration = await this.#connect();
    if (configuration.serverMetadata().end_session_endpoint === undefined) return undefined;
    const build = () =>
      library.buildEndSessionUrl(configuration, { post_logout_redirect_uri: returnTo }).href;
    return this.#call(build, alwaysUnavailable);
  }

  /** All callers wait for the same discovery. What is known stays in use if a later discovery fails. */
  #connect(): Promise<library.Configuration> {
    const { runtime } = this.#options;
    const known = this.#known;
    if (known && runtime.now() < known.until) return known.configuration;
    const discovered = this.#call(() => this.#discover(), alwaysUnavailable);
    const configuration = discovered.catch(() => {
      // Without this, each sign-in would call a provider that is unavailable.
      this.#known = { until: runtime.now() + discoverAgainMs, configuration };
      return known?.configuration ?? discovered;
    });
    this.#known = { until: runtime.now() + discoverEveryMs, configuration };
    return configuration;
  }

  async #discover(): Promise<library.Configuration> {
    const { issuer, clientId, clientSecret } = this.#options;
    const isPlain = new URL(issuer).protocol === 'http:';
    const configuration = await library.discovery(
      new URL(issuer),
      clientId,
      undefined,
      clientSecret === undefined ? library.None() : secretSender(clientSecret),
      {
        timeout: timeoutSeconds,
        [library.customFetch]: fetchLimited,
        // Without the second one, the library trusts the connection to the provider and ignores signatures.
        execute: [
          // oxlint-disable-next-line typescript/no-deprecated -- only for issuers on this machine
          ...(isPlain ? [library.allowInsecureRequests] : []),
          library.enableNonRepudiationChecks,
        ],
      },
    );
    // The library does not compare them for providers that have one issuer for the tenants of all customers.
    if (new URL(configuration.serverMetadata().issuer).href !== new URL(issuer).href)
      throw new Error('the metadata name another issuer');
    return configuration;
  }

  async #call<T>(work: () => T | Promise<T>, kindOf = kindOfFailure): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const failure = describe(error);
      this.#options.onFailure(failure);
      throw failureOf(kindOf(failure));
    }
  }
}

/** Without a limit, an answer without an end would fill the memory. */
const fetchLimited: library.CustomFetch = async (url, options) => {
  const response = await fetch(url, options as RequestInit);
  return new Response(response.body && (await readBody(response.body, maxAnswerBytes)), response);
};

/** Sends the secret in the way that the provider supports. Without metadata it supports the header (RFC 8414). */
function secretSender(secret: string): library.ClientAuth {
  const inBody = library.ClientSecretPost(secret);
  const inHeader = library.ClientSecretBasic(secret);
  return (server, ...request) => {
    const supported = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const send = supported.includes('client_secret_basic') ? inHeader : inBody;
    send(server, ...request);
  };
}

/** What openid-client throws for an answer that proves nothing: a bad id token, or one of another issuer. */
const badProofs: readonly string[] = [
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
];

const refusals = new Map<string, 'forbidden' | 'wrong-credentials'>([
  ['access_denied', 'forbidden'],
  ['login_required', 'forbidden'],
  ['consent_required', 'forbidden'],
  ['interaction_required', 'forbidden'],
  // The code was used before, or is too old.
  ['invalid_grant', 'wrong-credentials'],
]);

function kindOfFailure({ code, error }: ProviderFailure): keyof typeof texts {
  return badProofs.includes(code) ? 'wrong-credentials' : (refusals.get(error) ?? 'unavailable');
}

const alwaysUnavailable = () => 'unavailable' as const;

/** OpenID Connect Core 1.0, section 2: at most 255 ASCII characters. */
const isSubject = (sub: string) => /^[\x21-\x7e]{1,255}$/.test(sub);

/** Errors of the library may contain whole answers of the provider, with tokens. */
function describe(thrown: unknown): ProviderFailure {
  const { code, error, message, cause } = thrown as Thrown;
  const textOf = (value: unknown) => (typeof value === 'string' ? value.slice(0, 256) : '');
  // The error of a connection, such as ECONNREFUSED, or the name of a claim.
  const reason = textOf(cause?.cause?.claim) || textOf(cause?.code);
  return { message: textOf(message), code: textOf(code), error: textOf(error), reason };
}

type Thrown = {
  readonly code?: unknown;
  readonly error?: unknown;
  readonly message?: unknown;
  readonly cause?: { readonly code?: unknown; readonly cause?: { readonly claim?: unknown } };
};

const texts = {
  forbidden: 'The identity provider refused the sign-in.',
  'wrong-credentials': 'The answer of the identity provider is not valid. Sign in again.',
  unavailable: 'The identity provider is unavailable. Try again later.',
};

function failureOf(kind: keyof typeof texts): ServiceError {
  return new ServiceError(kind, texts[kind]);
}
