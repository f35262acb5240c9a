// Writes the software bills of materials of a release (CycloneDX) into a folder: one of the package alone, one of the
// package with the Kubernetes client, as in the image.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { URL, fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** The bills by the endings of their names, with what each leaves out of package.json. */
const bills = {
  '': ['devDependencies', 'peerDependencies', 'peerDependenciesMeta'],
  // npm counts a peer dependency that is not marked as optional. The Dockerfile removes the same.
  '-kubernetes': ['devDependencies', 'peerDependenciesMeta'],
};

/**
 * `npm sbom --omit=dev` would leave out production packages that a development package needs too, such as pg
 * (npm/cli#7909). Therefore npm first removes the development packages from a copy of the lock file.
 */
function createBill(left) {
  const copy = mkdtempSync(join(tmpdir(), 'steward-sbom-'));
  // npm names the bill after the folder.
  const folder = join(copy, manifest.name);
  const npm = (...args) =>
    execFileSync('npm', [...args, '--package-lock-only'], { cwd: folder, encoding: 'utf8' });
  try {
    mkdirSync(folder);
    const kept = Object.entries(manifest).filter(([field]) => !left.includes(field));
    writeFileSync(join(folder, 'package.json'), JSON.stringify(Object.fromEntries(kept)));
    copyFileSync(join(root, 'package-lock.json'), join(folder, 'package-lock.json'));
    npm('install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund');
    return npm('sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application');
  } finally {
    rmSync(copy, { recursive: true });
  }
}

const target = resolve(process.argv[2] ?? '.');
mkdirSync(target, { recursive: true });
for (const [ending, left] of Object.entries(bills)) {
  const file = join(target, `${manifest.name}-${manifest.version}${ending}.cdx.json`);
  writeFileSync(file, createBill(left));
  process.stdout.write(`${file}\n`);
}
