// When `npm start` builds: only if something has changed since the last build. The commit of a build.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { findCommit, isBuildCurrent } from '../scripts/build.js';

/** A checkout of which everything changed at second 100, built at second 200. */
function createCheckout(): { root: string; touch: (path: string, seconds: number) => void } {
  const root = mkdtempSync(join(tmpdir(), 'checkout-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const touch = (path: string, seconds: number) => utimesSync(join(root, path), seconds, seconds);
  for (const directory of ['src/http', 'wsdl', 'scripts', 'dist'])
    mkdirSync(join(root, directory), { recursive: true });
  const settings = ['package.json', 'package-lock.json', 'tsconfig.json'];
  const files = ['src/http/server.ts', ...settings, 'dist/main.js', 'dist/.built'];
  for (const file of files) writeFileSync(join(root, file), '');
  for (const path of [...files, 'src/http', 'src', 'wsdl', 'scripts']) touch(path, 100);
  touch('dist/.built', 200);
  return { root, touch };
}

it('is current after a build', () => {
  expect(isBuildCurrent(createCheckout().root)).toBe(true);
});

it('is not current without a build, or after one that did not end', () => {
  const { root } = createCheckout();
  rmSync(join(root, 'dist/.built'));
  expect(isBuildCurrent(root)).toBe(false);
  const other = createCheckout().root;
  rmSync(join(other, 'dist/main.js'));
  expect(isBuildCurrent(other)).toBe(false);
});

it.each(['src/http/server.ts', 'src/http', 'package-lock.json', 'tsconfig.json', 'wsdl'])(
  'is not current after a change of %s',
  (path) => {
    const { root, touch } = createCheckout();
    touch(path, 300);
    expect(isBuildCurrent(root)).toBe(false);
  },
);

it('has the commit of its checkout, marked if files have changed, and none without git', () => {
  const root = mkdtempSync(join(tmpdir(), 'checkout-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  expect(findCommit(root)).toBeUndefined();
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', root, '-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args]);
  git('init', '--quiet');
  writeFileSync(join(root, 'file'), 'one');
  git('add', '.');
  git('commit', '--quiet', '--message', 'one');
  const commit = git('rev-parse', '--short=12', 'HEAD').toString().trim();
  expect(findCommit(root)).toBe(commit);
  writeFileSync(join(root, 'file'), 'two');
  expect(findCommit(root)).toBe(`${commit}-dirty`);
  // A folder of another project.
  mkdirSync(join(root, 'steward'));
  expect(findCommit(join(root, 'steward'))).toBeUndefined();
});
