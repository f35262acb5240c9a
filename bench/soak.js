// Runs a server under mixed traffic and exits with 1 when resident memory, handles, pending deliveries or the p99
// of response times grow. `npm run soak` runs for 10 minutes, `npm run soak -- 60` for an hour.
import { setTimeout as pause } from 'node:timers/promises';
import { median, p99, print, printTable } from './kit.js';
import { startReceivers } from './receivers.js';
import { credentials, startServer } from './server.js';

const minutes = Number(process.argv[2] ?? 10);
const sampleMs = Math.min(10_000, minutes * 1_000);
const warmUp = 0.3;
const patches = ['pat_17022022_1250', 'pat_28042022_1260'];

const receivers = await startReceivers({ answering: 1, slow: 1, failing: 1, blackHoles: 1 });
const server = await startServer({ storeUrl: process.env.STORE_URL, env: { UPGRADE_STEP_MS: '20' } });
let isOver = false;
let durations = [];
const unexpected = new Map();
const note = (what) => unexpected.set(what, (unexpected.get(what) ?? 0) + 1);

/** Waits for the answer, whose status must be one of `expected`, and returns its body. */
async function expectAnswer(what, expected, asking) {
  const started = performance.now();
  const { status, body } = await asking;
  durations.push(performance.now() - started);
  if (!expected.includes(status)) note(`${what.replace(/[0-9a-f-]{36}/g, '…')} ${status}`);
  return body;
}

const admin = (path, form, expected = [200]) =>
  expectAnswer(path, expected, server.ask('POST', `/admin/${path}`, form));
const soap = (xml, expected = [200]) => expectAnswer('/services', expected, server.askSoap('/services', xml));

await server.signIn();
// Some receivers always fail, so the run deactivates webhooks and activates them again.
const { answering, slow, failing, blackHoles } = receivers;
for (const hookUrl of [answering, slow, failing, blackHoles].flat())
  await admin('services/webhooks/create', { name: hookUrl, hookUrl, changeTypes: '*' });
const { webhooks } = await admin('services/webhooks', {});
await admin('services/webhooks/settings', {
  notificationTimeOutInSeconds: '1',
  notificationElapsedTimeInSeconds: '1',
});

const envelope = (body) =>
  `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${body}</s:Body></s:Envelope>`;
const operation = (name) => envelope(`<${name} xmlns="http://www.example.com/schemas/Product/10.0"/>`);
/** The server refuses writes while a job runs. */
const write = [200, 503];

/** The first number of an entry is its maximum number of runs per second. */
const traffic = [
  [40, () => soap(operation('GetServiceDescriptions'))],
  [40, () => soap(operation('GetMessageVersion'))],
  [10, () => soap('<broken', [500])],
  [20, () => expectAnswer('/admin', [200], server.ask('GET', '/admin?f=html'))],
  [20, () => admin('system/upgrades', {})],
  [10, () => admin('services/webhooks/publish', { changeType: 'Soaked', payload: '{"a":1}' }, write)],
  [5, () => admin('services/webhooks/settings', { numberOfFailures: '20' }, write)],
  [2, createAndDeleteService],
  [1, signInAndOut],
  // This runs rarely, so that the server deactivates failing webhooks in between and drops their pending deliveries.
  [1 / 60, () => Promise.all(webhooks.map(({ id }) => admin(`services/webhooks/${id}/activate`, {}, write)))],
  [1 / 30, upgradeOrRollBack],
];

let services = 0;
async function createAndDeleteService() {
  const serviceName = `Soak${(services += 1)}`;
  const { status } = await admin('services/createService', { serviceName, type: 'MapServer' }, write);
  if (status === 'success') await admin(`services/${serviceName}.MapServer/delete`, {}, write);
}

async function signInAndOut() {
  const { token } = await server.require('POST', '/tokens/generateToken', credentials);
  await expectAnswer('revokeToken', [200], server.ask('POST', '/tokens/revokeToken', { token }));
}

async function upgradeOrRollBack() {
  const installed = (await admin('system/upgrades/installed', {}, [200, 409])).updates?.length;
  const [act, id] = installed === 3 ? ['rollback', patches[0]] : ['upgrade', patches[1]];
  await admin(`system/upgrades/${act}`, { versionManifest: JSON.stringify({ id }) }, [200, 409]);
}

async function repeat(perSecond, work) {
  while (!isOver) {
    const next = performance.now() + 1000 / perSecond;
    await work().catch((error) => note(error.message));
    while (!isOver && performance.now() < next) await pause(Math.min(500, next - performance.now()));
  }
}

async function sample() {
  if (server.ended !== undefined) throw new Error(`the server ended: ${server.ended}`);
  const { body: text } = await server.ask('GET', '/metrics');
  const figure = (name) => Number(new RegExp(`^steward_${name} (\\S+)`, 'm').exec(text)?.[1]);
  const answers = durations;
  durations = [];
  return {
    minute: performance.now() / 60_000,
    megabytes: figure('process_resident_memory_bytes') / 2 ** 20,
    handles: figure('nodejs_active_handles_total'),
    pending: figure('webhook_deliveries_pending'),
    p99: p99(answers),
    rate: (answers.length * 1000) / sampleMs,
  };
}

function slope(points, value) {
  const mean = (of) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [middle, height] = [mean(({ minute }) => minute), mean(value)];
  const spread = mean(({ minute }) => (minute - middle) ** 2);
  return mean((point) => (point.minute - middle) * (value(point) - height)) / spread;
}

const running = traffic.map(([perSecond, work]) => repeat(perSecond, work));
const samples = [];
while (samples.length < (minutes * 60_000) / sampleMs) {
  await pause(sampleMs);
  const one = await sample();
  samples.push(one);
  print(
    `${(samples.length * sampleMs) / 1000} s: ${one.megabytes.toFixed(1)} MB, ${one.handles} handles, ` +
      `${one.pending} deliveries pending, p99 ${one.p99.toFixed(1)} ms, ${one.rate.toFixed(0)} requests/s`,
  );
}
isOver = true;
await Promise.all(running);
await server.stop();
receivers.stop();

const steady = samples.slice(Math.floor(samples.length * warmUp));
const [early, late] = [steady.slice(0, steady.length / 2), steady.slice(steady.length / 2)];
const most = (points, value) => Math.max(...points.map(value));
const middleOf = (points) => median(points.map((one) => one.p99));
const growth = slope(steady, ({ megabytes }) => megabytes);
const gain = (value) => most(late, value) - most(early, value);
const handles = gain((one) => one.handles);
const backlog = gain((one) => one.pending);
const drift = middleOf(late) / middleOf(early);
for (const [what, count] of unexpected) print(`unexpected: ${what} (${count} times)`);
printTable([
  {
    figure: 'growth of resident memory after warm-up',
    required: '< 1 MB/min',
    measured: growth.toFixed(2),
    isMet: growth < 1,
  },
  {
    figure: 'growth of the maximum of handles, second half to first',
    required: '<= 8',
    measured: `${handles}`,
    isMet: handles <= 8,
  },
  {
    figure: 'growth of the maximum of pending deliveries, likewise',
    required: '<= 50',
    measured: `${backlog}`,
    isMet: backlog <= 50,
  },
  {
    figure: 'p99 of the second half compared with the first',
    required: '<= 1.5',
    measured: drift.toFixed(2),
    isMet: drift <= 1.5,
  },
  {
    figure: 'unexpected responses',
    required: '0',
    measured: `${unexpected.size}`,
    isMet: unexpected.size === 0,
  },
]);
