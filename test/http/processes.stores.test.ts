// Two servers share one store, like two processes: each finds the changes of the other.
import { expect, it } from 'vitest';
import { entriesOf } from '../audit/kit.ts';
import { perTest } from '../kit/cleanup.ts';
import { type Server, password, startServer } from '../kit/server.ts';

const one = perTest(startServer);
const other = perTest(async () => startServer({ store: await one.store.reopen() }));

it('both servers accept a token as soon as one has issued it', async () => {
  const answers: string[] = [];
  for (let n = 0; n < 10; n += 1) {
    const [from, to] = n % 2 === 0 ? [one, other] : [other, one];
    const signedIn = await from.post('/tokens/generateToken', { username: 'member', password });
    const { token } = signedIn.json<{ token: string }>();
    const read = await to.get(`/admin/mode?token=${token}`);
    const posted = await to.post('/admin/mode', {}, { authorization: `Bearer ${token}` });
    const listed = await to.soap('<GetFolders xmlns="http://www.example.com/schemas/Product/10.0"/>', {
      authorization: `Bearer ${token}`,
    });
    answers.push(`${signedIn.statusCode} ${read.statusCode} ${posted.statusCode} ${listed.statusCode}`);
  }
  expect(new Set(answers)).toEqual(new Set(['200 200 200 200']));
});

it('both servers sign users in at the same moment', async () => {
  const signIns = Array.from({ length: 12 }, (_, n) =>
    (n % 2 === 0 ? one : other).post('/tokens/generateToken', { username: 'member', password }),
  );
  expect((await Promise.all(signIns)).map(({ statusCode }) => statusCode)).toEqual(signIns.map(() => 200));
  const entries = await entriesOf(one);
  expect(entries.filter(({ operation }) => operation === 'tokens/generateToken')).toHaveLength(12);
});

it('both servers accept the token of a new user, and of a new password, as soon as one has issued it', async () => {
  const authorization = `Bearer ${one.token('administrator')}`;
  const users = '/admin/security/users';
  for (let n = 0; n < 2; n += 1) {
    const statusFor = async (secret: string) => {
      const fields = { username: `user-${n}`, password: secret };
      const { token } = (await one.post('/tokens/generateToken', fields)).json<{ token: string }>();
      return (await other.get(`/admin/mode?token=${token}`)).statusCode;
    };
    const added = { username: `user-${n}`, password: 'a first password', role: 'member' };
    await one.post(`${users}/add`, added, { authorization });
    expect(await statusFor('a first password')).toBe(200);
    const changed = { username: `user-${n}`, password: 'another password' };
    await one.post(`${users}/update`, changed, { authorization });
    expect(await statusFor('another password')).toBe(200);
  }
});

it('both servers find a service as soon as one has created it', async () => {
  const authorization = `Bearer ${one.token('administrator')}`;
  for (let n = 0; n < 10; n += 1) {
    const fields = { folderName: 'Maps', serviceName: `S${n}`, type: 'MapServer' };
    await one.post('/admin/services/createService', fields, { authorization });
    const found = await other.get(`/admin/services/Maps/S${n}.MapServer`, { authorization });
    expect(found.statusCode).toBe(200);
  }
});

it('each server accepts the form of the other, and refuses one that a change has outdated', async () => {
  const cookie = `steward_session=${one.token('administrator')}`;
  const windows = [{ days: ['sat'], from: '01:00', to: '05:00', timeZone: 'UTC' }];
  for (const [path, action, fields] of [
    ['/admin/services/webhooks/settings', '', { numberOfFailures: '81' }],
    ['/admin/system/upgrades/config', '/update', { windows: JSON.stringify(windows) }],
  ] as const) {
    const open = async (server: Server) => {
      const { body } = await server.get(path, { accept: 'text/html', cookie });
      return { token: one.token('administrator'), version: /"version" value="(\d+)"/.exec(body)?.[1] ?? '' };
    };
    const save = async (server: Server, form: Record<string, string>) =>
      (await server.post(path + action, { ...form, ...fields })).statusCode;
    const outdated = await open(other);
    expect(await save(other, await open(one))).toBe(200);
    expect(await save(one, outdated)).toBe(409);
    expect(await save(one, await open(other))).toBe(200);
  }
});

it('a server can revoke a token that the other has just issued', async () => {
  const signedIn = await one.post('/tokens/generateToken', { username: 'member', password });
  const { token } = signedIn.json<{ token: string }>();
  await other.post('/tokens/revokeToken', { token });
  await expect.poll(async () => (await one.get(`/admin/mode?token=${token}`)).statusCode).toBe(401);
});
