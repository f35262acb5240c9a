// Builds the server into dist. With --if-changed, as `npm start` calls it, only if something has changed since the
// last build.
import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const entries = { main: 'src/main.ts', package: 'src/package.ts', cli: 'src/cli.ts' };

const inputs = ['src', 'wsdl', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json'];

/**
 * Its time is that of the start of the last build, so that a file that was saved during the build counts as
 * changed.
 */
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

async function build() {
  const startedAt = new Date();
  const { bundle } = await import('./bundle.js');
  const { writeDeclarations } = await import('./declarations.js');
  // The names of the files in a bundle depend on their contents.
  rmSync('dist', { recursive: true, force: true });
  await bundle(entries, 'dist');
  writeDeclarations('dist');
  writeFileSync(mark, '');
  utimesSync(mark, startedAt, startedAt);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const isWanted = process.argv[2] !== '--if-changed' || !isBuildCurrent(process.cwd());
  if (isWanted) await build();
}
