// Measures how the cost of an upgrade job grows from 1,000 to 10,000 workloads, and the time to read the status of the largest job.
// Ratios are against the smallest job of the same run: 1.0 means linear.
import { createMemoryStore } from '../dist/store/memory.js';
import { createTasks } from '../dist/tasks.js';
import { freshRelease } from '../dist/upgrades/built-in-manifest.js';
import { createSimulatedExecutor } from '../dist/upgrades/executors/simulated.js';
import { newestJob } from '../dist/upgrades/job-table.js';
import { startJob } from '../dist/upgrades/job.js';
import { prepareUpgrade } from '../dist/upgrades/preflight.js';
import { simulatedInventory } from '../dist/upgrades/workloads.js';
import { JobRunner } from '../dist/upgrades/job-runner.js';
import { jobStatus } from '../dist/upgrades/job-status.js';
import { realRuntime as runtime } from '../dist/runtime.js';
import { median, print } from './kit.js';

const sizes = [1000, 2000, 5000, 10_000];
const rounds = 3;

function createManifest(workloads) {
  const containers = Array.from({ length: workloads }, (_, i) => ({
    name: `C${i % 50}_${i}`,
    image: `c${i}:2`,
    checksum: 'N/A',
  }));
  const links = { previousReleaseBuild: freshRelease.build, newContainers: [], userForm: [] };
  return [
    {
      id: 'next',
      type: 'release',
      version: '10.9.2',
      build: '2',
      isMandatoryUpdate: false,
      newLicensesRequired: false,
      containers,
      ...links,
    },
  ];
}

async function runJob(workloads) {
  const store = createMemoryStore();
  const failures = [];
  const tasks = createTasks(runtime, (_name, error) => failures.push(error));
  const executor = createSimulatedExecutor({ runtime, stepMs: 0, failures: new Map() });
  const jobRunner = new JobRunner({
    store,
    runtime,
    tasks,
    executor,
    stepTimeoutMs: 60_000,
    notify: () => undefined,
  });
  const submitted = { upgradeSettings: {}, findUpload: () => undefined };
  const manifest = createManifest(workloads);
  const started = performance.now();
  await jobRunner.run(() =>
    store.update((transaction) => {
      const prepared = prepareUpgrade(transaction, 'next', submitted, manifest, simulatedInventory);
      const by = { startedBy: 'bench', runner: store.self };
      return startJob(transaction, { ...prepared, ...by, id: 'job' }, runtime.now());
    }),
  );
  await tasks.idle();
  const ms = performance.now() - started;
  if (newestJob(store).state !== 'success' || failures.length > 0) throw new Error('the job did not succeed');
  return { ms, store };
}

function timeReads(read) {
  const started = performance.now();
  let times = 0;
  while (performance.now() - started < 200) {
    for (let i = 0; i < 100; i += 1) read();
    times += 100;
  }
  return ((performance.now() - started) * 1000) / times;
}

await runJob(1000);
const results = new Map(sizes.map((size) => [size, []]));
let largest;
for (let round = 0; round < rounds; round += 1) {
  for (const size of sizes) {
    largest = await runJob(size);
    results.get(size).push(largest.ms);
  }
}
const perWorkload = (size) => (median(results.get(size)) * 1000) / size;
print('workloads        ms   µs per workload   against the smallest');
for (const size of sizes) {
  const row = [
    median(results.get(size)).toFixed(0),
    perWorkload(size).toFixed(1),
    (perWorkload(size) / perWorkload(sizes[0])).toFixed(2),
  ];
  print(`${String(size).padStart(9)}${row[0].padStart(10)}${row[1].padStart(18)}${row[2].padStart(23)}`);
}

const { store } = largest;
const job = newestJob(store);
const small = createMemoryStore();
const whole = timeReads(() => jobStatus(store, job, runtime.now()));
const none = timeReads(() => jobStatus(small, job, runtime.now()));
const { messageCount } = jobStatus(store, job, runtime.now());
print(
  `status with ${messageCount} messages: ${whole.toFixed(2)} µs, ${(whole / none).toFixed(2)} of one with none`,
);
