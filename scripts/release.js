// Prepares a release, for `npm run release`: checks the checkout, runs all tests, and writes the package, its bills of
// materials, the executable for this platform and the text of the tag into release/. It neither tags nor pushes: it prints the commands for that.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { URL, fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (path) => readFileSync(join(root, path), 'utf8');

/** The heading and the text of the entry of a version. */
function findEntry(version, changelog) {
  const [heading, ...lines] = changelog
    .split(/^(?=## )/m)
    .map((section) => section.trimEnd().split('\n'))
    .find(([first]) => first.startsWith(`## [${version}]`)) ?? [''];
  // Links of the file itself follow the last entry.
  return {
    heading,
    text: lines
      .filter((line) => !/^\[[^\]]+\]: /.test(line))
      .join('\n')
      .trim(),
  };
}

export function findProblems({ version, versions, changelog, changes, tags }) {
  const { heading, text } = findEntry(version, changelog);
  const isDated = /^## \[[^\]]+\] - \d{4}-\d{2}-\d{2}$/.test(heading);
  return [
    ...(changes.trim() === ''
      ? []
      : [`The checkout has changes that are not committed:\n${changes.trimEnd()}`]),
    ...(tags.includes(`v${version}`) ? [`The tag v${version} exists.`] : []),
    ...Object.entries(versions)
      .filter(([, found]) => found !== version)
      .map(([file, found]) => `${file} has the version ${found ?? 'none'}, and package.json ${version}.`),
    ...(heading === '' ? [`CHANGELOG.md has no entry [${version}].`] : []),
    ...(heading !== '' && !isDated
      ? [`The entry [${version}] of CHANGELOG.md has no date such as 2026-11-18.`]
      : []),
    ...(heading !== '' && text === '' ? [`The entry [${version}] of CHANGELOG.md is empty.`] : []),
  ];
}

export function writeTagText({ version, changelog }, files) {
  const sums = Object.entries(files).map(
    ([name, bytes]) => `${createHash('sha256').update(bytes).digest('hex')}  ${name}`,
  );
  return `Steward ${version}\n\n${findEntry(version, changelog).text}\n\nSHA-256 of the files:\n\n${sums.join('\n')}\n`;
}

function readState() {
  const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' });
  return {
    version: JSON.parse(read('package.json')).version,
    versions: {
      'package-lock.json': JSON.parse(read('package-lock.json')).version,
      'deploy/kubernetes/kustomization.yaml': /newTag: (\S+)/.exec(
        read('deploy/kubernetes/kustomization.yaml'),
      )?.[1],
      'deploy/Dockerfile': /-t steward:(\S+)/.exec(read('deploy/Dockerfile'))?.[1],
    },
    changelog: read('CHANGELOG.md'),
    changes: git('status', '--porcelain'),
    tags: git('tag').split('\n'),
  };
}

function release() {
  const { values } = parseArgs({ options: { 'skip-tests': { type: 'boolean', default: false } } });
  const state = readState();
  const problems = findProblems(state);
  if (problems.length > 0) {
    process.stderr.write(`${['There is no release:', ...problems].join('\n')}\n`);
    process.exitCode = 1;
    return;
  }
  const npm = (...args) => execFileSync('npm', args, { cwd: root, stdio: 'inherit' });
  if (!values['skip-tests'])
    for (const script of ['check', 'test', 'test:ci']) npm('run', '--silent', script);
  const folder = join(root, 'release');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  npm('run', '--silent', 'sbom', '--', folder);
  npm('pack', '--silent', '--pack-destination', folder);
  npm('run', '--silent', 'executable', '--', folder);
  const files = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]);
  writeFileSync(join(folder, 'tag.txt'), writeTagText(state, Object.fromEntries(files)));
  const tag = `v${state.version}`;
  process.stdout.write(`release/ has the files of ${tag}. To publish it:
  git tag --annotate ${tag} --cleanup=verbatim --file release/tag.txt
  git push origin ${tag}
`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) release();
