// Reads the environment variables, checks them and makes the configuration of them.
import type * as z from 'zod';
import { isLoopbackHost } from '../lib/address.ts';
import { profiles } from './profile.ts';
import { variables } from './variables.ts';

export type Config = ReturnType<typeof readConfig>;

export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/**
 * The variables by their names, and what is derived from them in lower case. A blank ADMIN_PATH puts the admin
 * directory at the root. Any other blank variable counts as absent.
 */
export function readConfig(
  env: Readonly<Record<string, string | undefined>>,
  fileProblems: readonly string[] = [],
) {
  const given = Object.fromEntries(
    Object.entries(env).filter(([key, value]) => value !== '' || key === 'ADMIN_PATH'),
  );
  // zod would compile a function, which only pays if it is called often.
  const parsed = variables.safeParse(given, { jitless: true });
  const problems = [
    ...(parsed.error?.issues ?? []).map((issue) => `${issue.path.join('.')} ${issue.message}.`),
    ...findCombinationProblems(given),
    ...fileProblems,
  ];
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  const value = parsed.data;
  const isInMemory = value.STORE_URL === undefined;
  return Object.freeze({
    ...value,
    CATALOG_NAMESPACE: value.CATALOG_NAMESPACE ?? `http://www.example.com/schemas/${value.PRODUCT_NAME}/10.0`,
    WEBHOOK_MAX_PENDING_BYTES: value.WEBHOOK_MAX_PENDING_BYTES ?? (isInMemory ? 64 : 256) * 1024 ** 2,
    rules: profiles[value.PROFILE],
    IMAGE_CHECK: value.UPGRADE_EXECUTOR === 'kubernetes' ? value.IMAGE_CHECK : 'off',
    oidc: value.OIDC_ISSUER === undefined ? undefined : oidcOf(value, value.OIDC_ISSUER),
    upgradeStepTimeoutMs: value.UPGRADE_STEP_TIMEOUT_SECONDS * 1000,
    scheduleGraceMs: value.SCHEDULE_GRACE_MINUTES * 60_000,
    revertTimeoutMs: value.REVERT_TIMEOUT_SECONDS * 1000,
    rolloutTimeoutMs: value.ROLLOUT_TIMEOUT_SECONDS * 1000,
    clusterPatienceMs: value.CLUSTER_PATIENCE_SECONDS * 1000,
  });
}

function oidcOf(value: z.output<typeof variables>, issuer: string) {
  return {
    issuer,
    clientId: value.OIDC_CLIENT_ID ?? '',
    clientSecret: value.OIDC_CLIENT_SECRET,
    scopes: value.OIDC_SCOPES,
    label: value.OIDC_LABEL,
    claims: {
      username:
        value.OIDC_USERNAME_CLAIM === undefined
          ? ['preferred_username', 'email']
          : [value.OIDC_USERNAME_CLAIM],
      roles: value.OIDC_ROLES_CLAIM,
      roleOf: value.OIDC_ROLES,
      defaultRole: value.OIDC_DEFAULT_ROLE,
    },
  };
}

/** An empty ADMIN_PATH reserves these names at the root. */
export const adminNames: readonly string[] = [
  'assets',
  'generateToken',
  'jobs',
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

/** Problems of variables that are correct alone but not together. */
function findCombinationProblems(given: Readonly<Record<string, string | undefined>>): string[] {
  const paths = pathVariables.safeParse(given);
  const problems = paths.success ? findOverlaps(paths.data) : [];
  // Kubernetes sets KUBERNETES_SERVICE_HOST in every container.
  const cluster = given.KUBECONFIG ?? given.KUBERNETES_SERVICE_HOST;
  if (given.UPGRADE_EXECUTOR === 'kubernetes' && cluster === undefined)
    problems.push('KUBECONFIG must be given with UPGRADE_EXECUTOR=kubernetes outside a cluster.');
  return [...problems, ...findSignInProblems(given), ...findTestControlProblems(given)];
}

function findSignInProblems(given: Readonly<Record<string, string | undefined>>): string[] {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: client, LOCAL_SIGN_IN: local } = given;
  if ((issuer === undefined) !== (client === undefined))
    return ['OIDC_ISSUER and OIDC_CLIENT_ID must be given together.'];
  return issuer === undefined && local?.toLowerCase() === 'false'
    ? ['LOCAL_SIGN_IN must not be false without OIDC_ISSUER.']
    : [];
}

function findTestControlProblems(given: Readonly<Record<string, string | undefined>>): string[] {
  const isControlled = given.TEST_CONTROL?.toLowerCase() === 'true';
  if (!isControlled)
    return given.SEED === undefined ? [] : ['SEED must not be given without TEST_CONTROL=true.'];
  const problems = [
    given.STORE_URL !== undefined && 'STORE_URL must not be given with TEST_CONTROL=true.',
    given.METRICS_PORT !== undefined && 'METRICS_PORT must not be given with TEST_CONTROL=true.',
    (given.UPGRADE_EXECUTOR ?? 'simulated') !== 'simulated' &&
      'UPGRADE_EXECUTOR must be simulated with TEST_CONTROL=true.',
    given.TEST_CONTROL_TOKEN === undefined &&
      !isForThisMachine(given) &&
      'TEST_CONTROL_TOKEN must be given with TEST_CONTROL=true if HOST or the host of PUBLIC_URL is not a loopback ' +
        'address, or if TRUSTED_PROXIES is given.',
  ];
  return problems.filter((problem) => problem !== false);
}

/** A proxy on this machine makes a server public that listens on a loopback address. */
function isForThisMachine({
  HOST = 'localhost',
  PUBLIC_URL = '',
  TRUSTED_PROXIES,
}: Readonly<Record<string, string | undefined>>): boolean {
  const publicHost = URL.canParse(PUBLIC_URL) ? new URL(PUBLIC_URL).hostname : 'localhost';
  return isLoopbackHost(HOST) && isLoopbackHost(publicHost) && TRUSTED_PROXIES === undefined;
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
