// Environment → Config. Every variable, its default and its limits; `.env.example` is held to this file by a test.
import { BlockList } from 'node:net';
import { z } from 'zod';
import { isPassword, passwordRule, usernames } from './auth/user.ts';
import { isDatabaseUrl, readCidrs, readFailures, readNames, readPublicUrl } from './variables.ts';

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

function integer(from: number, to: number) {
  return z
    .string()
    .regex(/^[0-9]{1,15}$/, `must be an integer from ${from} to ${to}`)
    .transform(Number)
    .refine((value) => value >= from && value <= to, `must be an integer from ${from} to ${to}`);
}

const variables = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: integer(0, 65535).default(8080),
  PUBLIC_URL: z.string().transform(readPublicUrl).optional(),
  ADMIN_PATH: z.literal('').or(path).default('/admin'),
  CATALOG_PATH: path.default('/services'),
  TOKENS_PATH: path.default('/tokens'),
  CATALOG_NAMESPACE: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"'&{}|\\^`]+$/, 'must be an absolute URI')
    .optional(),
  VENDOR_PREFIX: name.default('svc'),
  PRODUCT_NAME: name.default('Product'),
  REQUIRE_TOKENS: flag.default(false),
  CATALOG_FILE: z.string().optional(),
  ADMIN_USERNAME: z.string().regex(usernames.pattern, `must be ${usernames.allowed}`).default('admin'),
  ADMIN_PASSWORD: z.string().refine(isPassword, `must be ${passwordRule}`).optional(),
  TRUSTED_PROXIES: z.string().transform(readCidrs).optional(),
  WEBHOOK_ALLOW_CIDRS: z.string().transform(readCidrs).optional(),
  WEBHOOK_CONCURRENCY: integer(1, 1000).default(64),
  WEBHOOK_HISTORY: integer(0, 10_000).default(100),
  WEBHOOK_MAX_PENDING: integer(1, 10_000_000).default(100_000),
  MAX_UPLOAD_BYTES: integer(1, 1024 ** 3).default(10 * 1024 ** 2),
  MAX_UPLOADS_TOTAL_BYTES: integer(1, 1024 ** 4).default(256 * 1024 ** 2),
  UPGRADE_STEP_MS: integer(0, 600_000).default(95),
  UPGRADE_STEP_TIMEOUT_SECONDS: integer(1, 86_400).default(1800),
  SIMULATED_FAILURES: z.string().transform(readFailures).optional(),
  ERROR_STATUS: z.literal('200', 'must be 200 or absent').optional(),
  STORE_URL: z
    .string()
    .refine(
      isDatabaseUrl,
      'must be absent (memory) or an address such as postgres://user:password@host:5432/database',
    )
    .optional(),
  SECRET_KEY: z
    .string()
    .regex(/^.{32,1024}$/s, 'must be 32 to 1024 characters')
    .optional(),
  UPGRADE_EXECUTOR: z
    .enum(['simulated', 'kubernetes'], 'must be simulated or kubernetes')
    .default('simulated'),
  KUBECONFIG: z.string().optional(),
  KUBERNETES_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be the name of a namespace')
    .optional(),
  UPGRADE_PARALLELISM: integer(1, 100).default(1),
  ROLLOUT_TIMEOUT_SECONDS: integer(1, 86_400).default(600),
  IMAGE_REGISTRY: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(\/[a-z0-9._-]+)*$/,
      'must be a registry such as registry.example.com/team',
    )
    .optional(),
  OPTIONAL_CONTAINERS: z.string().transform(readNames).optional(),
  LOG_LEVEL: z
    .enum(['silent', 'error', 'warn', 'info', 'debug'], 'must be one of silent, error, warn, info, debug')
    .default('info'),
});

export const variableNames: readonly string[] = Object.keys(variables.shape);

export type Config = Readonly<{
  host: string;
  port: number;
  /** Undefined: `http://localhost:{the port bound}`. No trailing slash. */
  publicUrl: string | undefined;
  adminPath: string;
  catalogPath: string;
  tokensPath: string;
  catalogNamespace: string;
  vendorPrefix: string;
  productName: string;
  requireTokens: boolean;
  adminUsername: string;
  adminPassword: string | undefined;
  /** Undefined: in memory. */
  storeUrl: string | undefined;
  /** What webhook keys are encrypted with in a database. */
  secretKey: string | undefined;
  trustedProxies: BlockList;
  /** Special addresses that webhooks may point to all the same. */
  webhookAllowCidrs: BlockList;
  webhookConcurrency: number;
  webhookHistory: number;
  webhookMaxPending: number;
  maxUploadBytes: number;
  maxUploadsTotalBytes: number;
  upgradeExecutor: 'simulated' | 'kubernetes';
  upgradeStepMs: number;
  upgradeStepTimeoutMs: number;
  /** Undefined: the cluster that the process runs in. */
  kubeconfig: string | undefined;
  /** Undefined: that of the configuration of the cluster. */
  kubernetesNamespace: string | undefined;
  upgradeParallelism: number;
  rolloutTimeoutMs: number;
  imageRegistry: string | undefined;
  optionalContainers: readonly string[];
  /** Container names in capitals, and how often their update fails. */
  simulatedFailures: ReadonlyMap<string, number>;
  /** Answer JSON errors of the REST API with HTTP 200. */
  errorStatus200: boolean;
  logLevel: 'silent' | 'error' | 'warn' | 'info' | 'debug';
}>;

export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/**
 * Throws a ConfigError with every problem at once, those found in the files it names among them. A blank variable counts
 * as absent, except ADMIN_PATH.
 */
export function readConfig(
  env: Readonly<Record<string, string | undefined>>,
  problemsOfFiles: readonly string[] = [],
): Config {
  const given = Object.fromEntries(
    Object.entries(env).filter(([key, value]) => value !== '' || key === 'ADMIN_PATH'),
  );
  const parsed = variables.safeParse(given);
  const paths = variables.pick({ ADMIN_PATH: true, CATALOG_PATH: true, TOKENS_PATH: true }).safeParse(given);
  const problems = [
    ...(parsed.error?.issues ?? []).map((issue) => `${issue.path.join('.')} ${issue.message}.`),
    ...(paths.success ? findOverlaps(paths.data) : []),
    // One that was made up would be known to the first process alone.
    ...(given.STORE_URL !== undefined && given.ADMIN_PASSWORD === undefined
      ? ['ADMIN_PASSWORD must be given with STORE_URL.']
      : []),
    // A process inside a cluster is told by this where the cluster is.
    ...(given.UPGRADE_EXECUTOR === 'kubernetes' &&
    (given.KUBECONFIG ?? given.KUBERNETES_SERVICE_HOST) === undefined
      ? ['KUBECONFIG must be given with UPGRADE_EXECUTOR=kubernetes outside a cluster.']
      : []),
    ...problemsOfFiles,
  ];
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  const value = parsed.data;
  return Object.freeze({
    host: value.HOST,
    port: value.PORT,
    publicUrl: value.PUBLIC_URL,
    adminPath: value.ADMIN_PATH,
    catalogPath: value.CATALOG_PATH,
    tokensPath: value.TOKENS_PATH,
    catalogNamespace: value.CATALOG_NAMESPACE ?? `http://www.example.com/schemas/${value.PRODUCT_NAME}/10.0`,
    vendorPrefix: value.VENDOR_PREFIX,
    productName: value.PRODUCT_NAME,
    requireTokens: value.REQUIRE_TOKENS,
    adminUsername: value.ADMIN_USERNAME,
    adminPassword: value.ADMIN_PASSWORD,
    storeUrl: value.STORE_URL,
    secretKey: value.SECRET_KEY,
    trustedProxies: value.TRUSTED_PROXIES ?? new BlockList(),
    webhookAllowCidrs: value.WEBHOOK_ALLOW_CIDRS ?? new BlockList(),
    webhookConcurrency: value.WEBHOOK_CONCURRENCY,
    webhookHistory: value.WEBHOOK_HISTORY,
    webhookMaxPending: value.WEBHOOK_MAX_PENDING,
    maxUploadBytes: value.MAX_UPLOAD_BYTES,
    maxUploadsTotalBytes: value.MAX_UPLOADS_TOTAL_BYTES,
    upgradeExecutor: value.UPGRADE_EXECUTOR,
    upgradeStepMs: value.UPGRADE_STEP_MS,
    upgradeStepTimeoutMs: value.UPGRADE_STEP_TIMEOUT_SECONDS * 1000,
    kubeconfig: value.KUBECONFIG,
    kubernetesNamespace: value.KUBERNETES_NAMESPACE,
    upgradeParallelism: value.UPGRADE_PARALLELISM,
    rolloutTimeoutMs: value.ROLLOUT_TIMEOUT_SECONDS * 1000,
    imageRegistry: value.IMAGE_REGISTRY,
    optionalContainers: value.OPTIONAL_CONTAINERS ?? [],
    simulatedFailures: value.SIMULATED_FAILURES ?? new Map<string, number>(),
    errorStatus200: value.ERROR_STATUS === '200',
    logLevel: value.LOG_LEVEL,
  });
}

/** The first segments of the admin tree: an empty ADMIN_PATH claims them at the root. */
export const adminNames: readonly string[] = [
  'assets',
  'mode',
  'openapi.json',
  'security',
  'services',
  'system',
  'uploads',
];

const fixedPaths = ['/health', '/ready', '/metrics'];

function findOverlaps(paths: { ADMIN_PATH: string; CATALOG_PATH: string; TOKENS_PATH: string }): string[] {
  const claims = [
    ...fixedPaths.map((fixed) => ({ owner: fixed, path: fixed })),
    ...(paths.ADMIN_PATH === ''
      ? adminNames.map((name) => ({ owner: `the /${name} of an empty ADMIN_PATH`, path: `/${name}` }))
      : [{ owner: `ADMIN_PATH (${paths.ADMIN_PATH})`, path: paths.ADMIN_PATH }]),
    { owner: `CATALOG_PATH (${paths.CATALOG_PATH})`, path: paths.CATALOG_PATH },
    { owner: `TOKENS_PATH (${paths.TOKENS_PATH})`, path: paths.TOKENS_PATH },
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
