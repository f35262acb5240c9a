// Keys of programs in both stores: what is stored of them, their last use, and their end in every process.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { keys } from '../../src/auth/key.ts';
import { entriesOf } from '../audit/kit.ts';
import { password, startServer } from '../kit/server.ts';
import { type Failure } from './tokens-kit.ts';
import {
  own,
  dayMs,
  server,
  bearer,
  as,
  create,
  createKey,
  list,
  statusOf,
  changeUser,
  useKeys,
} from './keys-kit.ts';

useKeys();

describe('a new key', () => {
  it('is stored as a hash only', async () => {
    const { key } = await createKey('nightly');
    const [stored] = server.store.all(keys);
    expect(stored?.hash).toBe(createHash('sha256').update(key).digest('base64url'));
    expect(JSON.stringify(stored)).not.toContain(key.slice(4));
  });

  it('has a name of its own, also if two processes create it at the same time', async () => {
    const other = await startServer({ store: await server.store.reopen() });
    const responses = await Promise.all(
      [server, other, server, other].map((on) => create({ name: 'nightly' }, 'administrator', on)),
    );
    expect(responses.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409, 409, 409]);
    await server.store.refresh();
    expect(await list()).toHaveLength(1);
  });
});

describe('a key in a request', () => {
  it('records its last use, exact to a minute, and where it came from', async () => {
    const { key } = await createKey('nightly');
    const lastUse = async () => {
      const [listed] = await list();
      return [listed?.lastUsedAt, listed?.lastAddress];
    };
    const at = server.runtime.now();
    expect(await statusOf(key)).toBe(200);
    await expect.poll(lastUse).toEqual([at, '127.0.0.1']);
    await server.runtime.advance(59_999);
    await statusOf(key);
    await server.runtime.advance(0);
    expect(await lastUse()).toEqual([at, '127.0.0.1']);
    await server.runtime.advance(1);
    await statusOf(key);
    await expect.poll(lastUse).toEqual([at + 60_000, '127.0.0.1']);
  });

  it('is named by the audit trail beside its user', async () => {
    const { key } = await createKey('Nightly build', 'publisher');
    await server.post('/admin/services/createFolder', { folderName: 'A' }, bearer(key));
    await server.post('/admin/services/createFolder', { folderName: 'B' }, as('publisher'));
    const [byToken, byKey, creation] = await entriesOf(server);
    expect(byToken).toMatchObject({ user: 'publisher', key: null });
    expect(byKey).toMatchObject({ user: 'publisher', role: 'publisher', key: 'Nightly build' });
    expect(creation).toMatchObject({
      operation: 'security/self/keys/create',
      changes: [
        { field: 'name', before: null, after: 'Nightly build' },
        { field: 'user', before: null, after: 'publisher' },
        { field: 'role', before: null, after: 'publisher' },
      ],
    });
    const found = await server.get('/admin/system/audit?q=nightly', as('administrator'));
    expect(found.json<{ entries: { id: string }[] }>().entries.map(({ id }) => id)).toEqual([
      byKey?.id,
      creation?.id,
    ]);
    const page = await server.get('/admin/system/audit?f=html', as('administrator'));
    expect(page.body).toContain('with <bdi title="Nightly build">Nightly build</bdi>');
  });
});

describe('a key ends', () => {
  it('at the moment it expires', async () => {
    const { key } = await createKey('nightly', 'member', { expires: '1' });
    await server.runtime.advance(dayMs - 1);
    expect(await statusOf(key)).toBe(200);
    await server.runtime.advance(1);
    expect(await statusOf(key)).toBe(401);
    const page = await server.get('/admin/security/keys?f=html', as('administrator'));
    expect(page.body).toContain('expired');
  });

  it('with its user, also if a user with the same name is added', async () => {
    const { key } = await createKey('nightly', 'member');
    await changeUser('remove', { username: 'member' });
    expect(await statusOf(key)).toBe(401);
    await changeUser('add', { username: 'member', password, role: 'administrator' });
    expect(await statusOf(key)).toBe(401);
    expect([...server.store.all(keys)]).toEqual([]);
  });

  it('in every process, within half a second', async () => {
    const other = await startServer({ store: await server.store.reopen() });
    const { key, id } = await createKey('nightly');
    expect(await statusOf(key, '/admin', other)).toBe(200);
    await server.post(`${own}/delete`, { id }, as('administrator'));
    expect(await statusOf(key)).toBe(401);
    await expect.poll(() => statusOf(key, '/admin', other)).toBe(401);
  });

  it('before a change that another process begins with it', async () => {
    const other = await startServer({ store: await server.store.reopen() });
    const { key, id } = await createKey('nightly');
    const held = other.passwords.holdNext();
    const fields = { username: 'ghost', password: 'a good password', role: 'administrator' };
    const response = other.post('/admin/security/users/add', fields, bearer(key));
    const release = await held;
    await server.post(`${own}/delete`, { id }, as('administrator'));
    release();
    expect((await response).json<Failure>().error.code).toBe(498);
  });
});
