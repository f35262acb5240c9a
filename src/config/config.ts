// Reads the environment variables, checks them and makes the configuration of them.
import type * as z from 'zod';
import type { Role } from '../lib/caller.ts';
import { findCombinationProblems } from './combinations.ts';
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
    oidc: value.OIDC_ISSUER === undefined ? undefined : oidcOf(value, value.OIDC_ISSUER),
    localSignIn: value.LOCAL_SIGN_IN,
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
    storeConnections: value.STORE_CONNECTIONS,
    storePatienceMs: value.STORE_PATIENCE_SECONDS * 1000,
    secretKey: value.SECRET_KEY,
    secretKeyPrevious: value.SECRET_KEY_PREVIOUS,
    upgradeExecutor: value.UPGRADE_EXECUTOR,
    upgradeStepTimeoutMs: value.UPGRADE_STEP_TIMEOUT_SECONDS * 1000,
    scheduleGraceMs: value.SCHEDULE_GRACE_MINUTES * 60_000,
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
    metricsToken: value.METRICS_TOKEN,
    metricsPort: value.METRICS_PORT,
    consoleName: value.CONSOLE_NAME,
    consoleColor: value.CONSOLE_COLOR,
    logLevel: value.LOG_LEVEL,
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
      roleOf: value.OIDC_ROLES ?? new Map<string, Role>(),
      defaultRole: value.OIDC_DEFAULT_ROLE,
    },
  };
}
