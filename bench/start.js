// Measures how long a test waits: for the import of the package, for startSteward() in new processes and again in
// the same process, for the first answer, for a reset, and for an advance of the clock by a year.
import { execFileSync } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import { URL, fileURLToPath } from 'node:url';
import { median, print } from './kit.js';

const rounds = 15;
const bounds = { import: 250, first: 350, year: 1000 };
const dayMs = 86_400_000;
const module = new URL('../dist/package.js', import.meta.url).href;

async function measureOnce() {
  const began = performance.now();
  const { startSteward } = await import(module);
  const imported = performance.now();
  const { first, ready } = await startOnce(startSteward);
  const { first: again } = await startOnce(startSteward);
  const steward = await startSteward();
  const reset = await timeOf(() => steward.control.reset());
  const year = await timeOf(() => steward.control.advanceClock(365 * dayMs));
  await steward.stop();
  print(JSON.stringify({ import: imported - began, first, ready, again, reset, year }));
}

async function timeOf(work) {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** `ready` includes the time that Node takes to load `fetch` when it is called first. */
async function startOnce(startSteward) {
  const began = performance.now();
  const { url, stop } = await startSteward();
  const first = performance.now() - began;
  const { status } = await globalThis.fetch(`${url}/ready`);
  if (status !== 200) throw new Error(`/ready answered ${status}.`);
  const ready = performance.now() - began;
  await stop();
  return { first, ready };
}

if (process.argv[2] === 'once') await measureOnce();
else {
  const measured = Array.from({ length: rounds }, () =>
    JSON.parse(
      execFileSync(process.execPath, [fileURLToPath(import.meta.url), 'once'], { encoding: 'utf8' }),
    ),
  );
  const medianOf = (name) => Math.round(median(measured.map((one) => one[name])));
  print(
    `import of the package ${medianOf('import')} ms (bound ${bounds.import}), startSteward() ${medianOf('first')} ms ` +
      `(bound ${bounds.first}), until /ready has answered ${medianOf('ready')} ms, again in the same process ${medianOf('again')} ms, reset ${medianOf('reset')} ms, ` +
      `a year ${medianOf('year')} ms (bound ${bounds.year}); medians of ${rounds} processes`,
  );
  if (Object.entries(bounds).some(([name, bound]) => medianOf(name) > bound)) process.exitCode = 1;
}
