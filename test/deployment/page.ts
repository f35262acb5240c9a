// Reads a page of docs/operate and runs its shell blocks in one bash, with the outputs that the page shows for them.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

export const checkout = fileURLToPath(new URL('../../', import.meta.url));

export type Block = {
  readonly section: string;
  readonly language: string;
  readonly text: string;
  /** Of a shell block: the block that shows its output. */
  readonly output: string | undefined;
  /** Whether a comment before the block says that no test runs it. */
  readonly isSkipped: boolean;
};

const outputLanguages = ['json', 'text', 'xml'];

/** All fenced blocks of a page, in order, except those that show an output. */
export function readBlocks(path: string): Block[] {
  const page = readFileSync(join(checkout, path), 'utf8');
  const fences = [...page.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1] ?? '',
    text: match[2] ?? '',
    from: match.index,
    to: match.index + match[0].length,
  }));
  return fences.flatMap(({ language, text, from }, index) => {
    const previous = fences[index - 1];
    if (outputLanguages.includes(language) && isOutputOf(previous, page, from)) return [];
    const next = fences[index + 1];
    const before = page.slice(previous?.to ?? 0, from);
    const shown =
      next && outputLanguages.includes(next.language) && isOutputOf(fences[index], page, next.from);
    const section = [...page.slice(0, from).matchAll(/^## (.+)$/gm)].at(-1)?.[1] ?? '';
    return [
      {
        section,
        language,
        text,
        output: shown ? next.text : undefined,
        isSkipped: /<!-- not run: [^>]+ -->\s*$/.test(before),
      },
    ];
  });
}

/** Whether a block follows a shell block with at most one short line between them. */
function isOutputOf(
  fence: { language: string; to: number } | undefined,
  page: string,
  from: number,
): boolean {
  if (fence?.language !== 'sh') return false;
  const lines = page
    .slice(fence.to, from)
    .split('\n')
    .filter((line) => line.trim() !== '');
  return lines.length <= 1 && (lines[0]?.length ?? 0) <= 80;
}

const masks: [RegExp, string][] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>'],
  [/\b1[0-9]{12}\b/g, '<time>'],
  [/\b[A-Za-z0-9_-]{43}\b/g, '<token>'],
  [/\b\d+ milliseconds \(approximately \d+ minutes\)/g, '<duration>'],
  [/\d+ hh, \d+ min, \d+ sec, \d+ millisec/g, '<duration>'],
  [/"(ms|elapsedMs|remainingMs|durationMs)":\s*[\d.]+/g, '"$1":"<duration>"'],
  // Bash reports a background process that was killed.
  [/^bash: line \d+: +\d+ Killed .*\n/gm, ''],
  [/ +$/gm, ''],
];

const mask = (text: string) =>
  masks.reduce((result, [form, word]) => result.replace(form, word), text).trim();

/** Compares an output with what a page shows, if it shows one. `…` stands for any text. */
export function expectOutput(actual: string, shown: string | undefined): void {
  if (shown === undefined) return;
  const [found, wanted] = [mask(actual), mask(shown)];
  const form = wanted
    .split('…')
    .map((part) => part.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&'))
    .join('[^]*?');
  if (!new RegExp(`^${form}$`).test(found)) expect(found).toBe(wanted);
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
