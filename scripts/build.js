// Builds the server into dist. With --if-changed, as `npm start` calls it, only if something has changed since the
// last build.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));

const entries = { main: 'src/main.ts', package: 'src/package.ts', cli: 'src/cli.ts' };

const inputs = ['src', 'wsdl', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json'];

/**
 * Its time is that of the start of the last build, so that a file that was saved during the build counts as
 * changed.
 */
const mark = '.built';

/** The time of the last change. That of a directory tells that a file was added or removed. */
function changedAt(path) {
  const stats = statSync(path);
  if (!stats.isDirectory()) return stats.mtimeMs;
  return Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => changedAt(join(path, name))));
}

export function isBuildCurrent(checkout) {
  const builtAt = statSync(join(checkout, 'dist', mark), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (!existsSync(join(checkout, 'dist/main.js'))) return false;
  return inputs.every((input) => changedAt(join(checkout, input)) < builtAt);
}

/** The commit of the checkout, with `-dirty` if files have changed. Undefined without git, as in an unpacked archive. */
export function findCommit(checkout) {
  const git = (...args) =>
    execFileSync('git', ['-C', checkout, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  try {
    // The folder may lie in the checkout of another project.
    if (realpathSync(git('rev-parse', '--show-toplevel')) !== realpathSync(checkout)) return undefined;
    return git('describe', '--always', '--dirty', '--abbrev=12', '--exclude=*');
  } catch {
    return undefined;
  }
}

async function build() {
  const startedAt = new Date();
  const { bundle } = await import('./bundle.js');
  const { writeDeclarations } = await import('./declarations.js');
  // A build that fails leaves the one before. Two builds at the same time have folders of their own.
  const folder = mkdtempSync(join(root, 'dist.new-'));
  const old = `${folder}-old`;
  process.once('exit', () => [folder, old].forEach((one) => rmSync(one, { recursive: true, force: true })));
  await bundle(entries, folder);
  writeDeclarations(folder);
  const commit = findCommit(root);
  if (commit !== undefined) writeFileSync(join(folder, 'commit'), commit);
  writeFileSync(join(folder, mark), '');
  utimesSync(join(folder, mark), startedAt, startedAt);
  chmodSync(folder, 0o755);
  // Between these lines there is no build for an instant, instead of as long as removing the files takes.
  const dist = join(root, 'dist');
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(folder, dist);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const isWanted = process.argv[2] !== '--if-changed' || !isBuildCurrent(root);
  if (isWanted) await build();
}
