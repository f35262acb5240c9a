// Reads the environment variables and checks them: one schema holds their rules, defaults and descriptions.
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { isLoopbackHost } from './lib/address.ts';
import { isPassword, passwordRule, usernames } from './auth/user.ts';
import { headerNameRule, isHeaderName } from './webhooks/headers.ts';
import { isRegistryHost } from './upgrades/executors/kubernetes/image.ts';
import {
  type TemplateStepId,
  isTemplateStepId,
  stepIds,
  templateStepIds,
  templateSteps,
} from './upgrades/step-ids.ts';

const pathRule = 'a path that begins with / and does not end with one, of letters, digits and . _ ~ -';
const path = z
  .string()
  .regex(/^(\/[A-Za-z0-9._~-]+)+$/, `must be ${pathRule}, for example /admin`)
  .refine((value) => !/\/\.\.?(\/|$)/.test(value), 'must not contain . or .. as a segment');
const name = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9]{0,31}$/, 'must be a letter and up to 31 letters or digits');
const flag = z
  .string()
  .toLowerCase()
  .pipe(z.enum(['true', 'false'], 'must be true or false'))
  .transform((value) => value === 'true');
const addressRanges = z
  .string()
  .transform(readAddressRanges)
  .default(() => new BlockList());

function integer(from: number, to: number) {
  return z
    .string()
    .regex(/^[0-9]{1,15}$/, `must be an integer from ${from} to ${to}`)
    .transform(Number)
    .refine((value) => value >= from && value <= to, `must be an integer from ${from} to ${to}`);
}

const secretKey = z
  .string()
  .regex(/^.{32,1024}$/s, 'must be 32 to 1024 characters')
  .optional();

const addresses = {
  HOST: z.string().default('127.0.0.1').describe('The address that the server listens on.'),
  PORT: integer(0, 65535)
    .default(8080)
    .describe('The port that the server listens on. 0 selects any free port.'),
  PUBLIC_URL: z
    .string()
    .transform(readPublicUrl)
    .optional()
    .describe(
      'The address that clients use, for example https://steward.example.com. A path is allowed and precedes every other path. ' +
        'Default: http://localhost: with the port that the server listens on.',
    ),
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

const catalog = {
  CATALOG_NAMESPACE: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"'&{}|\\^`]+$/, 'must be an absolute URI')
    .optional()
    .describe(
      'The XML namespace of the SOAP catalog. Default: http://www.example.com/schemas/{PRODUCT_NAME}/10.0.',
    ),
  VENDOR_PREFIX: name
    .default('svc')
    .describe('The first part of the names of SOAP types and message formats.'),
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
  MAX_SERVICES: integer(1, 1_000_000)
    .default(50_000)
    .describe('How many services the catalog may hold, and how many folders.'),
  MAX_CATALOG_BYTES: integer(1, 1024 ** 3)
    .default(32 * 1024 ** 2)
    .describe('How many bytes the texts of all folders and services may have together, as XML.'),
};

const access = {
  ADMIN_USERNAME: z
    .string()
    .regex(usernames.pattern, `must be ${usernames.allowed}`)
    .default('admin')
    .describe('The name of the first administrator.'),
  ADMIN_PASSWORD: z
    .string()
    .refine(isPassword, `must be ${passwordRule}`)
    .optional()
    .describe(
      'The password of the first administrator. Required with STORE_URL. Default: a random password, printed at start.',
    ),
  MAX_TOKENS_PER_USER: integer(1, 10_000)
    .default(100)
    .describe('How many valid tokens a user may have. A further sign-in ends the oldest.'),
  AUDIT_DAYS: integer(1, 36_500)
    .default(365)
    .describe('How many days the entries of the audit trail are kept.'),
  TRUSTED_PROXIES: addressRanges.describe(
    'The proxies whose X-Forwarded-For header is trusted: a comma-separated list of addresses or CIDR ranges.',
  ),
};

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
  WEBHOOK_CONCURRENCY: integer(1, 1000)
    .default(128)
    .describe('How many webhook requests one process sends at the same time.'),
  WEBHOOK_HISTORY: integer(0, 10_000)
    .default(100)
    .describe('How many delivered and redelivered deliveries are kept for each webhook.'),
  WEBHOOK_RECOVERABLE: integer(0, 1_000_000)
    .default(10_000)
    .describe(
      'How many failed, missed and discarded deliveries are kept for each webhook until they are redelivered. ' +
        'Without STORE_URL, at most 64 MiB of all webhooks together.',
    ),
  WEBHOOK_MAX_PENDING: integer(1, 10_000_000)
    .default(100_000)
    .describe('How many deliveries may be pending before the server refuses to publish events.'),
  WEBHOOK_MAX_PENDING_BYTES: integer(1, 1024 ** 4)
    .optional()
    .describe(
      'How many bytes the payloads of pending deliveries may have together before the server refuses to publish events. ' +
        'A payload counts once for each delivery. Default: 268435456 (256 MiB) with STORE_URL, else 67108864 (64 MiB).',
    ),
  MAX_EVENT_IDS: integer(1, 1_000_000_000)
    .default(100_000)
    .describe(
      'Without STORE_URL: how many ids of published events are remembered. Each is remembered for 24 hours; beyond this number, the ' +
        'server refuses to publish events with an id.',
    ),
};

const rest = {
  MAX_UPLOAD_BYTES: integer(1, 1024 ** 3)
    .default(10 * 1024 ** 2)
    .describe('The largest file of a form, in bytes.'),
  MAX_UPLOADS_TOTAL_BYTES: integer(1, 1024 ** 4)
    .default(256 * 1024 ** 2)
    .describe('The largest size of all uploads together, in bytes.'),
  ERROR_STATUS: z
    .literal('200', 'must be 200 or absent')
    .optional()
    .describe(
      '200: the REST API sends JSON errors with HTTP status 200, for clients that treat every other status as a connection error.',
    ),
};

const database = {
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
  SECRET_KEY_PREVIOUS: secretKey.describe(
    'A second key that decrypts secrets while SECRET_KEY is introduced or replaced. Nothing is encrypted with it.',
  ),
};

const upgrades = {
  UPGRADE_EXECUTOR: z
    .enum(['simulated', 'kubernetes'], 'must be simulated or kubernetes')
    .default('simulated')
    .describe(
      'How upgrades run: simulated changes nothing outside Steward, kubernetes updates the workloads of one namespace (see docs/operate/kubernetes.md).',
    ),
  UPGRADE_STEP_TIMEOUT_SECONDS: integer(1, 86_400)
    .default(1800)
    .describe('How long one step of an upgrade may take before the job fails.'),
  REVERT_TIMEOUT_SECONDS: integer(1, 86_400)
    .default(900)
    .describe(
      'How long a failed or cancelled patch may take to revert all of its workloads. Then the job ends, and resume continues.',
    ),
  JOB_HISTORY: integer(1, 100_000).default(500).describe('How many finished jobs keep their messages.'),
};

const kubernetes = {
  KUBECONFIG: z
    .string()
    .optional()
    .describe('kubernetes: a kubeconfig file. Default: the cluster that the process runs in.'),
  KUBERNETES_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be the name of a namespace')
    .optional()
    .describe(
      'kubernetes: the namespace of the workloads. Default: the namespace of the kubeconfig context, or of the pod.',
    ),
  UPGRADE_PARALLELISM: integer(1, 100)
    .default(1)
    .describe('kubernetes: how many workloads are updated at the same time.'),
  ROLLOUT_TIMEOUT_SECONDS: integer(1, 86_400)
    .default(600)
    .describe('kubernetes: how long a rollout may make no progress before the job fails.'),
  CLUSTER_PATIENCE_SECONDS: integer(1, 86_400)
    .default(300)
    .describe(
      'kubernetes: how long a step waits for an API server that is unavailable before the job fails.',
    ),
  IMAGE_REGISTRY: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(\/[a-z0-9._-]+)*$/,
      'must be a registry such as registry.example.com/team',
    )
    .optional()
    .describe(
      'kubernetes: the registry of images that name none, such as registry.example.com/team. It applies to containers whose ' +
        'current image names no registry either.',
    ),
  OPTIONAL_CONTAINERS: z
    .string()
    .transform(readNames)
    .optional()
    .describe(
      'kubernetes: containers of a version that the namespace may lack: a comma-separated list of names, or * for all.',
    ),
  IMAGE_CHECK: z
    .enum(['auto', 'required', 'off'], 'must be auto, required or off')
    .default('auto')
    .describe(
      'kubernetes: whether plan and upgrade look up the new images in their registries. A missing image blocks the upgrade. ' +
        'auto: an image that cannot be looked up is a notice. required: it blocks the upgrade too. off: no lookup.',
    ),
  REGISTRY_AUTH_FILE: z
    .string()
    .optional()
    .describe(
      'kubernetes: a file with the credentials for the registries, in the format of docker login. Credential helpers are not ' +
        'supported. Steward reads the file for each check. Default: no credentials.',
    ),
  REGISTRY_INSECURE: z
    .string()
    .transform(readRegistryHosts)
    .optional()
    .describe(
      'kubernetes: registries that Steward asks over plain HTTP, and that may have a loopback or link-local address: a ' +
        'comma-separated list of hosts as the images name them, such as registry.internal:5000.',
    ),
  STEP_TEMPLATES: z
    .enum(['on', 'off'], 'must be on or off')
    .default('on')
    .describe(
      'kubernetes: on: Jobs made from step templates perform the steps of an upgrade that are no updates of workloads, and Steward ' +
        'needs permissions for Jobs (see docs/operate/step-templates.md). off: such steps are skipped.',
    ),
};

const simulation = {
  UPGRADE_STEP_MS: integer(0, 600_000)
    .default(95)
    .describe('simulated: how long each step takes, in milliseconds.'),
  SIMULATED_FAILURES: z
    .string()
    .transform(readFailures)
    .optional()
    .describe(
      'simulated: what fails: a comma-separated list of containers, and of steps as @ and their id. NAME fails always, NAME:2 fails ' +
        'twice, and so does @database-engine:2.',
    ),
  SIMULATED_STEP_TEMPLATES: z
    .string()
    .transform(readTemplateSteps)
    .default([...templateSteps])
    .describe(
      'simulated: the steps that have a step template: a comma-separated list of step ids, or none. Other steps that can have one are ' +
        'skipped; hooks appear only if they are listed. Default: all steps except the hooks.',
    ),
};

const testing = {
  TEST_CONTROL: flag
    .default(false)
    .describe(
      'true: the control API at /control resets the server, moves its clock, makes requests fail and shows what clients send. Only for ' +
        'tests: anybody who reaches /control can do everything. Requires the memory store and simulated upgrades.',
    ),
  TEST_CONTROL_TOKEN: z
    .string()
    .regex(/^[A-Za-z0-9._~+/=-]{16,1024}$/, 'must be 16 to 1024 letters, digits or . _ ~ + / = -')
    .optional()
    .describe(
      'The bearer token that /control requires. Required if HOST is not a loopback address. Default: none is required.',
    ),
  SEED: z
    .string()
    .regex(/^.{1,256}$/s, 'must be 1 to 256 characters')
    .optional()
    .describe(
      'With TEST_CONTROL: makes ids, tokens and generated keys repeatable. They are no secrets then. Default: they are random.',
    ),
};

const logging = {
  LOG_LEVEL: z
    .enum(['silent', 'error', 'warn', 'info', 'debug'], 'must be one of silent, error, warn, info, debug')
    .default('info')
    .describe('How much is logged: silent, error, warn, info or debug.'),
};

/** By title, in the order of .env.example, which is generated from these groups. */
export const variableGroups = {
  'Addresses and paths': addresses,
  'SOAP catalog': catalog,
  'Sign-in and proxies': access,
  Webhooks: webhooks,
  'Uploads and errors of the REST API': rest,
  Database: database,
  Upgrades: upgrades,
  'Upgrades on Kubernetes': kubernetes,
  'Simulated upgrades': simulation,
  'Test control': testing,
  Logging: logging,
};

const variables = z.object({
  ...addresses,
  ...catalog,
  ...access,
  ...webhooks,
  ...rest,
  ...database,
  ...upgrades,
  ...kubernetes,
  ...simulation,
  ...testing,
  ...logging,
});

export function isVariable(name: string): boolean {
  return Object.hasOwn(variables.shape, name);
}

export type Config = ReturnType<typeof readConfig>;

export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** A blank ADMIN_PATH puts the admin directory at the root. Any other blank variable counts as absent. */
export function readConfig(
  env: Readonly<Record<string, string | undefined>>,
  fileProblems: readonly string[] = [],
) {
  const given = Object.fromEntries(
    Object.entries(env).filter(([key, value]) => value !== '' || key === 'ADMIN_PATH'),
  );
  const parsed = variables.safeParse(given);
  const problems = [
    ...(parsed.error?.issues ?? []).map((issue) => `${issue.path.join('.')} ${issue.message}.`),
    ...findCombinationProblems(given),
    ...fileProblems,
  ];
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  const value = parsed.data;
  const isInMemory = value.STORE_URL === undefined;
  return Object.freeze({
    host: value.HOST,
    port: value.PORT,
    publicUrl: value.PUBLIC_URL,
    adminPath: value.ADMIN_PATH,
    catalogPath: value.CATALOG_PATH,
    tokensPath: value.TOKENS_PATH,
    restPath: value.REST_PATH,
    catalogNamespace: value.CATALOG_NAMESPACE ?? `http://www.example.com/schemas/${value.PRODUCT_NAME}/10.0`,
    vendorPrefix: value.VENDOR_PREFIX,
    productName: value.PRODUCT_NAME,
    requireTokens: value.REQUIRE_TOKENS,
    adminUsername: value.ADMIN_USERNAME,
    adminPassword: value.ADMIN_PASSWORD,
    maxTokensPerUser: value.MAX_TOKENS_PER_USER,
    auditDays: value.AUDIT_DAYS,
    trustedProxies: value.TRUSTED_PROXIES,
    webhookAllowCidrs: value.WEBHOOK_ALLOW_CIDRS,
    legacySignatureHeader: value.LEGACY_SIGNATURE_HEADER,
    webhookConcurrency: value.WEBHOOK_CONCURRENCY,
    webhookHistory: value.WEBHOOK_HISTORY,
    webhookRecoverable: value.WEBHOOK_RECOVERABLE,
    webhookMaxPending: value.WEBHOOK_MAX_PENDING,
    webhookMaxPendingBytes: value.WEBHOOK_MAX_PENDING_BYTES ?? (isInMemory ? 64 : 256) * 1024 ** 2,
    maxEventIds: value.MAX_EVENT_IDS,
    maxServices: value.MAX_SERVICES,
    maxCatalogBytes: value.MAX_CATALOG_BYTES,
    maxUploadBytes: value.MAX_UPLOAD_BYTES,
    maxUploadsTotalBytes: value.MAX_UPLOADS_TOTAL_BYTES,
    errorStatus200: value.ERROR_STATUS === '200',
    storeUrl: value.STORE_URL,
    secretKey: value.SECRET_KEY,
    secretKeyPrevious: value.SECRET_KEY_PREVIOUS,
    upgradeExecutor: value.UPGRADE_EXECUTOR,
    upgradeStepTimeoutMs: value.UPGRADE_STEP_TIMEOUT_SECONDS * 1000,
    revertTimeoutMs: value.REVERT_TIMEOUT_SECONDS * 1000,
    jobHistory: value.JOB_HISTORY,
    kubeconfig: value.KUBECONFIG,
    kubernetesNamespace: value.KUBERNETES_NAMESPACE,
    upgradeParallelism: value.UPGRADE_PARALLELISM,
    rolloutTimeoutMs: value.ROLLOUT_TIMEOUT_SECONDS * 1000,
    clusterPatienceMs: value.CLUSTER_PATIENCE_SECONDS * 1000,
    imageRegistry: value.IMAGE_REGISTRY,
    optionalContainers: value.OPTIONAL_CONTAINERS ?? [],
    imageCheck: value.UPGRADE_EXECUTOR === 'kubernetes' ? value.IMAGE_CHECK : 'off',
    registryAuthFile: value.REGISTRY_AUTH_FILE,
    registryInsecure: value.REGISTRY_INSECURE ?? new Set<string>(),
    stepTemplates: value.STEP_TEMPLATES === 'on',
    upgradeStepMs: value.UPGRADE_STEP_MS,
    simulatedFailures: value.SIMULATED_FAILURES ?? new Map<string, number>(),
    simulatedStepTemplates: value.SIMULATED_STEP_TEMPLATES,
    testControl: value.TEST_CONTROL,
    testControlToken: value.TEST_CONTROL_TOKEN,
    seed: value.SEED,
    logLevel: value.LOG_LEVEL,
  });
}

/** An empty ADMIN_PATH reserves these names at the root. */
export const adminNames: readonly string[] = [
  'assets',
  'mode',
  'openapi.json',
  'security',
  'services',
  'system',
  'uploads',
];

const fixedPaths = ['/health', '/ready', '/metrics', '/control'];

const pathVariables = variables.pick({
  ADMIN_PATH: true,
  CATALOG_PATH: true,
  TOKENS_PATH: true,
  REST_PATH: true,
});

function findCombinationProblems(given: Readonly<Record<string, string | undefined>>): string[] {
  const paths = pathVariables.safeParse(given);
  const problems = paths.success ? findOverlaps(paths.data) : [];
  // Only the first process would know a random password.
  if (given.STORE_URL !== undefined && given.ADMIN_PASSWORD === undefined)
    problems.push('ADMIN_PASSWORD must be given with STORE_URL.');
  // Kubernetes sets KUBERNETES_SERVICE_HOST in every container.
  const cluster = given.KUBECONFIG ?? given.KUBERNETES_SERVICE_HOST;
  if (given.UPGRADE_EXECUTOR === 'kubernetes' && cluster === undefined)
    problems.push('KUBECONFIG must be given with UPGRADE_EXECUTOR=kubernetes outside a cluster.');
  return [...problems, ...findTestControlProblems(given)];
}

function findTestControlProblems(given: Readonly<Record<string, string | undefined>>): string[] {
  const isControlled = given.TEST_CONTROL?.toLowerCase() === 'true';
  if (!isControlled)
    return given.SEED === undefined ? [] : ['SEED must not be given without TEST_CONTROL=true.'];
  const isLoopback = given.HOST === undefined || isLoopbackHost(given.HOST);
  return [
    ...(given.STORE_URL === undefined ? [] : ['STORE_URL must not be given with TEST_CONTROL=true.']),
    ...((given.UPGRADE_EXECUTOR ?? 'simulated') === 'simulated'
      ? []
      : ['UPGRADE_EXECUTOR must be simulated with TEST_CONTROL=true.']),
    ...(isLoopback || given.TEST_CONTROL_TOKEN !== undefined
      ? []
      : ['TEST_CONTROL_TOKEN must be given with TEST_CONTROL=true if HOST is not a loopback address.']),
  ];
}

function findOverlaps(paths: z.output<typeof pathVariables>): string[] {
  const claims = [
    ...fixedPaths.map((fixed) => ({ owner: fixed, path: fixed })),
    ...(paths.ADMIN_PATH === ''
      ? adminNames.map((name) => ({ owner: `the /${name} of an empty ADMIN_PATH`, path: `/${name}` }))
      : [{ owner: `ADMIN_PATH (${paths.ADMIN_PATH})`, path: paths.ADMIN_PATH }]),
    { owner: `CATALOG_PATH (${paths.CATALOG_PATH})`, path: paths.CATALOG_PATH },
    { owner: `TOKENS_PATH (${paths.TOKENS_PATH})`, path: paths.TOKENS_PATH },
    { owner: `REST_PATH (${paths.REST_PATH})`, path: paths.REST_PATH },
  ];
  return claims.flatMap((later, index) =>
    claims
      .slice(0, index)
      .filter((earlier) => overlap(earlier.path, later.path))
      .map(
        (earlier) => `${later.owner} and ${earlier.owner} must not be the same or lie beneath each other.`,
      ),
  );
}

function overlap(a: string, b: string): boolean {
  return `${a}/`.startsWith(`${b}/`) || `${b}/`.startsWith(`${a}/`);
}

function readPublicUrl(text: string, context: z.RefinementCtx): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url?.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (!plain || !/^https?:$/.test(url.protocol)) {
    context.addIssue('must be an absolute http or https address without user, query or fragment');
    return z.NEVER;
  }
  return (url.origin + url.pathname).replace(/\/+$/, '');
}

function readFailures(text: string, context: z.RefinementCtx): ReadonlyMap<string, number> {
  const failures = new Map<string, number>();
  for (const entry of text.split(',').map((part) => part.trim())) {
    const [, at, name, times] = /^(@?)([A-Za-z0-9_.-]{1,128})(?::([1-9][0-9]{0,5}))?$/.exec(entry) ?? [];
    if (name === undefined) {
      context.addIssue(
        `must be a comma list of container names and of @ and step ids, each with how often it fails, such as MAP_SERVER:2 or ` +
          `@database-engine; "${entry}" is not one`,
      );
      return z.NEVER;
    }
    if (at === '@' && !stepIds.some((id) => id === name)) {
      context.addIssue(`must name steps by their id: ${stepIds.join(', ')}; "${name}" is not one`);
      return z.NEVER;
    }
    failures.set(at === '@' ? entry.replace(/:.*/, '') : name.toUpperCase(), Number(times ?? Infinity));
  }
  return failures;
}

function readTemplateSteps(text: string, context: z.RefinementCtx): TemplateStepId[] {
  const names = text.split(',').map((part) => part.trim());
  if (names.length === 1 && names[0] === 'none') return [];
  const unknown = names.filter((name) => !isTemplateStepId(name));
  if (unknown.length > 0) {
    context.addIssue(
      `must be none or a comma list of step ids: ${templateStepIds.join(', ')}; "${unknown.join('", "')}" is not one`,
    );
    return z.NEVER;
  }
  return names.filter(isTemplateStepId);
}

function readAddressRanges(text: string, context: z.RefinementCtx): BlockList {
  const list = new BlockList();
  for (const entry of text.split(',').map((part) => part.trim())) {
    const [address = '', bits] = entry.split('/');
    const version = isIP(address);
    const most = version === 4 ? 32 : 128;
    const length = bits === undefined ? most : /^[0-9]{1,3}$/.test(bits) ? Number(bits) : NaN;
    if (version === 0 || address.includes('%') || entry.split('/').length > 2 || !(length <= most)) {
      context.addIssue(
        `must be a comma list of addresses or CIDR ranges such as 10.0.0.0/8; "${entry}" is not one`,
      );
      return z.NEVER;
    }
    list.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** An address has no port if it is the default port, so the hosts are normalized in the same way. */
function readRegistryHosts(text: string, context: z.RefinementCtx): ReadonlySet<string> {
  const hosts = new Set<string>();
  for (const entry of text.split(',').map((part) => part.trim().toLowerCase())) {
    if (!isRegistryHost(entry)) {
      context.addIssue(
        `must be a comma list of hosts, each with its port if the images name one, such as registry.internal:5000; "${entry}" is not one`,
      );
      return z.NEVER;
    }
    hosts.add(new URL(`http://${entry}`).host);
  }
  return hosts;
}

function isDatabaseUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return /^postgres(ql)?:$/.test(url?.protocol ?? '') && (url?.pathname.length ?? 0) > 1;
}

function readNames(text: string): readonly string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
