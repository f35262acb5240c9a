// Runs the test fixtures of examples/ as a user does: in a project that has installed the package, and whose own .env
// no server may read.
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createProject, extraPackages } from '../../kit/package.ts';
import { pathOf, patience, run, succeeds } from './kit.ts';

let project: string;

beforeAll(async () => {
  const created = await createProject();
  ({ project } = created);
  for (const tool of ['vitest', '@types/node']) created.install(tool);
  if (extraPackages !== undefined) created.install('@jest/globals', extraPackages);
  writeFileSync(join(project, '.env'), 'HOST=0.0.0.0\nPORT=3000\nLOG_LEVEL=verbose\nADMIN_PATH=/from-file\n');
  for (const name of ['jest', 'node-test', 'pytest', 'vitest'])
    cpSync(pathOf(`examples/${name}`), join(project, name), { recursive: true });
});
afterAll(() => rmSync(project, { recursive: true }));

const tool = (path: string) => pathOf(`node_modules/${path}`);

it.each([
  ['node-test', ['--test', 'node-test/steward.test.mjs'], {}, '# pass 3'],
  ['vitest', [tool('vitest/vitest.mjs'), 'run', 'vitest'], { NO_COLOR: '1' }, '4 passed'],
])('examples/%s runs', patience, async (_name, args, env, expected) => {
  const { code, stdout, stderr } = await run(process.execPath, args, env, project);
  expect(stdout + stderr).toContain(expected);
  expect(code).toBe(0);
});

it.skipIf(extraPackages === undefined)('examples/jest runs', patience, async () => {
  // Jest 29 does not look for .mjs by itself; 30 does.
  const args = [join(extraPackages ?? '', 'jest/bin/jest.js'), '--testMatch', '**/*.test.mjs', '--', 'jest'];
  const env = { NODE_OPTIONS: '--experimental-vm-modules' };
  const { code, stderr } = await run(process.execPath, args, env, project);
  expect(stderr).toContain('3 passed');
  expect(code).toBe(0);
});

it('a CommonJS module loads the package', patience, async () => {
  const args = ['-p', "typeof require('steward').startSteward"];
  expect((await run(process.execPath, args, {}, project)).stdout).toBe('function\n');
});

it('examples/vitest has no error of the compiler', patience, async () => {
  const options = '--noEmit --strict --skipLibCheck --target es2023 --module nodenext --types node'.split(
    ' ',
  );
  const args = [tool('@typescript/native/bin/tsc'), ...options, 'vitest/steward.test.ts'];
  expect(await run(process.execPath, args, {}, project)).toEqual({ code: 0, stdout: '', stderr: '' });
});

const isMissing = !succeeds('python3', '-m', 'pytest', '--version');

it.skipIf(isMissing)('examples/pytest runs', patience, async () => {
  const args = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'pytest'];
  const { code, stdout } = await run('python3', args, { PYTHONDONTWRITEBYTECODE: '1' }, project);
  expect(stdout).toContain('4 passed');
  expect(code).toBe(0);
});
