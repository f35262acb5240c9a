// Builds the executable of `npm run executable`, and runs it and the fixtures that start it on a PATH without Node.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildExecutable } from '../../../scripts/executable.js';
import { checkout, patience, run, succeeds } from './kit.ts';

const folder = mkdtempSync(join(tmpdir(), 'steward-executable-'));
const bin = join(folder, 'bin');
const env = { PATH: bin, TMPDIR: folder, PYTHONDONTWRITEBYTECODE: '1' };
let executable: string;

beforeAll(async () => {
  executable = await buildExecutable(folder);
  mkdirSync(bin);
  for (const name of readdirSync('/usr/bin'))
    if (!/^(node|npm|npx|corepack)/.test(name)) symlinkSync(join('/usr/bin', name), join(bin, name));
}, patience.timeout);
afterAll(() => rmSync(folder, { recursive: true }));

const python = () =>
  execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim();
const fixtures = [
  ['pytest', python, ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'examples/pytest'], '4 passed'],
  ['bats', () => 'bats', ['examples/bats'], 'ok 4 '],
] as const;
const isMissing = {
  pytest: !succeeds('python3', '-m', 'pytest', '--version'),
  bats: !succeeds('bats', '--version'),
};

it('has its version, the licenses of its parts, and no Node to look for', patience, async () => {
  const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { version: string };
  const { stdout } = await run(executable, ['--version'], env);
  expect(stdout).toContain(version);
  expect((await run('sh', ['-c', 'command -v node'], env)).stdout).toBe('');
  const licenses = readFileSync(`${executable}.licenses.txt`, 'utf8');
  for (const name of ['steward', 'fastify', 'pino', 'undici', 'node'])
    expect(licenses).toMatch(new RegExp(`^${name}$`, 'm'));
});

it('says that it has no Kubernetes client', patience, async () => {
  writeFileSync(join(folder, 'kubeconfig'), '{}');
  const variables = { PORT: '0', UPGRADE_EXECUTOR: 'kubernetes', KUBECONFIG: join(folder, 'kubeconfig') };
  const { code, stderr } = await run(executable, [], { ...env, ...variables });
  expect([code, stderr]).toEqual([1, expect.stringContaining('the executable has no Kubernetes client')]);
});

for (const [name, command, args, passed] of fixtures) {
  it.skipIf(isMissing[name])(`examples/${name} starts it and takes it down`, patience, async () => {
    const result = await run(command(), args, { ...env, STEWARD_COMMAND: executable });
    expect(result.stdout + result.stderr).toContain(passed);
    expect(result.code).toBe(0);
    // Linux names the file of every process.
    const running = readdirSync('/proc').filter((pid) => {
      const file = `/proc/${pid}/cmdline`;
      return /^\d+$/.test(pid) && existsSync(file) && readText(file).startsWith(executable);
    });
    expect(running).toEqual([]);
  });

  it.skipIf(isMissing[name])(
    `examples/${name} gives up on a server that does not start`,
    patience,
    async () => {
      const hanging = join(folder, 'hanging');
      writeFileSync(hanging, '#!/bin/sh\nexec sleep 600\n');
      chmodSync(hanging, 0o755);
      const result = await run(command(), args, {
        ...env,
        STEWARD_COMMAND: hanging,
        STEWARD_START_LIMIT: '1',
      });
      expect(result.stdout + result.stderr).toContain('Steward did not start within 1');
      expect(result.code).not.toBe(0);
    },
  );
}

/** The process may have ended meanwhile. */
function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
