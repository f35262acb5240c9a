// A caller whose rights end while the request waits: for its body, a password hash, the cluster, or a change of a
// job. Two servers share the store, like two processes; the rights end in the other one.
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { hashToken, tokens } from '../../src/auth/token.ts';
import { findUser, requireUser, updateUser, users } from '../../src/auth/user.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { laterVersions } from '../kit/sample-manifest.ts';
import { deployment, readDeployment } from '../../src/upgrades/versions/deployment.ts';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { openWire } from '../hard/wire.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { type Server, startServer } from '../kit/server.ts';
import { token } from '../store/definitions.ts';

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
  const simulated = createSimulatedExecutor({ runtime: createFakeRuntime(), stepMs: 0, failures: new Map() });
  const inventory = async () => {
    await cluster?.pass();
    return simulated.inventory();
  };
  one = await startServer({ executor: { ...simulated, inventory } });
  other = await startServer({ store: await one.store.reopen() });
  const createdAt = one.runtime.now();
  await one.store.update((transaction) =>
    transaction.put(
      tokens,
      token(hashToken(bearer), createdAt, { username: 'administrator', expires: createdAt + lifetimeMs }),
    ),
  );
});
afterEach(() => {
  one.http.server.closeAllConnections();
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

const patch = 'pat_17022022_1250';

it.each(endings)('when %s, every request that waits is refused', async (_what, status, end) => {
  const patches = laterVersions.filter(({ id }) => id === patch);
  const { release } = readDeployment(one.store);
  await one.store.update((transaction) => transaction.write(deployment, { release, patches }));
  const before = findUser(one.store, 'member');
  const send = (path: string, fields: Record<string, string>) =>
    one.post(`/admin/${path}`, fields, { authorization });

  // Two requests wait for the hash of a new password,
  const fields = { password: 'a good password', role: 'administrator' };
  const adds = one.passwords.holdNext();
  const added = send('security/users/add', { ...fields, username: 'ghost' });
  const releases = [await adds];
  const changes = one.passwords.holdNext();
  const changed = send('security/users/update', { ...fields, username: 'member' });
  releases.push(await changes);
  // two for the workloads of the cluster,
  const operations = [
    ['upgrade', 'pat_28042022_1260'],
    ['rollback', 'rel_10092021_1234'],
  ] as const;
  const planned = [];
  for (const [operation, id] of operations) {
    cluster = new Gate();
    planned.push(send(`system/upgrades/${operation}`, { versionManifest: JSON.stringify({ id }) }));
    await cluster.reached;
    releases.push(cluster.open);
  }
  // and one for its body.
  const body = 'f=json';
  const wire = openWire(Number(new URL(await one.listen()).port));
  const received = once(one.http.server, 'request');
  wire.write(
    `POST /admin/security/users HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n` +
      `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 2)}`,
  );
  await received;
  await turn();

  await end();
  for (const release of releases) release();
  wire.socket.write(body.slice(2));
  for (const response of await Promise.all([added, changed, ...planned])) {
    expect(response.statusCode, response.body).toBe(status);
    expect(response.json()).toMatchObject({ error: { code: status === 401 ? 498 : 403 } });
  }
  expect((await wire.answer())?.status).toBe(status);
  wire.socket.destroy();
  await one.store.refresh();
  expect(findUser(one.store, 'ghost')).toBeUndefined();
  expect(findUser(one.store, 'member')).toEqual(before);
  expect(one.store.read(newestJob)).toBeNull();
});
