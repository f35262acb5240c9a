// Reads a page of docs/operate and runs its shell blocks in one bash, with the outputs that the page shows for them.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { isAnswer } from '../answers.ts';
import { type Example, checkout, parsePage } from '../pages.ts';

export { checkout };

/** A shell block that is run, with its section and the answer that the page shows. */
export type Command = Example & { readonly section: string };

/** The shell blocks of a page, in order, without those that are not run. */
export function readCommands(path: string): Command[] {
  const text = readFileSync(join(checkout, path), 'utf8');
  const lines = text.split('\n');
  return parsePage(path, text)
    .examples.filter(({ notRun }) => notRun === undefined)
    .map((example) => {
      const heading = lines.slice(0, example.line).findLast((line) => line.startsWith('## '));
      return { ...example, section: heading?.slice(3) ?? '' };
    });
}

/** The SQL blocks of a page. */
export function readSql(path: string): string[] {
  const text = readFileSync(join(checkout, path), 'utf8');
  return [...text.matchAll(/^```sql\n([^]*?)^```$/gm)].map(([, block = '']) => block);
}

/** Bash reports a background process that was killed. */
const killReport = /^bash: line \d+: +\d+ Killed .*\n/gm;

/** Compares an output with what the page shows, if it shows one. */
export function expectAnswer({ answer }: Command, output: string): void {
  const actual = output.replace(killReport, '');
  if (answer && !isAnswer(answer, actual)) expect(actual).toBe(answer.text);
}

export type Shell = ReturnType<typeof openShell>;

/** Opens a bash that exits at the first command that fails. Its output includes the standard error. */
export function openShell(cwd: string, env: Record<string, string | undefined> = {}) {
  const bash: ChildProcessWithoutNullStreams = spawn('bash', ['-e'], {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd, ...env },
    // Its own process group, so that `kill` also ends the processes that it started.
    detached: true,
  });
  const ended = once(bash, 'close');
  let out = '';
  bash.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  bash.stdin.write('exec 2>&1\n');
  return {
    async run(commands: string): Promise<string> {
      const mark = randomUUID();
      const from = out.length;
      bash.stdin.write(`${commands}\necho ${mark}\n`);
      const done = new Promise<void>((resolve) => {
        const look = () => {
          if (!out.includes(mark)) return;
          bash.stdout.off('data', look);
          resolve();
        };
        bash.stdout.on('data', look);
      });
      const failed = ended.then(() => {
        throw new Error(`${commands}\n${out.slice(from)}`);
      });
      await Promise.race([done, failed]);
      return out.slice(from, out.indexOf(mark));
    },
    kill(): void {
      try {
        process.kill(-(bash.pid ?? 0), 'SIGKILL');
      } catch {
        // All of them have already ended.
      }
    },
  };
}

/** Below the ephemeral ports: an outgoing connection could take one of those while a process is down. */
export async function findPort(): Promise<string> {
  for (;;) {
    const server = createServer();
    const port = randomInt(20_000, 32_000);
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return String(port);
  }
}

/** Replaces the ports that a page uses by free ones, and back in the outputs. */
export class Ports {
  readonly #free = new Map<string, string>();

  async reserve(...ports: string[]): Promise<void> {
    for (const port of ports) this.set(port, await findPort());
  }
  set(port: string, free: string): void {
    this.#free.set(port, free);
  }
  get(port: string): string {
    return this.#free.get(port) ?? port;
  }
  inCommands(text: string): string {
    return text.replaceAll(/\b\d{4}\b/g, (port) => this.get(port));
  }
  inOutput(text: string): string {
    return [...this.#free].reduce((result, [port, free]) => result.replaceAll(free, port), text);
  }
}
