// The crash tests for longer: as many rounds as the first argument says (10 where it says none), each with a seed of its own, which is told.
// Ends with 1 after the first round that fails. Run with `npm run crash`, which builds first.
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { tell } from './kit.js';

const rounds = Number(process.argv[2] ?? 10);

for (let round = 1; round <= rounds; round += 1) {
  const seed = randomInt(2 ** 32);
  tell(`round ${round} of ${rounds}, CRASH_SEED=${seed}`);
  const env = { ...process.env, CRASH_SEED: String(seed) };
  const run = spawn('npx', ['vitest', 'run', '--project', 'crash', 'test/crash'], { env, stdio: 'inherit' });
  const [code] = await once(run, 'exit');
  if (code !== 0) process.exit(1);
}
