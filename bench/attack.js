// Attacks a server that has the heap limit of deploy/kubernetes, on loopback and for a bounded time, and prints its
// peak resident memory. Exits with 1 if the server ends or needs more memory than its pod has.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { setInterval, clearInterval } from 'node:timers';
import { setTimeout as pause } from 'node:timers/promises';
import { URL, URLSearchParams, fileURLToPath } from 'node:url';
import { fetch } from 'undici';
import { bodyAttacks } from './attack/bodies.js';
import { catalogAttacks } from './attack/catalog.js';
import { journalAttacks } from './attack/journal.js';
import { manifestAttacks } from './attack/manifests.js';
import { publisherAttacks } from './attack/publisher.js';
import { readerAttacks } from './attack/readers.js';
import { receiverAttacks } from './attack/receivers.js';
import { signInAttacks } from './attack/sign-in.js';
import { listening, print } from './kit.js';

/** How long attacks without an end of their own run, and a part of the names of the attacks to run. */
const seconds = Number(process.argv[2] ?? 10);
const wanted = process.argv[3] ?? '';
const password = 'a password for the attacks';
const manifest = readFileSync(new URL('../deploy/kubernetes/deployment.yaml', import.meta.url), 'utf8');
const podMegabytes = Number(/limits:[\s\S]*?memory: (\d+)Mi/.exec(manifest)[1]);
const nodeOptions = /NODE_OPTIONS[\s\S]*?value: '?([^'\n]+)'?/.exec(manifest)[1];

/** By name: a function, or an object with the function and the variables of its server. */
const attacks = {
  ...bodyAttacks,
  ...signInAttacks,
  ...manifestAttacks,
  ...receiverAttacks,
  ...publisherAttacks,
  ...catalogAttacks,
  ...readerAttacks,
  ...journalAttacks,
};

function startServer(env) {
  return spawn(process.execPath, [fileURLToPath(new URL('../dist/main.js', import.meta.url))], {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      LOG_LEVEL: 'error',
      NODE_OPTIONS: nodeOptions,
      ADMIN_PASSWORD: password,
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      TRUSTED_PROXIES: '127.0.0.0/8',
      ...env,
    },
  });
}

async function signIn(baseUrl) {
  const body = new URLSearchParams({ username: 'admin', password });
  const response = await fetch(`${baseUrl}/tokens/generateToken`, { method: 'POST', body });
  return (await response.json()).token;
}

function readMegabytes(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  // A process that is ending has no memory any more.
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}

/** Processor time of the process, in seconds. Linux counts it in hundredths. */
function readCpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Samples memory, and how long an honest client waits for /health. */
function watch(server, baseUrl) {
  const seen = { peak: 0, slowest: 0 };
  let isAsking = false;
  const timer = setInterval(async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    seen.peak = Math.max(seen.peak, readMegabytes(server.pid));
    if (isAsking) return;
    isAsking = true;
    const start = performance.now();
    await fetch(`${baseUrl}/health`).catch(() => undefined);
    seen.slowest = Math.max(seen.slowest, performance.now() - start);
    isAsking = false;
  }, 50);
  return { seen, stop: () => clearInterval(timer) };
}

/** Each attack has a server of its own, so that its memory is not that of the attack before. */
async function run(name, { env, attack }) {
  const server = startServer(env);
  const baseUrl = await listening(server);
  let exit;
  server.once('exit', (code, signal) => (exit = signal ?? code));
  const token = await signIn(baseUrl);
  const cpu = readCpuSeconds(server.pid);
  const { seen, stop } = watch(server, baseUrl);
  let outcome;
  try {
    outcome = JSON.stringify(await attack({ baseUrl, token, seconds, pid: server.pid }));
  } catch (error) {
    outcome = String(error.cause ?? error);
  }
  await pause(300);
  stop();
  const used = exit === undefined ? readCpuSeconds(server.pid) - cpu : NaN;
  server.kill('SIGKILL');
  const isGood = exit === undefined && seen.peak < podMegabytes;
  if (!isGood) process.exitCode = 1;
  const state = exit === undefined ? (isGood ? 'ok' : 'too much memory') : `ended: ${exit}`;
  print(
    `| ${name} | ${seen.peak} | ${used.toFixed(1)} | ${Math.round(seen.slowest)} | ${outcome.replaceAll('"', '')} | ${state} |`,
  );
}

print(`Pod: ${podMegabytes} MiB, NODE_OPTIONS=${nodeOptions}`);
print('| Attack | Peak memory, MiB | Processor, s | Slowest /health, ms | Responses | |');
print('| --- | --- | --- | --- | --- | --- |');
for (const [name, attack] of Object.entries(attacks))
  if (name.includes(wanted)) await run(name, typeof attack === 'function' ? { attack } : attack);
