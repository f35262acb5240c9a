// Every operation that writes, except publish, leaves exactly one entry per request in the audit trail. The tour of the
// API reference calls every operation, so a new one must be added there.
import { beforeAll, describe, expect, it } from 'vitest';
import { type Entry, walk } from '../../src/rest/tree.ts';
import { type Around, takeTour } from '../documents/reference/api-tour.ts';
import { perFile } from '../kit/cleanup.ts';
import { type Server, startServer } from '../kit/server.ts';
import { entriesOf, newEntries } from './kit.ts';

type Fields = Record<string, string>;

const headersOf = (server: Server) => ({ authorization: `Bearer ${server.token('administrator')}` });
const post = (server: Server, path: string, fields: Fields = {}) =>
  server.post(`/admin/${path}`, fields, headersOf(server));

const shared = perFile(startServer);
let operations: string[];
beforeAll(() => {
  operations = [...auditedOperations(shared)].map(([name]) => name).filter((name) => !isPublish(name));
});

const isPublish = (name: string) => name === 'services/webhooks/publish';

function* auditedOperations({ app: { trees } }: Server): Generator<[string, Entry]> {
  for (const [prefix, root] of [
    ['', trees.admin],
    ['tokens/', trees.tokens],
  ] as const)
    for (const entry of walk(root))
      if (entry.operation?.effect === 'writes') yield [prefix + entry.route, entry];
}

it('records no event that is published, whether it is accepted or refused', async () => {
  const publish = (fields: Fields) => post(shared, 'services/webhooks/publish', fields);
  const entries = await newEntries(shared, async () => {
    expect((await publish({ changeType: 'Tested' })).statusCode).toBe(200);
    expect((await publish({})).statusCode).toBe(400);
  });
  expect(entries).toEqual([]);
});

/** Requests that read, and publish, leave no entry. */
const leavesNone = /^GET|\/(publish|plan|exists|getUpgradeSettings|sharing\/rest\/generateToken)$/;

/** The tour visits a webhook at one of its three addresses; these are the others. */
async function visitBeneath(server: Server, service: string, around: Around): Promise<void> {
  const all = `services/${service}/webhooks`;
  const call = async (path: string, fields: Fields = {}) => {
    const response = await around(server, `POST ${path}`, () => post(server, path, fields));
    expect(response.statusCode, response.body).toBe(200);
    return response.json<{ id: string; deliveryId: string }>();
  };
  const receiver = { name: service, hookUrl: 'https://receiver.test/', changeTypes: 'Other' };
  const webhook = `${all}/${(await call(`${all}/create`, receiver)).id}`;
  const { deliveryId } = await call(`${webhook}/ping`, { changeType: 'ServiceCreated' });
  await call(`${webhook}/deliveries/${deliveryId}/redeliver`);
  await call(`${webhook}/edit`, { headers: '{"X-Key":"a secret value"}' });
  for (const operation of ['redeliver', 'dismiss', 'rotateKey', 'deactivate', 'activate', 'delete'])
    await call(`${webhook}/${operation}`);
}

it('every operation leaves one entry when it succeeds, and no read does', async () => {
  const recorded = new Set<string>();
  const countEntries: Around = async (server, name, send) => {
    let answer;
    const entries = await newEntries(server, async () => {
      answer = await send();
    });
    const ownEntries = entries.filter(({ user }) => user !== null);
    for (const { operation } of ownEntries) recorded.add(operation);
    const one = { user: 'administrator', role: 'administrator', address: '127.0.0.1', outcome: 'success' };
    const expected = { ...one, at: server.runtime.now(), code: 200, count: 1 };
    expect(ownEntries, name).toHaveLength(leavesNone.test(name) ? 0 : 1);
    expect(ownEntries, name).toMatchObject(leavesNone.test(name) ? [] : [expected]);
    return answer as never;
  };
  await takeTour(countEntries);
  for (const service of ['World.MapServer', 'Maps/Roads.MapServer'])
    await visitBeneath(shared, service, countEntries);
  expect([...recorded].sort(), 'test/documents/reference/api-tour.ts calls every operation.').toEqual(
    operations.sort(),
  );
});

/** They accept an empty form, so no administrator is refused. */
const needNoField = [
  'services/webhooks/settings',
  'services/webhooks/activateAll',
  'services/webhooks/deactivateAll',
  'services/webhooks/deleteAll',
  'services/webhooks/redeliver',
  'system/upgrades/deleteImportedManifest',
];

describe('every operation with a token', () => {
  const withToken = () => operations.filter((name) => !/^tokens\/|^generateToken$/.test(name));
  /** The ids do not exist, so that an allowed caller gets 404 or 400. */
  const pathOf = (operation: string) =>
    operation.replaceAll('{service}', 'None.Such').replaceAll(/\{\w+\}/g, 'None');
  const call = (server: Server, operation: string, token: string) =>
    server.post(`/admin/${pathOf(operation)}`, {}, { authorization: `Bearer ${token}` });

  it('leaves one entry when it is refused', async () => {
    for (const operation of withToken()) {
      for (const role of ['member', 'administrator'] as const) {
        let status = 0;
        const entries = await newEntries(shared, async () => {
          status = (await call(shared, operation, shared.token(role))).statusCode;
        });
        if (status === 200) {
          expect(needNoField, 'The operation accepts an empty form.').toContain(operation);
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
      ([name, entry]) => entry.operation?.whileReadOnly === 'refused' && withToken().includes(name),
    );
    expect(refused.length).toBeGreaterThan(20);
    for (const [operation] of refused) {
      const entries = await newEntries(server, async () => {
        expect((await call(server, operation, server.token('administrator'))).statusCode).toBe(503);
      });
      expect(entries, operation).toMatchObject([{ operation, outcome: 'refused', code: 503 }]);
    }
  });

  it('leaves no entry without a known caller', async () => {
    const entries = await newEntries(shared, async () => {
      for (const operation of withToken())
        expect((await call(shared, operation, 'unknown token')).statusCode).toBe(401);
    });
    expect(entries).toEqual([]);
  });
});

it('reads by a form, by POST and of nothing leave no entry', async () => {
  const entries = await newEntries(shared, async () => {
    await shared.get('/admin/services/createFolder?f=html', headersOf(shared));
    await post(shared, 'security/users');
    await shared.get('/admin/nothing', headersOf(shared));
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
