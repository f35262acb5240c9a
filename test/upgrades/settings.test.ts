// Upgrade settings: the inputs of a version, and the check of submitted values.
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/lib/errors.ts';
import {
  type SettingFile,
  type SubmittedSettings,
  readSettingFile,
  readSettings,
  settingsOf,
} from '../../src/upgrades/planning/settings.ts';
import { laterVersions } from '../kit/sample-manifest.ts';
import type { Version } from '../../src/upgrades/versions/manifest.ts';

const release = laterVersions.find(
  ({ version, type }) => version === '11.0.0' && type === 'release',
) as Version;
const patch = laterVersions.find(({ type }) => type === 'patch') as Version;
const settingFile = (name: string, content: string) => readSettingFile(name, Buffer.from(content));
const license = settingFile('license.json', '{"a":1}');
const files: Record<string, SettingFile> = {
  good: license,
  text: settingFile('license.txt', '{"a":1}'),
  broken: settingFile('license.JSON', '{'),
};
const submit = (inputs: unknown, more: Partial<SubmittedSettings> = {}): SubmittedSettings => ({
  upgradeSettings: inputs === undefined ? undefined : { userInputs: inputs },
  licenseFile: undefined,
  updateToLatestPatch: undefined,
  findUpload: (id) => files[id],
  ...more,
});

describe('settings of a release', () => {
  it('have exactly the specified fields', () => {
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

  it('come from the form of the manifest if it has one, with volumesConfig last', () => {
    const groupInputs = [{ id: 'eula', type: 'Boolean', seqNum: 7, extra: 'kept' }];
    const inputs = settingsOf({ ...release, userForm: [{ groupInputs }] }).userInputs;
    expect(inputs.map(({ id, seqNum, newfield }) => [id, seqNum, newfield])).toEqual([
      ['eula', 0, ''],
      ['volumesConfig', 1, ''],
    ]);
    expect(inputs[0]).toHaveProperty('extra', 'kept');
  });

  it('are accepted when the license is filled in', () => {
    const edited = settingsOf(release).userInputs.map((entry) =>
      entry.id === 'licenseUpload' ? { ...entry, value: 'good' } : entry,
    );
    expect(readSettings([release], submit(edited))).toEqual({
      updateToLatestPatch: true,
      uploads: ['good'],
      problems: [],
    });
  });

  const good = { id: 'licenseUpload', value: 'good' };
  it.each<[string, SubmittedSettings, string[]]>([
    [
      'nothing',
      submit(undefined),
      [
        'upgradeSettings: is required for a release to 11.0.0.',
        'upgradeSettings: licenseUpload needs the id of an upload, or send licenseFile.',
      ],
    ],
    ['{} with the deprecated license', submit([], { licenseFile: license }), []],
    [
      'a license that is not JSON',
      submit([], { licenseFile: settingFile('license.json', 'x') }),
      ['licenseFile: must be valid JSON.'],
    ],
    [
      'an unknown upload',
      submit([{ ...good, value: 'nope' }]),
      ['upgradeSettings: licenseUpload names the upload nope, which does not exist.'],
    ],
    [
      'an upload of another type',
      submit([{ ...good, value: 'text' }]),
      ['upgradeSettings: licenseUpload must be a file of the type json; license.txt is not one.'],
    ],
    [
      'an upload that is not JSON',
      submit([{ ...good, value: 'broken' }]),
      ['upgradeSettings: licenseUpload names license.JSON, which must be valid JSON.'],
    ],
    [
      'an unknown id',
      submit([good, { id: 'x', value: 1 }]),
      [
        'upgradeSettings: userInputs[1] must have a known id, not "x"; known are updateToLatestPatch, licenseUpload, volumesConfig.',
      ],
    ],
    [
      'an id outside userInputs',
      submit([], { upgradeSettings: { licenseUpload: 'good' } as object, licenseFile: license }),
      [
        'upgradeSettings: licenseUpload must be an entry of userInputs: {"userInputs":[{"id":"licenseUpload","value":…}]}.',
      ],
    ],
    ['a repeated id', submit([good, good]), ['upgradeSettings: userInputs[1] repeats the id licenseUpload.']],
    [
      'wrong types',
      submit([good, { id: 'updateToLatestPatch', value: 'yes' }, { id: 'volumesConfig', value: [] }]),
      [
        'upgradeSettings: the value of updateToLatestPatch must be true or false.',
        'upgradeSettings: the value of volumesConfig must be a JSON object.',
      ],
    ],
    [
      'no list',
      submit('x'),
      [
        'upgradeSettings: userInputs must be an array.',
        'upgradeSettings: licenseUpload needs the id of an upload, or send licenseFile.',
      ],
    ],
    [
      'two different booleans',
      submit([good, { id: 'updateToLatestPatch', value: true }], { updateToLatestPatch: false }),
      ['updateToLatestPatch: is false, but true in upgradeSettings; send one of them.'],
    ],
    [
      'two equal booleans',
      submit([good, { id: 'updateToLatestPatch', value: true }], { updateToLatestPatch: true }),
      [],
    ],
    [
      'two different licenses',
      submit([good], { licenseFile: settingFile('x.json', '{}') }),
      ['licenseFile: differs from the upload that licenseUpload names in upgradeSettings; send one of them.'],
    ],
    ['the same license twice', submit([good], { licenseFile: license }), []],
  ])('are checked: %s', (_case, sent, problems) => {
    expect(readSettings([release], sent).problems.map(formatProblem)).toEqual(problems);
  });

  it.each<[string, SubmittedSettings, boolean]>([
    ['neither, which means false', submit([good]), false],
    ['the setting', submit([good, { id: 'updateToLatestPatch', value: true }]), true],
    ['the deprecated part', submit([good], { updateToLatestPatch: true }), true],
  ])('take updateToLatestPatch from: %s', (_case, sent, expected) => {
    expect(readSettings([release], sent).updateToLatestPatch).toBe(expected);
  });
});

it('a patch has no settings, accepts {} or none, and accepts updateToLatestPatch', () => {
  expect(settingsOf(patch)).toEqual({ userInputs: [] });
  expect(readSettings([patch], submit(undefined)).problems).toEqual([]);
  expect(readSettings([patch], { ...submit(undefined), upgradeSettings: {} }).problems).toEqual([]);
  expect(readSettings([patch], submit([], { updateToLatestPatch: true })).updateToLatestPatch).toBe(true);
  expect(readSettings([patch], submit([{ id: 'licenseUpload', value: '' }])).problems).toHaveLength(1);
});
