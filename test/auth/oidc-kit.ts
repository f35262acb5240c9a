// Shared by the tests of sign-in at the identity provider: a provider, servers, and browsers that sign in.
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type IdentityProvider, ProviderVisitor, client, startProvider } from '../kit/identity-provider.ts';
import { noteSecret } from '../kit/leaks.ts';
import { type Server, type ServerOptions, startServer } from '../kit/server.ts';

/** The claims of the user with the subject 1. */
export const ann = { preferred_username: 'ann', groups: ['operations'] };

/** The provider of the file, and the server of the present test or of the file. */
export let provider: IdentityProvider;
export let server: Server;

export function useProvider({ hasOneServer = false } = {}): void {
  beforeAll(async () => {
    provider = await startProvider();
  });
  afterAll(() => provider.stop());
  beforeEach(() => {
    provider.subject = '1';
    provider.users.set('1', ann);
    provider.changeTokens = (answer) => {
      noteSecret(answer.access_token, answer.id_token);
      return answer;
    };
  });
  const [before, after] = hasOneServer ? [beforeAll, afterAll] : [beforeEach, afterEach];
  before(async () => {
    server = await startWith(provider);
  });
  after(() => server.close());
}

export const startPath = '/tokens/oidc/start';
export const roles = { operations: 'administrator', editors: 'publisher' };

export type Response = Awaited<ReturnType<Server['get']>>;

export const oidcEnv = ({ issuer }: Pick<IdentityProvider, 'issuer'>): Record<string, string> => ({
  OIDC_ISSUER: issuer,
  OIDC_CLIENT_ID: client.id,
  OIDC_CLIENT_SECRET: client.secret,
  OIDC_ROLES: JSON.stringify(roles),
});

export const startWith = (
  provider: Pick<IdentityProvider, 'issuer'>,
  { env, ...options }: ServerOptions = {},
): Promise<Server> => startServer({ ...options, env: { ...oidcEnv(provider), ...env } });

export const html = { accept: 'text/html' };

/** The values of the cookies that the response sets. */
export function cookiesOf(response: Response): Map<string, string> {
  const set = [response.headers['set-cookie'] ?? []].flat();
  return new Map(set.map((text) => (text.split(';', 1)[0] ?? '').split('=') as [string, string]));
}

/** The cookie of the attempt that was started. */
export const attemptIn = (response: Response): string =>
  ([...cookiesOf(response)].find(([name, value]) => name.startsWith('steward_oidc_') && value) ?? []).join(
    '=',
  );

export const locationOf = (response: Response) => String(response.headers.location);

/** A browser that has started to sign in: its cookie, and the callback that the provider sends it to. */
export async function startSignIn(
  server: Server,
  provider: Pick<IdentityProvider, 'issuer'>,
  { path = startPath, session = '' } = {},
) {
  const started = await server.get(path, { ...html, cookie: session });
  const cookie = attemptIn(started);
  const callback = await new ProviderVisitor().visit(locationOf(started), provider.issuer);
  return { started, cookie, callback };
}

export const callBack = (server: Server, { pathname, search }: URL, cookie: string): Promise<Response> =>
  server.get(pathname + search, { ...html, cookie });

export async function signIn(
  server: Server,
  provider: Pick<IdentityProvider, 'issuer'>,
  options = {},
): Promise<Response> {
  const { callback, cookie } = await startSignIn(server, provider, options);
  return callBack(server, callback, cookie);
}

/** The cookie of the new session. */
export const sessionOf = (response: Response) =>
  `steward_session=${cookiesOf(response).get('steward_session') ?? ''}`;

export type Self = { username: string; role: string; source: string };

export async function selfOf(server: Server, response: Response): Promise<Self> {
  const { username, role, source } = (
    await server.get('/admin/security/self?f=json', { cookie: sessionOf(response) })
  ).json<Self>();
  return { username, role, source };
}
