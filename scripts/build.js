// Builds the server for `npm start`, unless the last build is newer than everything that it was made from.
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const inputs = ['src', 'wsdl', 'scripts', 'package.json', 'tsconfig.json', 'tsconfig.build.json'];

/** The time of the last change. That of a directory tells that a file was added or removed. */
function changedAt(path) {
  const stats = statSync(path);
  if (!stats.isDirectory()) return stats.mtimeMs;
  return Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => changedAt(join(path, name))));
}

/** `scripts/copy-files.js` writes the mark at the end of a build. */
export function isBuildCurrent(root) {
  const builtAt = statSync(join(root, 'dist/.built'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return inputs.every((input) => changedAt(join(root, input)) < builtAt);
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !isBuildCurrent(process.cwd()))
  process.exitCode = spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' }).status ?? 1;
