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
import { patchWithKills } from './kill-at-request.ts';
import { codesOfPatch, codesOfRelease, expectOneRun } from '../upgrades/message-codes.ts';
import { startPair } from './pair.ts';

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
  // The creation is lost, the answer to it is lost, and the process that takes over dies when it looks for the Job.
  const path = /\/jobs[/?]/;
  const messages = await patchWithKills(cluster, patchOfProcess, [
    { method: 'POST', path, isForwarded: false },
    { method: 'POST', path, isForwarded: true },
    { method: 'GET', path, isForwarded: true },
  ]);
  expectOneRun(messages, withHooks(codesOfPatch(workloadNames.length)));
  const { items } = await cluster.request<{ items: { metadata: { name: string } }[] }>(
    'GET',
    `/apis/batch/v1/namespaces/${cluster.namespace}/jobs`,
  );
  expect(items).toHaveLength(2);
  expect(items.every(({ metadata }) => metadata.name.endsWith('-1'))).toBe(true);
  const pods = await cluster.request<{ items: object[] }>(
    'GET',
    `/api/v1/namespaces/${cluster.namespace}/pods?labelSelector=job-name`,
  );
  expect(pods.items).toHaveLength(2);
});
