// Measures how long a test waits: for the import of the package, for startSteward() in new processes and again in
// the same process, for the first answer, for a reset, for an example of the specification, five failures over six
// days, and for an advance of the clock by a year.
import { execFileSync } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import { URL, URLSearchParams, fileURLToPath } from 'node:url';

const rounds = 15;
const bounds = { import: 250, first: 300, example: 1000, year: 1000 };
const dayMs = 86_400_000;
const module = new URL('../dist/package.js', import.meta.url).href;

async function measureOnce() {
  const began = performance.now();
  const { startSteward } = await import(module);
  const imported = performance.now();
  const { first, ready } = await startOnce(startSteward);
  const { first: again } = await startOnce(startSteward);
  const steward = await startSteward();
  const example = await timeOf(() => deactivateByFailures(steward));
  const reset = await timeOf(() => steward.control.reset());
  const year = await timeOf(() => steward.control.advanceClock(365 * dayMs));
  await steward.stop();
  process.stdout.write(
    JSON.stringify({ import: imported - began, first, ready, again, example, reset, year }),
  );
}

async function timeOf(work) {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/**
 * Two failures on day 1 and two on day 3 leave the webhook active. Five from day 6 on are a new window, and
 * deactivate it.
 */
async function deactivateByFailures({ url, adminToken, control }) {
  const post = async (path, fields) => {
    const response = await globalThis.fetch(`${url}/admin/services/webhooks${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${adminToken}` },
      body: new URLSearchParams(fields),
    });
    if (!response.ok) throw new Error(`${path} answered ${response.status}.`);
    return response.json();
  };
  const fail = async () => {
    await post('/publish', { changeType: 'Tested' });
    await control.advanceClock(0);
  };
  await control.setClock({ frozen: true });
  await control.addFailure({ match: { receiver: 'https://hooks.example.com' }, respond: { status: 500 } });
  await post('/settings', { notificationAttempts: '1', numberOfFailures: '5', daysInPast: '5' });
  const hook = { name: 'hook', hookUrl: 'https://hooks.example.com/in', changeTypes: '*' };
  const { id } = await post('/create', hook);
  for (const { after, failures, active } of [
    { after: 0, failures: 2, active: true },
    { after: 2 * dayMs, failures: 2, active: true },
    { after: 3 * dayMs, failures: 4, active: true },
    { after: 0, failures: 1, active: false },
  ]) {
    await control.advanceClock(after);
    for (let failure = 0; failure < failures; failure += 1) await fail();
    const webhook = await post(`/${id}`, {});
    if (webhook.active !== active) throw new Error(`The webhook is ${webhook.active ? '' : 'not '}active.`);
  }
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
  process.stdout.write(
    `import of the package ${medianOf('import')} ms (bound ${bounds.import}), startSteward() ${medianOf('first')} ms ` +
      `(bound ${bounds.first}), until /ready has answered ${medianOf('ready')} ms, again in the same process ${medianOf('again')} ms, reset ${medianOf('reset')} ms, ` +
      `five failures over six days ${medianOf('example')} ms (bound ${bounds.example}), a year ${medianOf('year')} ms (bound ${bounds.year}); medians of ${rounds} processes\n`,
  );
  if (Object.entries(bounds).some(([name, bound]) => medianOf(name) > bound)) process.exitCode = 1;
}
