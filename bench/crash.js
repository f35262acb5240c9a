// Repeats the crash tests, each round with a new seed, until a round fails. The argument is the number of rounds (default 10).
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { URL, fileURLToPath } from 'node:url';
import { print } from './kit.js';

const rounds = Number(process.argv[2] ?? 10);
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));

for (let round = 1; round <= rounds; round += 1) {
  const seed = randomInt(2 ** 32);
  print(`round ${round} of ${rounds}, CRASH_SEED=${seed}`);
  const args = [vitest, 'run', '--project', 'crash', 'test/crash'];
  const env = { ...process.env, CRASH_SEED: String(seed) };
  const run = spawn(process.execPath, args, { env, stdio: 'inherit' });
  const [code] = await once(run, 'exit');
  if (code !== 0) process.exit(1);
}
