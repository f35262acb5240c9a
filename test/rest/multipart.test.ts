// Multipart forms: text and file parts, and how many parts there may be.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';
import { type Part, details, mode, multipart, sendTo, token } from './forms-kit.ts';

const server = perFile(startServer);

const send = sendTo(() => server);

describe('a multipart form', () => {
  it('is accepted like an urlencoded form', async () => {
    const parts = [
      { name: 'token', value: token },
      { name: 'folderName', value: 'Überblick' },
    ];
    expect((await send('/admin/services/createFolder', multipart(parts))).json()).toEqual({
      status: 'success',
    });
    const folder = await server.get(`/admin/services/${encodeURIComponent('Überblick')}?token=${token}`);
    expect(folder.json()).toEqual({ folderName: 'Überblick', description: '', folders: [], services: [] });
  });

  it.each<[string, Part[]]>([
    ['a text field as a file part', [{ name: 'token', value: token, filename: 'token.txt' }]],
    [
      'unknown fields and files, which are ignored',
      [
        { name: 'token', value: token },
        { name: 'other', value: 'x' },
        { name: 'file', value: Buffer.alloc(100_000), filename: 'x.bin' },
      ],
    ],
    ...['constructor', '__proto__', 'toString'].map((name): [string, Part[]] => [
      `parts called ${name}, which are ignored`,
      [
        { name, value: 'x' },
        { name: 'token', value: token },
        { name: `${name}2`, value: 'y', filename: 'f' },
      ],
    ]),
  ])('may contain %s', async (_what, parts) => {
    expect((await send(mode, multipart(parts))).statusCode).toBe(200);
  });

  it('may contain a text field with the content type of JSON, which is read as text', async () => {
    const parts = [
      { name: 'token', value: token },
      { name: 'isReadOnly', value: 'TRUE', type: 'application/json' },
      { name: 'message', value: '{"a": 1.0,"b":12345678901234567890}', type: 'application/json' },
      { name: 'other', value: '{', type: 'application/json' },
    ];
    expect((await send('/admin/mode/update', multipart(parts))).statusCode).toBe(200);
    const { message } = (await server.get(`${mode}?token=${token}`)).json<{ message: string }>();
    expect(message).toBe('{"a": 1.0,"b":12345678901234567890}');
    await server.post('/admin/mode/update', { token, isReadOnly: 'false', message: '' });
  });

  it('clears a field with an empty text part, and keeps it with an empty file part', async () => {
    await server.post('/admin/mode/update', { token, isReadOnly: 'true', message: 'kept' });
    const update = (part: Part) => [
      { name: 'token', value: token },
      { name: 'isReadOnly', value: 'true' },
      part,
    ];
    const message = async () =>
      (await server.get(`${mode}?token=${token}`)).json<{ message: string }>().message;
    await send('/admin/mode/update', multipart(update({ name: 'message', value: '', filename: '' })));
    expect(await message()).toBe('kept');
    await send('/admin/mode/update', multipart(update({ name: 'message', value: '' })));
    expect(await message()).toBe('');
  });

  it('lacks a field whose part is an empty file', async () => {
    const response = await send(mode, multipart([{ name: 'token', value: '', filename: '' }]));
    expect(response.statusCode).toBe(401);
  });

  it('is refused for a repeated field', async () => {
    const parts = [
      { name: 'token', value: token },
      { name: 'token', value: token },
    ];
    const response = await send(mode, multipart(parts));
    expect(response.statusCode).toBe(400);
    expect(details(response)).toEqual(['token: is given more than once.']);
  });

  it.each([
    [
      'a file part that is not UTF-8',
      [{ name: 'token', value: Buffer.from([0xff, 0xfe]), filename: 'a' }],
      400,
    ],
    ['a part that is not UTF-8', [{ name: 'token', value: Buffer.from([0xff, 0xfe]) }], 400],
  ])('is refused for %s', async (_what, parts, status) => {
    const response = await send(mode, multipart(parts));
    expect(response.statusCode).toBe(status);
    expect(details(response)).toHaveLength(1);
  });

  it('may contain 64 parts and a text of 1 MiB, and adds no listener for each part', async () => {
    const warnings: Error[] = [];
    process.on('warning', (warning) => warnings.push(warning));
    const parts = Array.from({ length: 62 }, (_, i) => ({ name: `p${i}`, value: '' }));
    const whole = [...parts, { name: 'token', value: token }, { name: 'x', value: 'x'.repeat(1024 ** 2) }];
    expect((await send(mode, multipart(whole))).statusCode).toBe(200);
    await nextTurn();
    expect(warnings).toEqual([]);
  });

  it.each([
    [
      'a truncated body',
      'multipart/form-data; boundary=xyz',
      '--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\nx',
    ],
    ['a missing boundary', 'multipart/form-data', '--xyz--'],
    ['a boundary that the body does not contain', 'multipart/form-data; boundary=abc', '--xyz--\r\n'],
    ['a body that is not multipart', 'multipart/form-data; boundary=xyz', 'hello'],
  ])('is malformed with %s', async (_what, type, payload) => {
    const response = await send(mode, { headers: { 'content-type': type }, payload });
    expect(response.statusCode).toBe(400);
  });
});
