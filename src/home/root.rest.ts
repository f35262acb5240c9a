// REST resources of the root of the administrator directory, and of the server info, which clients read before they
// sign in.
import * as z from 'zod';
import { searchedIn } from '../console/list.ts';
import { withoutAuthority } from '../http/request-log.ts';
import { answerObject } from '../rest/answer.ts';
import { type Resource, resource } from '../rest/resource.ts';
import type { View } from '../rest/view.ts';

export type InstalledVersion = { readonly version: string; readonly build: string };

const fullVersionField = z
  .string()
  .nullable()
  .describe('The installed version and build, for example 10.9.1.1234. Null: it is not known.');

const rootAnswer = answerObject('AdministrationRoot', 'The root of the administrator directory.', {
  currentVersion: z
    .string()
    .nullable()
    .describe('The installed version, for example 10.9.1. Null: it is not known.'),
  fullVersion: fullVersionField,
  resources: z.array(z.string()).describe('The names of the resources beneath the root.'),
});

export function rootResource(
  installed: () => InstalledVersion | undefined,
  view: View<unknown>,
  {
    resources,
    unlisted,
    operations,
  }: Pick<Resource, 'resources' | 'operations'> & { unlisted: Resource['resources'] },
): Resource {
  return resource({
    title: 'Administration',
    titleOf: (_subject, query) => (query && searchedIn(query) ? `Search: ${searchedIn(query)}` : 'Home'),
    description: 'The state of this deployment.',
    access: 'member',
    answer: rootAnswer,
    resources: { ...resources, ...unlisted },
    operations,
    // Programs use the others.
    isOffered: (_subject, name) => Object.hasOwn(resources, name),
    view,
    read: () => {
      const present = installed();
      return {
        currentVersion: present?.version ?? null,
        fullVersion: formatFull(present),
        resources: Object.keys(resources).sort(),
      };
    },
  });
}

type InfoOptions = {
  readonly installed: () => InstalledVersion | undefined;
  readonly soapUrl: () => string;
  readonly owningSystemUrl: () => string;
  readonly tokenServiceUrl: () => string;
  /** How many minutes a token is valid by default. */
  readonly tokenMinutes: number;
};

const infoAnswer = answerObject('ServerInfo', 'The version of the server, and how to sign in.', {
  currentVersion: z
    .number()
    .nullable()
    .describe(
      'The installed version as a number: 10.91 for 10.9.1, 11 for 11.0.0, 11.2 for 11.2.0. Null: it is not known.',
    ),
  fullVersion: fullVersionField,
  soapUrl: z.string().describe('The address of the SOAP catalog.'),
  owningSystemUrl: z.string().describe('The address of the token service.'),
  authInfo: z.strictObject({
    isTokenBasedSecurity: z.literal(true),
    tokenServicesUrl: z.string().describe('The address of generateToken.'),
    shortLivedTokenValidity: z.int().describe('How many minutes a token is valid by default.'),
  }),
});

export function infoResource(options: InfoOptions): Resource {
  const { installed, soapUrl, owningSystemUrl, tokenServiceUrl, tokenMinutes } = options;
  return resource({
    title: 'Server info',
    description: 'The version of the server, and how to sign in.',
    access: 'anyone',
    answer: infoAnswer,
    read: () => {
      const present = installed();
      return {
        currentVersion: versionNumber(present),
        fullVersion: formatFull(present),
        soapUrl: soapUrl(),
        owningSystemUrl: owningSystemUrl(),
        authInfo: {
          isTokenBasedSecurity: true as const,
          tokenServicesUrl: tokenServiceUrl(),
          shortLivedTokenValidity: tokenMinutes,
        },
      };
    },
  });
}

function formatFull(present: InstalledVersion | undefined): string | null {
  return present ? `${present.version}.${present.build}` : null;
}

/** The first part, a point, and the other parts: 10.9.1 is 10.91. */
export function versionNumber(present: InstalledVersion | undefined): number | null {
  if (!present) return null;
  const [major = '', ...rest] = present.version.split('.');
  return Number(`${major}.${rest.join('')}`);
}

type Paths = { readonly ADMIN_PATH: string; readonly TOKENS_PATH: string; readonly REST_PATH: string };

/**
 * Clients append `/rest/info` to an address to ask where they get a token for it: to the root of the server, with a
 * second slash, and to every address beneath `ADMIN_PATH` and `REST_PATH`. The server info answers all of them.
 */
export function withoutInfoProbe(url: string, { ADMIN_PATH, TOKENS_PATH, REST_PATH }: Paths): string {
  if (!url.includes('/info')) return url;
  const target = withoutAuthority(url);
  const [path = ''] = target.split('?', 1);
  const isBeneath = (prefix: string) => path.startsWith(`${prefix}/`);
  const isProbe =
    path.endsWith('/rest/info') && (isBeneath(ADMIN_PATH) || isBeneath(REST_PATH)) && !isBeneath(TOKENS_PATH);
  return isProbe || path === `/${REST_PATH}/info` ? `${REST_PATH}/info${target.slice(path.length)}` : url;
}
