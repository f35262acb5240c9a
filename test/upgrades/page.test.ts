// The upgrades page in a browser without scripts, before the first upgrade.
import { describe, expect, it } from 'vitest';
import type { Server } from '../kit/server.ts';
import {
  cookie,
  eleven,
  formOf,
  hour,
  jobPage,
  patch1,
  plain,
  token,
  upgrades,
  usePage,
} from './page-kit.ts';

let server: Server;
const { start, open, openVersions, send, upload, startRelease } = usePage((started) => (server = started));

describe('the page before the first upgrade', () => {
  it('shows the installed version, and the versions to choose from with those that come before them', async () => {
    await start();
    const page = await open();
    expect(page).toMatch(/<strong>Product 10\.9\.1<\/strong>\s*<span class="version">10\.9\.1\.1234/);
    expect(page).toMatch(/Upgrade to Product 11\.2 <span class="state warn">Cannot be rolled back/);
    expect(page).toMatch(
      /in 3 steps with one license and one job:\s*10\.9\.1\.1234 → 11\.0\.0\.2670 → 11\.1\.0\.3923 → 11\.2\.0\.5207/,
    );
    expect(page).not.toContain('<progress');
    expect(page).not.toContain('Roll back …');
    const versions = await openVersions();
    expect(versions).toContain(`href="${upgrades}?version=${eleven}"`);
    expect(versions).toContain(`href="${upgrades}?version=rel_18052023_3923"`);
    expect(versions).toContain('One job also installs the versions that it needs.');
    expect(versions).toContain(`href="${upgrades}/importManifest"`);
    expect(versions).toContain('the built-in manifest');
  });

  it('recommends the same steps as the plan', async () => {
    await start();
    const [, path = ''] = /with one license and one job:\s*([^<]*?)\s*<\/p>/.exec(await open()) ?? [];
    const license = await upload('license.json', '{}');
    const plan = await open({ version: 'rel_07122023_5207', step: 'plan', 'setting.licenseUpload': license });
    const hops = [...plan.matchAll(/<li>(\S+) → <strong>(\S+)<\/strong>/g)];
    expect(path.split(' → ')).toEqual([hops[0]?.[1], ...hops.map(([, , to]) => to)]);
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

  it('schedules only with a time', async () => {
    await start();
    const page = await open({ version: patch1 });
    const [now = '', later = ''] = page.match(/<form[^>]*action="[^"]*\/upgrade"[\s\S]*?<\/form>/g) ?? [];
    expect(now).toContain('Start the upgrade');
    expect(now).not.toContain('startAt');
    expect(later).toMatch(/<input id="startAt" name="startAt" type="datetime-local" required/);
    expect(later).toContain('Schedule the upgrade');
  });

  it('lists what was checked before the start, and says that the license is not', async () => {
    await start();
    const license = await upload('license.json', '{}');
    const chosen = { version: eleven, step: 'plan' };
    const checks = (page: string) =>
      [...page.matchAll(/<span class="state \w+">([\w ]+)<\/span>\s*<strong>([\w ]+)<\/strong>/g)].map(
        ([, result, name]) => `${name}: ${result}`,
      );
    const ready = await open({ ...chosen, 'setting.licenseUpload': license });
    expect(checks(ready)).toEqual([
      'Version: Passed',
      'Settings: Passed',
      'License file: Not checked',
      'Deployment and images: Not checked',
    ]);
    expect(ready).toContain('license.json. Its content is not checked: simulated.');
    const missing = await open(chosen);
    expect(checks(missing)).toEqual([
      'Version: Passed',
      'Settings: Failed',
      'Deployment and images: Not checked',
    ]);
  });

  it('asks for the settings of a release as controls with their presets', async () => {
    await start();
    const page = await open({ version: eleven });
    expect(page).toMatch(
      /<select id="setting-0" name="next\.setting\.updateToLatestPatch"[\s\S]*?<option value="true" selected>/,
    );
    expect(page).toMatch(/<input id="setting-1" name="itemFile"[^>]*type="file" accept="\.json" required/);
    expect(page).toMatch(
      /<textarea id="setting-2" name="next\.setting\.volumesConfig"[^>]*>\{\}<\/textarea>/,
    );
    expect(page).not.toContain('role="alert"');
    expect(page).not.toContain('Start the upgrade');
  });

  it('shows every problem of the settings beside its control, with what was entered', async () => {
    await start();
    const page = await open({ version: eleven, step: 'plan', upload: '', 'setting.volumesConfig': '[1]' });
    expect(page).toContain('role="alert"');
    expect(page).toMatch(/id="setting-1-problem">License file: choose a file\./);
    expect(page).toMatch(/id="setting-2-problem">the value of volumesConfig must be a JSON object\./);
    expect(page).toMatch(/name="setting\.volumesConfig"[^>]*aria-invalid="true"[^>]*>\[1\]</);
    expect(page).not.toContain('Start the upgrade');
  });

  it('uploads a file with all other settings of the form, and shows the plan for them', async () => {
    await start();
    await upload('older.json', '{}');
    const before = await open({ version: eleven, 'setting.volumesConfig': '{"a":0}' });
    const form = formOf(before, '/uploads/upload');
    const parts = {
      ...form?.fields,
      itemFile: { name: 'license.json', content: '{}' },
      'next.setting.updateToLatestPatch': 'false',
      'next.setting.volumesConfig': '{"a":1}',
    };
    const response = await server.postParts(form?.action ?? '', parts, token);
    expect(response.statusCode, response.body).toBe(303);
    const after = await server.get(response.headers.location ?? '', { accept: 'text/html', cookie });
    expect(after.body).not.toContain('role="alert"');
    const { upgradeSettings = '' } = formOf(after.body, '/upgrade')?.fields ?? {};
    expect(JSON.parse(upgradeSettings)).toMatchObject({
      userInputs: [
        { id: 'updateToLatestPatch', value: false },
        { id: 'licenseUpload' },
        { id: 'volumesConfig', value: { a: 1 } },
      ],
    });
  });

  it('promises a rollback for patches only, and asks for the version where there is no way back', async () => {
    await start();
    const patch = await open({ version: patch1 });
    expect(patch).toContain('It can be cancelled, and can be rolled back afterwards.');
    expect(patch).not.toContain('name="confirmVersion"');
    const license = await upload('license.json', '{}');
    const available = await server.get(`${upgrades}/available?token=${token}`);
    const patchOfRelease = available
      .json<{ id: string; version: string; type: string }[]>()
      .find(({ id, version }) => id.startsWith('pat_') && version === '11.0.0');
    for (const version of [eleven, patchOfRelease?.id ?? '']) {
      const release = await open({ version, step: 'plan', 'setting.licenseUpload': license });
      expect(release, version).toContain('cannot be rolled back');
      expect(release).not.toContain('can be rolled back afterwards');
      expect(release).toMatch(/Type 11\.0\.0\.\d+ to confirm: there is no way back/);
    }
  });

  it('offers to upload another file without losing the settings that were entered', async () => {
    await start();
    const licenseUpload = await upload('license.json', '{}');
    const chosen = { version: eleven, 'setting.licenseUpload': licenseUpload };
    expect(await open(chosen)).toMatch(/<button class="quiet" name="upload" value="licenseUpload">/);
    const page = await open({ ...chosen, upload: 'licenseUpload', 'setting.volumesConfig': '{"a":1}' });
    expect(page).toMatch(/name="itemFile"[^>]*type="file"/);
    expect(page).toContain('{&quot;a&quot;:1}</textarea>');
  });

  it('selects the license of the last job', async () => {
    await start();
    await startRelease();
    await server.runtime.advance(hour);
    const page = await open({ version: 'rel_18052023_3923' });
    expect(page).toMatch(/<option value="[^"]*" selected>\s*license\.json, uploaded 2026/);
  });

  it('reports an unusable upload at once', async () => {
    await start();
    const licenseUpload = await upload('license.txt', '{}');
    const page = await open({ version: eleven, 'setting.licenseUpload': licenseUpload });
    expect(page).toMatch(
      /id="setting-1-problem">licenseUpload must be a file of the type json; license\.txt/,
    );
    expect(page).not.toContain('volumesConfig must');
  });

  it('selects no file by itself', async () => {
    await start();
    await upload('license.json', '{}');
    const page = await open({ version: eleven, upload: '' });
    expect(page).toContain('license.json, uploaded 2026-01-01');
    expect(page).toMatch(/<option value="" selected>None of these/);
  });

  it('links back to the settings with only the settings in the address', async () => {
    await start();
    const licenseUpload = await upload('license.json', '{}');
    const entered = { 'setting.licenseUpload': licenseUpload, 'setting.updateToLatestPatch': 'false' };
    const page = await open({ version: eleven, step: 'plan', token, ...entered });
    const href = plain(/href="([^"]*)">Change the settings/.exec(page)?.[1] ?? '');
    const { searchParams } = new URL(href, 'http://localhost');
    expect(Object.fromEntries(searchParams)).toEqual({ version: eleven, ...entered });
  });

  it('reports settings that are too long for an address beside the longest one', async () => {
    await start();
    const fits = await open({ version: eleven, 'setting.volumesConfig': `{"a":"${'ä'.repeat(1950)}"}` });
    expect(fits).not.toContain('too long');
    const page = await open({ version: eleven, 'setting.volumesConfig': `{"a":"${'ä'.repeat(2050)}"}` });
    expect(page).toMatch(
      /id="setting-2-problem">volumesConfig is too long for this page: encoded, the settings have 12\d{3} of/,
    );
    expect(page).toContain('role="alert"');
  });

  it('offers only files of an allowed type, and still shows one that was deleted', async () => {
    await start();
    await upload('notes.txt', 'x');
    const page = await open({ version: eleven, step: 'plan', 'setting.licenseUpload': 'gone' });
    expect(page).not.toContain('notes.txt');
    expect(page).toContain('<option value="gone" selected>gone</option>');
    expect(page).toContain('licenseUpload names the upload gone, which does not exist.');
  });

  it('shows the same plan as the operation plan, and starts it', async () => {
    await start();
    const licenseUpload = await upload('license.json', '{}');
    const entered = { 'setting.licenseUpload': licenseUpload, 'setting.updateToLatestPatch': 'false' };
    const page = await open({ version: eleven, step: 'plan', ...entered });
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
    expect(page).toContain(`The ${steps.length} tasks`);
    expect(page).toContain('48, 2 of them new');
    expect(page).toMatch(
      /<code>map-server:10\.9\.1\.\d+<\/code>\s*→ <code>map-server:11\.0\.0\.2632<\/code>/,
    );
    expect(page).toContain('license.json');
    expect(await send(page, '/upgrade')).toMatch(jobPage);
    expect((await server.get(`${upgrades}?token=${token}`)).json()).toMatchObject({
      status: { state: 'in_progress' },
      progress: { total: 48 },
    });
  });

  it('returns to the same plan if the session ends before the start', async () => {
    await start();
    const licenseUpload = await upload('license.json', '{}');
    const query = { version: eleven, step: 'plan', 'setting.licenseUpload': licenseUpload };
    const form = formOf(await open(query), '/upgrade');
    const sent = await server.post(form?.action ?? '', form?.fields ?? {}, {
      cookie: 'steward_session=gone',
    });
    expect(sent.statusCode).toBe(401);
    expect(sent.body).toContain('your input is kept, except');
    const next = plain(/name="next" value="([^"]*)"/.exec(sent.body)?.[1] ?? '');
    expect(next).toBe(`${upgrades}?${new URLSearchParams(query).toString()}`);
    const again = await server.get(next, { accept: 'text/html', cookie });
    expect(formOf(again.body, '/upgrade')?.fields.versionManifest).toBe(form?.fields.versionManifest);
  });

  it('shows a step without the lists of resources and operations', async () => {
    await start();
    const lists = /<h2>(Resources|Operations)<\/h2>/g;
    expect((await open()).match(lists)).toHaveLength(2);
    expect((await open({ version: eleven })).match(lists)).toBeNull();
  });

  it('shows the plan of a patch without asking for settings', async () => {
    await start();
    const page = await open({ version: patch1 });
    expect(page).not.toContain('Check the settings');
    expect(formOf(page, '/upgrade')?.fields).toMatchObject({ versionManifest: `{"id":"${patch1}"}` });
    expect(formOf(page, '/upgrade')?.fields).not.toHaveProperty('upgradeSettings');
    expect(await send(page, '/upgrade')).toMatch(jobPage);
  });

  it('shows why a version cannot be installed', async () => {
    await start();
    const installed = await open({ version: 'rel_10092021_1234' });
    expect(installed).toContain('10.9.1.1234 is installed already.');
    expect(formOf(installed, '/upgrade')).toBeUndefined();
    const unknown = await open({ version: '<b>x' });
    expect(unknown).toContain('there is no version with the id &lt;b&gt;x.');
    expect(unknown).not.toContain('<b>x');
    expect(formOf(unknown, '/upgrade')).toBeUndefined();
  });

  it('shows that the system is read-only, and then offers no start and no upload', async () => {
    await start();
    await server.post('/admin/mode/update', { token, isReadOnly: 'true', message: 'Back at noon.' });
    const page = await open({ version: patch1 });
    expect(page).toMatch(/The system is read-only\.<\/strong> Back at noon\./);
    expect(formOf(page, '/upgrade')).toBeUndefined();
    expect(formOf(await open({ version: eleven }), '/uploads/upload')).toBeUndefined();
  });
});
