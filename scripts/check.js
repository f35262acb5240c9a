// Runs the compiler, oxlint and Prettier at the same time and prints their reports, for `npm run check`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { URL, fileURLToPath } from 'node:url';

const tools = [
  ['@typescript/native/bin/tsc', '--noEmit'],
  ['oxlint/bin/oxlint'],
  ['prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.'],
];

const modules = new URL('../node_modules/', import.meta.url);

async function run([file, ...options]) {
  const program = fileURLToPath(new URL(file, modules));
  const [code] = await once(spawn(process.execPath, [program, ...options], { stdio: 'inherit' }), 'close');
  return code;
}

const codes = await Promise.all(tools.map(run));
if (codes.some((code) => code !== 0)) process.exitCode = 1;
