// The upgrades page in a browser without scripts, before the first upgrade. test/pages has its texts.
import { describe, expect, it } from 'vitest';
import { capitalise } from '../../src/console/labels.ts';
import { freshRelease } from '../kit/sample-manifest.ts';
import { deployment } from '../../src/upgrades/versions/deployment.ts';
import { readManifest } from '../../src/upgrades/versions/manifest.ts';
import { patchOf } from '../kit/versions.ts';
import {
  cookie,
  eleven,
  formOf,
  hour,
  jobPage,
  linkOf,
  patch1,
  plain,
  token,
  upgrades,
  usePage,
} from './page-kit.ts';

const { server, start, show, open, openJob, openWizard, openPlan, openVersions, send, upload, startRelease } =
  usePage();

/** As the page links to it. */
const wizardOf = (id: string) => `${upgrades}/plan?versionManifest=%7B%22id%22%3A%22${id}%22%7D`;

/** Sends the settings of the page, and returns those that the plan would start with. */
async function plan(page: string): Promise<unknown> {
  const form = formOf(page, '/plan');
  const { body } = await server.post(form?.action ?? '', form?.fields, { cookie });
  return JSON.parse(formOf(body, '/upgrade')?.fields.upgradeSettings ?? 'null') as unknown;
}

describe('the page before the first upgrade', () => {
  it('recommends the same upgrades as the plan', async () => {
    await start();
    const [, path = ''] = /upgrades with one license:\s*([^<]*?)\s*<\/p>/.exec(await open()) ?? [];
    const license = await upload('license.json', '{}');
    const plan = await openPlan('rel_07122023_5207', { 'Text.licenseUpload': license });
    const planned = /From <strong>(\S+)<\/strong> to <strong>(\S+)<\/strong>, through ([^<]*?)\. /.exec(plan);
    const [, from, to, through = ''] = planned ?? [];
    const patches = ['11.0.0.2632', '11.0.0.2650'];
    const others = through.split(/, | and /).filter((version) => !patches.includes(version));
    expect(path.split(' → ')).toEqual([from, ...others, to]);
  });

  it('offers a template of a manifest that can be imported, and marks its versions as new', async () => {
    await start();
    const href = /href="data:application\/json,([^"]*)" download="manifest-template.json"/.exec(
      await openVersions(),
    )?.[1];
    const template = decodeURIComponent(href ?? '');
    const manifestFile = { name: 'manifest.json', content: template.replace('<build>', '1300') };
    const unedited = { manifestFile: { name: 'manifest.json', content: template } };
    const refused = await server.postParts(`${upgrades}/importManifest`, unedited, token);
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('must be a build');
    const imported = await server.postParts(`${upgrades}/importManifest`, { manifestFile }, token);
    expect(imported.statusCode, imported.body).toBe(200);
    const versions = await openVersions();
    expect(versions).toMatch(/<strong>Next patch<\/strong> <span class="state busy">New</);
    expect(versions).toContain('the manifest imported at');
    await server.postParts(`${upgrades}/importManifest`, { manifestFile }, token);
    expect(await openVersions()).not.toContain('New</span>');
  });

  it('says that another job is scheduled, and nothing against the version', async () => {
    await start();
    const startAt = String(server.runtime.now() + hour);
    await server.post(`${upgrades}/upgrade`, { token, versionManifest: `{"id":"${patch1}"}`, startAt });
    const page = await openPlan(eleven, { 'Text.licenseUpload': await upload('license.json', '{}') });
    expect(page).toMatch(/<span class="state bad">Failed<\/span>\s*<strong>Other jobs<\/strong>/);
    expect(page).toMatch(/<span class="state good">Passed<\/span>\s*<strong>Version<\/strong>/);
    // A job that never started has no figures.
    const { jobId } = (await server.get(`${upgrades}?token=${token}`)).json<{ jobId: string }>();
    const named = `<a href="/admin/system/jobs/${jobId}">Upgrade from 10.9.1.1234 to 10.9.1.1250</a> is scheduled for <time`;
    expect(page).toContain(named);
    expect(await openVersions()).toContain(named);
    await server.post(`/admin/system/jobs/${jobId}/cancel`, { token });
    const cancelled = await openJob();
    expect(cancelled).toContain('Cancelled by');
    expect(cancelled).not.toContain('<progress');
  });

  it('shows every problem of the settings beside its control, with what was entered', async () => {
    await start();
    const page = await openPlan(eleven, { 'JSON.volumesConfig': '[1]', 'Boolean.updateToLatestPatch': '' });
    expect(page).toContain('role="alert"');
    expect(page).toMatch(/<span class="state bad">Failed<\/span>\s*<strong>Settings<\/strong>/);
    expect(page).toMatch(/id="setting-1-problem">License file: choose a file\./);
    expect(page).toMatch(/id="setting-2-problem">The value of volumesConfig must be a JSON object\./);
    expect(page).toMatch(/name="upgradeSettings\.JSON\.volumesConfig"[^>]*aria-invalid="true"[^>]*>\[1\]</);
    expect(page).not.toMatch(/<option value="true" selected>Yes/);
    expect(page).not.toContain('Start the upgrade');
  });

  it('takes settings of any length', async () => {
    await start();
    const license = await upload('license.json', '{}');
    const value = { a: 'ä'.repeat(50_000) };
    const page = await openPlan(eleven, {
      'Text.licenseUpload': license,
      'JSON.volumesConfig': JSON.stringify(value),
    });
    const { upgradeSettings = '' } = formOf(page, '/upgrade')?.fields ?? {};
    expect(JSON.parse(upgradeSettings)).toMatchObject({ userInputs: [{}, {}, { value }] });
    const nested = await openPlan(eleven, { 'JSON.volumesConfig': `{"a":${'['.repeat(100_000)}` });
    expect(nested).toContain('The value of volumesConfig must be a JSON object.');
    expect(await send(page, '/upgrade')).toMatch(jobPage);
  });

  it('leads to the upload of a file and back, with the file and the other settings', async () => {
    await start();
    const page = await openPlan(eleven, {
      'Boolean.updateToLatestPatch': '',
      'JSON.volumesConfig': '{"a":1}',
    });
    const form = formOf(await show(linkOf(page, 'Upload a file …')), '/uploads/upload');
    const parts = { ...form?.fields, itemFile: { name: 'license.json', content: '{}' } };
    const response = await server.postParts(form?.action ?? '', parts, token);
    expect(response.statusCode, response.body).toBe(303);
    const after = await show(response.headers.location ?? '');
    expect(after).not.toContain('role="alert"');
    expect(after).toMatch(/<option value="[^"]+" selected>license\.json, uploaded 2026/);
    expect(await plan(after)).toMatchObject({
      userInputs: [{ id: 'licenseUpload' }, { id: 'volumesConfig', value: { a: 1 } }],
    });
    // An address cannot hold them.
    const long = await openPlan(eleven, { 'JSON.volumesConfig': `{"a":"${'a'.repeat(5000)}"}` });
    const back = new URL(linkOf(long, 'Upload a file …'), 'http://localhost').searchParams.get('next');
    expect(back).toBe(wizardOf(eleven));
  });

  it('names up to three patches that a rollback removes, and counts the others', async () => {
    await start();
    const containers = [{ name: 'MAP_SERVER', image: 'map:1' }];
    const patches = [1, 2, 3, 4].map((n) => ({
      ...patchOf(`p${n}`, `${n}`, n === 1 ? '1234' : `${n - 1}`),
      name: `P${n}`,
      containers,
    }));
    const manifest = readManifest(Buffer.from(JSON.stringify(patches)), () => [freshRelease]);
    const installed = 'versions' in manifest ? manifest.versions : [];
    await server.store.update((transaction) =>
      transaction.write(deployment, { release: freshRelease, patches: installed }),
    );
    const page = await show(`${upgrades}/rollback`);
    const removed = [...page.matchAll(/removes (.*?), puts back/g)].map(([, names]) => names);
    expect(removed).toEqual(['P4', 'P3, P4', 'P2, P3, P4', 'P1, P2, P3 and 1 more']);
  });

  it('asks for the version also before a patch of another release', async () => {
    await start();
    const license = await upload('license.json', '{}');
    const plan = await openPlan('pat_22092022_2650', {
      'Text.licenseUpload': license,
      'Boolean.updateToLatestPatch': '',
    });
    expect(plan).toContain('cannot be rolled back');
    expect(plan).toContain('Type 11.0.0.2650 to confirm: there is no way back');
  });

  it('selects the license of the last job', async () => {
    await start();
    await startRelease();
    await server.runtime.advance(hour);
    const page = await openWizard('rel_18052023_3923');
    expect(page).toMatch(/<option value="[^"]*" selected>\s*license\.json, uploaded 2026/);
  });

  it('shows the settings beside the plan, to change them', async () => {
    await start();
    const page = await openPlan(eleven, {
      'Text.licenseUpload': await upload('license.json', '{}'),
      'Boolean.updateToLatestPatch': '',
    });
    expect(await plan(page)).toEqual(JSON.parse(formOf(page, '/upgrade')?.fields.upgradeSettings ?? ''));
    expect(page).toMatch(/license\.json, uploaded\s*<time datetime="2026/);
  });

  it('offers only files of an allowed type, selects none, and still shows one that was deleted', async () => {
    await start();
    await upload('notes.txt', 'x');
    await upload('license.json', '{}');
    const page = await openPlan(eleven, { 'Text.licenseUpload': 'gone' });
    expect(page).not.toContain('notes.txt');
    expect(await openWizard(eleven)).toMatch(/<option value="[^"]+" >license\.json, uploaded 2026-01-01/);
    expect(page).toContain('<option value="gone" selected>gone</option>');
    expect(page).toContain('licenseUpload names the upload gone, which does not exist.');
  });

  it('shows the same plan as the operation plan, and starts it', async () => {
    await start();
    const licenseUpload = await upload('license.json', '{}');
    const entered = { 'Text.licenseUpload': licenseUpload, 'Boolean.updateToLatestPatch': 'false' };
    const page = await openPlan(eleven, entered);
    const form = formOf(page, '/upgrade');
    const { versionManifest = '', upgradeSettings = '' } = form?.fields ?? {};
    expect(JSON.parse(upgradeSettings)).toEqual({
      userInputs: [
        { id: 'updateToLatestPatch', value: false },
        { id: 'licenseUpload', value: licenseUpload },
        { id: 'volumesConfig', value: {} },
      ],
    });
    const planned = await server.post(`${upgrades}/plan`, { versionManifest, upgradeSettings, token });
    const { steps } = planned.json<{ steps: unknown[] }>();
    expect(page).toContain(`The ${steps.length} steps`);
    expect(await send(page, '/upgrade')).toMatch(jobPage);
    expect((await server.get(`${upgrades}?token=${token}`)).json()).toMatchObject({
      status: { state: 'in_progress' },
      progress: { total: 48 },
    });
  });

  it.each(['plan', 'upgrade'])(
    'keeps the input of %s if the session ends before it is sent',
    async (step) => {
      await start();
      const page = await openPlan(eleven, {
        'Text.licenseUpload': await upload('license.json', '{}'),
        'JSON.volumesConfig': '{"a":1}',
      });
      const form = formOf(page, `/${step}`);
      const sent = await server.post(form?.action ?? '', form?.fields ?? {}, {
        cookie: 'steward_session=gone',
      });
      expect(sent.statusCode).toBe(401);
      expect(sent.body).toContain('your input is kept, except');
      const again = await show(plain(/name="next" value="([^"]*)"/.exec(sent.body)?.[1] ?? ''));
      expect(formOf(again, `/${step}`)?.fields).toEqual(form?.fields);
    },
  );

  it('starts a release for a form only with its version typed, which the plan names', async () => {
    await start();
    const page = await openPlan(eleven, { 'Text.licenseUpload': await upload('license.json', '{}') });
    const form = formOf(page, '/upgrade');
    const { confirmVersion, ...fields } = form?.fields ?? {};
    expect(page).toContain(`to <strong>${confirmVersion}</strong>`);
    const send = (given: Record<string, string>) => server.post(form?.action ?? '', given, { cookie });
    const problem = `must be ${confirmVersion}: there is no way back.`;
    for (const typed of [{}, { confirmVersion: '11.0.0.2632' }]) {
      const { statusCode, body } = await send({ ...fields, ...typed });
      expect(statusCode).toBe(400);
      expect(body).toContain('<strong>Please correct one field.</strong>');
      expect(body).toMatch(/<input id="confirmVersion"[^>]*aria-invalid="true"/);
      expect(body).toContain(`<p class="problem" id="confirmVersion-problem">${capitalise(problem)}</p>`);
      expect(formOf(body, '/upgrade')?.fields).toMatchObject(fields);
    }
    const json = await send({ ...fields, f: 'json' });
    expect(json.json()).toMatchObject({ error: { code: 400, details: [`confirmVersion: ${problem}`] } });
    expect((await server.get(`${upgrades}?token=${token}`)).json()).toMatchObject({
      status: { state: 'no_upgrade' },
    });
    // A program that sends its token needs none.
    expect((await server.post(`${upgrades}/upgrade`, { ...fields, token, f: 'json' })).statusCode).toBe(200);
  });

  it('shows a refused start beside the plan, with the input', async () => {
    await start();
    const windows = '[{"days":["sat"],"from":"22:00","to":"23:00","timeZone":"UTC"}]';
    await server.post(`${upgrades}/config/update`, { token, windows });
    const page = await openPlan(eleven, {
      'Text.licenseUpload': await upload('license.json', '{}'),
      'JSON.volumesConfig': '{"a":1}',
    });
    const form = formOf(page, '/upgrade');
    const refuse = async (fields: Record<string, string>, shown: Record<string, string>) => {
      const { statusCode, body } = await server.post(
        form?.action ?? '',
        { ...form?.fields, ...fields },
        { cookie },
      );
      expect(formOf(body, '/upgrade')?.fields).toEqual({ ...form?.fields, ...shown });
      expect(body.match(/role="alert"/g)).toHaveLength(1);
      return { statusCode, body };
    };
    // Outside of the windows, the page offers the next one.
    expect(page).toMatch(/<option value="\d+" selected>\s*In the next window, Sat 03 Jan, 22:00 in UTC</);
    expect(page).toContain('No maintenance window is open until Sat 03 Jan, 22:00 in UTC.');
    const now = { 'startAt.when': '' };
    const closed = await refuse(now, now);
    expect(closed.statusCode).toBe(409);
    expect(closed.body).toContain('No maintenance window is open now. Choose another time');
    expect(closed.body).not.toContain('ignoreWindows=true');
    expect(closed.body).not.toMatch(/name="ignoreWindows.on"[^>]*checked/);
    // A time counts, whatever is chosen beside it.
    const time = { 'startAt.at': '2020-01-01T00:00' };
    const late = await refuse(
      { ...now, ...time, 'ignoreWindows.on': 'true' },
      { 'startAt.when': 'at', ...time },
    );
    expect(late.statusCode).toBe(400);
    expect(late.body).toContain('id="startAt-problem">Must be in the future.');
    expect(late.body).toMatch(/name="ignoreWindows.on" value="true" checked \/>/);
    const none = await refuse({ 'startAt.when': 'at' }, { 'startAt.when': 'at' });
    expect(none.body).toContain('id="startAt-problem">Choose a time.');
    const changed = await refuse({ ...now, planDigest: '0'.repeat(64), 'ignoreWindows.on': 'true' }, now);
    expect(changed.statusCode).toBe(409);
    expect(changed.body).toContain('The plan has changed. Read the new plan, then start the upgrade.');
    expect(changed.body).not.toContain('digest of the');
  });

  it('is not shown to a caller who is not known when the form is refused', async () => {
    await start();
    const fields = { f: 'xml', versionManifest: `{"id":"${eleven}"}` };
    const asked = (headers = {}) =>
      server.post(`${upgrades}/plan`, fields, { accept: 'text/html', ...headers });
    const refused = await asked();
    expect(refused.statusCode).toBe(400);
    expect(refused.body).not.toContain('Upgrade to Product');
    expect((await asked({ cookie })).body).toContain('Upgrade to Product');
  });

  it('is not shown for a form with other fields', async () => {
    await start();
    const fields = { f: 'html', token, versionManifest: `{"id":"${patch1}"}`, updateToLatestPatch: 'true' };
    const { statusCode, headers } = await server.post(`${upgrades}/plan`, fields);
    expect([statusCode, headers.location]).toEqual([303, upgrades]);
  });

  it('shows that a version is unknown, escaped', async () => {
    await start();
    const unknown = await openWizard('<b>x');
    expect(unknown).toContain('there is no version with the id &lt;b&gt;x.');
    expect(unknown).not.toContain('<b>x');
    expect(formOf(unknown, '/upgrade')).toBeUndefined();
  });

  it('shows the plan also while the system is read-only', async () => {
    await start();
    await server.post('/admin/mode/update', { token, isReadOnly: 'true' });
    expect(formOf(await openWizard(eleven), '/plan')).toBeDefined();
  });
});
