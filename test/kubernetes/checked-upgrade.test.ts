// Images are looked up through the whole server: `plan` and `upgrade` refuse a version with a missing image before
// anything changes.
import { expect, it, onTestFinished } from 'vitest';
import type { Deployment } from '../../src/upgrades/versions/deployment.ts';
import type { Version } from '../../src/upgrades/versions/manifest.ts';
import { freshRelease, laterVersions } from '../kit/sample-manifest.ts';
import { startServer } from '../kit/server.ts';
import { patchOf, releaseOf } from '../kit/versions.ts';
import { openCluster } from './cluster.ts';
import { createTestExecutor } from './executor.ts';
import { type Answer, startHostileRegistry } from './hostile-registry.ts';
import { createChecker } from './image-check-kit.ts';
import { createTemplate } from './upgrade-kit.ts';

type Plan = { problems: string[]; notices?: string[]; digest: string };
type Refusal = { error: { code: number; message: string; details: string[] } };

/** A registry that has the images with these tags. */
const has =
  (tags: ReadonlySet<string>): Answer =>
  (response, { path }) =>
    void response.writeHead(tags.has(path.split('/').at(-1) ?? '') ? 200 : 404).end();

async function open(answer: Answer, mode: 'auto' | 'required' = 'auto', present?: Deployment) {
  const registry = await startHostileRegistry(answer);
  const cluster = await openCluster();
  onTestFinished(() => cluster.close());
  const { host } = registry;
  await cluster.createWorkload({
    kind: 'Deployment',
    name: 'apps',
    replicas: 1,
    containers: [
      { name: 'apps', image: `${host}/team/apps:1` },
      { name: 'tools', image: `${host}/team/tools:1` },
    ],
  });
  await cluster.settled('Deployment', 'apps');
  const imageChecker = createChecker({ insecure: [host], mode });
  const executor = createTestExecutor(cluster, { imageChecker });
  const server = await startServer({ executor, ...(present && { present }) });
  onTestFinished(() => server.close());
  const token = server.token('administrator');

  const manifestOf = (...tags: string[]) =>
    tags.map((tag, index) => ({
      ...patchOf(`pat_${index + 1}`, String(1300 + index), index === 0 ? '1234' : String(1299 + index)),
      containers: [
        { name: 'APPS', image: `apps:${tag}` },
        { name: 'TOOLS', image: `tools:${tag}` },
      ],
    }));
  async function importManifest(...tags: string[]) {
    const patches = manifestOf(...tags);
    const release = {
      ...releaseOf('rel'),
      containers: patches[0]?.containers,
    };
    const manifestFile = { name: 'm.json', content: JSON.stringify([...patches, release]) };
    await server.postParts('/admin/system/upgrades/importManifest', { manifestFile }, token);
  }
  async function ask<T>(operation: string, id: string): Promise<T> {
    const fields = { token, f: 'json', versionManifest: JSON.stringify({ id }) };
    return (await server.post(`/admin/system/upgrades/${operation}`, fields)).json<T>();
  }
  const readImages = async () =>
    (await cluster.read('Deployment', 'apps')).spec.template.spec.containers.map(({ image }) => image);
  return { cluster, host, registry, server, token, importManifest, ask, readImages };
}

it('a missing image is a problem of plan, and upgrade refuses it and changes nothing', async () => {
  const { host, server, token, importManifest, ask, readImages } = await open(has(new Set(['2'])));
  await importManifest('2', '3');
  expect((await ask<Plan>('plan', 'pat_1')).problems).toEqual([]);
  const problems = ['apps', 'tools'].map(
    (name) =>
      `images: ${host}/team/${name}:3 (container ${name} of deployment/apps) does not exist: ${host} answers 404.`,
  );
  expect((await ask<Plan>('plan', 'pat_2')).problems).toEqual(problems);
  expect((await ask<Refusal>('upgrade', 'pat_2')).error).toMatchObject({ code: 400, details: problems });
  const status = (await server.get(`/admin/system/upgrades?token=${token}`)).json<{ status: object }>();
  expect(status.status).toEqual({ state: 'no_upgrade', code: 0, messages: [] });
  expect(await readImages()).toEqual([`${host}/team/apps:1`, `${host}/team/tools:1`]);
});

it('a missing image of a step template that the plan uses is a problem, and one of another template is not', async () => {
  const { cluster, host, importManifest, ask } = await open(has(new Set(['2'])));
  await importManifest('2');
  for (const step of ['before', 'before-rollback'])
    await createTemplate(cluster, { step, image: `${host}/team/${step}:9` });
  expect((await ask<Plan>('plan', 'pat_1')).problems).toEqual([
    `images: ${host}/team/before:9 (container task of cronjob/before) does not exist: ${host} answers 404.`,
  ]);
});

it('an upgrade with images that exist starts', async () => {
  const { importManifest, ask, registry } = await open(has(new Set(['2'])));
  await importManifest('2');
  expect(await ask('upgrade', 'pat_1')).toMatchObject({ status: { state: 'in_progress' } });
  expect(registry.asked.map(({ path }) => path).sort()).toEqual([
    '/v2/team/apps/manifests/2',
    '/v2/team/tools/manifests/2',
  ]);
});

it('an unavailable registry is a notice and does not block the upgrade, unless the check is required', async () => {
  const failing: Answer = (response) => void response.writeHead(503).end();
  const tolerant = await open(failing);
  await tolerant.importManifest('2');
  const notice = (host: string) =>
    `${host} answers 503. Not checked: ${host}/team/apps:2, ${host}/team/tools:2.`;
  expect(await tolerant.ask<Plan>('plan', 'pat_1')).toMatchObject({
    problems: [],
    notices: ['These steps have no step template and are skipped: logging.', notice(tolerant.host)],
  });
  expect(await tolerant.ask('upgrade', 'pat_1')).toMatchObject({ status: { state: 'in_progress' } });

  const strict = await open(failing, 'required');
  await strict.importManifest('2');
  expect((await strict.ask<Plan>('plan', 'pat_1')).problems).toEqual([`images: ${notice(strict.host)}`]);
  // The registry may recover, so the upgrade is prepared again for some seconds.
  const refusals: Refusal[] = [];
  void strict.ask<Refusal>('upgrade', 'pat_1').then((refusal) => refusals.push(refusal));
  const pass = () =>
    strict.server.runtime.advance(1_000).then(() => refusals.map(({ error }) => error.details));
  await expect.poll(pass).toEqual([[`images: ${notice(strict.host)}`]]);
});

it('a manifest that is imported during the check does not bring in images that nobody has looked up', async () => {
  let whileChecking: (() => Promise<void>) | undefined;
  const { importManifest, ask } = await open((response) => {
    const answer = () => void response.end();
    if (whileChecking) void whileChecking().then(answer);
    else answer();
  });
  await importManifest('2');
  whileChecking = () => {
    whileChecking = undefined;
    return importManifest('4');
  };
  expect((await ask<Refusal>('upgrade', 'pat_1')).error.message).toBe(
    'The versions have changed meanwhile. Send the request again.',
  );
  expect(await ask('upgrade', 'pat_1')).toMatchObject({ status: { state: 'in_progress' } });
});

it('the upgrade page looks up images when it shows the plan, not when it asks for settings', async () => {
  const { host, registry, server, token, importManifest } = await open(has(new Set()));
  await importManifest('2');
  const versionManifest = '{"id":"rel"}';
  const query = new URLSearchParams({ versionManifest }).toString();
  const settings = await server.get(`/admin/system/upgrades/plan?${query}`, {
    accept: 'text/html',
    cookie: `steward_session=${token}`,
  });
  expect(settings.body).toContain('Show the plan');
  expect(registry.asked).toEqual([]);
  const upgradeSettings = '{"userInputs":[]}';
  const planned = await server.post('/admin/system/upgrades/plan', {
    f: 'html',
    token,
    versionManifest,
    upgradeSettings,
  });
  expect(planned.body).toContain(`${host}/team/apps:2 (container apps of deployment/apps) does not exist`);
  expect(registry.asked).toHaveLength(2);
});

it('a rollback names the workloads whose former images are not recorded, and looks these images up', async () => {
  const tags = new Set<string>();
  const at = (of: Version, tag: string): Version => ({
    ...of,
    containers: [{ name: 'APPS', image: `apps:${tag}`, checksum: 'N/A' }],
    newContainers: [],
  });
  const patch = at(laterVersions[0] as Version, '1');
  const present = { release: at(freshRelease, '0'), patches: [patch] };
  const { host, server, token, ask, readImages } = await open(has(tags), 'auto', present);
  const { updates } = (await server.get(`/admin/system/upgrades/checkRollback?token=${token}`)).json<{
    updates: { id: string; notices: string[] }[];
  }>();
  const image = `${host}/team/apps:0`;
  expect(updates).toMatchObject([
    {
      id: freshRelease.id,
      notices: [
        `deployment/apps gets the image ${image} of the version 10.9.1.1234: what it had before is not recorded.`,
      ],
    },
  ]);
  expect((await ask<Refusal>('rollback', freshRelease.id)).error).toMatchObject({
    code: 400,
    details: [`images: ${image} (container apps of deployment/apps) does not exist: ${host} answers 404.`],
  });
  tags.add('0');
  await ask('rollback', freshRelease.id);
  await expect.poll(readImages).toEqual([image, `${host}/team/tools:1`]);
});
