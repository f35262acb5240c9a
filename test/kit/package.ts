// A project that has installed the package: what `npm pack` produces, unpacked as npm does it. Its dependencies are
// those of the checkout: a download would take half a minute.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const execute = promisify(execFile);
export const checkout = fileURLToPath(new URL('../../', import.meta.url));

/**
 * The folder of packages that a single test uses, and that would be half of all packages of the checkout. `.ci/run` installs them; without
 * them, these tests are skipped.
 */
export const extraPackages = process.env.EXTRA_PACKAGES;

export type Packed = { filename: string; size: number; unpackedSize: number; files: { path: string }[] };

/** `dist` must be built. */
export async function createProject() {
  const project = mkdtempSync(join(tmpdir(), 'steward-package-'));
  const install = (name: string, from = join(checkout, 'node_modules')) => {
    const link = join(project, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(from, name), link);
  };
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', project];
  const { stdout } = await execute('npm', args, { cwd: checkout });
  const [packed] = JSON.parse(stdout) as [Packed];
  const installed = join(project, 'node_modules/steward');
  mkdirSync(installed, { recursive: true });
  await execute('tar', ['-xzf', join(project, packed.filename), '-C', installed, '--strip-components=1']);
  const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    dependencies: object;
  };
  for (const name of Object.keys(dependencies)) install(name);
  mkdirSync(join(project, 'node_modules/.bin'));
  symlinkSync('../steward/bin/steward.js', join(project, 'node_modules/.bin/steward'));
  writeFileSync(join(project, 'package.json'), '{"type":"module"}');
  return { project, packed, install };
}
