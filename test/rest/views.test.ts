// The forms and filters of users, the own account, uploads, the mode and the audit trail, in a browser without scripts.
import { describe, expect, it } from 'vitest';
import type { Role } from '../../src/lib/caller.ts';
import { perTest } from '../kit/cleanup.ts';
import { password, startServer } from '../kit/server.ts';
import { formOf, linkOf } from '../upgrades/page-kit.ts';

const server = perTest(startServer);

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

describe('what is for programs', () => {
  it.each([
    ['system', 'system/upgrades'],
    ['system/upgrades/installed', 'system/upgrades'],
    ['system/upgrades/currentVersion', 'system/upgrades'],
    ['system/upgrades/checkRollback', 'system/upgrades'],
    ['system/upgrades/manifestStatus', 'system/upgrades/available'],
    ['system/upgrades/history?num=5', 'system/jobs?num=5'],
    ['security', 'security/users'],
    ['services/Maps/Roads.MapServer/webhooks', 'services/webhooks'],
    // These have a form on another page, or would be refused.
    ['system/upgrades/upgrade', 'system/upgrades'],
    ['system/upgrades/plan', 'system/upgrades'],
    ['system/upgrades/getUpgradeSettings', 'system/upgrades'],
    ['system/upgrades/rollback', 'system/upgrades'],
    ['system/upgrades/config/update?windows=[]', 'system/upgrades/config?windows=%5B%5D'],
    ['services/webhooks/redeliver', 'services/webhooks'],
  ])('leads from the page %s to %s', async (path, to) => {
    const cookie = cookieOf('administrator');
    const { statusCode, headers } = await server.get(`/admin/${path}`, { accept: 'text/html', cookie });
    expect([statusCode, headers.location]).toEqual([303, `/admin/${to}`]);
  });

  it('stays JSON', async () => {
    const { statusCode } = await server.get('/admin/system/upgrades/installed', {
      cookie: cookieOf('administrator'),
    });
    expect(statusCode).toBe(200);
    expect((await server.get('/tokens', { accept: 'text/html' })).headers.location).toBe(
      '/tokens/generateToken',
    );
  });
});

describe('users', () => {
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

  it('are changed by a form that names no other user', async () => {
    const inputs = (page: string) => page.match(/<input[^>]*name="username"[^>]*>/g);
    const fixed = /User name: <strong>member<\/strong>/;
    const hidden = ['<input type="hidden" name="username" value="member" />'];
    const form = await show(
      linkOf(rowOf(await show('/admin/security/users'), '<strong>member</strong>'), 'Change'),
    );
    expect(form).toContain('<h1>Change member</h1>');
    expect(form).toMatch(fixed);
    expect(inputs(form)).toEqual(hidden);
    expect(formOf(form, '/update')?.fields).toMatchObject({ username: 'member', role: 'member' });

    const post = async (fields: Record<string, string>) => {
      const given = { ...formOf(form, '/update')?.fields, ...fields };
      const cookie = cookieOf('administrator');
      return (await server.post('/admin/security/users/update', given, { cookie })).body;
    };
    const refused = await post({ password: 'short' });
    expect(refused).toContain('<h1>Change member</h1>');
    expect(refused).toMatch(fixed);
    expect(inputs(refused)).toEqual(hidden);
    expect(await send(form, '/update', { role: 'publisher' })).toContain('User member was changed.');

    // A form without the name of a user asks for it.
    for (const page of [await show('/admin/security/users/update'), await post({ username: 'nobody' })]) {
      expect(page).toMatch(/<label for="username"\s*>User name/);
      expect(inputs(page)?.join()).toMatch(/^<input id="username"[^>]*>$/);
    }
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
  it('is turned on and off with the form of update', async () => {
    const off = await show('/admin/mode');
    expect(off).toContain('Changes are accepted');
    const on = await send(off, '/mode/update', { isReadOnly: 'true', message: 'Back at noon.' });
    expect(on).toContain('Read-only mode is on.');
    expect(formOf(await show('/admin/mode', 'member'), '/mode/update')).toBeUndefined();
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
  it('leaves what it accepts', async () => {
    await act('security/self/keys/create', { name: 'nightly' });
    await act('mode/update', { isReadOnly: 'true' });
    const question = await show(linkOf(await show('/admin/security/keys'), 'Delete …'));
    expect(question).toMatch(/<option value="[^"]*" selected>nightly of administrator<\/option>/);
    expect(await send(question, '/delete')).toContain('The key nightly was deleted.');
  });
});

describe('the audit trail', () => {
  it('finds an operation by its title', async () => {
    await act('services/webhooks/settings', { numberOfFailures: '7' });
    const found = await show('/admin/system/audit?q=webhook+settings');
    const row = rowOf(found, 'updated the webhook settings');
    expect(row).toMatch(/<strong title="numberOfFailures">[^<]+<\/strong>: 5 → 7/);
    expect(row).toContain('<a href="/admin/services/webhooks/settings">updated the webhook settings</a>');
    const settings = await show('/admin/services/webhooks/settings');
    expect(settings).toMatch(/Last changed by administrator, <time [^>]*>[-\d]{10} [:\d]{8} UTC<\/time>/);
  });
});
