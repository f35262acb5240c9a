// Runs the compiler, oxlint and Prettier at the same time and prints each report with its time, for `npm run check`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { URL, fileURLToPath } from 'node:url';

const tools = {
  tsc: ['@typescript/native/bin/tsc', '--noEmit'],
  oxlint: ['oxlint/bin/oxlint'],
  prettier: ['prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.'],
};

const modules = new URL('../node_modules/', import.meta.url);

function start([name, [file, ...options]]) {
  const program = fileURLToPath(new URL(file, modules));
  // A group of its own: a signal reaches the programs too that a tool starts.
  const child = spawn(process.execPath, [program, ...options], { detached: true });
  return { name, child, ended: report(name, child) };
}

async function report(name, child) {
  const started = performance.now();
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
  const [code] = await once(child, 'close');
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`${Buffer.concat(output)}${name}: ${code === 0 ? 'ok' : 'failed'}, ${seconds} s\n`);
  return code;
}

const running = Object.entries(tools).map(start);

/** The compiler ignores SIGTERM. */
function killAll() {
  for (const { child } of running) if (child.exitCode === null) process.kill(-Number(child.pid), 'SIGKILL');
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, killAll);

const codes = await Promise.all(running.map(({ ended }) => ended));
if (codes.some((code) => code !== 0)) process.exitCode = 1;
