// Tests the configuration: defaults, rules, the list of all problems, and .env.example.
import { describe, expect, it } from 'vitest';
import { type ConfigError, readConfig } from '../src/config/config.ts';
import { unknownVariables } from '../src/config/variables.ts';
import { formatEnvExample, variableNames } from './kit/variables.ts';

function problemsOf(env: Record<string, string>, fileProblems: string[] = []): readonly string[] {
  try {
    readConfig(env, fileProblems);
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
}

it('has a default for every variable', () => {
  const config = readConfig({});
  expect(config).toMatchObject({
    HOST: '127.0.0.1',
    PORT: 8080,
    LOG_LEVEL: 'info',
    REQUIRE_TOKENS: false,
    ADMIN_PATH: '/admin',
    CATALOG_PATH: '/services',
    TOKENS_PATH: '/tokens',
    ADMIN_USERNAME: 'admin',
    CATALOG_NAMESPACE: 'http://www.example.com/schemas/Product/10.0',
    VENDOR_PREFIX: 'svc',
    PRODUCT_NAME: 'Product',
    MAX_UPLOAD_BYTES: 10 * 1024 ** 2,
    MAX_EVENT_IDS: 100_000,
    JOB_HISTORY: 500,
  });
  for (const absent of ['PUBLIC_URL', 'SECRET_KEY_PREVIOUS']) expect(config).not.toHaveProperty(absent);
  expect(readConfig({ PRODUCT_NAME: 'Widget' }).CATALOG_NAMESPACE).toBe(
    'http://www.example.com/schemas/Widget/10.0',
  );
});

it('treats a blank variable as absent, but an empty ADMIN_PATH as the root', () => {
  expect(readConfig({ PORT: '', ADMIN_PASSWORD: '' }).PORT).toBe(8080);
  expect(readConfig({ ADMIN_PATH: '', CATALOG_PATH: '/catalog' }).ADMIN_PATH).toBe('');
});

it.each([
  ['mysql://localhost/steward', false],
  ['localhost:5432/steward', false],
  ['postgres://localhost', false],
  ['postgres://localhost/', false],
  ['postgres://localhost/steward', true],
  ['postgresql://ann:secret@db.internal:5433/steward?sslmode=require', true],
])('STORE_URL=%s is the address of a database: %s', (url, isValid) => {
  const problems = problemsOf({ STORE_URL: url, ADMIN_PASSWORD: 'long enough' });
  expect(problems).toEqual(isValid ? [] : [expect.stringContaining('STORE_URL must be absent (memory) or')]);
});

it.each(['128', '4/5', '4/0', '0/0', '5000/4', '4,4'])('refuses WEBHOOK_CONCURRENCY=%s', (text) => {
  expect(problemsOf({ WEBHOOK_CONCURRENCY: text, ADMIN_PASSWORD: 'long enough' })).toEqual([
    expect.stringContaining(
      'must be two integers from 1 to 4096, the second not above the first, such as 128/4',
    ),
  ]);
});

describe('sign-in at an identity provider', () => {
  const given = { OIDC_ISSUER: 'https://login.example.com/company', OIDC_CLIENT_ID: 'steward' };

  it('has defaults for scopes, claims and the button', () => {
    expect(readConfig({}).oidc).toBeUndefined();
    expect(readConfig(given).oidc).toEqual({
      issuer: 'https://login.example.com/company',
      clientId: 'steward',
      clientSecret: undefined,
      scopes: 'openid profile email',
      label: 'Sign in with your organization',
      claims: {
        username: ['preferred_username', 'email'],
        roles: 'groups',
        roleOf: new Map(),
        defaultRole: undefined,
      },
    });
  });

  it.each([
    ['https://login.example.com', true],
    ['http://localhost:9000/realm', true],
    ['http://127.0.0.1:9000', true],
    ['http://[::1]:9000', true],
    ['http://login.example.com', false],
    ['http://localhost.example.com', false],
    ['https://user@login.example.com', false],
    ['https://login.example.com/?x=1', false],
    ['login.example.com', false],
  ])('OIDC_ISSUER=%s is accepted: %s', (issuer, isValid) => {
    expect(problemsOf({ ...given, OIDC_ISSUER: issuer })).toEqual(
      isValid
        ? []
        : [
            'OIDC_ISSUER must be an https address without user, query or fragment, or an http address of this machine.',
          ],
    );
  });

  it.each([
    ['OIDC_ROLES', '{"a":"owner"}', 'must be a JSON object of groups and roles; a role is one of'],
    ['OIDC_ROLES', '["member"]', 'must be a JSON object of groups and roles; a role is one of'],
    ['OIDC_ROLES', 'a:member', 'must be a JSON object of groups and roles; a role is one of'],
    ['OIDC_DEFAULT_ROLE', 'owner', 'must be one of member, publisher, administrator.'],
    ['OIDC_SCOPES', 'profile email', 'must contain openid.'],
    ['OIDC_SCOPES', 'openid  email', 'must be scopes, separated by blanks.'],
    ['OIDC_LABEL', 'x'.repeat(65), 'must be 1 to 64 characters.'],
    ['LOCAL_SIGN_IN', 'no', 'must be true or false.'],
  ])('refuses %s=%s', (name, value, problem) => {
    expect(problemsOf({ ...given, [name]: value })).toEqual([expect.stringContaining(`${name} ${problem}`)]);
  });

  it('needs the issuer and the client together', () => {
    for (const [name, value] of Object.entries(given))
      expect(problemsOf({ [name]: value })).toEqual([
        'OIDC_ISSUER and OIDC_CLIENT_ID must be given together.',
      ]);
    expect(problemsOf({ LOCAL_SIGN_IN: 'false' })).toEqual([
      'LOCAL_SIGN_IN must not be false without OIDC_ISSUER.',
    ]);
    expect(problemsOf({ ...given, LOCAL_SIGN_IN: 'false' })).toEqual([]);
  });
});

it('reads SECRET_KEY_PREVIOUS with SECRET_KEY and without', () => {
  const [key, previous] = ['k', 'p'].map((letter) => letter.repeat(32)) as [string, string];
  expect(readConfig({ SECRET_KEY_PREVIOUS: previous })).toMatchObject({ SECRET_KEY_PREVIOUS: previous });
  expect(problemsOf({ SECRET_KEY: key, SECRET_KEY_PREVIOUS: 'p'.repeat(31) })).toEqual([
    expect.stringContaining('SECRET_KEY_PREVIOUS must'),
  ]);
  const both = readConfig({ SECRET_KEY: key, SECRET_KEY_PREVIOUS: previous });
  expect([both.SECRET_KEY, both.SECRET_KEY_PREVIOUS]).toEqual([key, previous]);
});

it('looks up images by default on Kubernetes, and never in the simulation', () => {
  const cluster = { UPGRADE_EXECUTOR: 'kubernetes', KUBECONFIG: '/etc/kubeconfig' };
  expect(readConfig(cluster)).toMatchObject({ IMAGE_CHECK: 'auto', REGISTRY_INSECURE: new Set() });
  expect(readConfig({ ...cluster, IMAGE_CHECK: 'required' }).IMAGE_CHECK).toBe('required');
  expect(readConfig({ IMAGE_CHECK: 'required' }).IMAGE_CHECK).toBe('off');
  expect(problemsOf({ IMAGE_CHECK: 'yes' })).toEqual(['IMAGE_CHECK must be auto, required or off.']);
});

it('reads REGISTRY_INSECURE as hosts', () => {
  const { REGISTRY_INSECURE } = readConfig({
    REGISTRY_INSECURE: 'Registry.internal:5000, localhost:80,[::1]:5000, 10.0.0.1',
  });
  expect([...REGISTRY_INSECURE]).toEqual(['registry.internal:5000', 'localhost', '[::1]:5000', '10.0.0.1']);
  for (const wrong of ['http://registry', 'registry/team', 'a:b', '-', 'a,,b', 'registry:99999'])
    expect(problemsOf({ REGISTRY_INSECURE: wrong })).toEqual([
      expect.stringContaining('REGISTRY_INSECURE must be a comma list of hosts'),
    ]);
});

it('requires KUBECONFIG for the Kubernetes executor outside a cluster', () => {
  const env = { UPGRADE_EXECUTOR: 'kubernetes' };
  expect(problemsOf(env)).toEqual([
    'KUBECONFIG must be given with UPGRADE_EXECUTOR=kubernetes outside a cluster.',
  ]);
  expect(problemsOf({ ...env, KUBECONFIG: '/etc/kubeconfig' })).toEqual([]);
  expect(problemsOf({ ...env, KUBERNETES_SERVICE_HOST: '10.0.0.1' })).toEqual([]);
});

it('reads OPTIONAL_CONTAINERS as a comma-separated list', () => {
  expect(readConfig({ OPTIONAL_CONTAINERS: 'UPGRADER, BUSYBOX,' }).OPTIONAL_CONTAINERS).toEqual([
    'UPGRADER',
    'BUSYBOX',
  ]);
});

it('removes the trailing slash of PUBLIC_URL and keeps its path', () => {
  expect(readConfig({ PUBLIC_URL: 'https://example.com/ops/' }).PUBLIC_URL).toBe('https://example.com/ops');
  expect(readConfig({ PUBLIC_URL: 'https://example.com' }).PUBLIC_URL).toBe('https://example.com');
});

it.each([
  ['PORT', '65536'],
  ['PORT', '-1'],
  ['PORT', '80a'],
  ['PUBLIC_URL', 'example.com'],
  ['PUBLIC_URL', 'ftp://example.com'],
  ['PUBLIC_URL', 'https://user@example.com'],
  ['PUBLIC_URL', 'https://example.com/?x'],
  ['ADMIN_PATH', 'admin'],
  ['ADMIN_PATH', '/admin/'],
  ['ADMIN_PATH', '/a b'],
  ['CATALOG_PATH', '/a/../b'],
  ['CATALOG_NAMESPACE', 'not a uri'],
  ['VENDOR_PREFIX', '1svc'],
  ['PRODUCT_NAME', 'x'.repeat(33)],
  ['REQUIRE_TOKENS', 'yes'],
  ['ADMIN_USERNAME', 'a b'],
  ['ADMIN_PASSWORD', 'short'],
  ['ADMIN_PASSWORD', '        '],
  ['ADMIN_PASSWORD', 'abc\u0001defgh'],
  ['SECRET_KEY', 'x'.repeat(31)],
  ['LEGACY_SIGNATURE_HEADER', 'X Signature'],
  ['LEGACY_SIGNATURE_HEADER', 'webhook-signature'],
  ['LEGACY_SIGNATURE_HEADER', 'Content-Type'],
  ['JOB_HISTORY', '0'],
  ['JOB_HISTORY', '100001'],
  ['UPGRADE_EXECUTOR', 'banana'],
  ['UPGRADE_PARALLELISM', '0'],
  ['ROLLOUT_TIMEOUT_SECONDS', '0'],
  ['KUBERNETES_NAMESPACE', 'Team A'],
  ['IMAGE_REGISTRY', 'https://registry.example.com'],
  ['TRUSTED_PROXIES', '10.0.0.0/33'],
  ['TRUSTED_PROXIES', '10.0.0.0/8,proxy.internal'],
  ['MAX_UPLOAD_BYTES', '0'],
  ['MAX_UPLOADS_TOTAL_BYTES', '0'],
  ['UPGRADE_STEP_MS', '600001'],
  ['UPGRADE_STEP_TIMEOUT_SECONDS', '0'],
  ['REVERT_TIMEOUT_SECONDS', '0'],
  ['CLUSTER_PATIENCE_SECONDS', '86401'],
  ['SIMULATED_FAILURES', 'MAP SERVER'],
  ['SIMULATED_FAILURES', 'MAP_SERVER:0'],
  ['SIMULATED_FAILURES', '@no-such-step'],
  ['SIMULATED_FAILURES', '@logging:0'],
  ['SIMULATED_STEP_TEMPLATES', 'logging,launch'],
  ['SIMULATED_STEP_TEMPLATES', 'none,logging'],
  ['STEP_TEMPLATES', 'yes'],
  ['PROFILE', 'strict'],
  ['LOG_LEVEL', 'loud'],
])('refuses %s=%s and names the variable', (name, value) => {
  expect(problemsOf({ [name]: value })).toEqual([expect.stringContaining(`${name} must`)]);
});

it('reads failures of containers and of steps, and the steps that have a template', () => {
  const { SIMULATED_FAILURES } = readConfig({
    SIMULATED_FAILURES: 'map_server, @database-engine:2 ,@logging',
  });
  expect([...SIMULATED_FAILURES]).toEqual([
    ['MAP_SERVER', Infinity],
    ['@database-engine', 2],
    ['@logging', Infinity],
  ]);
  const templates = (SIMULATED_STEP_TEMPLATES?: string) =>
    readConfig({ SIMULATED_STEP_TEMPLATES }).SIMULATED_STEP_TEMPLATES;
  expect(templates('before, logging')).toEqual(['before', 'logging']);
  expect(templates('none')).toEqual([]);
  expect(templates()).not.toContain('before');
});

it('lists all problems together, including those of files', () => {
  const all = problemsOf({ PORT: 'x', ADMIN_PATH: '/services' }, ['CATALOG_FILE: is not JSON.']);
  expect(all.map((problem) => problem.split(' ')[0])).toEqual(['PORT', 'CATALOG_PATH', 'CATALOG_FILE:']);
  expect(problemsOf({ PORT: 'x', LOG_LEVEL: 'loud', ADMIN_PATH: 'admin' })).toHaveLength(3);
});

describe('TEST_CONTROL', () => {
  const on = { TEST_CONTROL: 'true' };
  const tokenRequired =
    'TEST_CONTROL_TOKEN must be given with TEST_CONTROL=true if HOST or the host of PUBLIC_URL is not a loopback ' +
    'address, or if TRUSTED_PROXIES is given.';

  it.each([
    [{ SEED: 'a' }, 'SEED must not be given without TEST_CONTROL=true.'],
    [
      { ...on, STORE_URL: 'postgres://host/database', ADMIN_PASSWORD: 'a password' },
      'STORE_URL must not be given with TEST_CONTROL=true.',
    ],
    [
      { ...on, UPGRADE_EXECUTOR: 'kubernetes', KUBECONFIG: 'file' },
      'UPGRADE_EXECUTOR must be simulated with TEST_CONTROL=true.',
    ],
    [{ ...on, METRICS_PORT: '9090' }, 'METRICS_PORT must not be given with TEST_CONTROL=true.'],
    [{ ...on, HOST: '0.0.0.0' }, tokenRequired],
    [{ ...on, PUBLIC_URL: 'https://steward.example.com' }, tokenRequired],
    [{ ...on, PUBLIC_URL: 'http://127.0.0.1.example.com' }, tokenRequired],
    [{ ...on, TRUSTED_PROXIES: '127.0.0.1' }, tokenRequired],
    [
      { ...on, TEST_CONTROL_TOKEN: 'short' },
      'TEST_CONTROL_TOKEN must be 16 to 1024 letters, digits or . _ ~ + / = -.',
    ],
    [
      { CATALOG_PATH: '/control/x' },
      'CATALOG_PATH (/control/x) and /control must not be the same or lie beneath each other.',
    ],
  ])('%j is refused', (env, problem) => {
    expect(problemsOf(env as Record<string, string>)).toEqual([problem]);
  });

  it.each([
    { HOST: 'localhost' },
    { HOST: '127.0.0.2' },
    { HOST: '::1', SEED: 'a seed' },
    { PUBLIC_URL: 'http://localhost:8080/base' },
    { PUBLIC_URL: 'http://[::1]:8080' },
    { HOST: '0.0.0.0', TEST_CONTROL_TOKEN: 'a-token-of-tests' },
    { PUBLIC_URL: 'https://steward.example.com', TEST_CONTROL_TOKEN: 'a-token-of-tests' },
    { TRUSTED_PROXIES: '127.0.0.1', TEST_CONTROL_TOKEN: 'a-token-of-tests' },
  ])('is accepted with %j', (env) => {
    expect(problemsOf({ ...on, ...env })).toEqual([]);
  });
});

describe('paths that overlap', () => {
  it.each([
    [{ ADMIN_PATH: '/services' }, ['CATALOG_PATH (/services) and ADMIN_PATH (/services)']],
    [{ CATALOG_PATH: '/admin/catalog' }, ['CATALOG_PATH (/admin/catalog) and ADMIN_PATH (/admin)']],
    [{ TOKENS_PATH: '/health' }, ['TOKENS_PATH (/health) and /health']],
    [{ ADMIN_PATH: '/health/x' }, ['ADMIN_PATH (/health/x) and /health']],
    [{ ADMIN_PATH: '' }, ['CATALOG_PATH (/services) and the /services of an empty ADMIN_PATH']],
    [
      { ADMIN_PATH: '', CATALOG_PATH: '/c', TOKENS_PATH: '/mode' },
      ['TOKENS_PATH (/mode) and the /mode of an empty ADMIN_PATH'],
    ],
    [
      { ADMIN_PATH: '/a', CATALOG_PATH: '/a', TOKENS_PATH: '/a' },
      ['CATALOG_PATH', 'TOKENS_PATH', 'TOKENS_PATH'],
    ],
  ])('%j is refused', (env, expected) => {
    expect(problemsOf(env as Record<string, string>)).toEqual(
      expected.map((text) => expect.stringContaining(text) as string),
    );
  });

  it('a path that only begins with the name of another is accepted', () => {
    expect(problemsOf({ ADMIN_PATH: '/services2' })).toEqual([]);
  });
});

it('finds variables that look like those of Steward and are none, but not those of a Kubernetes service', () => {
  const names = [
    'UPGRADE_STEPMS',
    'TEST_CONTROLL',
    'TEST_CONTROL',
    'UPGRADE_SERVICE_HOST',
    'WEBHOOK_PORT',
    'PATH',
  ];
  expect(unknownVariables(names)).toEqual(['UPGRADE_STEPMS', 'TEST_CONTROLL']);
});

describe('.env.example', () => {
  const given = [...formatEnvExample().matchAll(/^# ([A-Z][A-Z0-9_]*)=(.*)$/gm)];
  const values = Object.fromEntries(given.map(([, name = '', value = '']) => [name, value]));

  it('is up to date; `npm run env-example` writes it', async () => {
    await expect(formatEnvExample()).toMatchFileSnapshot('../.env.example');
  });

  it('lists every variable of a server once, with a description', () => {
    const ofTests = /^(TEST_CONTROL|TEST_CONTROL_TOKEN|SEED|UPGRADE_STEP_MS|SIMULATED_.*)$/;
    expect(given.map(([, name]) => name)).toEqual(variableNames.filter((name) => !ofTests.test(name)));
    expect(formatEnvExample()).not.toMatch(/^\n#? ?[A-Z][A-Z0-9_]*=/m);
  });

  it('shows the defaults', () => {
    expect(readConfig(values)).toEqual(readConfig({}));
  });
});
