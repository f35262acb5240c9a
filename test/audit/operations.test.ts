// Every operation that writes, except publish, leaves exactly one entry per request in the audit trail. The table
// contains every such operation of the resource trees, so a new one must be added here.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { users } from '../../src/auth/user.ts';
import { type Entry, walk } from '../../src/rest/resource.ts';
import { type Server, password, startServer } from '../kit/server.ts';
import { entriesOf, newEntries } from './kit.ts';

type Response = Awaited<ReturnType<Server['post']>>;
type Fields = Record<string, string>;

/** Prepares what the operation needs, and returns a call that succeeds. */
type Prepare = (server: Server) => Promise<() => Promise<Response>>;

const headersOf = (server: Server) => ({ authorization: `Bearer ${server.token('administrator')}` });
const post = (server: Server, path: string, fields: Fields = {}) =>
  server.post(`/admin/${path}`, fields, headersOf(server));

let names = 0;
const newName = () => `name${(names += 1)}`;

const simple =
  (path: string, fields: Fields): Prepare =>
  (server) =>
    Promise.resolve(() => post(server, path, fields));

/** A user with the password of the test users, whose hash is quick to check. */
async function addUser({ store }: Server): Promise<string> {
  const username = newName();
  await store.update((transaction) => {
    const member = transaction.get(users, 'member');
    if (member) transaction.put(users, { ...member, username });
  });
  return username;
}

async function signIn(server: Server, username: string): Promise<string> {
  const response = await server.post('/tokens/generateToken', { username, password });
  return response.json<{ token: string }>().token;
}

const onUser =
  (operation: string, fields: Fields = {}): Prepare =>
  async (server) => {
    const username = await addUser(server);
    return () => post(server, `security/users/${operation}`, { username, ...fields });
  };

const onKey =
  (operation: string): Prepare =>
  async (server) => {
    const created = await post(server, 'security/self/keys/create', { name: newName() });
    return () => post(server, operation, { id: created.json<{ id: string }>().id });
  };

async function createFolder(server: Server): Promise<string> {
  const folderName = newName();
  await post(server, 'services/createFolder', { folderName });
  return folderName;
}

/** Returns the path of the service. */
async function createService(server: Server, isInFolder: boolean): Promise<string> {
  const folderName = isInFolder ? await createFolder(server) : '/';
  const serviceName = newName();
  await post(server, 'services/createService', { folderName, serviceName, type: 'MapServer' });
  const file = `${serviceName}.MapServer`;
  return isInFolder ? `services/${folderName}/${file}` : `services/${file}`;
}

const onService =
  (isInFolder: boolean, operation: string, fields: Fields = {}): Prepare =>
  async (server) => {
    const path = await createService(server, isInFolder);
    return () => post(server, `${path}/${operation}`, fields);
  };

/** The addresses at which a webhook can be, and functions that create one there. */
const webhookPlaces: Record<string, (server: Server) => Promise<string>> = {
  'services/webhooks': () => Promise.resolve('services/webhooks'),
  'services/{service}/webhooks': async (server) => `${await createService(server, false)}/webhooks`,
  'services/{folder}/{service}/webhooks': async (server) => `${await createService(server, true)}/webhooks`,
};

async function createWebhook(server: Server, place: string): Promise<string> {
  const path = (await webhookPlaces[place]?.(server)) ?? '';
  const fields = { name: newName(), hookUrl: 'https://receiver.test/', changeTypes: 'Other' };
  const response = await post(server, `${path}/create`, fields);
  return `${path}/${response.json<{ id: string }>().id}`;
}

const onWebhook =
  (operation: string, fields: Fields = {}) =>
  (place: string): Prepare =>
  async (server) => {
    const path = await createWebhook(server, place);
    return () => post(server, `${path}/${operation}`, fields);
  };

const onWebhooks =
  (operation: string): Prepare =>
  async (server) => {
    const path = await createWebhook(server, 'services/webhooks');
    return () => post(server, `services/webhooks/${operation}`, { ids: path.split('/').at(-1) ?? '' });
  };

const webhookSuccesses: Record<string, (place: string) => Prepare> = {
  edit: onWebhook('edit', { headers: '{"X-Key":"a secret value"}' }),
  delete: onWebhook('delete'),
  activate: onWebhook('activate'),
  deactivate: onWebhook('deactivate'),
  redeliver: onWebhook('redeliver'),
  rotateKey: onWebhook('rotateKey'),
  ping: onWebhook('ping', { changeType: 'ServiceCreated' }),
  'deliveries/{delivery}/redeliver': (place) => async (server) => {
    const path = await createWebhook(server, place);
    const { deliveryId } = (await post(server, `${path}/ping`)).json<{ deliveryId: string }>();
    return () => post(server, `${path}/deliveries/${deliveryId}/redeliver`);
  },
};

const upload = (server: Server) =>
  server.postParts(
    '/admin/uploads/upload',
    { itemFile: { name: 'license.txt', content: 'text' } },
    server.token('administrator'),
  );

const patch = { versionManifest: '{"id":"pat_17022022_1250"}' };
const fresh = { versionManifest: '{"id":"rel_10092021_1234"}' };

async function startUpgrade(server: Server): Promise<string> {
  const response = await post(server, 'system/upgrades/upgrade', patch);
  return `system/jobs/${response.json<{ jobId: string }>().jobId}`;
}

const importManifest = (server: Server) =>
  server.postParts(
    '/admin/system/upgrades/importManifest',
    { manifestFile: { name: 'manifest.json', content: '{"versions":[]}' } },
    server.token('administrator'),
  );

const receiver = { name: 'a receiver', hookUrl: 'https://receiver.test/', changeTypes: '*' };
const edited = { description: 'another' };

const successes: Record<string, Prepare> = {
  'mode/update': simple('mode/update', { isReadOnly: 'false', message: 'new' }),
  'security/self/changePassword': async (server) => {
    const token = await signIn(server, await addUser(server));
    const fields = { token, password, newPassword: 'another battery' };
    return () => server.post('/admin/security/self/changePassword', fields);
  },
  'security/self/endSession': async (server) => {
    const token = await signIn(server, await addUser(server));
    const self = await server.get('/admin/security/self', { authorization: `Bearer ${token}` });
    const id = self.json<{ sessions: { id: string }[] }>().sessions[0]?.id ?? '';
    return () => server.post('/admin/security/self/endSession', { token, id });
  },
  'security/self/keys/create': simple('security/self/keys/create', { name: 'a program' }),
  'security/self/keys/delete': onKey('security/self/keys/delete'),
  'security/keys/delete': onKey('security/keys/delete'),
  'security/users/add': simple('security/users/add', {
    username: 'Somebody',
    password,
    role: 'member',
  }),
  'security/users/update': onUser('update', { role: 'publisher' }),
  'security/users/remove': onUser('remove'),
  'security/users/endSessions': onUser('endSessions'),
  'services/createFolder': simple('services/createFolder', { folderName: 'New' }),
  'services/createService': simple('services/createService', { serviceName: 'New', type: 'MapServer' }),
  'services/webhooks/create': simple('services/webhooks/create', receiver),
  'services/webhooks/activateAll': simple('services/webhooks/activateAll', {}),
  'services/webhooks/deactivateAll': simple('services/webhooks/deactivateAll', {}),
  'services/webhooks/delete': onWebhooks('delete'),
  'services/webhooks/redeliver': simple('services/webhooks/redeliver', { changeType: 'Never' }),
  'services/webhooks/deliveries/{delivery}/redeliver': async (server) => {
    const path = await createWebhook(server, 'services/webhooks');
    const { deliveryId } = (await post(server, `${path}/ping`)).json<{ deliveryId: string }>();
    return () => post(server, `services/webhooks/deliveries/${deliveryId}/redeliver`);
  },
  'services/webhooks/settings': simple('services/webhooks/settings', { daysInPast: '6' }),
  'services/{service}/edit': onService(false, 'edit', edited),
  'services/{service}/delete': onService(false, 'delete'),
  'services/{service}/webhooks/create': onService(false, 'webhooks/create', { ...receiver, name: 'root' }),
  'services/{service}/webhooks/activateAll': onService(false, 'webhooks/activateAll'),
  'services/{service}/webhooks/deactivateAll': onService(false, 'webhooks/deactivateAll'),
  'services/{folder}/deleteFolder': async (server) => {
    const folderName = await createFolder(server);
    return () => post(server, `services/${folderName}/deleteFolder`);
  },
  'services/{folder}/{service}/edit': onService(true, 'edit', edited),
  'services/{folder}/{service}/delete': onService(true, 'delete'),
  'services/{folder}/{service}/webhooks/create': onService(true, 'webhooks/create', {
    ...receiver,
    name: 'in a folder',
  }),
  'services/{folder}/{service}/webhooks/activateAll': onService(true, 'webhooks/activateAll'),
  'services/{folder}/{service}/webhooks/deactivateAll': onService(true, 'webhooks/deactivateAll'),
  'system/upgrades/upgrade': simple('system/upgrades/upgrade', patch),
  'system/upgrades/rollback': async (server) => {
    await startUpgrade(server);
    await server.runtime.advance(3_600_000);
    return () => post(server, 'system/upgrades/rollback', fresh);
  },
  'system/upgrades/config/update': simple('system/upgrades/config/update', {
    windows: '[{"days":["sat"],"from":"22:00","to":"04:00","timeZone":"Europe/Vienna"}]',
  }),
  'system/upgrades/importManifest': (server) => Promise.resolve(() => importManifest(server)),
  'system/upgrades/deleteImportedManifest': async (server) => {
    await importManifest(server);
    return () => post(server, 'system/upgrades/deleteImportedManifest');
  },
  'system/jobs/{job}/cancel': async (server) => {
    const path = await startUpgrade(server);
    return () => post(server, `${path}/cancel`);
  },
  'system/jobs/{job}/reschedule': async (server) => {
    const startAt = String(server.runtime.now() + 3_600_000);
    const scheduled = await post(server, 'system/upgrades/upgrade', { ...patch, startAt });
    const { jobId } = scheduled.json<{ jobId: string }>();
    return () => post(server, `system/jobs/${jobId}/reschedule`, { startAt: String(Number(startAt) + 1) });
  },
  'system/jobs/{job}/resume': async (server) => {
    const path = await startUpgrade(server);
    await server.runtime.advance(3_600_000);
    return () => post(server, `${path}/resume`);
  },
  'uploads/upload': (server) => Promise.resolve(() => upload(server)),
  'uploads/{itemID}/delete': async (server) => {
    const { item } = (await upload(server)).json<{ item: { itemID: string } }>();
    return () => post(server, `uploads/${item.itemID}/delete`);
  },
  'tokens/generateToken': async (server) => {
    const username = await addUser(server);
    return () => server.post('/tokens/generateToken', { username, password });
  },
  'tokens/revokeToken': async (server) => {
    const token = await signIn(server, await addUser(server));
    return () => server.post('/tokens/revokeToken', { token });
  },
  'tokens/oauth2/revokeToken': async (server) => {
    const token = await signIn(server, await addUser(server));
    return () => server.post('/tokens/oauth2/revokeToken', { auth_token: token });
  },
};

for (const place of Object.keys(webhookPlaces))
  for (const [operation, prepare] of Object.entries(webhookSuccesses))
    successes[`${place}/{webhook}/${operation}`] = prepare(place);

/** These need a server of their own, because a job closes others or because it must fail. */
const isUpgrade = (operation: string) => operation.startsWith('system/');
const environmentOf = (operation: string) =>
  operation === 'system/jobs/{job}/resume' ? { SIMULATED_FAILURES: 'gateway_proxy:1' } : {};

const operations = Object.keys(successes);

let shared: Server;
let own: Server | undefined;
beforeAll(async () => (shared = await startServer()));
afterEach(async () => {
  await own?.close();
  own = undefined;
});
afterAll(() => shared.close());

const serverFor = async (operation: string) =>
  isUpgrade(operation) ? (own = await startServer({ env: environmentOf(operation) })) : shared;

function* auditedOperations({ app: { trees } }: Server): Generator<[string, Entry]> {
  for (const [prefix, root] of [
    ['', trees.admin],
    ['tokens/', trees.tokens],
  ] as const)
    for (const entry of walk(root))
      if (entry.operation?.effect === 'writes') yield [prefix + entry.route, entry];
}

it('the table contains every operation that writes, except publish', () => {
  const found = [...auditedOperations(shared)].map(([name]) => name);
  expect(found.filter((name) => name !== 'services/webhooks/publish').sort()).toEqual(operations.sort());
});

it('records no event that is published, whether it is accepted or refused', async () => {
  const publish = (fields: Fields) => post(shared, 'services/webhooks/publish', fields);
  const entries = await newEntries(shared, async () => {
    expect((await publish({ changeType: 'Tested' })).statusCode).toBe(200);
    expect((await publish({})).statusCode).toBe(400);
  });
  expect(entries).toEqual([]);
});

describe.each(Object.entries(successes))('%s', (operation, prepare) => {
  it('leaves one entry when it succeeds', async () => {
    const server = await serverFor(operation);
    const call = await prepare(server);
    const entries = await newEntries(server, async () => {
      const response = await call();
      expect(response.statusCode, response.body).toBe(200);
    });
    const ownEntries = entries.filter(({ user }) => user !== null);
    expect(ownEntries).toHaveLength(1);
    expect(ownEntries[0]).toMatchObject({
      at: server.runtime.now(),
      user: expect.stringMatching(/^(administrator|name\d+)$/) as string,
      role: expect.stringMatching(/^(administrator|member)$/) as string,
      address: '127.0.0.1',
      operation,
      outcome: 'success',
      code: 200,
      count: 1,
    });
  });
});

/** They accept an empty form, so no administrator is refused. */
const needNoField = [
  'services/webhooks/settings',
  'services/webhooks/activateAll',
  'services/webhooks/deactivateAll',
  'services/webhooks/redeliver',
  'system/upgrades/deleteImportedManifest',
];

describe('every operation with a token', () => {
  const withToken = operations.filter((name) => !name.startsWith('tokens/'));
  /** The ids do not exist, so that an allowed caller gets 404 or 400. */
  const pathOf = (operation: string) =>
    operation.replaceAll('{service}', 'None.Such').replaceAll(/\{\w+\}/g, 'None');
  const call = (server: Server, operation: string, token: string) =>
    server.post(`/admin/${pathOf(operation)}`, {}, { authorization: `Bearer ${token}` });

  it('leaves one entry when it is refused', async () => {
    for (const operation of withToken) {
      for (const role of ['member', 'administrator'] as const) {
        let status = 0;
        const entries = await newEntries(shared, async () => {
          status = (await call(shared, operation, shared.token(role))).statusCode;
        });
        if (status === 200) {
          expect(needNoField).toContain(operation);
          continue;
        }
        expect(entries, operation).toMatchObject([
          { user: role, role, operation, outcome: 'refused', count: 1, changes: [] },
        ]);
        expect([400, 403, 404, 409], operation).toContain(entries[0]?.code);
        // Equal refusals within a minute are one entry.
        await shared.runtime.advance(60_000);
      }
    }
  });

  it('leaves one entry when read-only mode refuses it', async () => {
    const server = await startServer();
    await post(server, 'mode/update', { isReadOnly: 'true' });
    const refused = [...auditedOperations(server)].filter(
      ([name, entry]) => entry.operation?.whileReadOnly === 'refused' && withToken.includes(name),
    );
    expect(refused.length).toBeGreaterThan(20);
    for (const [operation] of refused) {
      const entries = await newEntries(server, async () => {
        expect((await call(server, operation, server.token('administrator'))).statusCode).toBe(503);
      });
      expect(entries, operation).toMatchObject([{ operation, outcome: 'refused', code: 503 }]);
    }
    await server.close();
  });

  it('leaves one entry when the server fails, and no change', async () => {
    const server = await startServer();
    const { update } = server.store;
    server.store.update = () => Promise.reject(new Error('broken'));
    const entries = await newEntries(server, async () => {
      const response = await post(server, 'services/createFolder', { folderName: 'New' });
      expect(response.statusCode).toBe(500);
    });
    server.store.update = update;
    expect(entries).toMatchObject([
      { user: 'administrator', operation: 'services/createFolder', outcome: 'failed', code: 500 },
    ]);
    await server.close();
  });

  it('leaves no entry without a known caller', async () => {
    const entries = await newEntries(shared, async () => {
      for (const operation of withToken)
        expect((await call(shared, operation, 'unknown token')).statusCode).toBe(401);
    });
    expect(entries).toEqual([]);
  });
});

it('reads leave no entry', async () => {
  const entries = await newEntries(shared, async () => {
    for (const path of ['', '/services', '/security/users', '/system/audit', '/nothing'])
      await shared.get(`/admin${path}`, headersOf(shared));
    await shared.get('/admin/services/createFolder?f=html', headersOf(shared));
    await post(shared, 'system/upgrades/plan', patch);
    await post(shared, 'security/users');
  });
  expect(entries).toEqual([]);
});

it('an entry cannot be changed or deleted through the API', async () => {
  const [first] = await entriesOf(shared);
  for (const method of ['PUT', 'PATCH', 'DELETE'] as const) {
    const url = `/admin/system/audit/${first?.id ?? ''}`;
    const response = await shared.http.inject({ method, url, headers: headersOf(shared) });
    expect(response.statusCode).toBe(404);
  }
  const { operations: found } = shared.app.trees.admin.resources.system?.resources.audit ?? {};
  expect(found).toEqual({});
});
