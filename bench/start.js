// Measures how long a program waits for startSteward(): until /ready answers, in new processes and again in the same process.
import { execFileSync } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import { URL, fileURLToPath } from 'node:url';

const rounds = 15;
const boundMs = 500;
const module = new URL('../dist/steward.js', import.meta.url).href;

async function measureOnce() {
  const began = performance.now();
  const { startSteward } = await import(module);
  const imported = performance.now();
  const first = await startUntilReady(startSteward);
  const again = await startUntilReady(startSteward);
  process.stdout.write(JSON.stringify({ import: imported - began, first, again }));
}

async function startUntilReady(startSteward) {
  const began = performance.now();
  const { url, stop } = await startSteward();
  const { status } = await globalThis.fetch(`${url}/ready`);
  if (status !== 200) throw new Error(`/ready answered ${status}.`);
  const taken = performance.now() - began;
  await stop();
  return taken;
}

function median(values) {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

if (process.argv[2] === 'once') await measureOnce();
else {
  const measured = Array.from({ length: rounds }, () =>
    JSON.parse(
      execFileSync(process.execPath, [fileURLToPath(import.meta.url), 'once'], { encoding: 'utf8' }),
    ),
  );
  const medianOf = (name) => Math.round(median(measured.map((one) => one[name])));
  const first = medianOf('first');
  process.stdout.write(
    `import of the package ${medianOf('import')} ms, startSteward() until /ready answers ${first} ms (bound ${boundMs}), ` +
      `again in the same process ${medianOf('again')} ms (medians of ${rounds} processes)\n`,
  );
  if (first > boundMs) process.exitCode = 1;
}
