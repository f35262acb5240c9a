// The built server as a process of its own. `npm test` builds it first.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';
import { noteLog, noteSecret } from './leaks.ts';

const entry = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts the server in a directory of its own, so that no .env but ours is read. */
export function startProcess(env: Record<string, string> = {}, files: Record<string, string> = {}) {
  const cwd = mkdtempSync(join(tmpdir(), 'steward-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content);
  const child = spawn(process.execPath, [entry], { cwd, env: { PATH: process.env.PATH, PORT: '0', ...env } });
  running.add(child);
  const said = { out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (said.err += chunk.toString()));
  noteSecret(env.ADMIN_PASSWORD, env.SECRET_KEY, env.STORE_URL);
  const exited = once(child, 'close').then(([code]) => {
    noteLog(said.out);
    running.delete(child);
    rmSync(cwd, { recursive: true });
    return code as number | null;
  });
  const listening = new Promise<string>((resolve, reject) => {
    child.stderr.on('data', () => {
      const address = /listens on (http:\S+)/.exec(said.err)?.[1];
      if (address !== undefined && said.err.includes('admin ')) resolve(address);
    });
    void exited.then(() => reject(new Error(said.err)));
  });
  listening.catch(() => undefined);
  /** Without any warning; it is gone when this is done. */
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  return { child, said, exited, listening, kill };
}
