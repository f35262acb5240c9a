// A caller whose rights end while the request waits: for its body, a password hash, the cluster, or a change of a
// job. Two servers share the store, like two processes; the rights end in the other one.
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hashToken, tokens } from '../../src/auth/token.ts';
import { findUser, requireUser, updateUser, users } from '../../src/auth/user.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { builtInManifest } from '../../src/upgrades/versions/built-in-manifest.ts';
import { deployment } from '../../src/upgrades/versions/deployment.ts';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { openWire } from '../hard/wire.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { type Server, startServer } from '../kit/server.ts';

/** A call that waits until the test lets it continue. */
class Gate {
  reached: Promise<void>;
  open: () => void = () => undefined;
  #reach: () => void = () => undefined;
  readonly #opened: Promise<void>;

  constructor() {
    this.reached = new Promise((resolve) => (this.#reach = resolve));
    this.#opened = new Promise((resolve) => (this.open = resolve));
  }

  async pass(): Promise<void> {
    this.#reach();
    await this.#opened;
  }
}

let one: Server;
let other: Server;
let cluster: Gate | undefined;

beforeEach(async () => {
  cluster = undefined;
  const simulated = createSimulatedExecutor({ runtime: createFakeRuntime(), stepMs: 0, failures: new Map() });
  const inventory = async () => {
    await cluster?.pass();
    return simulated.inventory();
  };
  one = await startServer({ executor: { ...simulated, inventory } });
  other = await startServer({ store: await one.store.reopen() });
  const createdAt = one.runtime.now();
  await one.store.update((transaction) =>
    transaction.put(tokens, {
      hash: hashToken(bearer),
      id: 'session',
      username: 'administrator',
      createdAt,
      expires: createdAt + lifetimeMs,
      binding: null,
      address: null,
      userAgent: null,
      lastUsedAt: createdAt,
    }),
  );
});
afterEach(async () => {
  one.http.server.closeAllConnections();
  await other.close();
  await one.close();
});

const bearer = 'token-that-ends';
const lifetimeMs = 30_000;
const authorization = `Bearer ${bearer}`;

const endings: [string, number, () => Promise<void>][] = [
  [
    'the user is removed',
    401,
    () => other.store.update((transaction) => transaction.remove(users, 'administrator')),
  ],
  [
    'the user gets a lower role',
    403,
    () =>
      other.store.update((transaction) => {
        const user = requireUser(transaction, 'administrator');
        transaction.put(users, { ...user, role: 'member' });
      }),
  ],
  [
    'the user gets a new password',
    401,
    () =>
      other.store.update((transaction) => updateUser(transaction, 'administrator', { passwordHash: 'new' })),
  ],
  [
    'the token is revoked',
    401,
    () => other.store.update((transaction) => transaction.remove(tokens, hashToken(bearer))),
  ],
  ['the token expires', 401, () => one.runtime.advance(lifetimeMs)],
];

const namesOf = (server: Server) => [...server.store.all(users)].map(({ username }) => username);

describe.each(endings)('when %s', (_what, status, end) => {
  const code = status === 401 ? 498 : 403;

  it('during the hash of a new password, no user is added', async () => {
    const held = one.passwords.holdNext();
    const fields = { username: 'ghost', password: 'a good password', role: 'administrator' };
    const response = one.post('/admin/security/users/add', fields, { authorization });
    const release = await held;
    await end();
    release();
    expect((await response).statusCode).toBe(status);
    expect((await response).json()).toMatchObject({ error: { code } });
    await one.store.refresh();
    expect(namesOf(one)).not.toContain('ghost');
  });

  it('during the hash of a new password, no user is changed', async () => {
    const before = findUser(one.store, 'member');
    const held = one.passwords.holdNext();
    const fields = { username: 'member', password: 'a good password', role: 'administrator' };
    const response = one.post('/admin/security/users/update', fields, { authorization });
    const release = await held;
    await end();
    release();
    expect((await response).statusCode).toBe(status);
    await one.store.refresh();
    expect(findUser(one.store, 'member')).toEqual(before);
  });

  it.each([
    ['upgrade', 'pat_17022022_1250'],
    ['rollback', 'rel_10092021_1234'],
  ])('while %s reads the workloads, no job starts', async (operation, id) => {
    if (operation === 'rollback') {
      const patches = builtInManifest.filter((version) => version.id === 'pat_17022022_1250');
      const { release } = one.store.read(deployment);
      await one.store.update((transaction) => transaction.write(deployment, { release, patches }));
    }
    const gate = new Gate();
    cluster = gate;
    const fields = { versionManifest: JSON.stringify({ id }) };
    const response = one.post(`/admin/system/upgrades/${operation}`, fields, { authorization });
    await gate.reached;
    await end();
    gate.open();
    expect((await response).statusCode).toBe(status);
    await one.store.refresh();
    expect(one.store.read(newestJob)).toBeNull();
  });

  it('while the body is held back, the request is refused', async () => {
    const port = Number(new URL(await one.listen()).port);
    const body = 'username=ghost&password=a+good+password&role=administrator';
    const wire = openWire(port);
    const received = once(one.http.server, 'request');
    wire.write(
      `POST /admin/security/users/add HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n` +
        `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 20)}`,
    );
    await received;
    await turn();
    await end();
    wire.socket.write(body.slice(20));
    const answer = await wire.answer();
    wire.socket.destroy();
    expect(answer?.status).toBe(status);
    await one.store.refresh();
    expect(namesOf(one)).not.toContain('ghost');
  });
});
