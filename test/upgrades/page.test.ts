// The upgrades page as a browser without script meets it: forms are taken from the page and sent as they are.
import { afterEach, describe, expect, it } from 'vitest';
import { messages } from '../../src/upgrades/job-record.ts';
import { type Server, startServer } from '../kit/server.ts';

let server: Server;
afterEach(() => server.close());

async function start(env: Record<string, string> = {}): Promise<void> {
  server = await startServer({ env: { UPGRADE_STEP_MS: '1000', ...env } });
}

const token = 'token-of-the-administrator';
const cookie = `steward_session=${token}`;
const upgrades = '/admin/system/upgrades';
const eleven = 'rel_14072022_2632';
const patch1 = 'pat_17022022_1250';

const open = async (query: Record<string, string> = {}) => {
  const search = new URLSearchParams(query).toString();
  const response = await server.get(`${upgrades}${search && `?${search}`}`, { accept: 'text/html', cookie });
  expect(response.statusCode, response.body).toBe(200);
  return response.body;
};

const plain = (text: string) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

/** The form whose action ends so, with its hidden fields. */
function formOf(page: string, actionEnd: string) {
  const forms = page.match(/<form[\s\S]*?<\/form>/g) ?? [];
  const found = forms.find((form) => new RegExp(`action="[^"]*${actionEnd}"`).test(form));
  if (found === undefined) return undefined;
  const hidden = found.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g);
  return {
    action: /action="([^"]*)"/.exec(found)?.[1] ?? '',
    fields: Object.fromEntries([...hidden].map(([, name = '', value = '']) => [name, plain(value)])),
  };
}

/** Sends a form of the page; answers the page the browser is sent on to. */
async function send(page: string, actionEnd: string): Promise<string> {
  const form = formOf(page, actionEnd);
  if (!form) throw new Error(`There is no form for ${actionEnd} in ${page}`);
  const response = await server.post(form.action, form.fields, { cookie });
  expect(response.statusCode, response.body).toBe(303);
  return new URL(response.headers.location ?? '', 'http://localhost').pathname;
}

async function upload(name: string, content: string): Promise<string> {
  const file = { itemFile: { name, content } };
  const response = await server.postParts('/admin/uploads/upload', file, token);
  return response.json<{ item: { itemID: string } }>().item.itemID;
}

/** Through settings and plan to a running release. */
async function startRelease(): Promise<void> {
  const licenseUpload = await upload('license.json', '{}');
  const planned = await open({
    ...{ version: eleven, step: 'plan', 'setting.licenseUpload': licenseUpload },
    'setting.updateToLatestPatch': 'false',
  });
  expect(await send(planned, '/upgrade')).toBe(upgrades);
}

const hour = 3_600_000;

describe('before anything was upgraded', () => {
  it('shows what is installed, what may be chosen, and why the rest may not', async () => {
    await start();
    const page = await open();
    expect(page).toMatch(/<strong>Product 10\.9\.1<\/strong>\s*<span class="version">10\.9\.1\.1234/);
    expect(page).toContain(`href="${upgrades}?version=${eleven}"`);
    expect(page).not.toContain('?version=rel_18052023_3923');
    expect(page).toContain('11.1.0.3923 follows build 2632; installed is 10.9.1.1234.');
    expect(page).toContain(`href="${upgrades}/importManifest"`);
    expect(page).not.toContain('<progress');
    expect(page).not.toContain('Go back to');
  });

  it('asks for the settings of a release as controls with their presets', async () => {
    await start();
    const page = await open({ version: eleven });
    expect(page).toMatch(
      /<select id="setting-0" name="setting\.updateToLatestPatch"[\s\S]*?<option value="true" selected>/,
    );
    expect(page).toMatch(/<select id="setting-1" name="setting\.licenseUpload"/);
    expect(page).toMatch(/<textarea id="setting-2" name="setting\.volumesConfig"[^>]*>\{\}<\/textarea>/);
    expect(page).toMatch(/type="file"\s+name="itemFile"\s+form="setting-1-upload"\s+accept="\.json"/);
    expect(page).not.toContain('role="alert"');
    expect(page).not.toContain('Start the upgrade');
  });

  it('shows every problem of the settings beside its control, with what was entered', async () => {
    await start();
    const page = await open({ version: eleven, step: 'plan', 'setting.volumesConfig': '[1]' });
    expect(page).toContain('role="alert"');
    expect(page).toMatch(/id="setting-1-problem">licenseUpload needs the id of an upload/);
    expect(page).toMatch(/id="setting-2-problem">the value of volumesConfig must be a JSON object\./);
    expect(page).toMatch(/name="setting\.volumesConfig"[^>]*aria-invalid="true"[^>]*>\[1\]</);
    expect(page).not.toContain('Start the upgrade');
  });

  it('takes a file within the page, comes back with it in place and the other settings kept', async () => {
    await start();
    await upload('older.json', '{}');
    const before = await open({ version: eleven, 'setting.volumesConfig': '{"a":1}' });
    const form = formOf(before, '/uploads/upload');
    const parts = { ...form?.fields, itemFile: { name: 'license.json', content: '{}' } };
    const response = await server.postParts(form?.action ?? '', parts, token);
    expect(response.statusCode, response.body).toBe(303);
    const after = await server.get(response.headers.location ?? '', { accept: 'text/html', cookie });
    expect(after.body).toMatch(/<option value="[^"]*" selected>license\.json, 2 bytes/);
    expect(after.body).toContain('{&quot;a&quot;:1}</textarea>');
    expect(after.body).not.toContain('role="alert"');
  });

  it('says at once that an uploaded file is of no use', async () => {
    await start();
    const licenseUpload = await upload('license.txt', '{}');
    const page = await open({ version: eleven, 'setting.licenseUpload': licenseUpload });
    expect(page).toMatch(
      /id="setting-1-problem">licenseUpload must be a file of the type json; license\.txt/,
    );
    expect(page).not.toContain('volumesConfig must');
  });

  it('preselects no file that the address does not name', async () => {
    await start();
    await upload('license.json', '{}');
    const page = await open({ version: eleven });
    expect(page).toContain('license.json, 2 bytes');
    expect(page).toMatch(/<option value="" selected>None of these/);
  });

  it('leads back to the settings with them alone', async () => {
    await start();
    const licenseUpload = await upload('license.json', '{}');
    const entered = { 'setting.licenseUpload': licenseUpload, 'setting.updateToLatestPatch': 'false' };
    const page = await open({ version: eleven, step: 'plan', token, ...entered });
    const href = plain(/href="([^"]*)">Change the settings/.exec(page)?.[1] ?? '');
    const { searchParams } = new URL(href, 'http://localhost');
    expect(Object.fromEntries(searchParams)).toEqual({ version: eleven, ...entered });
  });

  it('refuses settings too long for an address beside the longest of them', async () => {
    await start();
    const fits = await open({ version: eleven, 'setting.volumesConfig': `{"a":"${'ä'.repeat(1950)}"}` });
    expect(fits).not.toContain('too long');
    const page = await open({ version: eleven, 'setting.volumesConfig': `{"a":"${'ä'.repeat(2050)}"}` });
    expect(page).toMatch(
      /id="setting-2-problem">volumesConfig is too long for this page: encoded, the settings have 12\d{3} of/,
    );
    expect(page).toContain('role="alert"');
  });

  it('offers only files that fit, and keeps one that is gone visible', async () => {
    await start();
    await upload('notes.txt', 'x');
    const page = await open({ version: eleven, step: 'plan', 'setting.licenseUpload': 'gone' });
    expect(page).not.toContain('notes.txt');
    expect(page).toContain('<option value="gone" selected>gone</option>');
    expect(page).toContain('licenseUpload names the upload gone, which does not exist.');
  });

  it('shows the plan that the operation tells, and starts it', async () => {
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
    const told = await server.post(`${upgrades}/plan`, { versionManifest, upgradeSettings, token });
    const { steps } = told.json<{ steps: unknown[] }>();
    expect(page).toContain(`The ${steps.length} steps`);
    expect(page).toContain('48, 2 of them new');
    expect(page).toContain('license.json');
    expect(await send(page, '/upgrade')).toBe(upgrades);
    expect((await server.get(`${upgrades}?token=${token}`)).json()).toMatchObject({
      status: { state: 'in_progress' },
      progress: { total: 48 },
    });
  });

  it('goes straight to the plan of a patch', async () => {
    await start();
    const page = await open({ version: patch1 });
    expect(page).not.toContain('Check the settings');
    expect(formOf(page, '/upgrade')?.fields).toMatchObject({ versionManifest: `{"id":"${patch1}"}` });
    expect(formOf(page, '/upgrade')?.fields).not.toHaveProperty('upgradeSettings');
    expect(await send(page, '/upgrade')).toBe(upgrades);
  });

  it('says why a version cannot be installed, whatever is asked for', async () => {
    await start();
    const ahead = await open({ version: 'rel_18052023_3923' });
    expect(ahead).toContain('follows build 2632');
    expect(ahead).not.toContain('Check the settings');
    const unknown = await open({ version: '<b>x' });
    expect(unknown).toContain('there is no version with the id &lt;b&gt;x.');
    expect(unknown).not.toContain('<b>x');
    expect(formOf(unknown, '/upgrade')).toBeUndefined();
  });

  it('says that the system is read-only, and then offers nothing to start or to upload', async () => {
    await start();
    await server.post('/admin/mode/update', { token, isReadOnly: 'true', message: 'Back at noon.' });
    const page = await open({ version: patch1 });
    expect(page).toMatch(/The system is read-only\.<\/strong> Back at noon\./);
    expect(formOf(page, '/upgrade')).toBeUndefined();
    expect(formOf(await open({ version: eleven }), '/uploads/upload')).toBeUndefined();
  });
});

describe('opened by a token, without a session', () => {
  const openByToken = async (path: string) =>
    (await server.get(path, { accept: 'text/html', authorization: `Bearer ${token}` })).body;
  const withoutButtons = (page: string, purpose: string) => {
    expect(page).toContain(`Sign in</a> with this browser to ${purpose}.`);
    expect(page).not.toMatch(/<form[^>]*action="[^"]*\/(cancel|resume|upgrade|rollback|upload)"/);
  };

  it('a running job is shown, to be reloaded by hand', async () => {
    await start();
    await send(await open({ version: patch1 }), '/upgrade');
    const page = await openByToken(upgrades);
    expect(page).toContain('In progress');
    expect(page).toContain('Reload this page');
    expect(page).not.toContain('data-follow');
    withoutButtons(page, 'cancel it');
    // Whose session it is does not matter: the page was read by the token.
    const mixed = await server.get(`${upgrades}?f=html&token=${token}`, {
      cookie: `steward_session=${server.token('member')}`,
    });
    expect(mixed.body).toContain('In progress');
    expect(mixed.body).not.toContain('data-follow');
  });

  it('nothing can be started, uploaded, resumed or taken back', async () => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    withoutButtons(await openByToken(`${upgrades}?version=${patch1}`), 'start the upgrade');
    expect(await openByToken(`${upgrades}?version=${eleven}`)).not.toContain('type="file"');
    await send(await open({ version: patch1 }), '/upgrade');
    await server.world.advance(hour);
    withoutButtons(await openByToken(upgrades), 'go back');
    await startRelease();
    await server.world.advance(hour);
    withoutButtons(await openByToken(upgrades), 'resume it');
  });
});

describe('while a job runs', () => {
  it('shows the job in place of the procedure, to whoever looks, with what a script needs to follow it', async () => {
    await start();
    await startRelease();
    await server.world.advance(60_000);
    const page = await open({ version: patch1 });
    expect(await open({ version: patch1 })).toBe(page);
    expect(page).toMatch(
      /Upgrade from 10\.9\.1\.1234 to 11\.0\.0\.2632 <span class="state busy">In progress/,
    );
    expect(page).toMatch(/<progress max="48" value="\d+"/);
    expect(page).toContain('The system is read-only.');
    expect(page).toContain('1 minute</dd>');
    expect(page).not.toContain('id="available"');
    const follow = plain(/data-follow="([^"]*)"/.exec(page)?.[1] ?? '');
    const after = Number(/data-after="(\d+)"/.exec(page)?.[1]);
    const waiting = server.get(`${follow}&after=${after}`, { cookie });
    await server.world.advance(2000);
    const news = (await waiting).json<{ status: { messages: unknown[] }; messageCount: number }>();
    expect(news.status.messages.length).toBeGreaterThan(0);
    expect(news.messageCount).toBeGreaterThan(after);
    expect((await server.get(`${upgrades}/available?token=${token}`)).statusCode).toBe(409);
  });

  it('cancels a patch, and says so until and after it has ended', async () => {
    await start();
    await send(await open({ version: patch1 }), '/upgrade');
    await server.world.advance(9_000);
    expect(await send(await open(), '/cancel')).toBe(upgrades);
    const cancelling = await open();
    expect(cancelling).toContain('administrator has asked to cancel it');
    expect(formOf(cancelling, '/cancel')).toBeUndefined();
    await server.world.advance(hour);
    const ended = await open();
    expect(ended).toContain('<span class="state warn">Cancelled</span>');
    expect(ended).toContain('Cancelled by administrator.');
    expect(ended).not.toContain('data-follow');
    expect(formOf(ended, '/resume')).toBeUndefined();
  });

  it('offers to cancel a release only until its plan is executed', async () => {
    await start();
    await startRelease();
    const first = await open();
    expect(formOf(first, '/cancel')).toBeDefined();
    expect(first).toMatch(/data-until="2271 /);
    await server.world.advance(60_000);
    const later = await open();
    expect(formOf(later, '/cancel')).toBeUndefined();
    expect(later).toContain('It cannot be cancelled: the plan of a release is being executed.');
  });
});

describe('after a job', () => {
  it('shows its success and when the version was installed', async () => {
    await start();
    await startRelease();
    await server.world.advance(hour);
    const page = await open();
    expect(page).toContain('<span class="state good">Succeeded</span>');
    expect(page).toMatch(/<progress max="48" value="48"/);
    expect(page).toMatch(/<strong>Product 11\.0<\/strong>[\s\S]*?<dt>Installed<\/dt>\s*<dd><time/);
    expect(page).toMatch(/<li data-code="2012">[\s\S]*?upgraded successfully/);
    expect(page).not.toContain('data-follow');
  });

  it('shows why it failed, offers to resume it, and nothing else until it is mended', async () => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    await startRelease();
    await server.world.advance(hour);
    const failed = await open();
    expect(failed).toContain('<span class="state bad">Failed</span>');
    expect(failed).toContain('the update of MAP_SERVER fails by SIMULATED_FAILURES.');
    expect(failed).not.toContain(`?version=${patch1}`);
    expect(failed).toContain(`?version=${eleven}`);
    expect(await send(failed, '/resume')).toBe(upgrades);
    expect(await open()).toContain('In progress');
    await server.world.advance(hour);
    expect(await open()).toContain('Succeeded');
  });

  it('goes back to an earlier patch in two steps', async () => {
    await start();
    await send(await open({ version: 'pat_28042022_1260' }), '/upgrade');
    await server.world.advance(hour);
    const page = await open();
    expect(page).toMatch(
      /<details class="grave">\s*<summary>Go back to 10\.9\.1\.1250 …<\/summary>[\s\S]*?<button class="grave">/,
    );
    expect(page).toMatch(/Puts back 5 containers/);
    expect(await send(page, '/rollback')).toBe(upgrades);
    expect(await open()).toContain('Rollback from 10.9.1.1260 to 10.9.1.1250');
    await server.world.advance(hour);
    expect(await open()).toMatch(/<strong>Product 10\.9\.1 Security Update/);
  });

  it.each(['/admin/system/jobs', `${upgrades}/history`])('lists it in %s, and leads to it', async (path) => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    const show = async (address: string) => (await server.get(address, { accept: 'text/html', cookie })).body;
    expect(await show(path)).toContain('There has been no job yet.');
    await startRelease();
    await server.world.advance(hour);
    const { jobId } = (await server.get(`${upgrades}?token=${token}`)).json<{ jobId: string }>();
    const list = await show(path);
    expect(list).toContain(`<a href="${path}/${jobId}">Upgrade from 10.9.1.1234 to 11.0.0.2632</a>`);
    expect(list).toContain('<span class="state bad">Failed</span>');
    const page = await show(`${path}/${jobId}`);
    expect(page).toContain('the update of MAP_SERVER fails by SIMULATED_FAILURES.');
    expect(await send(page, '/resume')).toBe(`/admin/system/jobs/${jobId}`);
    const running = await show(`/admin/system/jobs/${jobId}`);
    expect(running).toContain('In progress');
    expect(running).toMatch(new RegExp(`data-follow="${upgrades}\\?[^"]*jobId=${jobId}`));
  });

  it('shows the newest two hundred of sixty thousand messages', async () => {
    await start();
    await send(await open({ version: patch1 }), '/upgrade');
    await server.world.advance(hour);
    const { jobId } = (await server.get(`${upgrades}?token=${token}`)).json<{ jobId: string }>();
    const many = Array.from({ length: 60_000 }, (_, number) => ({
      code: 2038,
      message: `${number}`,
      when: 0,
    }));
    await server.store.update((transaction) => transaction.append(messages, jobId, many));
    const page = await open();
    expect(page.match(/<li data-code=/g)).toHaveLength(200);
    expect(page).toContain('<span>59999</span>');
    expect(page).toContain(`href="/admin/system/jobs/${jobId}?f=json"`);
    expect(page.length).toBeLessThan(60_000);
  });
});
