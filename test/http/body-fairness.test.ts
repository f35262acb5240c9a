// Callers share the memory for bodies fairly: one user cannot use up that of the others.
import { type Socket, connect } from 'node:net';
import { expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const server = perTest(() => startServer());

const mib = 1024 ** 2;

/** Sends the first 10 MiB of a form with one part, which never ends. */
function beginUpload(port: number, token: string): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  const head = [
    'POST /admin/services HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n',
    `Authorization: Bearer ${token}\r\nContent-Length: 11000000\r\n\r\n`,
    '--b\r\nContent-Disposition: form-data; name="x"; filename="a"\r\n\r\n',
  ];
  socket.write(head.join(''));
  socket.write(Buffer.alloc(10 * mib, 'a'));
  return socket;
}

it('13 slow bodies of a member leave the memory for an upload of an administrator', async () => {
  const address = await server.listen();
  const port = Number(new URL(address).port);
  const received: Socket[] = [];
  server.http.server.on('connection', (socket: Socket) => received.push(socket));
  const slow = Array.from({ length: 13 }, () => beginUpload(port, server.token('member')));
  const isDone = (socket: Socket) => socket.destroyed || socket.bytesRead > 10 * mib;
  await expect.poll(() => received.filter(isDone).length, { timeout: 20_000 }).toBe(13);
  const form = new FormData();
  form.set('itemFile', new Blob([Buffer.alloc(9.5 * mib, 'b')]), 'license.json');
  const answer = await fetch(`${address}/admin/uploads/upload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token('administrator')}` },
    body: form,
  });
  expect({ status: answer.status, body: await answer.text() }).toMatchObject({ status: 200 });
  for (const socket of slow) socket.destroy();
});
