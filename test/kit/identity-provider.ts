// A real identity provider in the test process: the package oidc-provider with users that a test chooses.
import { type KeyObject, createSign, generateKeyPairSync } from 'node:crypto';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';

type Claims = Readonly<Record<string, unknown>>;

export const client = { id: 'steward', secret: 'a client secret for tests' };

/** Answers of the token endpoint, which a hostile provider changes. */
type TokenAnswer = { id_token?: string; access_token?: string; error?: string };

export type IdentityProvider = Awaited<ReturnType<typeof startProvider>>;

type ProviderOptions = {
  /** The addresses of the servers that may use the provider. */
  readonly servers?: readonly string[];
  /** Whether id tokens have all claims. Otherwise userinfo has them. */
  readonly hasLargeTokens?: boolean;
  readonly authMethod?: 'client_secret_basic' | 'client_secret_post' | 'none';
  /** Whether the provider shows a form, for a browser. Otherwise users sign in at once. */
  readonly hasForm?: boolean;
  /** Default: any free one. */
  readonly port?: number;
};

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
export const foreignKeys = generateKeyPairSync('rsa', { modulusLength: 2048 });

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

export const readToken = (token = ''): Claims =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Claims;

/** Signs the claims; by default with the key of the provider. */
export function signToken(claims: Claims, key: KeyObject = keys.privateKey): string {
  const text = `${encode({ alg: 'RS256', kid: 'test' })}.${encode(claims)}`;
  return `${text}.${createSign('sha256').update(text).sign(key, 'base64url')}`;
}

export async function startProvider({
  servers = ['http://localhost:8080'],
  hasLargeTokens = false,
  authMethod = 'client_secret_basic',
  hasForm = false,
  port = 0,
}: ProviderOptions = {}) {
  const http = createServer();
  await new Promise<void>((resolve) => void http.listen(port, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const state = {
    issuer,
    /** The claims of the users, by their subjects. */
    users: new Map<string, Claims>([['1', { preferred_username: 'ann', groups: ['operations'] }]]),
    /** Who signs in next. Undefined: the user refuses. */
    subject: '1' as string | undefined,
    changeTokens: (answer: TokenAnswer): unknown => answer,
    /** The status of the token endpoint. Undefined: that of the provider. */
    tokenStatus: undefined as number | undefined,
    /** The number of requests to each path. */
    requests: new Map<string, number>(),
    stop: () => close(http),
  };
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: client.id,
        ...(authMethod !== 'none' && { client_secret: client.secret }),
        token_endpoint_auth_method: authMethod,
        redirect_uris: servers.map((server) => `${server}/tokens/oidc/callback`),
        post_logout_redirect_uris: servers.map((server) => `${server}/tokens/generateToken`),
      },
    ],
    jwks: { keys: [{ ...keys.privateKey.export({ format: 'jwk' }), kid: 'test', alg: 'RS256', use: 'sig' }] },
    cookies: { keys: ['a cookie key for tests'] },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: true, logoutSource } },
    clientAuthMethods: [authMethod],
    conformIdTokenClaims: !hasLargeTokens,
    claims: {
      openid: ['sub'],
      profile: ['preferred_username', 'groups', 'realm_access'],
      email: ['email', 'email_verified'],
    },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ ...state.users.get(id), sub: id }),
    }),
    // Nobody is asked for a consent.
    loadExistingGrant: async ({ oidc }: { oidc: { session: { accountId: string } } }) => {
      const grant = new provider.Grant({ accountId: oidc.session.accountId, clientId: client.id });
      grant.addOIDCScope('openid profile email');
      await grant.save();
      return grant;
    },
    // The defaults warn that they are for development only.
    ttl: {
      Grant: 600,
      Interaction: 600,
      Session: 600,
      AccessToken: 600,
      AuthorizationCode: 60,
      IdToken: 600,
    },
  });
  provider.use(async (context, next) => {
    state.requests.set(context.path, (state.requests.get(context.path) ?? 0) + 1);
    await next();
    if (context.path !== '/token') return;
    context.body = state.changeTokens(context.body as TokenAnswer);
    context.status = state.tokenStatus ?? context.status;
  });
  const answer = provider.callback();
  http.on('request', (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return answer(request, response);
    if (hasForm && request.method === 'GET')
      return response
        .setHeader('content-type', 'text/html')
        .end(
          '<!doctype html><title>Provider</title><form method="post"><button>Sign in as Ann</button></form>',
        );
    const { subject } = state;
    const result = subject === undefined ? { error: 'access_denied' } : { login: { accountId: subject } };
    return void provider.interactionFinished(request, response, result);
  });
  return state;
}

/** The page of the package loads a font of another site. */
function logoutSource(context: { body: unknown }, form: string): void {
  context.body = `<!doctype html><title>Provider</title>${form}
    <button form="op.logoutForm" name="logout" value="yes">End the session</button>`;
}

function close(http: Server): Promise<void> {
  http.closeAllConnections();
  return new Promise((resolve) => http.close(() => resolve()));
}

/** A browser at the provider: follows its redirects and keeps its cookies. */
export class ProviderVisitor {
  readonly #cookies = new Map<string, string>();

  /** Returns the address of the callback that the provider sends the browser to. */
  async visit(href: string, issuer: string): Promise<URL> {
    for (let at = new URL(href), hops = 0; hops < 10; hops += 1) {
      if (at.origin !== issuer) return at;
      const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const response = await fetch(at, { redirect: 'manual', headers: { cookie } });
      for (const set of response.headers.getSetCookie()) {
        const [name = '', value = ''] = set.split(';', 1)[0]?.split('=') ?? [];
        this.#cookies.set(name, value);
      }
      const location = response.headers.get('location');
      if (location === null) throw new Error(`${response.status} at ${at.href}: ${await response.text()}`);
      at = new URL(location, at);
    }
    throw new Error('The provider redirects for ever.');
  }
}
