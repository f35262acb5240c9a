// All environment variables, with the schema that checks each of them. Those of upgrades are in upgrade-variables.ts.
import * as z from 'zod';
import { isPassword, passwordRule, usernames } from '../auth/user.ts';
import { isLoopbackHost } from '../lib/address.ts';
import { roles } from '../lib/caller.ts';
import { headerNameRule, isHeaderName } from '../webhooks/sending/headers.ts';
import { images, kubernetes, simulation, upgradeExecutor, upgrades } from './upgrade-variables.ts';
import { addressRanges, flag, integerText, name, path } from './value-schemas.ts';

const token = z
  .string()
  .regex(/^[A-Za-z0-9._~+/=-]{16,1024}$/, 'must be 16 to 1024 letters, digits or . _ ~ + / = -');

const secretKey = z
  .string()
  .regex(/^.{32,1024}$/s, 'must be 32 to 1024 characters')
  .optional();

const first = {
  PUBLIC_URL: z
    .string()
    .transform(readPublicUrl)
    .optional()
    .describe(
      'The address that clients use, for example https://steward.example.com. A path is allowed and precedes every other path. ' +
        'Default: http://localhost: with the port that the server listens on.',
    ),
  STORE_URL: z
    .string()
    .refine(
      isDatabaseUrl,
      'must be absent (memory) or an address such as postgres://user:password@host:5432/database',
    )
    .optional()
    .describe(
      'The PostgreSQL database (15 or newer, encoding UTF8) that holds all state, for example ' +
        'postgres://user:password@host:5432/database. All processes with the same address share the state. ' +
        'Default: the state is in memory and is lost when the process ends.',
    ),
  SECRET_KEY: secretKey.describe(
    'The key that encrypts the signature keys and header values of webhooks in the database: 32 to 1024 characters, the same for all processes. ' +
      'Store it apart from the backups of the database. Without it, no process starts on a database with encrypted keys. ' +
      'Default: they are not encrypted.',
  ),
  ADMIN_PASSWORD: z
    .string()
    .refine(isPassword, `must be ${passwordRule}`)
    .optional()
    .describe(
      'The password of the first administrator. With STORE_URL, required while the database has no administrator, and unused from then on. ' +
        'Without STORE_URL, the default is a random password, printed at start.',
    ),
  UPGRADE_EXECUTOR: upgradeExecutor,
};

const addresses = {
  HOST: z.string().default('127.0.0.1').describe('The address that the server listens on.'),
  PORT: integerText(0, 65535)
    .default(8080)
    .describe('The port that the server listens on. 0 selects any free port.'),
  ADMIN_PATH: z
    .literal('')
    .or(path)
    .default('/admin')
    .describe('The path of the admin directory. If it is set but empty, the admin directory is at the root.'),
  CATALOG_PATH: path.default('/services').describe('The path of the SOAP catalog.'),
  TOKENS_PATH: path.default('/tokens').describe('The path of the token service.'),
  REST_PATH: path
    .default('/rest')
    .describe('The path of the server info and the REST catalog, which clients read before they sign in.'),
};

function readPublicUrl(text: string, context: z.RefinementCtx): string {
  const url = plainUrl(text);
  if (!url) {
    context.addIssue('must be an absolute http or https address without user, query or fragment');
    return z.NEVER;
  }
  let address = url.origin + url.pathname;
  while (address.endsWith('/')) address = address.slice(0, -1);
  return address;
}

function plainUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.search === '' && url.hash === '' && url.username === '' && url.password === '';
  return isPlain && /^https?:$/.test(url.protocol) ? url : undefined;
}

const catalog = {
  PROFILE: z
    .enum(['plain', 'family'], 'must be plain or family')
    .default('plain')
    .describe(
      'family: the server is as strict as the products of this family of APIs that programs later run against: JSON errors have HTTP status 200, ' +
        'pages are the default format, tokens and names of folders are checked as there, and the children of SOAP answers have no namespace.',
    ),
  CATALOG_NAMESPACE: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"'&{}|\\^`]+$/, 'must be an absolute URI')
    .optional()
    .describe(
      'The XML namespace of the SOAP catalog. Default: http://www.example.com/schemas/{PRODUCT_NAME}/10.0.',
    ),
  VENDOR_PREFIX: name
    .default('svc')
    .describe(
      'The first part of the names of SOAP types and message formats, and the middle of the header X-{VENDOR_PREFIX}-Authorization, ' +
        'which may carry a token as Authorization does.',
    ),
  PRODUCT_NAME: name.default('Product').describe('The product name in the WSDL and in the XML namespace.'),
  REQUIRE_TOKENS: flag
    .default(false)
    .describe(
      'true: the listings of the SOAP catalog and of the REST catalog require a token. Otherwise they are public.',
    ),
  CATALOG_FILE: z
    .string()
    .optional()
    .describe(
      'A JSON file with the folders and services that the first start creates. Default: a built-in sample.',
    ),
  MAX_SERVICES: integerText(1, 1_000_000)
    .default(50_000)
    .describe(
      'How many services the catalog may hold, and how many folders. Their texts may have 672 bytes for each, as XML.',
    ),
};

const access = {
  ADMIN_USERNAME: z
    .string()
    .regex(usernames.pattern, `must be ${usernames.allowed}`)
    .default('admin')
    .describe('The name of the first administrator.'),
  MAX_TOKENS_PER_USER: integerText(1, 10_000)
    .default(100)
    .describe('How many valid tokens a user may have. A further sign-in ends the oldest.'),
  AUDIT_DAYS: integerText(1, 36_500)
    .default(365)
    .describe('How many days the entries of the audit trail are kept.'),
  TRUSTED_PROXIES: addressRanges.describe(
    'The proxies whose X-Forwarded-For header is trusted: a comma-separated list of addresses or CIDR ranges.',
  ),
};

const role = z.enum(roles, `must be one of ${roles.join(', ')}`);

const claimName = z.string().regex(/^.{1,256}$/, 'must be 1 to 256 characters');

const identityProvider = {
  OIDC_ISSUER: z
    .string()
    .refine(
      isIssuer,
      'must be an https address without user, query or fragment, or an http address of this machine',
    )
    .optional()
    .describe(
      'The OpenID Connect issuer whose users sign in here, for example https://login.example.com/company. Default: only local users sign in.',
    ),
  OIDC_CLIENT_ID: z
    .string()
    .regex(/^.{1,1024}$/, 'must be 1 to 1024 characters')
    .optional()
    .describe('The client id of this server at the issuer. Required with OIDC_ISSUER.'),
  OIDC_CLIENT_SECRET: z
    .string()
    .regex(/^.{1,4096}$/, 'must be 1 to 4096 characters')
    .optional()
    .describe('The client secret. Default: this server is a public client.'),
  OIDC_SCOPES: z
    .string()
    .regex(
      /^[\x21\x23-\x5b\x5d-\x7e]{1,64}(?: [\x21\x23-\x5b\x5d-\x7e]{1,64}){0,31}$/,
      'must be scopes, separated by blanks',
    )
    .refine((text) => text.split(' ').includes('openid'), 'must contain openid')
    .default('openid profile email')
    .describe('The scopes that this server requests.'),
  OIDC_LABEL: z
    .string()
    .trim()
    .regex(/^[^\p{Cc}]{1,64}$/u, 'must be 1 to 64 characters')
    .default('Sign in with your organization')
    .describe('The text of the button on the sign-in page.'),
};

const identities = {
  OIDC_USERNAME_CLAIM: claimName
    .optional()
    .describe('The claim with the user name. Default: preferred_username, then email.'),
  OIDC_ROLES_CLAIM: claimName
    .default('groups')
    .describe('The claim with the groups of a user. Dots lead into objects, for example realm_access.roles.'),
  OIDC_ROLES: z
    .string()
    .transform(readRoles)
    .default(() => new Map())
    .describe(
      'JSON: the role for each group, for example {"operations":"administrator","staff":"member"}. Of several roles, the highest counts.',
    ),
  OIDC_DEFAULT_ROLE: role
    .optional()
    .describe('The role of users without such a group. Default: they are refused.'),
  LOCAL_SIGN_IN: flag
    .default(true)
    .describe(
      'false: the sign-in page has no password form, and of all passwords only the one of ADMIN_USERNAME is accepted. Keys and tokens stay valid.',
    ),
};

/** A client without TLS would reveal codes and secrets on the network. */
function isIssuer(text: string): boolean {
  const url = plainUrl(text);
  return url?.protocol === 'https:' || (url !== undefined && isLoopbackHost(url.hostname));
}

function readRoles(text: string, context: z.RefinementCtx): ReadonlyMap<string, z.output<typeof role>> {
  try {
    return new Map(Object.entries(z.record(z.string(), role).parse(JSON.parse(text))));
  } catch {
    context.addIssue(`must be a JSON object of groups and roles; a role is one of ${roles.join(', ')}`);
    return z.NEVER;
  }
}

const webhooks = {
  WEBHOOK_ALLOW_CIDRS: addressRanges.describe(
    'The loopback, private and other special addresses that webhooks may use: a comma-separated list of addresses or CIDR ranges. ' +
      'An IPv6 range that covers ::ffff:0:0/96, such as ::/0, also covers all of IPv4.',
  ),
  WEBHOOK_CA_FILE: z
    .string()
    .optional()
    .describe(
      'A file with the certificates of authorities that receivers may have their certificates from, in PEM format. They are trusted in ' +
        'addition to the built-in authorities of Node.js; NODE_EXTRA_CA_CERTS then does not apply to receivers. Steward reads the file at start.',
    ),
  LEGACY_SIGNATURE_HEADER: z
    .string()
    .refine(isHeaderName, `must be ${headerNameRule}`)
    .optional()
    .describe(
      'The name of a header with a second signature, for receivers that check the body alone: sha256= and the base64 of HMAC-SHA-256 over ' +
        'the body, with the current key. Default: no such header.',
    ),
};

const concurrencyRule = 'must be two integers from 1 to 4096, the second not above the first, such as 128/4';

const webhookLimits = {
  WEBHOOK_CONCURRENCY: z
    .string()
    .refine((text) => {
      const [, most, perReceiver] = /^(\d{1,4})\/(\d{1,4})$/.exec(text)?.map(Number) ?? [];
      return Number(perReceiver) >= 1 && Number(perReceiver) <= Number(most) && Number(most) <= 4096;
    }, concurrencyRule)
    .default('128/4')
    .describe(
      'How many requests a process sends to receivers at the same time, and how many of all processes go to one receiver.',
    ),
  WEBHOOK_HISTORY: integerText(0, 10_000)
    .default(100)
    .describe('How many delivered deliveries and pings are kept for each webhook.'),
  WEBHOOK_RECOVERABLE: integerText(0, 1_000_000)
    .default(10_000)
    .describe(
      'How many failed, missed and discarded deliveries are kept for each webhook, and as many that were redelivered. ' +
        'Without STORE_URL, at most 64 MiB of each of all webhooks together.',
    ),
  WEBHOOK_MAX_PENDING: integerText(1, 10_000_000)
    .default(100_000)
    .describe('How many deliveries may be pending before the server refuses to publish events.'),
  WEBHOOK_MAX_PENDING_BYTES: integerText(1, 1024 ** 4)
    .optional()
    .describe(
      'How many bytes the payloads of pending deliveries may have together before the server refuses to publish events. ' +
        'A payload counts once for each delivery. Default: 268435456 (256 MiB) with STORE_URL, else 67108864 (64 MiB).',
    ),
  MAX_EVENT_IDS: integerText(1, 1_000_000_000)
    .default(100_000)
    .describe(
      'Without STORE_URL: how many ids of published events are remembered. Each is remembered for 24 hours; beyond this number, the ' +
        'server refuses to publish events with an id.',
    ),
};

const rest = {
  MAX_UPLOAD_BYTES: integerText(1, 1024 ** 3)
    .default(10 * 1024 ** 2)
    .describe('The largest file of a form, in bytes.'),
  MAX_UPLOADS_TOTAL_BYTES: integerText(1, 1024 ** 4)
    .default(256 * 1024 ** 2)
    .describe('The largest size of all uploads together, in bytes.'),
};

const database = {
  SECRET_KEY_PREVIOUS: secretKey.describe(
    'A second key that decrypts secrets while SECRET_KEY is introduced or replaced. Nothing is encrypted with it.',
  ),
};

function isDatabaseUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return /^postgres(ql)?:$/.test(url?.protocol ?? '') && (url?.pathname.length ?? 0) > 1;
}

const testing = {
  TEST_CONTROL: flag
    .default(false)
    .describe(
      'true: the control API at /control resets the server, moves its clock, makes requests fail and shows what clients send. Only for ' +
        'tests: anybody who reaches /control can do everything. Requires the memory store and simulated upgrades.',
    ),
  TEST_CONTROL_TOKEN: token
    .optional()
    .describe(
      'The bearer token that /control requires. Required if HOST or the host of PUBLIC_URL is not a loopback address, or with ' +
        'TRUSTED_PROXIES. Default: none is required, and requests with X-Forwarded-* or Forwarded are refused.',
    ),
  SEED: z
    .string()
    .regex(/^.{1,256}$/s, 'must be 1 to 256 characters')
    .optional()
    .describe(
      'With TEST_CONTROL: makes ids, tokens and generated keys repeatable. They are no secrets then. Default: they are random.',
    ),
};

const observation = {
  METRICS_PORT: integerText(0, 65535)
    .optional()
    .describe(
      'The port of a second listener, at the address HOST, that answers /metrics only. 0 selects any free port. Default: /metrics is at PORT.',
    ),
  CONSOLE_NAME: z
    .string()
    .trim()
    .min(1, 'must be 1 to 40 characters')
    .max(40, 'must be 1 to 40 characters')
    .optional()
    .describe('The name of this installation in the console, for example Production. Default: Steward.'),
  LOG_LEVEL: z
    .enum(['silent', 'error', 'warn', 'info', 'debug'], 'must be one of silent, error, warn, info, debug')
    .default('info')
    .describe('How much is logged: silent, error, warn, info or debug.'),
};

/** By title, in the order of .env.example, which is generated from these groups. */
export const variableGroups = {
  'What matters first': first,
  'Addresses and paths': addresses,
  'Profile and catalog': catalog,
  'Sign-in and proxies': access,
  'Sign-in by an identity provider': identityProvider,
  'Users of the identity provider': identities,
  Webhooks: webhooks,
  'Limits of webhooks': webhookLimits,
  Uploads: rest,
  Database: database,
  Upgrades: upgrades,
  'Upgrades on Kubernetes': kubernetes,
  'Images of upgrades on Kubernetes': images,
  'Metrics, console and log': observation,
  'Simulated upgrades': simulation,
  'Test control': testing,
};

export const variables = z.object({
  ...first,
  ...addresses,
  ...catalog,
  ...access,
  ...identityProvider,
  ...identities,
  ...webhooks,
  ...webhookLimits,
  ...rest,
  ...database,
  ...upgrades,
  ...kubernetes,
  ...images,
  ...observation,
  ...simulation,
  ...testing,
});

/** Groups of variables whose names are unlikely to belong to another program. */
const ownPrefix = /^(TEST_CONTROL|UPGRADE_|WEBHOOK_|SIMULATED_|OIDC_|IMAGE_)/;

/** The names that look like variables of Steward and are none. Kubernetes adds some for each service. */
export function unknownVariables(names: readonly string[]): string[] {
  const isOfCluster = (name: string) => /_(SERVICE_(HOST|PORT)|PORT)(_|$)/.test(name);
  return names.filter((name) => ownPrefix.test(name) && !isVariable(name) && !isOfCluster(name));
}

export function isVariable(name: string): boolean {
  return Object.hasOwn(variables.shape, name);
}
