// Version manifests, settings and license files that are made to cost as much as possible: each gets a short answer
// that names the limit, or the complete one.
import { afterEach, describe, expect, it } from 'vitest';
import { freshRelease } from '../kit/sample-manifest.ts';
import { deployment } from '../../src/upgrades/versions/deployment.ts';
import type { Version } from '../../src/upgrades/versions/manifest.ts';
import { perFile } from '../kit/cleanup.ts';
import { expectCost } from '../kit/cost.ts';
import { startListening } from '../kit/server.ts';
import { judge } from '../hard/fuzz-verdict.ts';
import { authorization, nest, postForm, postParts, releases, text, upload } from '../hard/limit-requests.ts';
import { type Answer, ask, write } from '../hard/wire.ts';
import { patchOf } from '../kit/versions.ts';

const server = perFile(startListening);
afterEach(async () => {
  await server.post(`${upgrades}/deleteImportedManifest`, { token: server.token('administrator') });
});

const upgrades = '/admin/system/upgrades';
const fileBytes = 10 * 1024 * 1024 - 100;
const eleven = 'rel_14072022_2632';

const importContent = (content: string) =>
  postParts(`${upgrades}/importManifest`, [['"manifestFile"; filename="m.json"', content]]);
const importVersions = (versions: object[]) => importContent(JSON.stringify(versions));
const getPage = (path: string) => write({ url: `${upgrades}${path}`, headers: { authorization } });

/** Repeats `unit` between both ends until the text has `size` bytes. */
const fill = (start: string, unit: string, end: string, size = fileBytes) =>
  start + unit.repeat(Math.floor((size - start.length - end.length) / unit.length)) + end;

/** A chain of patches of the installed release. */
const patches = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, index) => ({
    ...patchOf(`pat_${index}`, String(9000 + index), index === 0 ? '1234' : String(8999 + index)),
    containers: [],
    ...more,
  }));

/** The release has these inputs. */
const withInputs = (inputs: object[], more: object = {}) =>
  releases(1, { version: '10.9.2', userForm: [{ groupInputs: inputs }], ...more });

const manyInputs = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, index) => ({ id: `input_${index}`, type: 'File', ...more }));

async function send(bytes: Buffer): Promise<Answer> {
  const answer = await ask(server.port, bytes);
  if (!answer) throw new Error('The server sent no response.');
  judge(answer, false, false);
  return answer;
}

/** Client, server and the check of the answer share the thread. */
const sendWithin = (maxMs: number, bytes: Buffer) => expectCost(maxMs, () => send(bytes));

async function accept(versions: object[]): Promise<void> {
  expect(await send(importVersions(versions))).toMatchObject({ status: 200 });
}

const detailsOf = ({ body }: Answer) => (JSON.parse(body) as { error: { details: string[] } }).error.details;
const planOf = ({ body }: Answer) =>
  JSON.parse(body) as { steps: object[]; problems: string[]; to: string | null };

const plan = (id: string, userInputs: unknown) => {
  const upgradeSettings = typeof userInputs === 'string' ? userInputs : JSON.stringify({ userInputs });
  // A comma may stay as it is. Otherwise the form would be larger than its limit.
  const body = `versionManifest=${encodeURIComponent(JSON.stringify({ id }))}&upgradeSettings=${upgradeSettings}`;
  return postForm(`${upgrades}/plan`, body);
};

describe('a manifest of 10 MiB is refused', () => {
  const head =
    '[{"id":"r","type":"release","version":"12.0.0","build":"1","previousReleaseBuild":"1234","containers":[';

  it.each<[string, string, string]>([
    ['containers that are numbers', fill(head, '0,', '0]}]'), 'must have at most 200000 values.'],
    ['versions that are lists of numbers', fill('[[', '0,', '0]]'), 'must have at most 200000 values.'],
    [
      'versions that are lists of empty objects',
      fill('[[', '{},', '{}]]'),
      'must have at most 200000 values.',
    ],
    ['lists in lists', '['.repeat(fileBytes), 'must not be nested more than 32 levels deep.'],
    ['objects in objects', '{"a":'.repeat(fileBytes / 5), 'must not be nested more than 32 levels deep.'],
    ['one text', fill('["', 'a', '"]'), '[0]: must be a version object.'],
    ['escaped characters', fill('["', '\\u0041', '"]'), '[0]: must be a version object.'],
    ['one number', fill('[1', '0', ']'), '[0]: must be a version object.'],
    ['white space', fill('[', ' ', '0]'), '[0]: must be a version object.'],
    ['text of letters beyond ASCII', fill('["', '\xc3\xa9', '"]'), '[0]: must be a version object.'],
    ['bytes that are not UTF-8', fill('["', '\xff', '"]'), 'is not JSON'],
  ])('%s', async (_what, content, problem) => {
    const answer = await sendWithin(500, importContent(content));
    expect(answer.status).toBe(400);
    expect(detailsOf(answer)[0]).toContain(`manifestFile: ${problem}`);
  });
});

describe('a manifest within the limit of values', () => {
  const zeros = (count: number) => Array.from({ length: count }, () => 0);
  const wrong = (count: number, fields: object) => Array.from({ length: count }, () => fields);

  it.each<[string, object[], string]>([
    [
      '190,000 new containers',
      releases(1, { newContainers: zeros(190_000) }),
      '[0].newContainers: must have at most 5000 containers.',
    ],
    [
      '201 groups of inputs',
      releases(1, { userForm: zeros(201) }),
      '[0].userForm: must have at most 200 groups.',
    ],
    ['201 inputs', withInputs(manyInputs(201)), '[0].userForm[0].groupInputs: must have at most 200 inputs.'],
    [
      '201 inputs in two groups',
      releases(1, { userForm: [{ groupInputs: manyInputs(200) }, { groupInputs: manyInputs(1) }] }),
      '[0].userForm: must have at most 200 inputs.',
    ],
    [
      'mistakes in every version',
      wrong(500, { containers: zeros(390) }),
      '[0].type: must be release or patch.',
    ],
    [
      'mistakes in every container',
      wrong(39, { containers: zeros(5000) }),
      '[0].type: must be release or patch.',
    ],
    ['mistakes in every group', wrong(500, { userForm: zeros(200) }), '[0].type: must be release or patch.'],
    [
      'mistakes in every input',
      wrong(5, { userForm: wrong(190, { groupInputs: zeros(200) }) }),
      '[0].type: must be release or patch.',
    ],
  ])('is refused for %s', async (_what, versions, problem) => {
    const answer = await sendWithin(500, importVersions(versions));
    expect(answer.status).toBe(400);
    expect(detailsOf(answer)[0]).toBe(`manifestFile: ${problem}`);
    expect(detailsOf(answer).length).toBeLessThanOrEqual(200);
  });

  it('is accepted with 60,000 containers, which its page counts', async () => {
    const containers = Array.from({ length: 4200 }, (_, index) => ({ name: `A_${index}`, image: 'a:1' }));
    const answer = await sendWithin(1000, importVersions(patches(14, { containers })));
    expect(answer.status).toBe(200);
    const page = await sendWithin(500, getPage('/available?f=html'));
    expect(page.body.match(/<div>4,200<\/div>/g)).toHaveLength(14);
    expect(page.body.length).toBeLessThan(100_000);
  });

  it('is not planned with more than 10,000 updates of workloads', async () => {
    const containers = Array.from({ length: 5000 }, (_, index) => ({ name: `A_${index}`, image: 'a:1' }));
    await accept(patches(3, { containers }));
    expect(planOf(await send(plan('pat_1', []))).problems).toEqual([]);
    const answer = await sendWithin(500, plan('pat_2', []));
    expect(planOf(answer)).toMatchObject({
      to: '10.9.1.9002',
      steps: [],
      problems: [
        'versionManifest: needs more than 10000 updates of workloads, which is the limit of one job.',
      ],
    });
  });
});

describe('a text of a manifest is not repeated many times', () => {
  it.each<[string, string]>([
    // The problems would have 2 GB.
    ['the name of a field', `[{"${text(8_000_000)}":[${fill('', '"\\u0000",', '0', 2500)}]}]`],
    ['an id', JSON.stringify(patches(500, { id: text(4000), build: '1' }))],
    ['a build', JSON.stringify(patches(500, { build: text(4000) }))],
    ['a version', JSON.stringify(patches(1, { version: `1.1.${'1'.repeat(8_000_000)}` }))],
    [
      'a checksum',
      JSON.stringify(patches(1, { containers: [{ name: 'A', image: 'a', checksum: text(513) }] })),
    ],
  ])('in the problems: %s', async (_what, content) => {
    const answer = await send(importContent(content));
    expect(answer.status).toBe(400);
    expect(detailsOf(answer).length).toBeLessThanOrEqual(200);
    expect(answer.body.length).toBeLessThan(100_000);
  });

  it('on the page of its inputs', async () => {
    await accept(withInputs(manyInputs(200), { name: text(1_000_000) }));
    const answer = await sendWithin(500, getPage('?f=html&version=rel_0'));
    expect(answer.status).toBe(200);
    expect(answer.body.length).toBeLessThan(3_000_000);
  });

  it('in a table of versions that have no field in common', async () => {
    // Text, because objects without a field in common take long to build.
    const own = (index: number) =>
      Array.from({ length: 380 }, (_, field) => `"field_${index}_${field}":1`).join(',');
    const versions = releases(500).map(
      (release, index) => `${JSON.stringify(release).slice(0, -1)},${own(index)}}`,
    );
    expect(await send(importContent(`[${versions.join(',')}]`))).toMatchObject({ status: 200 });
    const answer = await sendWithin(1000, getPage('/available?f=html'));
    expect(answer.status).toBe(200);
    expect(answer.body.length).toBeLessThan(3_000_000);
  });

  it('in the reasons why releases cannot be installed', async () => {
    const mandatory = patches(250, { isMandatoryUpdate: true });
    const next = releases(250).map((release, index) => ({
      ...release,
      build: `b${index}`,
      previousReleaseBuild: '1234',
    }));
    await accept([...mandatory, ...next]);
    const answer = await sendWithin(300, getPage('/available'));
    const versions = JSON.parse(answer.body) as { reasons: string[] }[];
    expect(versions).toHaveLength(500);
    expect(versions.at(-1)?.reasons).toHaveLength(250);
    expect(answer.body.length).toBeLessThan(6_000_000);
    const page = await sendWithin(300, getPage('/available?f=html'));
    expect(page.body.length).toBeLessThan(6_000_000);
  });
});

describe('500 versions are all listed', () => {
  it.each<[string, object[]]>([
    ['a chain of releases', releases(500, { released: Date.UTC(2026, 0) })],
    ['a chain of patches', patches(500, { isMandatoryUpdate: true })],
    ['releases that follow the same one', releases(500, { previousReleaseBuild: '1234' })],
  ])('%s', async (_what, versions) => {
    await accept(versions);
    const available = await sendWithin(120, getPage('/available'));
    expect(available.status).toBe(200);
    const ids = (JSON.parse(available.body) as { id: string }[]).map(({ id }) => id);
    expect(ids).toEqual(versions.map((version) => (version as { id: string }).id));
    const page = await sendWithin(120, getPage('?f=html'));
    expect(page.status).toBe(200);
  });

  it('installed patches', async () => {
    const installed = patches(500, {
      isMandatoryUpdate: false,
      newLicensesRequired: false,
      userForm: [],
      newContainers: [],
      containers: ['A', 'B', 'C'].map((name) => ({ name, image: `${name}:1`, checksum: 'N/A' })),
    }) as unknown as Version[];
    const before = server.store.read(deployment);
    await server.store.update((transaction) =>
      transaction.write(deployment, { release: freshRelease, patches: installed }),
    );
    const cookie = 'steward_session=token-of-the-administrator';
    const answer = await sendWithin(200, write({ url: `${upgrades}/rollback?f=html`, headers: { cookie } }));
    const refused = await send(
      postForm(`${upgrades}/rollback`, new URLSearchParams({ versionManifest: '{"id":"x"}' }).toString()),
    );
    await server.store.update((transaction) => transaction.write(deployment, before));
    expect(answer.status).toBe(200);
    expect(answer.body.match(/puts back 0 containers/g)).toHaveLength(200);
    expect(detailsOf(refused)).toEqual([expect.stringMatching(/pat_479 and 480 more\.$/)]);
  });
});

describe('large settings get at most 200 problems', () => {
  it.each<[string, string, number]>([
    ['524,000 numbers', fill('{"userInputs":[', '0,', '0]}', 1_048_000), 1],
    ['20,000 unknown ids', `{"userInputs":[${'{"id":"x"},'.repeat(20_000)}0]}`, 1],
    ['1,000 unknown ids', `{"userInputs":[${'{"id":"x"},'.repeat(999)}0]}`, 200],
    ['an unknown id of 1 MB', `{"userInputs":[{"id":"${text(1_000_000)}"}]}`, 1],
    ['an unknown id that is a list of 1 MB', fill('{"userInputs":[{"id":[', '0,', '0]}]}', 1_000_000), 1],
  ])('%s', async (_what, settings, wrong) => {
    const answer = await sendWithin(200, plan(eleven, settings));
    expect(answer.status).toBe(200);
    const { problems } = planOf(answer);
    expect(problems.filter((problem) => problem.includes('userInputs'))).toHaveLength(wrong);
    expect(problems.length).toBeLessThanOrEqual(200);
    expect(answer.body.length).toBeLessThan(100_000);
  });

  it('also on a page', async () => {
    const settings = `{"userInputs":[${'{"id":"x"},'.repeat(999)}0]}`;
    const bytes = postForm(
      `${upgrades}/plan`,
      `f=html&versionManifest=${encodeURIComponent(`{"id":"${eleven}"}`)}&upgradeSettings=${settings}`,
    );
    const answer = await sendWithin(200, bytes);
    expect(answer.status).toBe(200);
    expect(answer.body.length).toBeLessThan(300_000);
  });

  it('with 200 known ids, which the problems name once', async () => {
    await accept(withInputs(manyInputs(200)));
    const answer = await sendWithin(200, plan('rel_0', `{"userInputs":[${'{"id":"x"},'.repeat(999)}0]}`));
    const { problems } = planOf(answer);
    expect(problems).toHaveLength(200);
    expect(problems.filter((problem) => problem.includes('input_199'))).toHaveLength(1);
    expect(answer.body.length).toBeLessThan(100_000);
  });
});

describe('a file of the settings is refused', () => {
  it.each<[string, string, string]>([
    ['a license of 10 MiB', fill('[', '0,', '0]'), 'licenseFile: must be at most 1048576 bytes.'],
    [
      'a license of many values',
      fill('[', '0,', '0]', 1024 ** 2),
      'licenseFile: must have at most 200000 values.',
    ],
    [
      'a license of many levels',
      JSON.stringify(nest(65)),
      'licenseFile: must not be nested more than 64 levels deep.',
    ],
    ['a license that is no JSON', '[', 'licenseFile: must be valid JSON.'],
  ])('%s', async (_what, content, problem) => {
    const answer = await sendWithin(
      300,
      postParts(`${upgrades}/plan`, [
        ['"versionManifest"', JSON.stringify({ id: eleven })],
        ['"licenseFile"; filename="license.json"', content],
      ]),
    );
    expect(planOf(answer).problems).toContain(problem);
  });

  it('uploads of 10 MB, and of 4 MiB together', { timeout: 60_000 }, async () => {
    const store = async (content: string) => {
      const { body } = await send(upload(content, 'a.json'));
      return (JSON.parse(body) as { item: { itemID: string } }).item.itemID;
    };
    const large = await store(fill('[', '0,', '0]', 10_000_000));
    const small = await Promise.all(Array.from({ length: 5 }, () => store(fill('["', 'a', '"]', 1024 ** 2))));
    await accept(withInputs(manyInputs(60, { validFileExtensions: ['json'] })));
    const ids = [...small, ...Array.from({ length: 50 }, () => large)];
    const answer = await sendWithin(
      300,
      plan(
        'rel_0',
        ids.map((value, index) => ({ id: `input_${index}`, value })),
      ),
    );
    expect(planOf(answer).problems).toEqual([
      'upgradeSettings: input_4 names a.json, which exceeds the 4194304 bytes for all JSON files of the settings.',
      ...Array.from(
        { length: 50 },
        (_, index) =>
          `upgradeSettings: input_${index + 5} names a.json, which must be at most 1048576 bytes.`,
      ),
    ]);
  });
});
