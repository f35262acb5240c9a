// Tests the files in deploy/: they match the schemas of Kubernetes, and they fit the server.
import type * as client from '@kubernetes/client-node';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type ConfigError, readConfig } from '../../../src/config/config.ts';
import {
  eventPermissions,
  neededPermissions,
  templatePermissions,
} from '../../../src/upgrades/executors/kubernetes/namespace.ts';
import { selectTemplates } from '../../../src/upgrades/executors/kubernetes/step-template.ts';
import { freshRelease } from '../../kit/sample-manifest.ts';
import { readManifest } from '../../../src/upgrades/versions/manifest.ts';
import { type Manifest, problemsOf, readManifests } from '../../kit/manifests.ts';
import { variableNames } from '../../kit/variables.ts';

const checkout = fileURLToPath(new URL('../../../', import.meta.url));
const textOf = (path: string) => readFileSync(join(checkout, path), 'utf8');
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

/** The folders that can be applied alone. */
const folders = ['deploy/kubernetes', 'deploy/scratch', 'deploy/steps'];
const files = [...folders, 'deploy/step-templates']
  .flatMap((folder) => readdirSync(join(checkout, folder)).map((name) => `${folder}/${name}`))
  .filter((path) => path.endsWith('.yaml') && !path.endsWith('kustomization.yaml'));
const build = (folder: string) =>
  readManifests(execFileSync('kubectl', ['kustomize', folder], { cwd: checkout, encoding: 'utf8' }));

type Kind =
  | 'CronJob'
  | 'Deployment'
  | 'PodDisruptionBudget'
  | 'Role'
  | 'RoleBinding'
  | 'Secret'
  | 'Service'
  | 'StatefulSet';
function find<K extends Kind>(manifests: Manifest[], kind: K, name = 'steward') {
  const found = manifests.find((one) => one.kind === kind && one.metadata.name === name);
  if (!found) throw new Error(`missing ${kind} ${name}`);
  return found as unknown as InstanceType<(typeof client)[`V1${K}`]>;
}

const inFolder = (folder: string) =>
  files.filter((path) => path.startsWith(`${folder}/`)).flatMap((path) => readManifests(textOf(path)));
const steward = inFolder('deploy/kubernetes');
const scratch = inFolder('deploy/scratch');
const steps = inFolder('deploy/steps');
const { spec } = find(steward, 'Deployment');
const pod = spec?.template.spec;
const container = pod?.containers[0];

describe('the manifests', () => {
  it('match the types of Kubernetes', () => {
    expect(problemsOf(files.flatMap((path) => readManifests(textOf(path))))).toEqual([]);
  });

  it.skipIf(!hasKubectl).each(folders)(
    'kustomize builds %s into valid objects of one namespace',
    (folder) => {
      const built = build(folder);
      expect(problemsOf(built)).toEqual([]);
      const namespaces = new Set(built.map(({ metadata }) => metadata.namespace));
      expect(namespaces.size).toBe(1);
      for (const { subjects = [] } of built.filter(
        ({ kind }) => kind === 'RoleBinding',
      ) as client.V1RoleBinding[])
        expect(new Set(subjects.map(({ namespace }) => namespace))).toEqual(namespaces);
    },
  );

  it('are refused with a wrong type, a missing field, an unknown field or an unknown kind', () => {
    const broken = (from: string, to: string) =>
      readManifests(textOf('deploy/kubernetes/deployment.yaml').replace(from, to));
    expect(
      problemsOf([
        ...broken('replicas: 2', 'replicas: two'),
        ...broken('containerPort:', 'hostPort:'),
        ...broken('readinessProbe', 'readyProbe'),
        ...broken('apps/v1', 'apps/v1beta1'),
      ]),
    ).toEqual([
      'unknown kind apps/v1beta1 Deployment',
      expect.stringMatching(/^"replicas": "two", error TS2322/),
      expect.stringMatching(/containerPort'+ is missing/),
      expect.stringMatching(/^"readyProbe": \{ error TS/),
    ]);
  });
});

const permissionsOf = ({ rules }: client.V1Role) =>
  rules?.flatMap(({ apiGroups = [], resources = [], verbs, resourceNames = [undefined] }) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) =>
        resourceNames.map((name) => ({
          verb,
          group: apiGroups.join(),
          resource,
          ...(name !== undefined && { name }),
        })),
      ),
    ),
  );

describe('the step templates', () => {
  it('have exactly the permissions that they need, in a Role of their own', () => {
    const role = find(inFolder('deploy/step-templates'), 'Role', 'steward-step-templates');
    expect(permissionsOf(role)).toEqual(templatePermissions);
  });

  it('of the example are found, and have no problem', () => {
    const cronJobs = steps.filter(({ kind }) => kind === 'CronJob');
    const { performers, problems, notices } = selectTemplates(cronJobs);
    expect({ problems, notices }).toEqual({ problems: [], notices: [] });
    expect([...performers.templates]).toEqual([
      ['before', 'backup'],
      ['before-rollback', 'backup-rollback'],
      ['database-validate', 'database-validate'],
      ['after', 'smoke-test'],
    ]);
  });

  it.each(['backup', 'backup-rollback', 'database-validate', 'smoke-test'])(
    'the example %s runs without privileges, and its script is valid',
    (name) => {
      const job = find(steps, 'CronJob', name).spec?.jobTemplate.spec?.template.spec;
      const [task] = job?.containers ?? [];
      expect(job).toMatchObject({ restartPolicy: 'Never', automountServiceAccountToken: false });
      expect(task?.securityContext).toEqual(container?.securityContext);
      const [script = ''] = task?.args ?? [];
      expect(spawnSync('sh', ['-n'], { input: script, encoding: 'utf8' })).toMatchObject({ status: 0 });
    },
  );
});

describe('the Deployment', () => {
  it('has exactly the permissions that upgrades need', () => {
    const wanted = [...neededPermissions, ...eventPermissions];
    const sort = (list: readonly object[] = []) => list.map((one) => JSON.stringify(one)).sort();
    expect(sort(permissionsOf(find(steward, 'Role')))).toEqual(sort(wanted));
    expect(pod).toMatchObject({ serviceAccountName: 'steward', automountServiceAccountToken: true });
  });

  it('runs two processes, replaces them one by one, and keeps one available', () => {
    expect(spec).toMatchObject({
      replicas: 2,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      selector: { matchLabels: spec?.template.metadata?.labels },
    });
    const budget = find(steward, 'PodDisruptionBudget').spec;
    expect([budget?.minAvailable, budget?.selector]).toEqual([1, spec?.selector]);
    const { selector, ports } = find(steward, 'Service').spec ?? {};
    expect(selector).toEqual(spec?.selector.matchLabels);
    expect(ports?.[0]?.targetPort).toBe(container?.ports?.[0]?.name);
    expect(container?.ports?.[0]?.containerPort).toBe(readConfig({}).PORT);
  });

  it('has probes that the server answers', () => {
    const probes = [container?.startupProbe, container?.readinessProbe, container?.livenessProbe];
    const paths = probes.map((probe) => probe?.httpGet?.path);
    expect(paths).toEqual(['/ready', '/ready', '/health']);
    const answered = textOf('src/http/probes.ts');
    for (const path of paths) expect(answered).toContain(`'${path ?? ''}'`);
  });

  it('gives the server enough time to close', () => {
    const times = [...textOf('src/app/process.ts').matchAll(/^const \w+Ms = ([0-9_]+);$/gm)];
    expect(times).toHaveLength(2);
    const [command, seconds] = container?.lifecycle?.preStop?.exec?.command ?? [];
    expect(command).toBe('sleep');
    const closing = times.reduce((sum, [, ms = '']) => sum + Number(ms.replaceAll('_', '')) / 1000, 0);
    expect(pod?.terminationGracePeriodSeconds).toBeGreaterThan(Number(seconds) + closing);
  });

  it('has the files that the settings name, if they exist', () => {
    const text = textOf('deploy/kubernetes/settings.env') + textOf('docs/operate/kubernetes.md');
    for (const { name, mountPath } of container?.volumeMounts ?? []) {
      expect(text).toContain(`${mountPath}/`);
      const { secret, configMap } = pod?.volumes?.find((volume) => volume.name === name) ?? {};
      expect(text).toContain(secret?.secretName ?? configMap?.name);
      expect((secret ?? configMap)?.optional).toBe(true);
    }
  });

  it('runs without privileges on its node', () => {
    const user = Number(/^USER (\d+):\d+$/m.exec(textOf('deploy/Dockerfile'))?.[1]);
    expect(user).toBeGreaterThan(0);
    const seccompProfile = { type: 'RuntimeDefault' };
    expect(pod?.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: user, seccompProfile });
    expect(container?.securityContext).toEqual({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
    expect(Object.keys(container?.resources ?? {})).toEqual(['requests', 'limits']);
  });
});

describe('the settings', () => {
  const text = textOf('deploy/kubernetes/settings.env');
  const named = [...text.matchAll(/^(?:# )?([A-Z][A-Z0-9_]*)=/gm)].map(([, name = '']) => name);
  const placeholders = find(steward, 'Secret').stringData ?? {};
  const inPod = (container?.env ?? []).map(({ name }) => name);

  it('contain every variable of Steward once', () => {
    // Set by the image, for files that the image does not have, for the store in memory, for the simulated
    // executor, or for tests.
    const others = [
      'HOST',
      'PORT',
      'CATALOG_FILE',
      'KUBECONFIG',
      'MAX_EVENT_IDS',
      'UPGRADE_STEP_MS',
      'SIMULATED_FAILURES',
      'SIMULATED_STEP_TEMPLATES',
      'TEST_CONTROL',
      'TEST_CONTROL_TOKEN',
      'SEED',
    ];
    const ofSteward = inPod.filter((name) => name !== 'NODE_OPTIONS');
    expect([...named, ...ofSteward, ...others].sort()).toEqual([...variableNames].sort());
    const secrets = ['STORE_URL', 'ADMIN_PASSWORD', 'SECRET_KEY'];
    expect(Object.keys(placeholders)).toEqual(secrets);
    const optional = ['SECRET_KEY_PREVIOUS', 'OIDC_CLIENT_SECRET'];
    expect(inPod).toEqual(['NODE_OPTIONS', ...secrets, ...optional, 'KUBERNETES_NAMESPACE']);
    expect(textOf('deploy/kubernetes/kustomization.yaml')).not.toContain('secret.example.yaml\n');
  });

  const problemsWith = (secret: Record<string, string>) => {
    try {
      const podEnv = { KUBERNETES_NAMESPACE: 'steward', KUBERNETES_SERVICE_HOST: '10.0.0.1' };
      readConfig({ ...parseEnv(text), ...secret, ...podEnv });
      return [];
    } catch (error) {
      return (error as ConfigError).problems.map((problem) => problem.split(' ')[0] ?? '');
    }
  };

  it('are refused with the placeholders of the Secret, and accepted with the Secret of the scratch namespace', () => {
    expect(problemsWith(placeholders).sort()).toEqual(Object.keys(placeholders).sort());
    expect(problemsWith(find(scratch, 'Secret').stringData ?? {})).toEqual([]);
  });
});

describe('the image', () => {
  const dockerfile = textOf('deploy/Dockerfile');
  const copied = (lines: RegExp) =>
    [...dockerfile.matchAll(lines)].flatMap(([, paths = '']) => paths.replaceAll('/app/', '').split(' '));
  const intoBuild = copied(/^COPY (?!--)(.+) \S+$/gm);
  const intoImage = copied(/^COPY --from=build (.+) \S+$/gm);

  it('is built from files that exist, and the build context contains nothing else', () => {
    expect(intoBuild.filter((path) => !existsSync(join(checkout, path)))).toEqual([]);
    const ignored = textOf('deploy/Dockerfile.dockerignore').match(/^[^#\n]+$/gm);
    expect(ignored).toEqual(['*', ...intoBuild.map((path) => `!${path}`)]);
  });

  it('contains every file that the server reads', () => {
    expect(intoImage).toEqual(['package.json', 'LICENSE', 'node_modules', 'dist']);
    const readers = ['src/app/start.ts', 'src/app/backends.ts', 'src/lib/build.ts'];
    const sources = readers.map(textOf).join('\n');
    const paths = [...sources.matchAll(/(?:new URL|\bread)\('([^']+)'/g)].map(([, path = '']) => path);
    expect(paths).toHaveLength(12);
    // The image is built without git, so it has no commit.
    const needed = paths.filter((path) => path !== 'commit');
    expect(needed.filter((path) => !existsSync(join(checkout, 'dist', path)))).toEqual([]);
    expect(paths.filter((path) => path.startsWith('..'))).toEqual(['../package.json']);
  });

  it('keeps the Kubernetes client, which a production installation leaves out', () => {
    // test/documents/package.test.ts shows which packages npm keeps without these fields.
    const kept = /^RUN npm pkg delete devDependencies peerDependenciesMeta$/m.exec(dockerfile);
    expect(kept?.index).toBeLessThan(dockerfile.indexOf('RUN npm prune'));
    expect(dockerfile).not.toContain('--omit=');
  });

  it('starts the server without a shell, on any platform, with Node 24', () => {
    expect(dockerfile).toMatch(/^CMD \["node", "dist\/main.js"\]$/m);
    expect(dockerfile).toMatch(/^ENV NODE_ENV=production HOST=0\.0\.0\.0$/m);
    expect(dockerfile).not.toMatch(/--platform/);
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:24-alpine$/m);
  });
});

it('the version manifest of the scratch namespace can be imported and names its workloads', () => {
  const file = readFileSync(join(checkout, 'deploy/scratch/version-manifest.json'));
  const result = readManifest(file, () => [freshRelease]);
  if ('problems' in result) throw new Error(result.problems.join('\n'));
  const names = new Set(result.versions.flatMap(({ containers }) => containers.map(({ name }) => name)));
  const web = find(scratch, 'Deployment', 'sample-web').spec?.template.spec?.containers;
  const byName = web?.map(({ name }) => name.toUpperCase().replaceAll('-', '_')) ?? [];
  const { labels } = find(scratch, 'StatefulSet', 'sample-queue').metadata ?? {};
  expect([...byName, labels?.['steward/container']]).toEqual([...names]);
});
