// Keys of programs: what creates and lists them, what they may do, and their pages.
import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { keys } from '../../src/auth/key.ts';
import { entriesOf } from '../audit/kit.ts';
import { password } from '../kit/server.ts';
import { formOf } from '../upgrades/page-kit.ts';
import { type Failure } from './tokens-kit.ts';
import {
  own,
  all,
  dayMs,
  server,
  bearer,
  as,
  create,
  createKey,
  list,
  statusOf,
  detailsOf,
  changeUser,
  useKeys,
} from './keys-kit.ts';

useKeys();

describe('a new key', () => {
  it('is 256 random bits behind a prefix, and is listed without them', async () => {
    const at = server.runtime.now();
    const created = await createKey('nightly', 'publisher', { role: 'member', expires: '30' });
    expect(created).toEqual({
      status: 'success',
      key: expect.stringMatching(/^stw_[\w-]{43}$/) as string,
      id: expect.any(String) as string,
    });
    expect(await list('publisher')).toEqual([
      {
        id: created.id,
        name: 'nightly',
        role: 'member',
        createdAt: at,
        expires: at + 30 * dayMs,
        lastUsedAt: null,
        lastAddress: null,
      },
    ]);
    expect(await list('administrator', all)).toMatchObject([{ id: created.id, username: 'publisher' }]);
    expect(await list('administrator')).toEqual([]);
  });

  it('has the role of its user and never expires unless told otherwise', async () => {
    await createKey('nightly', 'publisher');
    expect(await list('publisher')).toMatchObject([{ role: 'publisher', expires: null }]);
    await createKey('blank', 'publisher', { role: '', expires: ' ' });
    expect((await list('publisher'))[0]).toMatchObject({ role: 'publisher', expires: null });
  });

  it.each([
    [{}, ['name: is required.']],
    [{ name: '   ' }, ['name: is required.']],
    [{ name: 'x'.repeat(129) }, ['name: must be at most 128 characters.']],
    [{ name: 'a\u0007b' }, ['name: must not contain control characters.']],
    [{ name: 'a\tb' }, ['name: must not contain control characters.']],
    [{ name: 'a\u009fb' }, ['name: must not contain control characters.']],
    [{ name: 'a\nb' }, ['name: must be one line.']],
    [{ name: 'n', role: 'king' }, ['role: must be one of member, publisher, administrator.']],
    [{ name: 'n', role: 'administrator' }, ['role: must not be above your own role, publisher.']],
    [{ name: 'n', expires: '0' }, ['expires: must be an integer from 1 to 3650.']],
    [{ name: 'n', expires: '3651' }, ['expires: must be an integer from 1 to 3650.']],
    [{ name: 'n', expires: '1.5' }, ['expires: must be an integer from 1 to 3650.']],
    [
      { role: 'administrator', expires: '-1' },
      [
        'name: is required.',
        'expires: must be an integer from 1 to 3650.',
        'role: must not be above your own role, publisher.',
      ],
    ],
  ])('is refused with %j', async (fields, details) => {
    const response = await create(fields, 'publisher');
    expect([response.statusCode, detailsOf(response)]).toEqual([400, details]);
    expect([...server.store.all(keys)]).toEqual([]);
  });

  it.each([
    '<script>alert(1)</script>',
    '__proto__',
    '"; drop table state; --',
    '‮gnitseted😀',
    'x'.repeat(128),
  ])('may be named %s', async (name) => {
    const { key } = await createKey(name);
    expect(await list()).toMatchObject([{ name }]);
    expect(await statusOf(key)).toBe(200);
    const pages = [own, all, '/admin/security/self', '/admin/system/audit'];
    for (const path of pages) {
      const { body } = await server.get(`${path}?f=html`, {
        cookie: `steward_session=${server.token('administrator')}`,
      });
      expect(body).not.toContain('<script>alert');
      expect(body).not.toContain(key);
    }
  });

  it('has a name that no other key of the user has, ignoring case', async () => {
    await createKey('Nightly');
    const response = await create({ name: ' nightly ' });
    expect([response.statusCode, response.json<Failure>().error.message]).toEqual([
      409,
      'You have a key named Nightly already.',
    ]);
    await createKey('nightly', 'publisher');
  });

  it('is one of 50 at most', async () => {
    for (let number = 1; number <= 49; number += 1) await createKey(`key ${number}`);
    const responses = await Promise.all(['one', 'other'].map((name) => create({ name })));
    expect(responses.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409]);
    expect((await create({ name: 'more' })).json<Failure>().error.message).toBe(
      'You have 50 keys already. Delete one first.',
    );
    await createKey('more', 'publisher');
    const [newest] = await list();
    await server.post(`${own}/delete`, { id: newest?.id ?? '' }, as('administrator'));
    await createKey('more');
  });
});

describe('a key in a request', () => {
  it('is accepted as a bearer token and as a field, by REST and SOAP', async () => {
    const { key } = await createKey('nightly');
    expect(await statusOf(key, '/admin/security/users')).toBe(200);
    expect((await server.get(`/admin/security/users?token=${key}`)).statusCode).toBe(200);
    expect((await server.post('/admin/mode/update', { token: key, isReadOnly: 'false' })).statusCode).toBe(
      200,
    );
    expect((await server.get('/rest/services', bearer(key))).statusCode).toBe(200);
    const folders = '<GetFolders xmlns="http://www.example.com/schemas/Product/10.0"/>';
    expect((await server.soap(folders, bearer(key))).statusCode).toBe(200);
    expect((await server.soap(folders, {}, `?token=${key}`)).statusCode).toBe(200);
    expect((await server.soap(folders, bearer(`${key.slice(0, -2)}__`))).statusCode).not.toBe(200);
  });

  it('is never accepted as a cookie', async () => {
    const { key } = await createKey('nightly');
    const cookie = `steward_session=${key}`;
    expect((await server.get('/admin', { cookie })).json<Failure>().error.code).toBe(498);
    const token = `form_${createHmac('sha256', key).update('form').digest('base64url')}`;
    const response = await server.post('/admin/mode/update', { token, isReadOnly: 'true' }, { cookie });
    expect(response.json<Failure>().error.code).toBe(498);
  });

  it('acts with its own role, and says so', async () => {
    const { key } = await createKey('nightly', 'administrator', { role: 'publisher' });
    expect(await statusOf(key, '/admin/security/users')).toBe(403);
    expect(
      (await server.post('/admin/services/createFolder', { folderName: 'A', token: key })).statusCode,
    ).toBe(200);
    const self = await server.get('/tokens/community/self', bearer(key));
    expect(self.json()).toMatchObject({ username: 'administrator', role: 'publisher' });
    expect((await server.get('/admin/security/self', bearer(key))).json()).toMatchObject({
      role: 'publisher',
    });
  });

  it('acts with the lower of its role and the present role of its user', async () => {
    await changeUser('update', { username: 'publisher', role: 'administrator' });
    const { key } = await createKey('nightly', 'publisher');
    expect(await statusOf(key, '/admin/security/users')).toBe(200);
    await changeUser('update', { username: 'publisher', role: 'member' });
    expect(await statusOf(key, '/admin/security/users')).toBe(403);
    expect(await statusOf(key)).toBe(200);
    expect(await list('publisher')).toMatchObject([{ role: 'administrator' }]);
    const { key: ofMember } = await createKey('weekly', 'publisher');
    await changeUser('update', { username: 'publisher', role: 'administrator' });
    expect(await statusOf(ofMember, '/admin/security/users')).toBe(403);
  });

  it('may not change the account of its user, whatever the fields are', async () => {
    const { key } = await createKey('nightly');
    for (const given of [{ password, newPassword: 'another password' }, {}]) {
      const response = await server.post('/admin/security/self/changePassword', given, bearer(key));
      expect([response.statusCode, response.json<Failure>().error.message]).toEqual([
        403,
        'A key may not do this. Sign in instead.',
      ]);
    }
    expect((await entriesOf(server))[0]).toMatchObject({
      user: 'administrator',
      key: 'nightly',
      outcome: 'refused',
      code: 403,
      count: 2,
    });
  });

  it('sees no sessions of its user, whom it may not administer under any spelling', async () => {
    const { key } = await createKey('nightly');
    const self = await server.get('/admin/security/self', bearer(key));
    expect(self.json()).toMatchObject({ username: 'administrator', sessions: [] });
    const fields = { username: 'ADMINISTRATOR', password: 'another password' };
    const response = await server.post('/admin/security/users/update', fields, bearer(key));
    expect(response.statusCode).toBe(403);
    expect(await statusOf(server.token('administrator'))).toBe(200);
  });

  it('may administer other users', async () => {
    const { key } = await createKey('nightly');
    const user = { username: 'member' };
    for (const [operation, fields] of [
      ['update', { ...user, password: 'another password' }],
      ['endSessions', user],
      ['remove', user],
    ] as const)
      expect((await server.post(`/admin/security/users/${operation}`, fields, bearer(key))).statusCode).toBe(
        200,
      );
  });

  it('has refusals of its own in the audit trail', async () => {
    const [one, other] = [await createKey('one', 'member'), await createKey('other', 'member')];
    for (const token of [one.key, other.key, one.key, server.token('member')])
      await server.post('/admin/services/createFolder', { folderName: 'A' }, bearer(token));
    const refused = (await entriesOf(server)).filter(({ outcome }) => outcome === 'refused');
    expect(refused.map(({ key, count }) => [key, count])).toEqual([
      [null, 1],
      ['other', 1],
      ['one', 2],
    ]);
  });
});

describe('a key ends', () => {
  it('when its user deletes it', async () => {
    const { key, id } = await createKey('nightly', 'member');
    expect((await server.post(`${own}/delete`, { id }, as('member'))).json()).toEqual({ status: 'success' });
    expect(await statusOf(key)).toBe(401);
    const again = await server.post(`${own}/delete`, { id }, as('member'));
    expect([again.statusCode, detailsOf(again)]).toEqual([400, ['id: there is no such key.']]);
  });

  it('when an administrator deletes it', async () => {
    const { key, id } = await createKey('nightly', 'member');
    expect((await server.post(`${all}/delete`, { id }, as('publisher'))).statusCode).toBe(403);
    expect((await server.post(`${own}/delete`, { id }, as('administrator'))).statusCode).toBe(400);
    expect(await statusOf(key)).toBe(200);
    expect((await server.post(`${all}/delete`, { id }, as('administrator'))).statusCode).toBe(200);
    expect(await statusOf(key)).toBe(401);
    expect((await entriesOf(server))[0]).toMatchObject({
      operation: 'security/keys/delete',
      target: `security/keys/${id}`,
      changes: [{ field: 'name', before: 'nightly', after: null }, {}, {}],
    });
  });

  it('not by another key of its user, which may delete those of others', async () => {
    const other = await createKey('other', 'administrator');
    const [own, foreign] = [
      await createKey('nightly', 'administrator'),
      await createKey('nightly', 'member'),
    ];
    const statusOfDeletion = async ({ id }: { id: string }) =>
      (await server.post(`${all}/delete`, { id }, bearer(other.key))).statusCode;
    expect([await statusOfDeletion(own), await statusOfDeletion(foreign)]).toEqual([403, 200]);
    expect([await statusOf(own.key), await statusOf(foreign.key)]).toEqual([200, 401]);
  });

  it('not with a new password, with the end of sessions, or by revokeToken', async () => {
    const { key } = await createKey('nightly', 'member');
    const newPassword = 'another password';
    await server.post('/admin/security/self/changePassword', { password, newPassword }, as('member'));
    expect(await statusOf(key)).toBe(200);
    await changeUser('update', { username: 'member', password });
    expect(await statusOf(key)).toBe(200);
    await changeUser('endSessions', { username: 'member' });
    expect(await statusOf(key)).toBe(200);
    expect((await server.post('/tokens/revokeToken', { token: key })).statusCode).toBe(200);
    expect(await statusOf(key)).toBe(200);
  });
});

it('a process that is behind its database accepts no token, key or session, and answers everybody else', async () => {
  const { key } = await createKey('nightly');
  const session = { cookie: `steward_session=${server.token('member')}` };
  const answersTo = async (headers: Record<string, string>) =>
    Promise.all(
      ['/admin', '/rest/services', '/tokens/generateToken?f=html', '/health'].map(
        async (path) => (await server.get(path, headers)).statusCode,
      ),
    );
  server.store.isBehind = () => true;
  expect(await answersTo({})).toEqual([401, 200, 200, 200]);
  for (const credentials of [bearer(key), as('member')])
    expect(await answersTo(credentials)).toEqual([503, 503, 200, 200]);
  expect(await answersTo(session)).toEqual([503, 200, 200, 200]);
  const refused = await server.get('/admin', bearer(key));
  expect([refused.headers['retry-after'], refused.json<Failure>().error.message]).toEqual([
    '5',
    'The database cannot be reached.',
  ]);
  server.store.isBehind = () => false;
  expect(await answersTo(bearer(key))).toEqual([200, 200, 200, 200]);
});

describe('pages', () => {
  const session = () => ({ cookie: `steward_session=${server.token('administrator')}` });
  const page = async (path: string) => (await server.get(`${path}?f=html`, session())).body;

  it('show a new key once, also if the form leads on', async () => {
    const form = await page(`${own}/create`);
    const token = /name="token" value="([^"]+)"/.exec(form)?.[1] ?? '';
    const fields = { f: 'html', token, name: 'nightly', next: '/admin/security/self' };
    const answer = await server.post(`${own}/create`, fields, session());
    expect(answer.statusCode).toBe(200);
    const [key = ''] = /stw_[\w-]{43}/.exec(answer.body) ?? [];
    expect(await statusOf(key)).toBe(200);
    expect(answer.body).toContain('The key nightly was created.');
    for (const path of ['/admin/security/self', own, all]) {
      const body = await page(path);
      expect(body).toContain('nightly');
      expect(body).not.toContain('stw_');
    }
  });

  it('propose 90 days for a new key, and keep the choice of never', async () => {
    const form = await page(`${own}/create`);
    // The form of a refused key keeps the choice of never.
    const refused = await server.post(
      `${own}/create`,
      { ...formOf(form, '/create')?.fields, expires: '' },
      session(),
    );
    expect(refused.statusCode).toBe(400);
    expect(formOf(refused.body, '/create')?.fields.expires).toBe('');
    const send = (fields: Record<string, string>) =>
      server.post(
        `${own}/create`,
        { ...formOf(form, '/create')?.fields, role: 'member', ...fields },
        session(),
      );
    const at = server.runtime.now();
    await send({ name: 'nightly' });
    await server.runtime.advance(1000);
    await send({ name: 'endless', expires: '' });
    expect(await list('administrator')).toMatchObject([
      { name: 'endless', role: 'member', expires: null },
      { name: 'nightly', role: 'member', expires: at + 90 * 86_400_000 },
    ]);
  });
});
