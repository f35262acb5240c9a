// Uploading, listing and deleting files.
import { beforeEach, describe, expect, it } from 'vitest';
import { plainFileName, uploads } from '../../src/uploads/upload.ts';
import { type Server, startServer } from '../kit/server.ts';

let server: Server;
const admin = 'token-of-the-administrator';
const upload = (name: string, content: string | Buffer, more: Record<string, string> = {}) =>
  server.postParts('/admin/uploads/upload', { itemFile: { name, content }, ...more }, admin);
type Item = { item: { itemID: string; itemName: string } };
type Failure = { error: { details: string[] } };

describe('uploads', () => {
  beforeEach(async () => {
    server = await startServer({ env: { MAX_UPLOAD_BYTES: '2000', MAX_UPLOADS_TOTAL_BYTES: '3000' } });
  });

  it('are stored with their properties, listed, returned and deleted', async () => {
    const { item } = (await upload('license.json', '{}', { description: 'for 11.0' })).json<Item>();
    const expected = {
      itemID: item.itemID,
      itemName: 'license.json',
      description: 'for 11.0',
      date: server.runtime.now(),
      committed: true,
      contentType: 'text/plain',
      size: 2,
    };
    expect(item).toEqual(expected);
    expect((await server.get(`/admin/uploads?token=${admin}`)).json()).toEqual({ items: [expected] });
    expect((await server.get(`/admin/uploads/${item.itemID}?token=${admin}`)).json()).toEqual(expected);
    expect((await server.post(`/admin/uploads/${item.itemID}/delete`, { token: admin })).json()).toEqual({
      status: 'success',
    });
    expect((await server.get(`/admin/uploads/${item.itemID}?token=${admin}`)).statusCode).toBe(404);
  });

  it('are deleted once by simultaneous requests', async () => {
    const { item } = (await upload('license.json', '{}')).json<Item>();
    const deletion = () => server.post(`/admin/uploads/${item.itemID}/delete`, { token: admin });
    const answers = await Promise.all([deletion(), deletion()]);
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 404]);
    const { body } = await server.get(`/admin/system/audit?operation=delete&token=${admin}`);
    const { entries } = JSON.parse(body) as { entries: { outcome: string }[] };
    expect(entries.map(({ outcome }) => outcome).sort()).toEqual(['refused', 'success']);
  });

  it('have a limit for each file and for all files together', async () => {
    expect((await upload('a', Buffer.alloc(2000))).statusCode).toBe(200);
    const tooLarge = await upload('b', Buffer.alloc(2001));
    expect(tooLarge.statusCode).toBe(413);
    expect(tooLarge.json<Failure>().error.details).toEqual(['itemFile: must be at most 2000 bytes.']);
    const noRoom = await upload('c', Buffer.alloc(1001));
    expect(noRoom.statusCode).toBe(413);
    expect(noRoom.json<Failure>().error.details[0]).toContain(
      'all uploads together must be at most 3000 bytes',
    );
    expect((await upload('c', Buffer.alloc(1000))).statusCode).toBe(200);
  });

  it('hold the limit for all files if they arrive at the same moment, and keep nothing of a refused file', async () => {
    const { uploads: contents } = server.store;
    const { add } = contents;
    const ids: string[] = [];
    contents.add = (id, content) => {
      ids.push(id);
      return add(id, content);
    };
    const answers = await Promise.all(['a', 'b', 'c'].map((name) => upload(name, Buffer.alloc(1400))));
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 200, 413]);
    const kept = await Promise.all(ids.map(async (id) => ((await contents.content(id)) ? id : [])));
    const { items } = (await server.get(`/admin/uploads?token=${admin}`)).json<{ items: Item['item'][] }>();
    expect(kept.flat().sort()).toEqual(items.map(({ itemID }) => itemID).sort());
  });

  it('lose their content when they are deleted', async () => {
    const { item } = (await upload('license.json', '{}')).json<Item>();
    expect(await server.store.uploads.content(item.itemID)).toHaveLength(2);
    await server.post(`/admin/uploads/${item.itemID}/delete`, { token: admin });
    expect(await server.store.uploads.content(item.itemID)).toBeUndefined();
  });

  it('are at most 10,000', async () => {
    const item = {
      itemName: 'a',
      description: '',
      date: 1,
      committed: true as const,
      contentType: 'a/b',
      size: 0,
    };
    // In parts, so that no update takes long on a busy machine.
    for (let count = 0; count < 9_999; count += 1_111)
      await server.store.update((transaction) => {
        for (let n = count; n < count + 1_111; n += 1)
          transaction.put(uploads, { ...item, itemID: `upload-${n}` });
      });
    expect((await upload('a', 'x')).statusCode).toBe(200);
    const refused = await upload('a', 'x');
    expect(refused.statusCode).toBe(413);
    expect(refused.json<Failure>().error.details).toEqual([
      'itemFile: there must be at most 10000 uploads; delete some first.',
    ]);
  });

  it('may have a content type of 255 characters, without control characters', async () => {
    const uploadOf = (type: string) => {
      const itemFile = { name: 'license.json', content: '{}', type };
      return server.postParts('/admin/uploads/upload', { itemFile }, admin);
    };
    const longest = `text/${'x'.repeat(250)}`;
    for (const type of ['text/\u0001x', 'text/\u0000', 'text/\u007f', 'text/\u0085', `${longest}x`]) {
      const refused = await uploadOf(type);
      expect(refused.statusCode, type).toBe(400);
      expect(refused.json<Failure>().error.details).toEqual([
        'itemFile: must have a content type of at most 255 characters, without control characters.',
      ]);
    }
    expect((await uploadOf(longest)).json()).toMatchObject({ item: { contentType: longest } });
  });

  it('need a file with a name', async () => {
    expect(
      (await server.post('/admin/uploads/upload', { token: admin })).json<Failure>().error.details,
    ).toEqual(['itemFile: is required.']);
    expect((await upload('x'.repeat(256), 'x')).statusCode).toBe(400);
    expect((await server.post('/admin/uploads/upload', { token: admin, itemFile: 'text' })).statusCode).toBe(
      400,
    );
  });
});

it.each([
  ['license.json', 'license.json'],
  ['../../etc/passwd', 'passwd'],
  ['C:\\Users\\ann\\license.json', 'license.json'],
  ['..', '..'],
  ['/', ''],
])('%j is stored with the name %j, without its path', (given, name) => {
  expect(plainFileName(given)).toBe(name);
});
