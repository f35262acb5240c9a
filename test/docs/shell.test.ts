// Runs the shell examples of README, docs/ and examples/, and compares their output with the answers that the pages show.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkout, readPages } from './pages.ts';
import { runPage } from './run.ts';

const hasCurl = (() => {
  try {
    execFileSync('curl', ['--version']);
    return true;
  } catch {
    return false;
  }
})();

const pages = readPages();
const readme = readFileSync(`${checkout}README.md`, 'utf8');

describe.skipIf(!hasCurl)('the shell examples do what they show', () => {
  const withExamples = pages.filter(({ examples }) => examples.some(({ notRun }) => notRun === undefined));
  const problems = new Map<string, string[]>();

  // Before the tests, because two pages run at the same time and the processes of a test are killed after it.
  beforeAll(async () => {
    const waiting = [...withExamples];
    const runWaiting = async () => {
      for (let page = waiting.shift(); page !== undefined; page = waiting.shift())
        problems.set(page.path, await runPage(page));
    };
    await Promise.all([runWaiting(), runWaiting()]);
  }, 180_000);

  it.each(withExamples)('of $path', ({ path }) => {
    expect(problems.get(path)?.join('\n\n')).toBe('');
  });
});

it('every npm script that a page names exists', () => {
  const { scripts } = JSON.parse(readFileSync(`${checkout}package.json`, 'utf8')) as {
    scripts: Record<string, string>;
  };
  const unknown = pages.flatMap(({ path }) =>
    [
      ...readFileSync(checkout + path, 'utf8').matchAll(
        /\bnpm (?:run (?:--silent )?)?(start|test|(?<=run .*)[a-z][a-z:-]*)/g,
      ),
    ]
      .map(([command, script = '']) => ({ path, command, script }))
      .filter(({ script }) => !(script in scripts)),
  );
  expect(unknown).toEqual([]);
});

it('README has at most 200 lines and shows near its top how to start and how to test', () => {
  const lines = readme.trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(200);
  const top = lines.slice(0, 60).join('\n');
  expect(top).toContain('npm ci');
  expect(top).toContain('npm start');
  expect(top).toContain('npm ci && npm test');
});
