// Runs the shell examples of README, docs/ and examples/, and compares their output with the answers that the pages
// show.
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Page, checkout, readPages } from './pages.ts';
import { runPage } from './run.ts';

const tools = ['curl', 'docker-compose', 'jq', 'kubectl', 'php', 'psql', 'python3'];
const missing = tools.filter((tool) => {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`]);
    return false;
  } catch {
    return true;
  }
});

/** The tools that the examples of a page use and this machine lacks. */
const missingOn = ({ examples }: Page) =>
  missing.filter((tool) =>
    examples.some(({ script, notRun }) => notRun === undefined && new RegExp(`\\b${tool}\\b`).test(script)),
  );

const pages = readPages();
const readme = readFileSync(`${checkout}README.md`, 'utf8');

describe('the shell examples do what they show', () => {
  const withExamples = pages.filter(
    ({ testedBy, examples }) => testedBy === undefined && examples.some(({ notRun }) => notRun === undefined),
  );
  const problems = new Map<string, string[]>();

  // Before the tests, because three pages run at the same time and the processes of a test are killed after it.
  // Most of the time is spent waiting for upgrades.
  beforeAll(async () => {
    const waiting = withExamples.filter((page) => missingOn(page).length === 0);
    const runWaiting = async () => {
      for (let page = waiting.shift(); page !== undefined; page = waiting.shift())
        problems.set(page.path, await runPage(page));
    };
    await Promise.all([runWaiting(), runWaiting(), runWaiting()]);
  }, 180_000);

  for (const page of withExamples)
    it.skipIf(missingOn(page).length > 0)(`of ${page.path}`, () => {
      expect(problems.get(page.path)?.join('\n\n')).toBe('');
    });
});

it('a page that is not run here names the test that runs it', () => {
  const ownTests = pages.flatMap(({ path, testedBy }) =>
    testedBy === undefined ? [] : [{ path, testedBy }],
  );
  for (const { path, testedBy } of ownTests)
    expect(readFileSync(checkout + testedBy, 'utf8'), testedBy).toContain(path.split('/').at(-1));
});

it('README has at most 180 lines and shows near its top how to start and how to test', () => {
  const lines = readme.trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(180);
  const top = lines.slice(0, 60).join('\n');
  expect(top).toContain('npm ci');
  expect(top).toContain('npm start');
  expect(top).toContain('npm ci && npm test');
});

it('the test that README shows passes, with a program that asks again', async () => {
  const [, code = ''] = /```js\n([^]*?)```/.exec(readme) ?? [];
  const project = mkdtempSync(join(tmpdir(), 'steward-readme-'));
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(checkout, join(project, 'node_modules/steward'));
  writeFileSync(join(project, 'package.json'), '{"type":"module"}');
  writeFileSync(
    join(project, 'program.js'),
    `export async function countServices(url) {
      const response = await fetch(url);
      return response.ok ? (await response.json()).services.length : countServices(url);
    }`,
  );
  writeFileSync(join(project, 'readme.test.js'), code);
  try {
    // The environment names the runner of this test to the one of the page.
    const { stdout } = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap'], {
      cwd: project,
      env: { PATH: process.env.PATH },
    });
    expect(stdout).toContain('ok 1 - asks again after a 503');
  } finally {
    rmSync(project, { recursive: true });
  }
});
