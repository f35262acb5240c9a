// Upgrade settings: what is asked, what is taken back (spec 2.3, contract 6).
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/errors.ts';
import { builtInManifest } from '../../src/upgrades/built-in-manifest.ts';
import type { Version } from '../../src/upgrades/manifest.ts';
import { type SubmittedSettings, readSettings, settingsOf } from '../../src/upgrades/settings.ts';

const release = builtInManifest.find(
  ({ version, type }) => version === '11.0.0' && type === 'release',
) as Version;
const patch = builtInManifest.find(({ type }) => type === 'patch') as Version;
const license = { name: 'license.json', bytes: Buffer.from('{"a":1}') };
const files: Record<string, typeof license> = {
  good: license,
  text: { name: 'license.txt', bytes: license.bytes },
  broken: { name: 'license.JSON', bytes: Buffer.from('{') },
};
const given = (inputs: unknown, more: Partial<SubmittedSettings> = {}): SubmittedSettings => ({
  upgradeSettings: inputs === undefined ? undefined : { userInputs: inputs },
  licenseFile: undefined,
  updateToLatestPatch: undefined,
  findUpload: (id) => files[id],
  ...more,
});

describe('settings of a release', () => {
  it('have exactly the shapes of the spec', () => {
    expect(settingsOf(release)).toEqual({
      userInputs: [
        {
          seqNum: 0,
          name: 'updateToLatestPatch',
          id: 'updateToLatestPatch',
          description: 'updateToLatestPatch',
          type: 'Boolean',
          value: true,
          defaultValue: false,
          isManagerInvisibleField: true,
          required: true,
          newfield: '',
        },
        {
          seqNum: 1,
          name: 'licenseUpload',
          id: 'licenseUpload',
          description: 'licenseFieldDescToken',
          type: 'File',
          value: '',
          required: true,
          validFileExtensions: ['json'],
          newfield: '',
        },
        {
          seqNum: 2,
          name: 'volumesConfig',
          id: 'volumesConfig',
          type: 'JSON',
          value: {},
          required: false,
          newfield: '',
          description: 'Storage configurations for the persistent volumes that the upgrade needs.',
        },
      ],
    });
  });

  it('come from the manifest’s form where it has one, volumesConfig last', () => {
    const groupInputs = [{ id: 'eula', type: 'Boolean', seqNum: 7, extra: 'kept' }];
    const asked = settingsOf({ ...release, userForm: [{ groupInputs }] }).userInputs;
    expect(asked.map(({ id, seqNum, newfield }) => [id, seqNum, newfield])).toEqual([
      ['eula', 0, ''],
      ['volumesConfig', 1, ''],
    ]);
    expect(asked[0]).toHaveProperty('extra', 'kept');
  });

  it('are taken back as they were given, with the license filled in', () => {
    const edited = settingsOf(release).userInputs.map((entry) =>
      entry.id === 'licenseUpload' ? { ...entry, value: 'good' } : entry,
    );
    expect(readSettings(release, given(edited))).toEqual({
      updateToLatestPatch: true,
      uploads: ['good'],
      problems: [],
    });
  });

  const good = { id: 'licenseUpload', value: 'good' };
  it.each<[string, SubmittedSettings, string[]]>([
    [
      'nothing',
      given(undefined),
      [
        'upgradeSettings: is required for a release to 11.0.0.',
        'upgradeSettings: licenseUpload needs the id of an upload, or send licenseFile.',
      ],
    ],
    ['{} with the deprecated license', given([], { licenseFile: license }), []],
    [
      'a license that is no JSON',
      given([], { licenseFile: { ...license, bytes: Buffer.from('x') } }),
      ['licenseFile: must be a JSON file.'],
    ],
    [
      'an unknown upload',
      given([{ ...good, value: 'nope' }]),
      ['upgradeSettings: licenseUpload names the upload nope, which does not exist.'],
    ],
    [
      'an upload of another type',
      given([{ ...good, value: 'text' }]),
      ['upgradeSettings: licenseUpload must be a file of the type json; license.txt is none.'],
    ],
    [
      'an upload that is no JSON',
      given([{ ...good, value: 'broken' }]),
      ['upgradeSettings: licenseUpload names license.JSON, which is not valid JSON.'],
    ],
    [
      'an unknown id',
      given([good, { id: 'x', value: 1 }]),
      [
        'upgradeSettings: userInputs[1] must have a known id, not "x"; known are updateToLatestPatch, licenseUpload, volumesConfig.',
      ],
    ],
    ['a repeated id', given([good, good]), ['upgradeSettings: userInputs[1] repeats the id licenseUpload.']],
    [
      'wrong types',
      given([good, { id: 'updateToLatestPatch', value: 'yes' }, { id: 'volumesConfig', value: [] }]),
      [
        'upgradeSettings: the value of updateToLatestPatch must be true or false.',
        'upgradeSettings: the value of volumesConfig must be a JSON object.',
      ],
    ],
    [
      'no list',
      given('x'),
      [
        'upgradeSettings: userInputs must be an array.',
        'upgradeSettings: licenseUpload needs the id of an upload, or send licenseFile.',
      ],
    ],
    [
      'two different booleans',
      given([good, { id: 'updateToLatestPatch', value: true }], { updateToLatestPatch: false }),
      ['updateToLatestPatch: is false, but true in upgradeSettings; send one of them.'],
    ],
    [
      'two equal booleans',
      given([good, { id: 'updateToLatestPatch', value: true }], { updateToLatestPatch: true }),
      [],
    ],
    [
      'two different licenses',
      given([good], { licenseFile: { name: 'x.json', bytes: Buffer.from('{}') } }),
      ['licenseFile: differs from the upload that licenseUpload names in upgradeSettings; send one of them.'],
    ],
    ['the same license twice', given([good], { licenseFile: license }), []],
  ])('%s', (_what, sent, problems) => {
    expect(readSettings(release, sent).problems.map(formatProblem)).toEqual(problems);
  });

  it.each<[string, SubmittedSettings, boolean]>([
    ['left out', given([good]), false],
    ['the setting', given([good, { id: 'updateToLatestPatch', value: true }]), true],
    ['the deprecated part', given([good], { updateToLatestPatch: true }), true],
  ])('updateToLatestPatch by %s is %s', (_what, sent, expected) => {
    expect(readSettings(release, sent).updateToLatestPatch).toBe(expected);
  });
});

it('a patch asks for nothing, takes {} or nothing, and may be told to go on to the latest', () => {
  expect(settingsOf(patch)).toEqual({ userInputs: [] });
  expect(readSettings(patch, given(undefined)).problems).toEqual([]);
  expect(readSettings(patch, { ...given(undefined), upgradeSettings: {} }).problems).toEqual([]);
  expect(readSettings(patch, given([], { updateToLatestPatch: true })).updateToLatestPatch).toBe(true);
  expect(readSettings(patch, given([{ id: 'licenseUpload', value: '' }])).problems).toHaveLength(1);
});
