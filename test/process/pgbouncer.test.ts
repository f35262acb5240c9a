// Tests Steward behind PgBouncer. Skipped where PgBouncer is not installed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectTo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../kit/ports.ts';
import { withLimits } from '../kit/postgres.ts';
import { register, startReceiver, webhooksPath } from './receiver.ts';
import { connect, startInProcess, startSeededPostgres } from './steward.ts';

const pollOptions = { timeout: 60_000, interval: 20 };
const binary = '/usr/sbin/pgbouncer';

async function isListening(port: number): Promise<boolean> {
  const socket = connectTo(port, '127.0.0.1');
  const isOpen = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]);
  socket.destroy();
  return isOpen;
}

/** Returns the address of the database through PgBouncer. */
async function startPooler(databaseUrl: string, mode: 'session' | 'transaction'): Promise<string> {
  const url = new URL(databaseUrl);
  const folder = mkdtempSync(join(tmpdir(), 'steward-pgbouncer-'));
  const port = await freePort();
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${url.hostname} port=${url.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 40
`,
  );
  chmodSync(folder, 0o755);
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = spawn(binary, [...user, join(folder, 'pgbouncer.ini')], { stdio: 'ignore' });
  onTestFinished(async () => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true });
  });
  await expect.poll(() => isListening(port), pollOptions).toBe(true);
  url.port = String(port);
  return url.href;
}

describe.skipIf(!existsSync(binary))('behind PgBouncer', () => {
  it('a process works in session mode, with its limits in force', async () => {
    const { url } = await startSeededPostgres();
    const pooler = await startPooler(url, 'session');
    const steward = await startInProcess(withLimits(pooler, { lock_timeout: 1_000 }));
    onTestFinished(steward.stop);
    const token = await steward.signIn();
    const receiver = await startReceiver();
    await register([steward], token, receiver, 'Tested');
    const events = Array.from({ length: 50 }, (_, n) => `event-${n}`);
    const publishing = events.map((eventId) =>
      steward.post(`${webhooksPath}/publish`, { changeType: 'Tested', eventId }, token),
    );
    for (const { body } of await Promise.all(publishing)) expect(body).toMatchObject({ deliveries: 1 });
    await expect.poll(() => receiver.arrivals.size, pollOptions).toBe(50);
    // Another session holds the lock of all updates for longer than `lock_timeout`.
    const query = await connect(url);
    await query('begin');
    await query('select from clock for update');
    const refused = await steward.post('/admin/services/createFolder', { folderName: 'Harbour' }, token);
    expect(refused).toMatchObject({ status: 503, body: { error: { message: 'The database is busy.' } } });
    await query('rollback');
    expect(steward.loggedErrors()).toEqual([]);
  });

  it('a process does not start in transaction mode, and says why', async () => {
    const { url } = await startSeededPostgres();
    await expect(startInProcess(await startPooler(url, 'transaction'))).rejects.toThrow(
      'STORE_URL leads to a connection pooler in transaction mode. Use its session mode, or connect to PostgreSQL itself.',
    );
  });
});
