// The files of a server with further migrations: the next version of the program, as the database sees it.
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { onTestFinished } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** What the server reads at run time. */
const files = [
  'package.json',
  'dist/wsdl',
  'dist/console/assets',
  'dist/store/postgres/migrations',
  'dist/upgrades/versions/sample-manifest.json',
];

/** Returns the folder of the files. It is removed after the test. */
export function filesWith(...migrations: readonly string[]): URL {
  const folder = mkdtempSync(join(tmpdir(), 'steward-files-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  for (const name of files) cpSync(join(root, name), join(folder, name), { recursive: true });
  const target = join(folder, 'dist/store/postgres/migrations');
  const known = readdirSync(target).filter((name) => name.endsWith('.sql')).length;
  for (const [index, sql] of migrations.entries()) {
    const number = String(known + index + 1).padStart(3, '0');
    writeFileSync(join(target, `${number}-test.sql`), sql);
  }
  return pathToFileURL(join(folder, 'dist/'));
}
