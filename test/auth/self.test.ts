// The own account: what it shows, the own password, and the end of sessions, also in other processes.
import { describe, expect, it } from 'vitest';
import { entriesOf } from '../audit/kit.ts';
import { perTest } from '../kit/cleanup.ts';
import { password, startServer } from '../kit/server.ts';
import { type Failure, tokensOf } from './tokens-kit.ts';

const path = '/admin/security/self';
const newPassword = 'battery staple';

const server = perTest(startServer);
/** Another process on the same data. */
const other = perTest(async () => startServer({ store: await server.store.reopen() }));

type Session = { id: string; createdAt: number; lastUsedAt: number; current: boolean };
type Self = {
  username: string;
  role: string;
  createdAt: number;
  lastSignIn: number | null;
  sessions: Session[];
};

const signIn = async (username = 'member', given = password) =>
  (await tokensOf(() => server).signIn({ username, password: given })).token;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const read = async (token: string, on = server) => (await on.get(path, bearer(token))).json<Self>();
const statusOf = async (token: string, on = server) => (await on.get('/admin', bearer(token))).statusCode;
const act = (operation: string, token: string, fields: Record<string, string>) =>
  server.post(`${path}/${operation}`, fields, bearer(token));
const change = (token: string, fields: Record<string, string> = {}) =>
  act('changePassword', token, { password, newPassword, ...fields });
const detailsOf = (response: Awaited<ReturnType<typeof change>>) => response.json<Failure>().error.details;

/** Other processes read the end of a token within half a second. */
const expectEndedElsewhere = (token: string) => expect.poll(() => statusOf(token, other)).toBe(401);

describe('the own account', () => {
  it('shows the user and the sessions, newest first', async () => {
    const at = server.runtime.now();
    const first = await signIn();
    await server.runtime.advance(1000);
    const second = await signIn();
    const { sessions, ...user } = await read(first);
    expect(user).toEqual({
      username: 'member',
      role: 'member',
      source: 'local',
      createdAt: at,
      lastSignIn: at + 1000,
    });
    const session = (createdAt: number, current: boolean) => ({
      id: expect.any(String) as string,
      createdAt,
      expires: createdAt + 7_200_000,
      address: '127.0.0.1',
      userAgent: 'lightMyRequest',
      lastUsedAt: createdAt,
      current,
    });
    expect(sessions.slice(0, 2)).toEqual([session(at + 1000, false), session(at, true)]);
    expect((await read(second)).sessions.map(({ current }) => current).slice(0, 2)).toEqual([true, false]);
    expect(JSON.stringify(sessions)).not.toContain(first);
  });

  it('says when each session was used last, exact to a minute', async () => {
    const [used, unused] = [await signIn(), await signIn()];
    const at = server.runtime.now();
    const lastUses = async () => {
      const { sessions } = await read(used);
      return sessions.slice(0, 2).map(({ lastUsedAt }) => lastUsedAt - at);
    };
    await server.runtime.advance(59_000);
    expect((await lastUses()).toSorted()).toEqual([0, 0]);
    await server.runtime.advance(11_000);
    await expect.poll(lastUses).toContain(70_000);
    expect(await lastUses()).toContain(0);
    expect(await statusOf(unused)).toBe(200);
    await expect.poll(lastUses).toEqual([70_000, 70_000]);
  });

  it('leaves out sessions that have expired', async () => {
    await signIn();
    await server.runtime.advance(7_200_000);
    expect((await read(server.token('member'))).sessions).toHaveLength(1);
  });
});

describe('changePassword', () => {
  it('changes the password, is recorded without it, keeps this session and ends the others', async () => {
    const [own, another] = [await signIn(), await signIn()];
    expect((await change(own)).json()).toEqual({ status: 'success' });
    expect((await entriesOf(server))[0]).toMatchObject({
      user: 'member',
      operation: 'security/self/changePassword',
      target: 'security/users/member',
      changes: [{ field: 'password', before: '***', after: '***' }],
    });
    for (const on of [server, other]) expect(await statusOf(own, on)).toBe(200);
    expect(await statusOf(another)).toBe(401);
    await expectEndedElsewhere(another);
    expect((await read(own)).sessions).toHaveLength(1);
    const { signIn: tryToSignIn } = tokensOf(() => server);
    await expect(tryToSignIn({ username: 'member', password })).rejects.toThrow();
    expect(await signIn('member', newPassword)).toEqual(expect.any(String));
  });

  it('refuses a wrong password, and too many of them', async () => {
    const token = await signIn();
    const wrong = await change(token, { password: 'a wrong one' });
    expect([wrong.statusCode, detailsOf(wrong)]).toEqual([
      400,
      ['password: this is not your present password.'],
    ]);
    for (let attempt = 1; attempt < 10; attempt += 1) await change(token, { password: 'a wrong one' });
    expect((await change(token)).statusCode).toBe(429);
    expect(await statusOf(token)).toBe(200);
  });

  it('refuses a new password that is too short or the old one', async () => {
    const token = server.token('member');
    expect(detailsOf(await change(token, { newPassword: 'short' }))).toEqual([
      'newPassword: must be 8 to 256 characters.',
    ]);
    expect(detailsOf(await change(token, { newPassword: password }))).toEqual([
      'newPassword: must differ from the present password.',
    ]);
  });
});

describe('endSession', () => {
  const currentOf = async (token: string) =>
    (await read(token)).sessions.find(({ current }) => current)?.id ?? '';

  it('ends one session at once, and elsewhere within half a second, also the own one', async () => {
    const [own, another] = [await signIn(), await signIn()];
    expect(await statusOf(another, other)).toBe(200);
    const id = await currentOf(own);
    expect((await act('endSession', own, { id: await currentOf(another) })).json()).toEqual({
      status: 'success',
    });
    expect(await statusOf(another)).toBe(401);
    expect(await statusOf(own)).toBe(200);
    await expectEndedElsewhere(another);
    expect((await act('endSession', own, { id })).statusCode).toBe(200);
    expect(await statusOf(own)).toBe(401);
  });

  it('ends no session of another user, and none twice', async () => {
    const [foreign] = (await read(server.token('administrator'))).sessions;
    const own = await signIn();
    const id = await currentOf(await signIn());
    const results = await Promise.all(
      [id, id, foreign?.id ?? '', 'x'].map((one) => act('endSession', own, { id: one })),
    );
    // Either of the first two may be the one that ends the session.
    expect(results.map(({ statusCode }) => statusCode).sort()).toEqual([200, 400, 400, 400]);
    expect(results.slice(2).map(({ statusCode }) => statusCode)).toEqual([400, 400]);
    for (const refused of results.slice(2))
      expect(detailsOf(refused)).toEqual(['id: there is no own session with this id.']);
    expect(await statusOf(server.token('administrator'))).toBe(200);
  });
});

describe('endSessions', () => {
  const endSessions = (username: string) =>
    server.post('/admin/security/users/endSessions', { username }, bearer(server.token('administrator')));

  it('ends all sessions of a user that exists', async () => {
    const tokens = [await signIn(), server.token('member')];
    for (const token of tokens) expect(await statusOf(token, other)).toBe(200);
    expect((await endSessions('MEMBER')).json()).toEqual({ status: 'success' });
    for (const token of tokens) expect(await statusOf(token)).toBe(401);
    for (const token of tokens) await expectEndedElsewhere(token);
    expect((await entriesOf(server))[0]?.changes).toEqual([{ field: 'sessions', before: 2, after: 0 }]);
    expect(await statusOf(await signIn())).toBe(200);
    const unknown = await endSessions('nobody');
    expect([unknown.statusCode, detailsOf(unknown)]).toEqual([
      400,
      ['username: there is no user named nobody.'],
    ]);
  });
});

it.each([
  ['Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Windows'],
  [
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0',
    'Edge on Linux',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1 Version/18.0 Safari/604.1',
    'Safari on iOS',
  ],
  ['curl/8.5.0', 'curl'],
  ['', 'unknown'],
])('the program %s is shown as %s', async (userAgent, name) => {
  const { token } = await tokensOf(() => server).signIn({}, { 'user-agent': userAgent });
  const page = await server.get(path, { accept: 'text/html', ...bearer(token) });
  expect(page.body).toMatch(new RegExp(`>\\s*${name}\\s*<`));
});
