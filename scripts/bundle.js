// Bundles the modules of the server into a few files, because loading hundreds takes long. Packages stay packages: an
// update, an override or a scanner of an installation acts on what runs.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../', import.meta.url));

/** The files that the server reads at run time, and their places beside the bundle. */
export const runtimeFiles = [
  ['wsdl', 'wsdl'],
  ['src/console/assets', 'console/assets'],
  ['src/store/postgres/migrations', 'store/postgres/migrations'],
  ['src/upgrades/versions/sample-manifest.json', 'upgrades/versions/sample-manifest.json'],
];

/** `entries` are files of the checkout, by the names that they get in the folder. */
export async function bundle(entries, folder) {
  await build({
    absWorkingDir: root,
    entryPoints: entries,
    outdir: folder,
    bundle: true,
    // What the server imports only when it is used stays in files of its own.
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
  });
  for (const name of readdirSync(folder)) escapeTemplates(join(folder, name));
  for (const [from, to] of runtimeFiles) cpSync(join(root, from), join(folder, to), { recursive: true });
}

/**
 * esbuild writes ASCII, but for tagged templates. One other character would double the memory for the text of the
 * whole file.
 */
export function escapeTemplates(file) {
  const escape = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/[^\0-\x7F]/g, escape));
}

/** Bundles a variant of the server for tests. `remove` deletes its folder. */
export async function bundleVariant(entries) {
  // Inside node_modules, so that the bundle finds the packages that are no part of it.
  const cache = join(root, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const checkout = mkdtempSync(join(cache, 'steward-'));
  const folder = join(checkout, 'dist');
  await bundle(entries, folder);
  cpSync(join(root, 'package.json'), join(checkout, 'package.json'));
  return { folder, remove: () => rmSync(checkout, { recursive: true, force: true }) };
}
