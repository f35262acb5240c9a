// Runs the shell examples of a page in one bash, against a server of its own.
//
// The commands run in a directory that holds a link to every file of the checkout, so that paths on a page work as
// in a clone and files that the commands create do not. `http://localhost:8080` becomes the address of the server,
// and every other port of this machine on the page a free one. `npm ci` and `npm run build` do nothing, because the
// tests run on what is installed and built.
//
// A block that ends with `npm start` starts the server, as the comment `<!-- server: … -->` does: with the
// variables that the block sets. A second such block stops the first server and begins a new bash. The answer after
// it is what the server prints on standard error. A server without such an answer runs in the process of the test.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { inject } from 'vitest';
import { createDatabase } from '../kit/postgres.ts';
import { startProcess } from '../kit/process.ts';
import { listen } from '../kit/steward.ts';
import { isAnswer } from './answers.ts';
import { type Example, type Page, checkout } from './pages.ts';

/** Returns one text for each example that fails or answers something else. */
export async function runPage(page: Page): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'steward-docs-'));
  try {
    const links = join(directory, 'checkout');
    mkdirSync(links);
    for (const name of readdirSync(checkout))
      if (!['.git', '.env'].includes(name)) symlinkSync(join(checkout, name), join(links, name));
    writeStandIns(join(directory, 'bin'));
    const problems: string[] = [];
    const ports = await freePorts(page);
    for (const session of sessionsOf(page))
      problems.push(...(await runSession(page, session, directory, ports)));
    return problems;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** A server, or none, and the examples that use it. */
type Session = { readonly start?: Example; readonly server?: string; readonly examples: Example[] };

function sessionsOf({ server, examples }: Page): Session[] {
  const sessions: Session[] = [{ ...(server !== undefined && { server }), examples: [] }];
  for (const example of examples) {
    if (example.notRun !== undefined) continue;
    if (isStart(example)) sessions.push({ start: example, examples: [] });
    else sessions.at(-1)?.examples.push(example);
  }
  return sessions.filter(({ start, examples: { length } }) => start !== undefined || length > 0);
}

const isStart = ({ script }: Example) => /(^|\s)npm start\s*$/.test(script);

async function runSession(
  page: Page,
  { start, server, examples }: Session,
  directory: string,
  ports: ReadonlyMap<string, string>,
): Promise<string[]> {
  const startScript = start?.script ?? (server === undefined ? undefined : `${server} npm start`);
  if (startScript === undefined) return runExamples(page, examples, directory, ports);

  const variables = await readVariables(startScript, directory);
  if (variables instanceof Error) return [`${page.path}:${start?.line ?? 1}: ${variables.message}`];
  const answer = start?.answer;
  let steward: Running;
  try {
    steward = await (answer || variables.STORE_URL ? runProcess(variables) : listen(variables));
  } catch (error) {
    return [`${page.path}:${start?.line ?? 1}: the server did not start.\n${(error as Error).message}`];
  }
  try {
    const printed = steward.printed?.() ?? '';
    const wrong = start && answer && !isAnswer(answer, printed) ? [describe(page, start, printed)] : [];
    const known = new Map([...ports, ['8080', steward.port]]);
    return [...wrong, ...(await runExamples(page, examples, directory, known))];
  } finally {
    await steward.close();
  }
}

type Running = {
  readonly port: string;
  readonly printed?: () => string;
  readonly close: () => Promise<void>;
};

/**
 * Only a server in a process of its own prints its address, and only such a one uses PostgreSQL. The others start
 * faster in this process.
 */
async function runProcess(variables: Record<string, string>): Promise<Running> {
  const { child, output, exited, listening } = startProcess(variables);
  const { port } = new URL(await listening);
  return {
    port,
    printed: () => output.err,
    async close() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** Runs the block up to `npm start`, which writes its environment instead of starting. */
async function readVariables(script: string, directory: string): Promise<Record<string, string> | Error> {
  const file = join(directory, 'environment');
  const { code, errors } = await runBash(script, directory, { STEWARD_ENVIRONMENT_FILE: file });
  if (code !== 0) return new Error(`the start command ended with ${code}.\n${errors}`);
  const pairs = readFileSync(file, 'utf8')
    .split('\0')
    .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const)
    .filter(([name]) => /^[A-Z_]+$/.test(name) && !notVariables.has(name) && !(name in process.env));
  const variables = Object.fromEntries(pairs);
  if (variables.STORE_URL !== undefined) variables.STORE_URL = (await createDatabase()).url;
  return variables;
}

const notVariables = new Set(['', '_', 'PWD', 'OLDPWD', 'SHLVL', 'PORT', 'STEWARD_ENVIRONMENT_FILE']);

async function runExamples(
  page: Page,
  examples: readonly Example[],
  directory: string,
  ports: ReadonlyMap<string, string>,
): Promise<string[]> {
  const outputOf = (index: number) => join(directory, `output-${index}`);
  const script = examples.map((example, index) => {
    // The file has the name and the line numbers of the page, for the messages of bash.
    const file = join(directory, `${index}-${basename(page.path)}`);
    writeFileSync(file, '\n'.repeat(example.line - 1) + withPorts(example.script, ports));
    return `exec > '${outputOf(index)}'\n. '${file}'`;
  });
  writeFileSync(outputOf(examples.length), '');
  const last = `exec > '${outputOf(examples.length)}'; echo done`;
  const environment = { PORT: ports.get('8080') ?? '0' };
  const { errors } = await runBash([...script, last].join('\n'), directory, environment);

  const outputs = examples.map((_example, index) => readOutput(outputOf(index)));
  const hasEnded = readOutput(outputOf(examples.length)) === 'done\n';
  const failed = hasEnded ? -1 : outputs.findLastIndex((output) => output !== undefined);
  return examples.flatMap((example, index) => {
    const output = outputs[index];
    if (output === undefined) return [];
    if (index === failed)
      return [
        `${page.path}:${example.line}: a command failed.\n${example.script}\n${errors}\n--- output\n${output}`,
      ];
    return example.answer === undefined || isAnswer(example.answer, output)
      ? []
      : [describe(page, example, output)];
  });
}

function describe({ path }: Page, { line, script, answer }: Example, actual: string): string {
  return `${path}:${line}: the answer differs.\n${script}\n--- expected\n${answer?.text}\n--- actual\n${actual}`;
}

function readOutput(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** Ends every process that the commands have left running. */
async function runBash(script: string, directory: string, environment: Record<string, string>) {
  const child = spawn('bash', ['-e', '-c', script], {
    cwd: join(directory, 'checkout'),
    env: {
      ...process.env,
      PATH: `${join(directory, 'bin')}:${process.env.PATH}`,
      HOME: directory,
      ...environment,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  const timer = setTimeout(() => endGroup(child.pid), timeoutMs);
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const [code] = (await once(child, 'exit')) as [number | null];
  clearTimeout(timer);
  endGroup(child.pid);
  return { code, errors: code === null ? `${errors}The commands took longer than ${timeoutMs} ms.` : errors };
}

const timeoutMs = 240_000;

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // All processes of the group have ended.
  }
}

/** Commands that are not run: they would install, build or clone again. */
function writeStandIns(directory: string): void {
  mkdirSync(directory);
  const npm = `#!/bin/sh
case "$*" in
  ci | 'run build' | 'run --silent build') ;;
  start)
    if [ -n "$STEWARD_ENVIRONMENT_FILE" ]; then exec env -0 > "$STEWARD_ENVIRONMENT_FILE"; fi
    exec node '${inject('serverEntry')}' ;;
  *) echo "npm $* is not run in a test" >&2; exit 1 ;;
esac
`;
  const git = `#!/bin/sh
[ "$1" = clone ] || { echo "git $* is not run in a test" >&2; exit 1; }
[ -e "\${3:-steward}" ] || ln -s . "\${3:-steward}"
`;
  for (const [name, text] of Object.entries({ npm, git })) {
    writeFileSync(join(directory, name), text);
    chmodSync(join(directory, name), 0o755);
  }
}

/** A free port for every port of this machine that the examples name. */
async function freePorts({ examples }: Page): Promise<Map<string, string>> {
  const text = examples.map(({ script }) => script).join('\n');
  const named = new Set(
    [...text.matchAll(/\b(?:localhost|127\.0\.0\.1):([0-9]{4,5})\b/g)].map(([, port]) => port),
  );
  const servers = [...named].map(() => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const free = servers.map((server) => String((server.address() as AddressInfo).port));
  for (const server of servers) server.close();
  return new Map([...named].map((port = '', index) => [port, free[index] ?? '']));
}

function withPorts(script: string, ports: ReadonlyMap<string, string>): string {
  return script.replaceAll(/\b[0-9]{4,5}\b/g, (number) => ports.get(number) ?? number);
}
