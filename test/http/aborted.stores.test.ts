// A client that closes the connection while the server looks up its token.
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { tokens } from '../../src/auth/token.ts';
import { begin, kinds } from '../hard/bodies-kit.ts';
import { openWire, write } from '../hard/wire.ts';
import { perTest } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const server = perTest(() => startServer({ env: { TRUSTED_PROXIES: '127.0.0.1' } }));

const forwarded = { 'x-forwarded-for': '198.51.100.1' };

/** Sends the request, closes the connection while the token is looked up, and returns when the token is found. */
async function closeDuringLookUp(bytes: Buffer): Promise<void> {
  const port = Number(new URL(await server.listen()).port);
  const { get, refresh } = server.store;
  let isFound = false;
  // As if another process had issued the token a moment before.
  server.store.get = (table, key) => (isFound || table.name !== tokens.name ? get(table, key) : undefined);
  let goOn: () => void = () => undefined;
  const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
  const isLookedUp = new Promise<void>((resolve) => {
    server.store.refresh = async () => {
      resolve();
      await mayGoOn;
      const isRead = await refresh();
      isFound = true;
      return isRead;
    };
  });
  const connection = once(server.http.server, 'connection');
  const wire = openWire(port);
  wire.write(bytes);
  const [socket] = (await connection) as [NodeJS.EventEmitter];
  await isLookedUp;
  const isClosed = once(socket, 'close');
  wire.socket.destroy();
  await isClosed;
  goOn();
  await expect.poll(() => isFound).toBe(true);
}

it.each(
  kinds.map((kind): [string, Buffer] => [
    `a body, ${kind.name}`,
    begin(kind, { ...forwarded, cookie: 'steward_session=nonsense' }, '', 1000),
  ]),
)('causes no error of the server: %s', async (_what, bytes) => {
  await closeDuringLookUp(bytes);
  await nextTurn();
  expect(server.logLines.filter((line) => line.includes('request failed'))).toEqual([]);
});

it('ends a request whose small body had arrived already, and the audit trail records it', async () => {
  const headers = {
    authorization: `Bearer ${server.token('administrator')}`,
    'content-type': 'application/x-www-form-urlencoded',
  };
  const url = '/admin/services/webhooks/settings';
  await closeDuringLookUp(write({ method: 'POST', url, headers, body: 'f=json' }));
  const readOutcomes = async () => {
    const found: string[] = [];
    for await (const entries of server.store.audit.read({ operation: 'services/webhooks/settings' }, 0))
      found.push(...entries.map(({ outcome }) => outcome));
    return found;
  };
  await expect.poll(readOutcomes).toEqual(['refused']);
});
