// The pages of users, the own account, uploads, the mode, versions and the audit trail, in a browser without scripts.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Role } from '../../src/lib/caller.ts';
import { type Server, password, startServer } from '../kit/server.ts';
import { formOf, linkOf, plain } from '../upgrades/page-kit.ts';

let server: Server;
beforeEach(async () => {
  server = await startServer();
});
afterEach(() => server.close());

const cookieOf = (role: Role) => `steward_session=${server.token(role)}`;

async function show(path: string, role: Role = 'administrator'): Promise<string> {
  const page = await server.get(path, { accept: 'text/html', cookie: cookieOf(role) });
  expect(page.statusCode, path).toBe(200);
  return page.body;
}

const act = (path: string, fields: Record<string, string> = {}) =>
  server.post(`/admin/${path}`, { token: server.token('administrator'), ...fields });

/** Sends a form of a page, and returns the page that it redirects to, with its notice. */
async function send(page: string, actionEnd: string, more: Record<string, string> = {}): Promise<string> {
  const form = formOf(page, actionEnd);
  if (!form) throw new Error(`There is no form for ${actionEnd}.`);
  const cookie = cookieOf('administrator');
  const answer = await server.post(form.action, { ...form.fields, ...more }, { cookie });
  expect(answer.statusCode, answer.body).toBe(303);
  const [notice = ''] = String(answer.headers['set-cookie']).split(';');
  const headers = { accept: 'text/html', cookie: `${cookie}; ${notice}` };
  return (await server.get(answer.headers.location ?? '', headers)).body;
}

const rowOf = (page: string, text: string) =>
  (page.match(/<tr role="row">[\s\S]*?<\/tr>/g) ?? []).find((row) => row.includes(text)) ?? '';

describe('users', () => {
  it('are listed with their role and its meaning, and links and buttons for each', async () => {
    await act('security/users/add', { username: 'mia', password, role: 'publisher' });
    const page = await show('/admin/security/users');
    expect(page).toContain('href="/admin/security/users/add?next=%2Fadmin%2Fsecurity%2Fusers"');
    const mia = rowOf(page, '<strong>mia</strong>');
    expect(mia).toContain('<span class="chip">publisher</span>');
    expect(mia).toContain('never');
    expect(mia).toContain('just now');
    expect(plain(mia)).toContain('update?username=mia&role=publisher&next=%2Fadmin%2Fsecurity%2Fusers"');
    expect(page).toContain('creates, changes and deletes services');
    expect(rowOf(page, '<strong>administrator</strong>')).toContain('you');
  });

  it('are found by name and role, in the order of a reader', async () => {
    for (const number of [10, 2])
      await act('security/users/add', { username: `user${number}`, password, role: 'member' });
    const names = async (query: string) =>
      [
        ...(await show(`/admin/security/users?${query}`)).matchAll(/scope="row">\s*<strong>(.*?)<\/strong>/g),
      ].map(([, name]) => name);
    expect(await names('q=USER')).toEqual(['user2', 'user10']);
    expect(await names('q=user&order=desc')).toEqual(['user10', 'user2']);
    expect(await names('role=administrator')).toEqual(['administrator']);
    expect(await names('sort=added&role=member&q=user')).toHaveLength(2);
    const none = await show('/admin/security/users?q=nobody&role=member');
    expect(none).toContain('No user matches.');
    expect(none).toContain('<a href="/admin/security/users">Remove the filters</a>');
    const page = await show('/admin/security/users?q=user2');
    expect(page).toContain('name="next" value="/admin/security/users?q=user2"');
  });

  it('ask before the own sessions end', async () => {
    const page = await show('/admin/security/users');
    const own = rowOf(page, '<strong>administrator</strong>');
    expect(formOf(own, '/endSessions')).toBeUndefined();
    expect(own).toContain('href="/admin/security/users/endSessions?username=administrator"');
    expect(await show('/admin/security/users/endSessions?username=administrator')).toMatch(
      /name="username"[^>]*value="administrator"/,
    );
    expect(formOf(rowOf(page, '<strong>member</strong>'), '/endSessions')).toBeDefined();
  });

  it('are removed in two steps', async () => {
    await act('security/users/add', { username: 'mia', password, role: 'member' });
    const row = rowOf(await show('/admin/security/users'), '<strong>mia</strong>');
    expect(formOf(row, '/remove')).toBeUndefined();
    const question = await show(linkOf(row, 'Remove …'));
    expect(question).toContain('Removes a user, and ends all tokens and keys of the user.');
    const after = await send(question, '/remove');
    expect(after).toContain('User mia was removed.');
    expect(rowOf(after, '<strong>mia</strong>')).toBe('');
  });

  it('keep their role in the form that changes them', async () => {
    const page = await show('/admin/security/users/update?username=member&role=member');
    expect(page).toMatch(/<label for="username"\s*>User name(?! <code>)/);
    // Programs find the names in the API panel.
    const [, panel = ''] = page.split('<aside id="api"');
    expect(panel).toMatch(/Fields of the form.*username.*User name/s);
    expect(page).toMatch(/name="username"[^>]*value="member"/);
  });
});

describe('the own account', () => {
  it('shows the sessions with the present one marked, and ends another one', async () => {
    const signIn = { username: 'administrator', password };
    await server.post('/tokens/generateToken', signIn);
    const page = await show('/admin/security/self');
    expect(page.match(/this session/g)).toHaveLength(1);
    expect(page).toContain('href="/admin/security/self/changePassword?next=%2Fadmin%2Fsecurity%2Fself"');
    const after = await send(page, '/endSession');
    expect(after).toContain('The session has ended.');
    expect(formOf(after, '/endSession')).toBeUndefined();
    expect(await show('/admin/security/self', 'member')).toContain('<span class="chip">member</span>');
  });
});

describe('uploads', () => {
  it('are listed by name, and deleted in two steps', async () => {
    const empty = await show('/admin/uploads');
    expect(empty).toContain('No file is uploaded.');
    expect(empty).toMatch(/<a href="\/admin\/uploads\/upload\?next=[^"]*">Upload the first file<\/a>/);
    const file = { itemFile: { name: 'a <b>.json', content: 'x'.repeat(3000) }, description: 'Of May' };
    const added = await server.postParts('/admin/uploads/upload', file, server.token('administrator'));
    const { itemID } = added.json<{ item: { itemID: string } }>().item;
    const page = await show('/admin/uploads');
    const row = rowOf(page, 'a &lt;b&gt;.json');
    expect(row).toContain(`href="/admin/uploads/${itemID}"`);
    expect(row).toContain('Of May');
    expect(row).toContain('2.9 KiB');
    expect(await show(`/admin/uploads/${itemID}`)).toContain('<h1>a &lt;b&gt;.json</h1>');
    expect(formOf(row, '/delete')).toBeUndefined();
    const question = await show(linkOf(row, 'Delete …'));
    expect(question).toContain('Settings that name the file must name another one.');
    expect(await send(question, '/delete')).toContain('a &lt;b&gt;.json was deleted.');
  });

  it('are found by name and description, and sorted', async () => {
    for (const [name, content] of [
      ['part10', 'x'],
      ['part2', 'xxx'],
      ['other', 'xx'],
    ] as const)
      await server.postParts(
        '/admin/uploads/upload',
        { itemFile: { name, content }, description: name === 'other' ? 'A Part' : '' },
        server.token('administrator'),
      );
    const names = async (query: string) =>
      [...(await show(`/admin/uploads?${query}`)).matchAll(/scope="row">\s*<a [^>]*><bdi>(.*?)<\/bdi>/g)].map(
        ([, name]) => name,
      );
    expect(await names('')).toEqual(['other', 'part2', 'part10']);
    expect(await names('sort=name')).toEqual(['other', 'part2', 'part10']);
    expect(await names('sort=size')).toEqual(['part2', 'other', 'part10']);
    expect(await names('q=PART&sort=name&order=desc')).toEqual(['part10', 'part2', 'other']);
    expect(await names('q=part2')).toEqual(['part2']);
    expect(await show('/admin/uploads?q=nothing')).toContain('No file matches.');
  });
});

describe('the mode', () => {
  it('is turned on and off with the form of update, and shows who has set it and when', async () => {
    const off = await show('/admin/mode');
    expect(off).toContain('Changes are accepted');
    const on = await send(off, '/mode/update', { isReadOnly: 'true', message: 'Back at noon.' });
    expect(on).toContain('Read-only mode is on.');
    expect(on).toMatch(/Turned on by administrator <time[^>]*>just now<\/time\s*>/);
    expect(on).toContain('Message for users: Back at noon.');
    expect(formOf(await show('/admin/mode', 'member'), '/mode/update')).toBeUndefined();
    expect(on).toMatch(/<option value="true" selected>on<\/option>/);
    const again = await send(on, '/mode/update');
    expect(again).toContain('Read-only mode is off.');
    expect((await server.get('/admin/mode', { cookie: cookieOf('member') })).json()).toEqual({
      isReadOnly: false,
      reason: null,
      message: '',
    });
  });
});

describe('read-only mode', () => {
  const listed = [
    ['security/users', ['Add user', 'Change', 'Remove …']],
    ['uploads', ['Upload a file', 'Delete …']],
    ['system/upgrades/available', ['Import a manifest']],
    [
      'services/Maps/Roads.MapServer',
      ['Edit service', 'Delete service …', 'Create a webhook for this service'],
    ],
    ['services/webhooks', ['Create webhook', 'Ping', 'Edit', 'Deactivate …']],
    ['security/self', ['Change password', 'Create key']],
  ] as const;

  it.each(listed)('disables what it refuses on the page %s', async (path, labels) => {
    await server.postParts(
      '/admin/uploads/upload',
      { itemFile: { name: 'a', content: 'x' } },
      server.token('administrator'),
    );
    await act('services/webhooks/create', {
      name: 'Hook',
      hookUrl: 'https://receiver.example/',
      changeTypes: '*',
    });
    const disabled = (page: string) =>
      [
        ...page.matchAll(
          /<button[^>]* disabled title="Not possible while the system is read-only."\s*>([^<]*)</g,
        ),
      ].map(([, label]) => label);
    expect(disabled(await show(`/admin/${path}`))).toEqual([]);
    await act('mode/update', { isReadOnly: 'true' });
    const [page = ''] = (await show(`/admin/${path}`)).split('<aside id="api"');
    expect([...new Set(disabled(page))]).toEqual(labels);
    for (const label of labels) expect(page).not.toMatch(new RegExp(`<a [^>]*>${label}</a>`));
  });

  it('leaves what it accepts', async () => {
    await act('security/self/keys/create', { name: 'nightly' });
    await act('mode/update', { isReadOnly: 'true' });
    const question = await show(linkOf(await show('/admin/security/keys'), 'Delete …'));
    expect(question).toMatch(/<option value="[^"]*" selected>nightly of administrator<\/option>/);
    expect(await send(question, '/delete')).toContain('The key nightly was deleted.');
  });
});

describe('versions', () => {
  it('are tables and lists with links to the upgrade', async () => {
    const available = await show('/admin/system/upgrades/available');
    expect(available).toContain(
      'href="/admin/system/upgrades/plan?versionManifest=%7B%22id%22%3A%22rel_14072022_2632%22%7D"',
    );
    expect(await show('/admin/system/upgrades/installed')).toMatch(/Product 10\.9\.1<\/th>/);
  });
});

describe('services', () => {
  it('are created from the page of a folder, with the folder filled in and known types offered', async () => {
    const folder = await show('/admin/services/Maps', 'publisher');
    const href = /href="([^"]*createService[^"]*)"/.exec(folder)?.[1] ?? '';
    const form = await show(href, 'publisher');
    expect(form).toMatch(/name="folderName"[^>]*list="folderName-list"[^>]*value="Maps"/);
    expect(form).toContain('<option value="GeocodeServer"></option>');
    expect(form).toMatch(/<details class="further" >\s*<summary>More fields/);
    expect(await show('/admin/services/Maps', 'member')).not.toContain('createService');
    const result = await server.post('/admin/services/createService', {
      f: 'html',
      token: server.token('publisher'),
      folderName: 'Maps',
      serviceName: 'New',
      type: 'MapServer',
    });
    expect(result.headers.location).toBe('/admin/services/Maps/New.MapServer');
    const [notice = ''] = String(result.headers['set-cookie']).replace('steward_notice=', '').split(';');
    expect(Buffer.from(notice, 'base64url').toString()).toContain(
      'The service Maps/New.MapServer was created.',
    );
  });
});

describe('the audit trail', () => {
  it('shows who has done what, with filters that the export and the pages keep', async () => {
    await act('security/users/add', { username: 'mia', password, role: 'member' });
    await act('services/createFolder', { folderName: 'a.b' });
    await act('services/createFolder', { folderName: 'New' });
    const all = await show('/admin/system/audit');
    const row = rowOf(all, 'security/users/add');
    expect(row).toContain('security/users/mia');
    expect(row).toContain('<span class="state good">success</span>');
    expect(row).toContain('href="/admin/system/audit?user=administrator"');
    expect(rowOf(all, 'refused')).toContain('services/createFolder');
    const filtered = await show('/admin/system/audit?operation=createFolder&outcome=success&num=1');
    expect(filtered).toContain('<p class="total">1 entry</p>');
    expect(filtered).not.toContain('security/users/add');
    expect(plain(filtered)).toContain('/admin/system/audit?operation=createFolder&outcome=success&f=csv"');
    expect(filtered).toMatch(/name="operation"[^>]*value="createFolder"/);
    // A filter that the form has no field for can be removed.
    expect(plain(filtered)).toContain(
      'href="/admin/system/audit?outcome=success" aria-current="true">operation: createFolder ×</a>',
    );
    expect(filtered).toContain('<option value="success" selected>success</option>');
    const paged = await show('/admin/system/audit?user=administrator&num=1');
    expect(plain(paged)).toContain('?user=administrator&start=1&num=1');
  });

  it('finds an operation by its title, and says if nothing matches', async () => {
    await act('services/webhooks/settings', { numberOfFailures: '7' });
    const found = await show('/admin/system/audit?q=webhook+settings');
    expect(rowOf(found, 'Update webhook settings')).toContain('numberOfFailures');
    expect(found).toContain('name="q" type="search" maxlength="128" value="webhook settings"');
    const none = await show('/admin/system/audit?q=nothing+like+this');
    expect(none).toContain('No entry matches.');
    expect(none).toContain('<a href="/admin/system/audit">Remove the filters</a>');
    const settings = await show('/admin/services/webhooks/settings');
    expect(settings).toMatch(/Last changed by administrator, <time [^>]*>[-\d]{10} [:\d]{8} UTC<\/time>/);
  });

  it('names the targets and offers days', async () => {
    await act('services/webhooks/create', {
      name: 'Billing receiver',
      hookUrl: 'https://receiver.test/',
      changeTypes: '*',
    });
    const page = await show('/admin/system/audit?q=BILLING&outcome=success');
    expect(rowOf(page, 'Billing receiver')).toMatch(
      /<span class="hint" title="[^"]+">services\/webhooks\/[^<]+<\/span>/,
    );
    expect(plain(page)).toMatch(
      /\?q=BILLING&outcome=success&fromDate=([-\d]{10})&toDate=([-\d]{10})">Yesterday<\/a>/,
    );
  });
});
