// Clients that go away: what they have changed has an address in the audit trail, and a line in the log.
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import type { AuditEntry } from '../../src/store/audit-entry.ts';
import { write } from '../hard/wire.ts';
import { perTest } from '../kit/cleanup.ts';
import { type Server, password, startServer } from '../kit/server.ts';

const server = perTest(() => startServer());

const form = { 'content-type': 'application/x-www-form-urlencoded' };

function createFolder(name: string): Buffer {
  const headers = { ...form, authorization: `Bearer ${server.token('administrator')}` };
  return write({ method: 'POST', url: '/admin/services/createFolder', headers, body: `folderName=${name}` });
}

/** Sends the bytes and resets the connection, after `turns` turns of the event loop. */
async function reset(port: number, bytes: Buffer, turns: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  const closed = once(socket, 'close');
  await once(socket, 'connect');
  await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
  for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
  socket.resetAndDestroy();
  await closed;
}

async function entriesOf({ store }: Server): Promise<AuditEntry[]> {
  const found: AuditEntry[] = [];
  for await (const entries of store.audit.read({}, 0)) found.push(...entries);
  return found;
}

const linesOf = ({ logLines }: Server, path: string) =>
  logLines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line.msg === 'request' && line.path === path);

it('resets 1,000 requests: each change has an entry with an address, and a line in the log', async () => {
  const port = Number(new URL(await server.listen()).port);
  for (let round = 0; round < 1000; round += 20) {
    const clients = Array.from({ length: 20 }, (_, index) =>
      reset(port, createFolder(`f${round + index}`), (round + index) % 12),
    );
    await Promise.all(clients);
  }
  const changes = (await entriesOf(server)).filter(({ operation }) => operation === 'services/createFolder');
  expect(changes.length).toBeGreaterThan(0);
  expect(changes.filter(({ address }) => address !== '127.0.0.1')).toEqual([]);
  const lines = () => linesOf(server, '/admin/services/createFolder');
  await expect.poll(() => lines().length).toBeGreaterThanOrEqual(changes.length);
  expect(lines().filter(({ status, address }) => status === 'closed' && address !== '127.0.0.1')).toEqual([]);
}, 60_000);

it('closes a connection whose client has left before the server reads its address', async () => {
  await server.listen();
  const left = {
    remoteAddress: undefined,
    destroyed: false,
    destroy: () => (left.destroyed = true),
    once: () => left,
  };
  server.http.server.listeners('connection').at(-1)?.(left);
  expect(left.destroyed).toBe(true);
});

/** Signs in with the password, and leaves while the server checks it. Returns what lets the check end. */
async function leaveDuringSignIn(given: string): Promise<() => void> {
  const port = Number(new URL(await server.listen()).port);
  const isHeld = server.passwords.holdNext();
  const body = new URLSearchParams({ username: 'administrator', password: given, f: 'json' }).toString();
  const socket = connect(port, '127.0.0.1');
  socket.write(write({ method: 'POST', url: '/tokens/generateToken', headers: form, body }));
  const release = await isHeld;
  socket.resetAndDestroy();
  return release;
}

it('logs and counts a request whose client leaves while its password is checked', async () => {
  const release = await leaveDuringSignIn(password);
  const lines = () => linesOf(server, '/tokens/generateToken');
  await expect.poll(lines).toMatchObject([{ status: 'closed', address: '127.0.0.1', level: 30 }]);
  release();
  const { body } = await server.get('/metrics');
  expect(body).toContain(
    'steward_http_requests_total{method="POST",route="/tokens/generateToken",status="closed"} 1',
  );
  await expect
    .poll(() => entriesOf(server))
    .toMatchObject([{ operation: 'tokens/generateToken', outcome: 'success', address: '127.0.0.1' }]);
});

it('warns of a refusal that is known only after the client has left', async () => {
  const release = await leaveDuringSignIn('a wrong password');
  await expect.poll(() => linesOf(server, '/tokens/generateToken').length).toBe(1);
  release();
  const warnings = () =>
    server.logLines.map((line) => JSON.parse(line) as { level: number }).filter(({ level }) => level === 40);
  await expect
    .poll(warnings)
    .toMatchObject([{ msg: 'refused after the end', status: 'closed', address: '127.0.0.1' }]);
});
