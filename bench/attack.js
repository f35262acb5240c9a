// Attacks a server that has the heap limit of deploy/kubernetes, on loopback and for a bounded time, and prints its
// peak resident memory. Exits with 1 if the server ends or needs more memory than its pod has. The arguments: how many
// seconds an attack without an end of its own takes, and a part of the names of the attacks to run.
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { URL } from 'node:url';
import { fetch } from 'undici';
import { attacks } from './attack/attacks.js';
import { print } from './kit.js';
import { processorMs } from './processes.js';
import { startServer } from './server.js';

const seconds = Number(process.argv[2] ?? 10);
const wanted = process.argv[3] ?? '';
const manifest = readFileSync(new URL('../deploy/kubernetes/deployment.yaml', import.meta.url), 'utf8');
const podMegabytes = Number(/limits:[\s\S]*?memory: (\d+)Mi/.exec(manifest)[1]);
const nodeOptions = /NODE_OPTIONS[\s\S]*?value: '?([^'\n]+)'?/.exec(manifest)[1];

/** Samples the memory of the server, and how long an honest client waits for /health. */
function watch(server) {
  const seen = { peak: 0, slowest: 0 };
  let isOver = false;
  async function sample() {
    while (!isOver && server.ended === undefined) {
      seen.peak = Math.max(seen.peak, server.memory().peak);
      const start = performance.now();
      await fetch(`${server.address}/health`).catch(() => undefined);
      seen.slowest = Math.max(seen.slowest, performance.now() - start);
      await pause(50);
    }
  }
  const sampling = sample();
  return async () => {
    isOver = true;
    await sampling;
    return seen;
  };
}

/** Each attack has a server of its own, so that its memory is not that of the attack before. */
async function run({ name, env, attack }) {
  const server = await startServer({
    env: { NODE_OPTIONS: nodeOptions, TRUSTED_PROXIES: '127.0.0.0/8', ...env },
  });
  await server.signIn();
  const before = processorMs([server.pid]);
  const stop = watch(server);
  const outcome = await attack(server, seconds).catch((error) => String(error.cause ?? error));
  await pause(300);
  const { peak, slowest } = await stop();
  const used = (processorMs([server.pid]) - before) / 1000;
  const isGood = server.ended === undefined && peak < podMegabytes;
  if (!isGood) process.exitCode = 1;
  const state = server.ended === undefined ? (isGood ? 'ok' : 'too much memory') : `ended: ${server.ended}`;
  await server.kill();
  const responses = JSON.stringify(outcome).replaceAll('"', '');
  print(
    `| ${name} | ${peak.toFixed(0)} | ${used.toFixed(1)} | ${slowest.toFixed(0)} | ${responses} | ${state} |`,
  );
}

print(`Pod: ${podMegabytes} MiB, NODE_OPTIONS=${nodeOptions}`);
print('| Attack | Peak memory, MiB | Processor, s | Slowest /health, ms | Responses | |');
print('| --- | --- | --- | --- | --- | --- |');
for (const attack of attacks) if (attack.name.includes(wanted)) await run(attack);
