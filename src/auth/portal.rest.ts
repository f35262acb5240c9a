// REST resources of the token service for clients that know it as a portal: `community/self`, `portals/self`,
// `oauth2/revokeToken`, and `sharing/rest`, where they get a token for each address of this server.
import * as z from 'zod';
import type { PublicUrls } from '../http/urls.ts';
import { type Caller, roles } from '../lib/caller.ts';
import { invalidField, usualError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { type AnswerOf, answerObject, time } from '../rest/answer.ts';
import { httpUrl, text } from '../rest/field-types.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { type Resource, folder, resource } from '../rest/resource.ts';
import type { ReadableStore } from '../store/store.ts';
import { findKey } from './key.ts';
import { expirationMinutes, hashToken, tokens } from './token.ts';
import { requireOwnUser } from './user.ts';

export type PortalOptions = {
  readonly store: ReadableStore;
  readonly runtime: Runtime;
  readonly urls: PublicUrls;
  readonly portal: {
    readonly name: string;
    /** The installed version as a number. */
    readonly currentVersion: () => number | null;
  };
};

const communitySelfAnswer = answerObject('CommunitySelf', 'The user of the token.', {
  username: z.string(),
  role: z.enum(roles),
  fullName: z.string().describe('The user name.'),
});

const portalAnswer = answerObject('Portal', 'The token service as a portal.', {
  id: z.literal('steward'),
  name: z.string().describe('The name in the title of the pages.'),
  isPortal: z.literal(true),
  currentVersion: z
    .number()
    .nullable()
    .describe('The installed version as a number: 10.91 for 10.9.1. Null: it is not known.'),
  authorizedCrossOriginDomains: z.array(z.string()).max(0),
  user: communitySelfAnswer.optional().describe('The user of the token. Absent without a token.'),
});

const portalInfoAnswer = answerObject('PortalInfo', 'Where clients get a token for an address.', {
  owningSystemUrl: z.string().describe('The address of the token service.'),
  authInfo: z.strictObject({
    isTokenBasedSecurity: z.literal(true),
    tokenServicesUrl: z.string().describe('The address of sharing/rest/generateToken.'),
  }),
});

const serverTokenAnswer = answerObject('ServerToken', 'The token for an address.', {
  token: z.string().describe('The token of the request.'),
  expires: time.describe(
    'When to ask again, in milliseconds since the epoch: at the latest when the token expires.',
  ),
  ssl: z.boolean().describe('Whether the server is reached by https.'),
});

/** `revokeToken` has the names of OAuth 2.0. */
export function portalResources(options: PortalOptions, revokeToken: Operation): Record<string, Resource> {
  const { store, portal } = options;
  const communitySelf = resource({
    title: 'Signed-in user',
    description: 'The user of the token.',
    access: 'member',
    answer: communitySelfAnswer,
    read: ({ caller }) => userOf(store, caller),
  });
  const portalSelf = resource({
    title: 'Portal',
    description: 'The name and version of the server, and the user of the token.',
    access: 'optional',
    answer: portalAnswer,
    read: ({ caller }) => ({
      id: 'steward' as const,
      name: portal.name,
      isPortal: true as const,
      currentVersion: portal.currentVersion(),
      authorizedCrossOriginDomains: [],
      ...(caller && { user: userOf(store, caller) }),
    }),
  });
  return {
    community: folder(
      { title: 'Community', description: 'The signed-in user, for clients.', access: 'member' },
      { self: communitySelf },
    ),
    oauth2: {
      ...folder({ title: 'OAuth 2.0', description: 'Revokes tokens, for clients.', access: 'anyone' }, {}),
      operations: { revokeToken },
    },
    portals: folder(
      { title: 'Portals', description: 'The server as a portal, for clients.', access: 'anyone' },
      { self: portalSelf },
    ),
    sharing: sharingResource(options),
  };
}

function userOf(store: ReadableStore, caller: Caller): AnswerOf<typeof communitySelfAnswer> {
  const { username, role } = requireOwnUser(store, caller);
  return { username, role: caller?.role ?? role, fullName: username };
}

/**
 * A client that calls an address outside the token service reads `{address}/rest/info`, finds the owning system there,
 * reads its `sharing/rest/info`, and asks for a token for the address. It gets the token of the request: one token
 * is one session, which signing out ends.
 */
function sharingResource({ store, runtime, urls }: PortalOptions): Resource {
  const info = resource({
    title: 'Portal info',
    description: 'Where clients get a token for an address of this server.',
    access: 'anyone',
    answer: portalInfoAnswer,
    read: () => ({
      owningSystemUrl: urls.tokens,
      authInfo: {
        isTokenBasedSecurity: true as const,
        tokenServicesUrl: `${urls.tokens}/sharing/rest/generateToken`,
      },
    }),
  });
  const generateToken = operation({
    title: 'Token for an address',
    description: 'Returns the token of the request, which every address of this server accepts.',
    access: 'member',
    effect: 'reads',
    fields: {
      token: text({ to: 1024, control: 'password' }).describe('The token of the request.'),
      serverUrl: httpUrl().describe('An address of this server.'),
    },
    answer: serverTokenAnswer,
    // Without this, another server could name this one as its owner, and clients would send it their tokens.
    check: ({ values: { serverUrl } }) => ({
      problems:
        serverUrl === undefined || isOwnUrl(serverUrl, urls)
          ? []
          : [{ field: 'serverUrl', message: `must be an address beneath ${urls.base}.` }],
    }),
    run: ({ values: { token }, caller, tokenHash }) => {
      // The caller may have sent another token in a header, or have the session of a browser.
      if (tokenHash === undefined || hashToken(token.trim()) !== tokenHash)
        throw invalidField('token', 'must be the token of the request.');
      const issued = caller?.key === undefined ? store.get(tokens, tokenHash) : findKey(store, tokenHash);
      // It may have ended since the caller was identified.
      if (!issued) throw usualError('token-invalid');
      const latest = runtime.now() + expirationMinutes.max * 60_000;
      return { json: { token: token.trim(), expires: issued.expires ?? latest, ssl: urls.isHttps } };
    },
  });
  const rest = folder(
    { title: 'Sharing directory', description: 'Tokens for addresses of this server.', access: 'anyone' },
    { info },
  );
  return folder(
    { title: 'Sharing', description: 'Tokens for addresses of this server, for clients.', access: 'anyone' },
    { rest: { ...rest, operations: { generateToken } } },
  );
}

function isOwnUrl(address: string, { base }: PublicUrls): boolean {
  const own = new URL(`${base}/`);
  const asked = new URL(`${address.replace(/\/$/, '')}/`);
  return asked.origin === own.origin && asked.pathname.startsWith(own.pathname);
}
