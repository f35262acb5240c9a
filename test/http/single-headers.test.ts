// Headers that decide who calls, and how a body is read, are given once.
import { expect, it } from 'vitest';
import { openWire } from '../hard/wire.ts';
import { perTest } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const server = perTest(() => startServer());

const type = 'Content-Type: application/x-www-form-urlencoded';

it.each([
  ['Authorization', ['Authorization: Bearer a', 'Authorization: Bearer b']],
  ['Content-Type', [type, 'Content-Type: text/plain']],
])('a second %s is refused: a proxy may have checked the other one', async (name, headers) => {
  const wire = openWire(Number(new URL(await server.listen()).port));
  wire.write(['GET /admin?f=json HTTP/1.1', 'Host: localhost', ...headers, '', ''].join('\r\n'));
  expect(await wire.answer()).toMatchObject({
    status: 400,
    body: expect.stringContaining(`${name}: must be given once.`) as string,
  });
  wire.socket.destroy();
});

it('the server info answers its address also in absolute form', async () => {
  const wire = openWire(Number(new URL(await server.listen()).port));
  wire.write('GET http://localhost/admin/rest/info?f=json HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect(await wire.answer()).toMatchObject({
    status: 200,
    body: expect.stringContaining('authInfo') as string,
  });
  wire.socket.destroy();
});
