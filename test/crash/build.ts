// A copy of the built server with further migrations: the next version of the program, as the database sees it.
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { ProcessOptions } from '../kit/process.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Returns the options that start a process of this version. It is removed after the test. */
export function buildWith(...migrations: readonly string[]): ProcessOptions {
  const folder = mkdtempSync(join(tmpdir(), 'steward-build-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  for (const name of ['dist', 'package.json'])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const target = join(folder, 'dist/store/postgres/migrations');
  const known = readdirSync(target).filter((name) => name.endsWith('.sql')).length;
  for (const [index, sql] of migrations.entries()) {
    const number = String(known + index + 1).padStart(3, '0');
    writeFileSync(join(target, `${number}-test.sql`), sql);
  }
  return { command: [process.execPath, join(folder, 'dist/main.js')] };
}
