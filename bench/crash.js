// Repeats the crash tests, each round with a new seed, until a round fails. Before the first round, three processes
// are killed 30 times. The argument is the number of rounds (default 10).
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { URL, fileURLToPath } from 'node:url';
import { print } from './kit.js';

const rounds = Number(process.argv[2] ?? 10);
const kills = 30;
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));

/** Runs the tests in the path with a new seed. Ends this process if one fails. */
async function run(title, path, settings = {}) {
  const seed = randomInt(2 ** 32);
  print(`${title}, CRASH_SEED=${seed}`);
  const args = [vitest, 'run', '--mode', 'ci', '--project', 'process', path];
  const env = { ...process.env, ...settings, CRASH_SEED: String(seed) };
  const child = spawn(process.execPath, args, { env, stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  if (code !== 0) process.exit(1);
}

await run(`${kills} kills`, 'test/process/three-processes.test.ts', { CRASH_KILLS: String(kills) });
for (let round = 1; round <= rounds; round += 1) await run(`round ${round} of ${rounds}`, 'test/process');
