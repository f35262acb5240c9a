// What `npm run release` refuses, and the text of the tag.
import { expect, it } from 'vitest';
import { type ReleaseState, findProblems, writeTagText } from '../scripts/release.js';

const entry = (heading: string) => `# Changelog

${heading}

One sentence.

### Added

- A thing.

## [0.2.0] - 2026-11-18

- Older.

[0.3.0]: https://example.com/
`;
const good: ReleaseState = {
  version: '0.3.0',
  versions: { 'package-lock.json': '0.3.0' },
  changelog: entry('## [0.3.0] - 2026-12-24'),
  changes: '',
  tags: ['v0.2.0'],
};

it.each<[Partial<ReleaseState>, string[]]>([
  [{}, []],
  [{ changes: ' M src/main.ts\n' }, ['The checkout has changes that are not committed:\n M src/main.ts']],
  [{ tags: ['v0.3.0'] }, ['The tag v0.3.0 exists.']],
  [
    { versions: { 'package-lock.json': '0.2.0', 'deploy/Dockerfile': undefined } },
    [
      'package-lock.json has the version 0.2.0, and package.json 0.3.0.',
      'deploy/Dockerfile has the version none, and package.json 0.3.0.',
    ],
  ],
  [{ changelog: entry('## [0.2.9] - 2026-12-24') }, ['CHANGELOG.md has no entry [0.3.0].']],
  [
    { changelog: entry('## [0.3.0] - Unreleased') },
    ['The entry [0.3.0] of CHANGELOG.md has no date such as 2026-11-18.'],
  ],
  [{ changelog: '## [0.3.0] - 2026-12-24\n' }, ['The entry [0.3.0] of CHANGELOG.md is empty.']],
])('a release with %j has the problems %j', (state, problems) => {
  expect(findProblems({ ...good, ...state })).toEqual(problems);
});

it('the tag has the entry of the changelog and the checksums of the files', () => {
  expect(writeTagText(good, { 'steward-0.3.0.tgz': Buffer.from('abc') })).toBe(`Steward 0.3.0

One sentence.

### Added

- A thing.

SHA-256 of the files:

ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  steward-0.3.0.tgz
`);
});
