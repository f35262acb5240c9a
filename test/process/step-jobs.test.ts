// Steps that Jobs perform, when processes die: at every step of a release, in and around each record, and at each
// request about a Job. The fake API server is reached over HTTP. Every step and attempt has exactly one Job, and
// the messages are those of a job without deaths.
import { expect, it } from 'vitest';
import { templateStepIds } from '../../src/upgrades/executors/steps.ts';
import { laterVersions, freshRelease } from '../kit/sample-manifest.ts';
import type { Version } from '../../src/upgrades/versions/manifest.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { createTestExecutor } from '../kubernetes/executor.ts';
import {
  createTemplate,
  openWorkloads,
  patch as patchOfProcess,
  names as workloadNames,
} from '../kubernetes/upgrade-kit.ts';
import { killAtRequest } from './kill-at-request.ts';
import {
  type Message,
  codesOfPatch,
  codesOfRelease,
  expectOneRun,
  timesResumed,
} from '../upgrades/message-codes.ts';
import { startPair } from './pair.ts';
import { connect, createSeededDatabase, startSteward } from './steward.ts';

const small = (version: Version): Version => ({
  ...version,
  containers: workloadNames.map((name) => ({
    name: name.toUpperCase().replace('-', '_'),
    image: `${name}:${version.build}`,
    checksum: 'N/A',
  })),
  newContainers: [],
  newLicensesRequired: false,
});
const start = small(freshRelease);
const release = small(laterVersions.find(({ id }) => id === 'rel_14072022_2632') as Version);

async function openNamespace(build: string, steps: readonly string[]): Promise<Cluster> {
  const cluster = await openWorkloads(workloadNames, build);
  for (const step of steps) await createTemplate(cluster, { step });
  return cluster;
}

/** The names of the Jobs that the API server has created. */
function createdJobs({ faults }: Cluster): string[] {
  return faults.requests
    .filter(({ method, path, status }) => method === 'POST' && /\/jobs(\?|$)/.test(path) && status === 201)
    .map(({ body }) => (body as { metadata: { name: string } }).metadata.name);
}

const insert = (codes: readonly number[], before: number, ...inserted: number[]) => {
  const index = codes.indexOf(before);
  return [...codes.slice(0, index), ...inserted, ...codes.slice(index)];
};
const withHooks = (codes: readonly number[]) => insert(insert(codes, 2271, 2906, 2907), 2166, 2906, 2907);

it('a release has one Job for each step, whatever dies', async () => {
  const cluster = await openNamespace(start.build, templateStepIds);
  const { begin, sweep } = await startPair({
    start,
    manifest: [release],
    createExecutor: () => createTestExecutor(cluster),
    inventory: () => createTestExecutor(cluster).inventory(),
  });
  await begin('upgrade', release.id);
  const { messages, deaths, state } = await sweep();
  expect(state).toBe('success');
  expectOneRun(messages, withHooks(codesOfRelease([2], 0)));
  expect(deaths).toBeGreaterThan(100);
  const jobs = createdJobs(cluster);
  expect(jobs).toHaveLength(templateStepIds.length - 1);
  expect(new Set(jobs).size).toBe(jobs.length);
  expect(jobs.every((name) => name.endsWith('-1'))).toBe(true);
});

it('a process that is killed at a request about a Job leaves one Job for the next', async () => {
  const cluster = await openNamespace('1', ['before', 'after']);
  const { url } = await createSeededDatabase();
  const query = await connect(url);
  const env = {
    UPGRADE_EXECUTOR: 'kubernetes',
    KUBECONFIG: cluster.kubeconfig,
    INSTALLED_VERSION: '10.9.1.1234',
  };
  const launch = () => startSteward(url, env);
  let steward = await launch();
  const token = await steward.signIn();
  const upgrades = '/admin/system/upgrades';
  const manifest = new Blob([JSON.stringify([patchOfProcess])]);
  await steward.post(`${upgrades}/importManifest`, { manifestFile: manifest }, token);

  // The creation is lost, the answer to it is lost, and the process that takes over dies when it looks for the Job.
  const kills = [
    { method: 'POST', isForwarded: false },
    { method: 'POST', isForwarded: true },
    { method: 'GET', isForwarded: true },
  ];
  let isStarted = false;
  for (const kill of kills) {
    const request = { ...kill, path: /\/jobs[/?]/, nth: 1 };
    const { dead } = killAtRequest(cluster, request, () => steward.kill());
    if (!isStarted) await steward.post(`${upgrades}/upgrade`, { versionManifest: '{"id":"pat"}' }, token);
    isStarted = true;
    await dead;
    // Without this, the next process waits until the lease of the killed one expires.
    await query('delete from processes');
    steward = await launch();
  }
  const readStatus = async () =>
    ((await steward.get(upgrades, token)).body as { status: { state: string; messages: Message[] } }).status;
  await expect.poll(async () => (await readStatus()).state, { timeout: 60_000 }).toBe('success');
  const { messages } = await readStatus();
  expect(timesResumed(messages)).toBe(kills.length);
  expectOneRun(messages, withHooks(codesOfPatch(workloadNames.length)));
  const path = `/apis/batch/v1/namespaces/${cluster.namespace}/jobs`;
  const { items } = await cluster.request<{ items: { metadata: { uid: string; name: string } }[] }>(
    'GET',
    path,
  );
  expect(items).toHaveLength(2);
  expect(items.every(({ metadata }) => metadata.name.endsWith('-1'))).toBe(true);
  const pods = await cluster.request<{ items: object[] }>(
    'GET',
    `/api/v1/namespaces/${cluster.namespace}/pods?labelSelector=job-name`,
  );
  expect(pods.items).toHaveLength(2);
});
