// Starts servers as processes of their own.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { noteRecord, noteSecret } from './leaks.ts';

/** A process of a build checks its own answers and deliveries with this. The bundle contains it. */
const checks = new URL('check-process.js', import.meta.url).href;
const running = new Set<ChildProcess>();

/** Kills the processes that a test has left running. */
export function killProcesses(): void {
  for (const child of running) child.kill('SIGKILL');
}

export type ProcessOptions = {
  /** The working directory; it is removed when the process has ended. */
  readonly cwd?: string;
  /** Default: the bundle of bundle.setup.ts. */
  readonly command?: readonly string[];
};

/** Starts the server in an empty directory, so that it reads no .env except one of `files`. */
export function startProcess(
  env: Record<string, string> = {},
  files: Record<string, string> = {},
  { cwd = mkdtempSync(join(tmpdir(), 'steward-')), command }: ProcessOptions = {},
) {
  for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content);
  const [program = '', ...args] = command ?? [process.execPath, inject('serverEntry')];
  const child = spawn(program, args, {
    cwd,
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      ...(command && { NODE_OPTIONS: `--import ${checks}` }),
      ...env,
    },
  });
  running.add(child);
  const output = { out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output.err += chunk.toString()));
  noteSecret(env.ADMIN_PASSWORD, env.SECRET_KEY, env.STORE_URL);

  async function waitForExit(): Promise<number | null> {
    const [code] = (await once(child, 'close')) as [number | null];
    noteRecord(output.out);
    running.delete(child);
    rmSync(cwd, { recursive: true });
    return code;
  }
  const exited = waitForExit();

  const listening = new Promise<string>((resolve, reject) => {
    child.stderr.on('data', () => {
      const address = /listens on (http:\S+)/.exec(output.err)?.[1];
      if (address !== undefined && output.err.includes('admin ')) resolve(address);
    });
    void exited.then(() => reject(new Error(output.err)));
  });
  // A test that expects the start to fail does not await the address.
  listening.catch(() => undefined);

  /** Kills the process without a warning and waits until it has ended. */
  async function kill(): Promise<void> {
    child.kill('SIGKILL');
    await exited;
  }

  return { child, output, exited, listening, kill };
}
