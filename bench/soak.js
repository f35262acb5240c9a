// Runs a server under mixed traffic and exits with 1 when resident memory, handles, pending deliveries or the p99
// of response times grow. `npm run soak` runs for 10 minutes, `npm run soak -- 60` for an hour.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers';
import { setTimeout as pause } from 'node:timers/promises';
import { URL, URLSearchParams, fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { p99, print, printTable } from './kit.js';

const minutes = Number(process.argv[2] ?? 10);
const sampleMs = Math.min(10_000, minutes * 1_000);
const warmUp = 0.3;
const password = 'a password for the soak';
const patches = ['pat_17022022_1250', 'pat_28042022_1260'];

const kinds = {
  good: (response) => response.writeHead(200).end('{}'),
  slow: (response) => setTimeout(() => response.writeHead(200).end('{}'), 200),
  bad: (response) => response.writeHead(500).end('{}'),
  hole: () => undefined,
};
/**
 * Each receiver has its own port: the number of parallel attempts per receiver is limited, so the hole would delay
 * the others.
 */
const receivers = await Promise.all(
  Object.entries(kinds).map(async ([kind, answer]) => {
    const receiver = createServer((request, response) => {
      request.resume();
      answer(response);
    });
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    return { kind, receiver, hookUrl: `http://127.0.0.1:${receiver.address().port}/${kind}` };
  }),
);

const server = spawn(process.execPath, [fileURLToPath(new URL('../dist/main.js', import.meta.url))], {
  env: {
    PATH: process.env.PATH,
    PORT: '0',
    LOG_LEVEL: 'warn',
    ADMIN_PASSWORD: password,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    UPGRADE_STEP_MS: '20',
    ...(process.env.STORE_URL ? { STORE_URL: process.env.STORE_URL, SECRET_KEY: 'k'.repeat(32) } : {}),
  },
});
let output = '';
server.stderr.on('data', (chunk) => (output += chunk));
server.stdout.on('data', (chunk) => (output += chunk));
server.on('exit', (code) => {
  if (!isOver) throw new Error(`the server ended with ${code}: ${output.slice(-2000)}`);
});
while (!output.includes('admin ')) await pause(20);
const address = /listens on (http:\S+)/.exec(output)[1];
const pool = new Pool(address, { connections: 16 });
let isOver = false;

let durations = [];
const unexpected = new Map();

async function ask(method, path, { form, headers = {}, xml, expected = [200] } = {}) {
  const started = performance.now();
  const body = xml ?? (form && new URLSearchParams(form).toString());
  const type = xml ? 'text/xml' : 'application/x-www-form-urlencoded';
  const { statusCode, body: answer } = await pool.request({
    method,
    path,
    body,
    headers: { ...(body && { 'content-type': type }), ...headers },
  });
  const text = await answer.text();
  // Password checks are slow on purpose.
  if (form?.password === undefined) durations.push(performance.now() - started);
  if (!expected.includes(statusCode)) {
    const key = `${method} ${path.replace(/[0-9a-f-]{36}/g, '…')} ${statusCode}`;
    unexpected.set(key, (unexpected.get(key) ?? 0) + 1);
  }
  return xml ? text : JSON.parse(text);
}

const signIn = () => ask('POST', '/tokens/generateToken', { form: { username: 'admin', password } });
const { token } = await signIn();
const headers = { authorization: `Bearer ${token}` };
const admin = (path, form, expected) => ask('POST', `/admin/${path}`, { form, headers, expected });

// Some receivers always fail, so the run deactivates webhooks and activates them again.
for (const { kind, hookUrl } of receivers)
  await admin('services/webhooks/create', { name: kind, hookUrl, changeTypes: '*' }, [200, 409]);
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
  [40, () => ask('POST', '/services', { xml: operation('GetServiceDescriptions') })],
  [40, () => ask('POST', '/services', { xml: operation('GetMessageVersion') })],
  [10, () => ask('POST', '/services', { xml: '<broken', expected: [500] })],
  [
    20,
    () =>
      ask('GET', '/admin?f=html', { headers: { ...headers, accept: 'text/html' }, expected: [200] }).catch(
        () => undefined,
      ),
  ],
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
  const { token: another } = await signIn();
  await ask('POST', '/tokens/revokeToken', { form: { token: another } });
}

async function upgradeOrRollBack() {
  const installed = (await admin('system/upgrades/installed', {}, [200, 409])).updates?.length;
  const [act, id] = installed === 3 ? ['rollback', patches[0]] : ['upgrade', patches[1]];
  await admin(`system/upgrades/${act}`, { versionManifest: JSON.stringify({ id }) }, [200, 409]);
}

async function repeat(perSecond, work) {
  while (!isOver) {
    const next = performance.now() + 1000 / perSecond;
    await work().catch((error) => unexpected.set(error.message, (unexpected.get(error.message) ?? 0) + 1));
    while (!isOver && performance.now() < next) await pause(Math.min(500, next - performance.now()));
  }
}

async function sample() {
  const text = await (await pool.request({ method: 'GET', path: '/metrics' })).body.text();
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
server.kill('SIGTERM');
await once(server, 'exit');
await pool.destroy();
for (const { receiver } of receivers) {
  receiver.closeAllConnections();
  receiver.close();
}

const steady = samples.slice(Math.floor(samples.length * warmUp));
const [early, late] = [steady.slice(0, steady.length / 2), steady.slice(steady.length / 2)];
const most = (points, value) => Math.max(...points.map(value));
const middleOf = (points) =>
  points.map(({ p99: figure }) => figure).sort((a, b) => a - b)[Math.floor(points.length / 2)];
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
