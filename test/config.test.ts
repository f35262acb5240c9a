// Configuration: defaults, every problem at once, and .env.example.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ConfigError } from '../src/config.ts';
import { readConfig, variableNames } from '../src/config.ts';

function problemsOf(env: Record<string, string>, ofFiles: string[] = []): readonly string[] {
  try {
    readConfig(env, ofFiles);
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
}

it('has the defaults of the contract', () => {
  expect(readConfig({})).toMatchObject({
    host: '127.0.0.1',
    port: 8080,
    publicUrl: undefined,
    logLevel: 'info',
    requireTokens: false,
    adminPath: '/admin',
    catalogPath: '/services',
    tokensPath: '/tokens',
    adminUsername: 'admin',
    catalogNamespace: 'http://www.example.com/schemas/Product/10.0',
    vendorPrefix: 'svc',
    productName: 'Product',
    errorStatus200: false,
    maxUploadBytes: 10 * 1024 ** 2,
  });
  expect(readConfig({ PRODUCT_NAME: 'Widget' }).catalogNamespace).toBe(
    'http://www.example.com/schemas/Widget/10.0',
  );
});

it('takes a blank variable for an absent one, but an empty ADMIN_PATH for the root', () => {
  expect(readConfig({ PORT: '', ADMIN_PASSWORD: '' }).port).toBe(8080);
  expect(readConfig({ ADMIN_PATH: '', CATALOG_PATH: '/catalog' }).adminPath).toBe('');
});

it.each([
  ['mysql://localhost/steward', false],
  ['localhost:5432/steward', false],
  ['postgres://localhost', false],
  ['postgres://localhost/', false],
  ['postgres://localhost/steward', true],
  ['postgresql://ann:secret@db.internal:5433/steward?sslmode=require', true],
])('STORE_URL=%s is an address of a database: %s', (url, isGood) => {
  const problems = problemsOf({ STORE_URL: url, ADMIN_PASSWORD: 'long enough' });
  expect(problems).toEqual(isGood ? [] : [expect.stringContaining('STORE_URL must be absent (memory) or')]);
});

it('wants a password for the first administrator that all processes know', () => {
  expect(problemsOf({ STORE_URL: 'postgres://localhost/steward' })).toEqual([
    'ADMIN_PASSWORD must be given with STORE_URL.',
  ]);
});

it('wants to know where the cluster is, unless it runs in it', () => {
  const env = { UPGRADE_EXECUTOR: 'kubernetes' };
  expect(problemsOf(env)).toEqual([
    'KUBECONFIG must be given with UPGRADE_EXECUTOR=kubernetes outside a cluster.',
  ]);
  expect(problemsOf({ ...env, KUBECONFIG: '/etc/kubeconfig' })).toEqual([]);
  expect(problemsOf({ ...env, KUBERNETES_SERVICE_HOST: '10.0.0.1' })).toEqual([]);
});

it('takes the containers that need not be there as a comma list', () => {
  expect(readConfig({ OPTIONAL_CONTAINERS: 'UPGRADER, BUSYBOX,' }).optionalContainers).toEqual([
    'UPGRADER',
    'BUSYBOX',
  ]);
});

it('drops the trailing slash of PUBLIC_URL and keeps its path', () => {
  expect(readConfig({ PUBLIC_URL: 'https://example.com/ops/' }).publicUrl).toBe('https://example.com/ops');
  expect(readConfig({ PUBLIC_URL: 'https://example.com' }).publicUrl).toBe('https://example.com');
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
  ['SIMULATED_FAILURES', 'MAP SERVER'],
  ['SIMULATED_FAILURES', 'MAP_SERVER:0'],
  ['ERROR_STATUS', '500'],
  ['LOG_LEVEL', 'loud'],
])('%s=%s is refused by name', (name, value) => {
  expect(problemsOf({ [name]: value })).toEqual([expect.stringContaining(`${name} must`)]);
});

it('lists every problem at once, also those of the files it names', () => {
  const all = problemsOf({ PORT: 'x', ADMIN_PATH: '/services' }, ['CATALOG_FILE: is not JSON.']);
  expect(all.map((problem) => problem.split(' ')[0])).toEqual(['PORT', 'CATALOG_PATH', 'CATALOG_FILE:']);
  expect(problemsOf({ PORT: 'x', LOG_LEVEL: 'loud', ADMIN_PATH: 'admin' })).toHaveLength(3);
});

describe('paths must not overlap', () => {
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
  ])('%j', (env, expected) => {
    expect(problemsOf(env as Record<string, string>)).toEqual(
      expected.map((text) => expect.stringContaining(text) as string),
    );
  });

  it('a name that only begins alike is no overlap', () => {
    expect(problemsOf({ ADMIN_PATH: '/services2' })).toEqual([]);
  });
});

describe('.env.example', () => {
  const lines = readFileSync(new URL('../.env.example', import.meta.url), 'utf8').split('\n');
  const given = lines.flatMap((line) => {
    const [, name, value] = /^#? ?([A-Z][A-Z0-9_]*)=(.*)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, value ?? ''] as const];
  });

  it('lists every variable, and no other', () => {
    expect(given.map(([name]) => name).sort()).toEqual([...variableNames].sort());
  });

  it('shows values that are accepted', () => {
    expect(problemsOf(Object.fromEntries(given))).toEqual([]);
  });

  it('shows the defaults where there are any', () => {
    const shown = readConfig(Object.fromEntries(given));
    const { host, port, adminPath, catalogPath, tokensPath, catalogNamespace, logLevel, maxUploadBytes } =
      readConfig({});
    expect(shown).toMatchObject({
      host,
      port,
      adminPath,
      catalogPath,
      tokensPath,
      catalogNamespace,
      logLevel,
      maxUploadBytes,
    });
  });
});
