// Reads the environment variables, checks them and makes the configuration of them.
import type * as z from 'zod';
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
    ...value,
    CATALOG_NAMESPACE: value.CATALOG_NAMESPACE ?? `http://www.example.com/schemas/${value.PRODUCT_NAME}/10.0`,
    WEBHOOK_MAX_PENDING_BYTES: value.WEBHOOK_MAX_PENDING_BYTES ?? (isInMemory ? 64 : 256) * 1024 ** 2,
    IMAGE_CHECK: value.UPGRADE_EXECUTOR === 'kubernetes' ? value.IMAGE_CHECK : 'off',
    oidc: value.OIDC_ISSUER === undefined ? undefined : oidcOf(value, value.OIDC_ISSUER),
    storePatienceMs: value.STORE_PATIENCE_SECONDS * 1000,
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
