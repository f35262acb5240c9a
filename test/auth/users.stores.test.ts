// Users and roles.
import { describe, expect, it } from 'vitest';
import { tokensOf } from '../../src/auth/token.ts';
import { perTest } from '../kit/cleanup.ts';
import { password, startServer } from '../kit/server.ts';

const server = perTest(startServer);

const users = '/admin/security/users';
const token = 'token-of-the-administrator';
type Failure = { error: { code: number; message: string; details: string[] } };

const addUser = (username: string, secret: string, role = 'member') =>
  server.post(`${users}/add`, { token, username, password: secret, role });

async function signIn(username: string, secret: string): Promise<string> {
  const response = await server.post('/tokens/generateToken', { username, password: secret });
  return response.json<{ token: string }>().token;
}

describe('security/users', () => {
  it('lists users without their secrets', async () => {
    const response = await server.get(`${users}?token=${token}`);
    const createdAt = server.runtime.now();
    expect(response.json()).toEqual({
      users: ['administrator', 'member', 'publisher'].map((name) => ({
        username: name,
        role: name,
        source: 'local',
        createdAt,
        lastSignIn: null,
      })),
    });
  });

  it('adds a user, who can then sign in', async () => {
    const added = await addUser('Ann', '8 signs.');
    expect(added.json()).toEqual({ status: 'success' });
    expect(await signIn('ann', '8 signs.')).toHaveLength(43);
  });

  const refusals: [Record<string, string>, string[]][] = [
    [{}, ['username: is required.', 'password: is required.', 'role: is required.']],
    [
      { username: 'a b', password: 'x'.repeat(7), role: 'king' },
      [
        'username: must be 1 to 64 letters a to z, digits or . _ @ -.',
        'password: must be 8 to 256 characters.',
        'role: must be one of member, publisher, administrator.',
      ],
    ],
    [
      { username: ' bob ', password: 'long enough', role: 'member' },
      ['username: must be 1 to 64 letters a to z, digits or . _ @ -.'],
    ],
    [
      { username: 'x'.repeat(65), password: 'x'.repeat(257), role: 'member' },
      [
        'username: must be 1 to 64 letters a to z, digits or . _ @ -.',
        'password: must be 8 to 256 characters.',
      ],
    ],
  ];
  it('refuses to add a user with fields that are absent or not valid', async () => {
    for (const [fields, problems] of refusals) {
      const response = await server.post(`${users}/add`, { token, ...fields });
      expect(response.statusCode).toBe(400);
      expect(response.json<Failure>().error.details).toEqual(problems);
    }
  });

  it('refuses a name that differs from another only in case', async () => {
    const response = await addUser('MEMBER', 'correct horse');
    expect(response.statusCode).toBe(409);
    expect(response.json<Failure>().error.message).toBe('A user named member exists already.');
  });

  it('applies a new role at once to tokens issued before', async () => {
    const member = server.token('member');
    expect((await server.get(`${users}?token=${member}`)).statusCode).toBe(403);
    await server.post(`${users}/update`, { token, username: 'member', role: 'administrator' });
    expect((await server.get(`${users}?token=${member}`)).statusCode).toBe(200);
  });

  it('ends the tokens of a user with a new password, and no others', async () => {
    const issued = await signIn('member', password);
    await server.post(`${users}/update`, { token, username: 'member', password: 'a new password' });
    expect((await server.get(`/admin?token=${issued}`)).json<Failure>().error.code).toBe(498);
    expect(tokensOf(server.store, 'member')).toEqual([]);
    expect((await server.get(`/admin?token=${server.token('publisher')}`)).statusCode).toBe(200);
    expect(await signIn('member', 'a new password')).toHaveLength(43);
  });

  it('ends the tokens of a removed user, even if a user with the same name is added', async () => {
    await server.post(`${users}/remove`, { token, username: 'member' });
    await addUser('member', 'another person', 'administrator');
    expect((await server.get(`/admin?token=${server.token('member')}`)).statusCode).toBe(401);
    expect(tokensOf(server.store, 'member')).toEqual([]);
  });

  it('does not show when a removed user with the same name signed in', async () => {
    await signIn('member', password);
    await server.runtime.advance(1000);
    await server.post(`${users}/remove`, { token, username: 'member' });
    await addUser('Member', 'another person');
    const lastSignIn = async () => {
      const response = await server.get(`${users}?token=${token}`);
      const listed = response.json<{ users: { username: string; lastSignIn: number | null }[] }>();
      return listed.users.find(({ username }) => username === 'Member')?.lastSignIn;
    };
    expect(await lastSignIn()).toBeNull();
    await signIn('member', 'another person');
    expect(await lastSignIn()).toBe(server.runtime.now());
  });

  it.each(['update', 'remove'])('%s reports an unknown user as a bad field', async (operation) => {
    const response = await server.post(`${users}/${operation}`, { token, username: 'nobody', role: 'king' });
    expect(response.statusCode).toBe(400);
    expect(response.json<Failure>().error.details).toContain('username: there is no user named nobody.');
  });

  it('refuses to remove or demote the last administrator', async () => {
    const removed = await server.post(`${users}/remove`, { token, username: 'administrator' });
    expect(removed.statusCode).toBe(409);
    const demoted = await server.post(`${users}/update`, {
      token,
      username: 'administrator',
      role: 'member',
    });
    expect(demoted.statusCode).toBe(409);
    await server.post(`${users}/update`, { token, username: 'publisher', role: 'administrator' });
    expect((await server.post(`${users}/remove`, { token, username: 'administrator' })).statusCode).toBe(200);
  });
});
