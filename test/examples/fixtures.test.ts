// Tests the fixture for pytest in examples/. Vitest runs the one for Vitest as a test of its own.
import { expect, it } from 'vitest';
import { pathOf, patience, run, succeeds } from './kit.ts';

const isMissing = !succeeds('python3', '-m', 'pytest', '--version');

it.skipIf(isMissing)('examples/pytest runs against the command steward', patience, async () => {
  const args = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', pathOf('examples/pytest')];
  const env = { STEWARD_COMMAND: pathOf('bin/steward.js'), PYTHONDONTWRITEBYTECODE: '1' };
  const { code, stdout } = await run('python3', args, env);
  expect(stdout).toContain('3 passed');
  expect(code).toBe(0);
});
