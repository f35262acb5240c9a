// Runs the tests with another version of Node: `npm run test:node -- 24`. Further arguments are those of `vitest
// run`, for example test/http.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { URL, fileURLToPath } from 'node:url';
import { installNode } from './node.js';

const [version, ...vitestArguments] = process.argv.slice(2);
if (version === undefined) throw new Error('Usage: npm run test:node -- <version> [arguments of vitest run]');

const directory = mkdtempSync(join(tmpdir(), 'steward-node-'));

try {
  const node = installNode(version, directory);
  const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
  // With this PATH, tests that start npm use the same Node.
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  process.stdout.write(`Node ${execFileSync(node, ['--version'], { encoding: 'utf8' })}`);
  const { status } = spawnSync(node, [vitest, 'run', ...vitestArguments], { env, stdio: 'inherit' });
  process.exitCode = status ?? 1;
} finally {
  rmSync(directory, { recursive: true });
}
