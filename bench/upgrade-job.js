// Measures, from outside, how the cost of an upgrade job grows from 1,000 to 5,000 workloads, and the time to read
// the newest message of a job. Ratios are against the smallest job of the same run: 1.0 means that the size makes
// no difference.
import { setTimeout as wait } from 'node:timers/promises';
import { median, perSecond, print } from './kit.js';
import { startServer } from './server.js';

/** A version of a manifest may have 5,000 containers. */
const sizes = [1000, 2000, 5000];
const rounds = 3;
const readMs = 500;

function createManifest(workloads, previousReleaseBuild) {
  const containers = Array.from({ length: workloads }, (_, i) => ({
    name: `C${i % 50}_${i}`,
    image: `c${i}:2`,
    checksum: 'N/A',
  }));
  return [
    {
      id: 'next',
      type: 'release',
      version: '10.9.2',
      build: '2',
      previousReleaseBuild,
      isMandatoryUpdate: false,
      newLicensesRequired: false,
      containers,
      newContainers: [],
      userForm: [],
    },
  ];
}

async function runJob(workloads) {
  const server = await startServer({ env: { UPGRADE_STEP_MS: '0' } });
  await server.signIn();
  const { build } = await server.require('GET', '/admin/system/upgrades/currentVersion?f=json');
  const fields = { versionManifest: JSON.stringify({ id: 'next' }) };
  const file = { field: 'versionManifestFile', json: createManifest(workloads, build) };
  const accepted = await server.upload('/admin/system/upgrades/upgrade', fields, file);
  if (accepted.status !== 200) throw new Error(JSON.stringify(accepted.body));
  const readStatus = (after) => server.require('GET', `/admin/system/upgrades?f=json&after=${after}`);
  let job;
  do {
    await wait(20);
    job = await readStatus(1_000_000);
  } while (job.status.state === 'in_progress');
  if (job.status.state !== 'success') throw new Error(`the job ended as ${job.status.state}`);

  const started = performance.now();
  let reads = 0;
  for (; performance.now() - started < readMs; reads += 1) await readStatus(job.messageCount - 1);
  const readsPerSecond = perSecond(reads, performance.now() - started);
  await server.stop();
  return { ms: job.progress.elapsedMs, messages: job.messageCount, readUs: 1_000_000 / readsPerSecond };
}

await runJob(sizes[0]);
const results = new Map(sizes.map((size) => [size, []]));
for (let round = 0; round < rounds; round += 1) {
  for (const size of sizes) results.get(size).push(await runJob(size));
}
const middle = (size, figure) => median(results.get(size).map((result) => result[figure]));
const perWorkload = (size) => (middle(size, 'ms') * 1000) / size;
const show = (cells) => print(cells.map((cell) => String(cell).padStart(18)).join(''));
show(['workloads', 'ms', 'µs per workload', 'ratio', 'messages', 'µs per read', 'ratio']);
for (const size of sizes) {
  const read = middle(size, 'readUs');
  show([
    size,
    middle(size, 'ms').toFixed(0),
    perWorkload(size).toFixed(1),
    (perWorkload(size) / perWorkload(sizes[0])).toFixed(2),
    middle(size, 'messages'),
    read.toFixed(0),
    (read / middle(sizes[0], 'readUs')).toFixed(2),
  ]);
}
