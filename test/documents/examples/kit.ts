// Finds the tools that the examples need, and runs commands.
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const checkout = fileURLToPath(new URL('../../../', import.meta.url));
export const pathOf = (path: string) => join(checkout, path);
export const textOf = (path: string) => readFileSync(pathOf(path), 'utf8');

export const succeeds = (command: string, ...args: string[]) =>
  spawnSync(command, args, { timeout: 60_000 }).status === 0;

/** Starting processes takes long on a busy machine. */
export const patience = { timeout: 300_000 };

export type Result = { code: number; stdout: string; stderr: string };

/** Runs a command to its end, with no other variables than PATH and `env`. */
export async function run(
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
  cwd = checkout,
): Promise<Result> {
  const options = { cwd, env: { PATH: process.env.PATH, ...env }, timeout: patience.timeout };
  try {
    return { code: 0, ...(await promisify(execFile)(command, args, options)) };
  } catch (error) {
    const { code, stdout, stderr } = error as Partial<Result>;
    if (typeof code !== 'number') throw error;
    return { code, stdout: stdout ?? '', stderr: stderr ?? '' };
  }
}
