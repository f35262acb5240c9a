// Builds the server into dist. With --if-changed, as `npm start` calls it, only if something has changed since the last build.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const steps = [
  ['node_modules/@typescript/native/bin/tsc', '-p', 'tsconfig.build.json'],
  ['scripts/declarations.js'],
  ['scripts/copy-files.js'],
];

const inputs = [
  'src',
  'wsdl',
  'scripts',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
];

/** Its time is that of the start of the last build, so that a file that was saved during the build counts as changed. */
const mark = 'dist/.built';

/** The time of the last change. That of a directory tells that a file was added or removed. */
function changedAt(path) {
  const stats = statSync(path);
  if (!stats.isDirectory()) return stats.mtimeMs;
  return Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => changedAt(join(path, name))));
}

export function isBuildCurrent(root) {
  const builtAt = statSync(join(root, mark), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (!existsSync(join(root, 'dist/main.js'))) return false;
  return inputs.every((input) => changedAt(join(root, input)) < builtAt);
}

function build() {
  const startedAt = new Date();
  for (const step of steps) {
    const { status } = spawnSync(process.execPath, step, { stdio: 'inherit' });
    if (status !== 0) return status ?? 1;
  }
  writeFileSync(mark, '');
  utimesSync(mark, startedAt, startedAt);
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const isWanted = process.argv[2] !== '--if-changed' || !isBuildCurrent(process.cwd());
  if (isWanted) process.exitCode = build();
}
