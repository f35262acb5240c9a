// Validates the files in examples/ that other tools read: the Compose file, the catalog and the manifests of
// Kubernetes.
import type {
  V1Deployment,
  V1Ingress,
  V1NetworkPolicy,
  V1Role,
  V1Service,
  V1ValidatingAdmissionPolicy,
} from '@kubernetes/client-node';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readCatalogFile } from '../../../src/app/catalog-file.ts';
import { readConfig } from '../../../src/config/config.ts';
import { problemsOf, readManifests, readYaml } from '../../kit/manifests.ts';
import { startSteward } from '../../kit/steward.ts';
import { variableNames } from '../../kit/variables.ts';
import { startApiServer } from '../../kubernetes/api-server.ts';
import { checkout, patience, pathOf, run, succeeds, textOf } from './kit.ts';

const hasCompose = succeeds('docker-compose', 'version');
const hasSystemd = succeeds('systemd-analyze', '--version');
const hasKubectl = succeeds('kubectl', 'version', '--client');

it('every example is in the README of examples/', () => {
  const readme = textOf('examples/README.md');
  const missing = readdirSync(pathOf('examples')).filter(
    (name) => !name.startsWith('.') && !readme.includes(name),
  );
  expect(missing).toEqual(['README.md']);
});

describe('steward@.service', () => {
  const text = textOf('examples/steward@.service');

  it('starts a file that the package has, with variables from a file, and waits for its end', () => {
    const [, main = ''] = /^ExecStart=\S+ \S+\/node_modules\/steward\/(\S+)$/m.exec(text) ?? [];
    expect(existsSync(pathOf(main))).toBe(true);
    expect(text).toMatch(/^EnvironmentFile=\S+$/m);
    const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(text) ?? [];
    expect(Number(seconds)).toBeGreaterThan(12.5);
  });

  it.skipIf(!hasSystemd)('is accepted by systemd', patience, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'steward-unit-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    // The path of Node differs between machines.
    writeFileSync(join(directory, 'steward@.service'), text.replace('/usr/bin/node', process.execPath));
    const { stderr } = await run('systemd-analyze', ['verify', join(directory, 'steward@8081.service')]);
    expect(stderr).toBe('');
  });
});

describe('compose.yaml', () => {
  type Service = {
    build?: { context: string; dockerfile: string };
    environment: Record<string, string>;
    healthcheck: { test: string[] };
    volumes?: string[];
    ports?: string[];
    depends_on?: Record<string, { condition: string }>;
  };
  const text = textOf('examples/compose.yaml');
  const { services, volumes } = readYaml(text) as { services: Record<string, Service>; volumes: object };
  const secrets = { POSTGRES_PASSWORD: 'a1', ADMIN_PASSWORD: 'correct horse', SECRET_KEY: 'k'.repeat(48) };
  const substitute = (values: Record<string, string>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => [
        name,
        value.replaceAll(/\$\{(\w+)(?::-([^}]*)|:\?[^}]+)\}/g, (_, secret: string, fallback = '') =>
          String((secrets as Record<string, string>)[secret] ?? fallback),
        ),
      ]),
    );

  it('builds Steward, and starts it when the database is healthy', () => {
    expect(Object.keys(services)).toEqual(['steward', 'database']);
    const { build, depends_on, ports } = services.steward ?? {};
    expect(existsSync(join(pathOf('examples'), build?.context ?? '', build?.dockerfile ?? ''))).toBe(true);
    expect(depends_on).toEqual({ database: { condition: 'service_healthy' } });
    expect(ports).toEqual(['127.0.0.1:8080:8080']);
    expect(services.database?.volumes?.map((volume) => volume.split(':')[0])).toEqual(Object.keys(volumes));
  });

  it('sets variables that the server accepts, and contains no secret', () => {
    const env = substitute(services.steward?.environment ?? {});
    expect(Object.keys(env).filter((name) => !variableNames.includes(name))).toEqual([]);
    const { STORE_URL, SECRET_KEY, ADMIN_PASSWORD } = readConfig(env);
    const { username, password, host, pathname } = new URL(STORE_URL ?? '');
    const database = substitute(services.database?.environment ?? {});
    expect([username, password, host, pathname]).toEqual([
      database.POSTGRES_USER,
      database.POSTGRES_PASSWORD,
      'database:5432',
      `/${database.POSTGRES_DB ?? ''}`,
    ]);
    expect([password, ADMIN_PASSWORD, SECRET_KEY]).toEqual(Object.values(secrets));
    const uses = [...text.matchAll(/\$\{(\w+)(:.)/g)].filter(([, name = '']) => name in secrets);
    // Only the first start needs the password of the administrator.
    for (const [, name, operator] of uses) expect(operator).toBe(name === 'ADMIN_PASSWORD' ? ':-' : ':?');
  });

  it('compose.test.yaml sets variables that the server accepts', () => {
    const example = readYaml(textOf('examples/compose.test.yaml')) as { services: Record<string, Service> };
    const { environment, build, healthcheck } = example.services.steward ?? { environment: {} };
    const { HOST, ...env } = {
      ...substitute(environment),
      TEST_CONTROL_TOKEN: 't'.repeat(48),
      HOST: '0.0.0.0',
    };
    expect(Object.keys(env).filter((name) => !variableNames.includes(name))).toEqual([]);
    expect(readConfig({ ...env, HOST })).toMatchObject({ TEST_CONTROL: true, UPGRADE_STEP_MS: 0 });
    expect([build, healthcheck?.test]).toEqual([services.steward?.build, services.steward?.healthcheck.test]);
  });

  it('has a health check that succeeds when the server is ready', patience, async () => {
    const [kind, command = '', ...args] = services.steward?.healthcheck.test ?? [];
    expect([kind, command]).toEqual(['CMD', 'node']);
    const { address } = await startSteward();
    const check = (target: string) =>
      run(
        command,
        args.map((arg) => arg.replace('http://127.0.0.1:8080', target)),
      );
    expect(args.join(' ')).toContain('http://127.0.0.1:8080/ready');
    expect((await check(address)).code).toBe(0);
    expect((await check(`${address}/services/nothing`)).code).toBe(1);
    expect((await check('http://127.0.0.1:1')).code).toBe(1);
  });

  it.skipIf(!hasCompose)('is accepted by docker-compose, but not with a blank secret', patience, async () => {
    // Variables of the environment replace those of a file examples/.env.
    const config = (env: Record<string, string>) =>
      run('docker-compose', ['-f', 'examples/compose.yaml', 'config'], env);
    const accepted = await config(secrets);
    expect(accepted.stderr).toBe('');
    expect(accepted.stdout).toContain('STORE_URL: postgres://steward:a1@database:5432/steward');
    const refused = await config({ ...secrets, SECRET_KEY: '' });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('set it in examples/.env');
  });
});

describe('catalog.json', () => {
  it('has no problems', () => {
    const result = readCatalogFile(textOf('examples/catalog.json'));
    expect(result).not.toHaveProperty('problems');
  });

  it('is the catalog of a server that starts with it', patience, async () => {
    const { act } = await startSteward({ CATALOG_FILE: pathOf('examples/catalog.json') });
    expect(await act('services')).toMatchObject({
      folders: ['Archive', 'Harbour', 'Operations'],
      services: [{ serviceName: 'Coastline', type: 'MapServer' }],
    });
    expect(await act('services/Harbour')).toMatchObject({
      description: 'Services for ships.',
      services: [
        { serviceName: 'Berths', access: 'organization' },
        { serviceName: 'Depths', type: 'FeatureServer', parentType: 'MapServer' },
        { serviceName: 'Depths', type: 'MapServer' },
        { serviceName: 'Tides', url: 'https://tides.example.com/forecast' },
      ],
    });
  });
});

describe('the manifests', () => {
  const find = (path: string, kind: string) => {
    const found = readManifests(textOf(path)).find((one) => one.kind === kind);
    if (!found) throw new Error(`${path} has no ${kind}`);
    return found;
  };
  const ingressManifest = find('examples/ingress.yaml', 'Ingress');
  const policyManifest = find('examples/networkpolicy.yaml', 'NetworkPolicy');
  const monitor = find('examples/podmonitor.yaml', 'PodMonitor') as unknown as {
    spec: { jobLabel: string; selector: object; podMetricsEndpoints: { port: string }[] };
  };
  const ingress = ingressManifest as V1Ingress;
  const policy = policyManifest as V1NetworkPolicy;
  const service = find('deploy/kubernetes/service.yaml', 'Service') as V1Service;
  const deployment = find('deploy/kubernetes/deployment.yaml', 'Deployment') as V1Deployment;
  const pods = deployment.spec?.template;
  const config = readConfig({});

  it('match the types of Kubernetes', () => {
    const admission = readManifests(textOf('examples/admissionpolicy.yaml'));
    expect(problemsOf([ingressManifest, policyManifest, ...admission])).toEqual([]);
    const broken = textOf('examples/networkpolicy.yaml').replace('podSelector', 'podSelectors');
    expect(problemsOf(readManifests(broken))).not.toEqual([]);
  });

  it('the ingress sends the paths of clients, and no others, to the Service', () => {
    const [rule, ...others] = ingress.spec?.rules ?? [];
    expect(others).toEqual([]);
    expect(ingress.spec?.tls?.[0]?.hosts).toEqual([rule?.host]);
    const paths = rule?.http?.paths ?? [];
    expect(paths.map(({ path, pathType }) => [path, pathType])).toEqual([
      ['/', 'Exact'],
      [config.ADMIN_PATH, 'Prefix'],
      [config.CATALOG_PATH, 'Prefix'],
      [config.TOKENS_PATH, 'Prefix'],
      [config.REST_PATH, 'Prefix'],
    ]);
    for (const { backend } of paths)
      expect(backend.service).toEqual({
        name: service.metadata?.name,
        port: { name: service.spec?.ports?.[0]?.name },
      });
  });

  it('the ingress allows the longest answer and the largest body', () => {
    const { annotations = {} } = ingress.metadata ?? {};
    expect(Number(annotations['nginx.ingress.kubernetes.io/proxy-read-timeout'])).toBeGreaterThan(60);
    const [, megabytes] =
      /^(\d+)m$/.exec(annotations['nginx.ingress.kubernetes.io/proxy-body-size'] ?? '') ?? [];
    expect(Number(megabytes) * 1024 ** 2).toBeGreaterThan(config.MAX_UPLOAD_BYTES);
  });

  it('the pod monitor selects the pods and their port of the metrics', () => {
    const { jobLabel, selector, podMetricsEndpoints } = monitor.spec;
    expect(selector).toEqual({ matchLabels: pods?.metadata?.labels });
    expect(pods?.metadata?.labels?.[jobLabel]).toBe('steward');
    const ports = pods?.spec?.containers[0]?.ports?.map(({ name }) => name);
    expect(ports).toEqual(expect.arrayContaining(podMetricsEndpoints.map(({ port }) => port)));
  });

  it('the network policy covers the pods, and lets them reach DNS, PostgreSQL, the API server, the identity provider and receivers', () => {
    const { podSelector, policyTypes, ingress: incoming, egress } = policy.spec ?? {};
    expect(podSelector?.matchLabels).toEqual(pods?.metadata?.labels);
    expect(policyTypes).toEqual(['Ingress', 'Egress']);
    const container = pods?.spec?.containers[0];
    expect(incoming?.map(({ ports }) => ports)).toEqual(
      container?.ports?.map(({ name }) => [{ protocol: 'TCP', port: name }]),
    );
    expect(
      egress?.map(({ ports }) => ports?.map(({ protocol, port }) => `${protocol ?? ''} ${port ?? 'any'}`)),
    ).toEqual([['UDP 53', 'TCP 53'], ['TCP 5432'], ['TCP 6443', 'TCP 443'], ['TCP 443'], ['TCP any']]);
    const receivers = egress?.at(-1)?.to?.map(({ ipBlock }) => ipBlock?.cidr);
    expect(receivers).toEqual(['0.0.0.0/0', '2000::/3']);
  });

  it('the admission policy covers what the Role may patch, and uses each of its variables', () => {
    const { metadata, spec } = find(
      'examples/admissionpolicy.yaml',
      'ValidatingAdmissionPolicy',
    ) as V1ValidatingAdmissionPolicy;
    const binding = find('examples/admissionpolicy.yaml', 'ValidatingAdmissionPolicyBinding');
    expect(binding).toMatchObject({ spec: { policyName: metadata?.name, validationActions: ['Deny'] } });
    const { rules } = find('deploy/kubernetes/rights.yaml', 'Role') as V1Role;
    const patched = rules?.filter(({ verbs }) => verbs.includes('patch'));
    expect(spec?.matchConstraints?.resourceRules).toEqual(
      patched?.map(({ apiGroups, resources }) => ({
        apiGroups,
        resources,
        apiVersions: ['v1'],
        operations: ['UPDATE'],
      })),
    );
    const [, deletion] = readManifests(textOf('examples/admissionpolicy.yaml'))
      .filter(({ kind }) => kind === 'ValidatingAdmissionPolicy')
      .map((policy) => (policy as V1ValidatingAdmissionPolicy).spec);
    expect(deletion?.matchConditions).toEqual(spec?.matchConditions);
    expect(deletion?.matchConstraints?.resourceRules).toMatchObject([
      { resources: rules?.find(({ verbs }) => verbs.includes('delete'))?.resources, operations: ['DELETE'] },
    ]);
    expect(spec?.matchConditions?.[0]?.expression).toContain(`:${pods?.spec?.serviceAccountName ?? ''}'`);
    const expressions = JSON.stringify([spec?.variables, spec?.validations]);
    // The API server changes it with every image of a DaemonSet.
    expect(expressions).toContain("name == 'deprecated.daemonset.template.generation'");
    const used = [...expressions.matchAll(/variables\.(\w+)/g)].map(([, name]) => name);
    expect([...new Set(used)].sort()).toEqual(spec?.variables?.map(({ name }) => name).sort());
  });

  it.skipIf(!hasKubectl)('kubectl accepts the network policy', patience, async () => {
    const server = await startApiServer();
    const home = mkdtempSync(join(tmpdir(), 'steward-kubectl-'));
    onTestFinished(async () => {
      rmSync(home, { recursive: true });
      await server.close();
    });
    const options = ['--dry-run=client', '--validate=false', `--server=${server.url}`];
    const env = { PATH: process.env.PATH, HOME: home, KUBECONFIG: join(home, 'none') };
    const args = ['apply', ...options, '-f', 'examples/networkpolicy.yaml'];
    const { stdout } = await promisify(execFile)('kubectl', args, { cwd: checkout, env });
    expect(stdout).toBe('networkpolicy.networking.k8s.io/steward created (dry run)\n');
  });
});
