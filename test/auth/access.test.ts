// Access to every resource and operation, for every role, during a job and in read-only mode.
import { beforeAll, describe, expect, it } from 'vitest';
import { adminNames } from '../../src/config/config.ts';
import { type Role, needsToken, roles } from '../../src/lib/caller.ts';
import type { Resource } from '../../src/rest/resource.ts';
import { walk } from '../../src/rest/tree.ts';
import { perFile } from '../kit/cleanup.ts';
import { type Server, startServer } from '../kit/server.ts';

/** The lowest role that may call each resource and operation, and the effect of operations. */
const expected: Record<string, [Role | 'anyone' | 'optional', ('reads' | 'writes' | 'writes always')?]> = {
  'admin ': ['member'],
  'admin generateToken': ['anyone', 'writes always'],
  'admin mode': ['member'],
  'admin mode/update': ['administrator', 'writes always'],
  'admin security': ['administrator'],
  'admin security/keys': ['administrator'],
  'admin security/keys/delete': ['administrator', 'writes always'],
  'admin security/self': ['member'],
  'admin security/self/changePassword': ['member', 'writes'],
  'admin security/self/endSession': ['member', 'writes always'],
  'admin security/self/keys': ['member'],
  'admin security/self/keys/create': ['member', 'writes'],
  'admin security/self/keys/delete': ['member', 'writes always'],
  'admin security/users': ['administrator'],
  'admin security/users/add': ['administrator', 'writes'],
  'admin security/users/update': ['administrator', 'writes'],
  'admin security/users/remove': ['administrator', 'writes'],
  'admin security/users/endSessions': ['administrator', 'writes always'],
  'admin services': ['member'],
  'admin services/createFolder': ['publisher', 'writes'],
  'admin services/createService': ['publisher', 'writes'],
  'admin services/exists': ['member', 'reads'],
  'admin services/{folder}/createService': ['publisher', 'writes'],
  'admin jobs': ['publisher'],
  'admin jobs/{serviceJob}': ['publisher'],
  'admin services/webhooks': ['administrator'],
  'admin services/webhooks/create': ['administrator', 'writes'],
  'admin services/webhooks/publish': ['publisher', 'writes'],
  'admin services/webhooks/activateAll': ['administrator', 'writes'],
  'admin services/webhooks/deactivateAll': ['administrator', 'writes'],
  'admin services/webhooks/delete': ['administrator', 'writes'],
  'admin services/webhooks/deleteAll': ['administrator', 'writes'],
  'admin services/webhooks/redeliver': ['administrator', 'writes'],
  'admin services/webhooks/deliveries': ['administrator'],
  'admin services/webhooks/deliveries/{delivery}': ['administrator'],
  'admin services/webhooks/deliveries/{delivery}/redeliver': ['administrator', 'writes'],
  'admin services/webhooks/eventTypes': ['administrator'],
  'admin services/webhooks/history': ['administrator'],
  'admin services/webhooks/settings': ['administrator'],
  'admin services/webhooks/settings (POST)': ['administrator', 'writes'],
  'admin services/webhooks/{webhook}': ['administrator'],
  'admin services/webhooks/{webhook}/edit': ['administrator', 'writes'],
  'admin services/webhooks/{webhook}/delete': ['administrator', 'writes'],
  'admin services/webhooks/{webhook}/activate': ['administrator', 'writes'],
  'admin services/webhooks/{webhook}/deactivate': ['administrator', 'writes'],
  'admin services/webhooks/{webhook}/dismiss': ['administrator', 'writes'],
  'admin services/webhooks/{webhook}/redeliver': ['administrator', 'writes'],
  'admin services/webhooks/{webhook}/rotateKey': ['administrator', 'writes'],
  'admin services/webhooks/{webhook}/ping': ['administrator', 'writes'],
  'admin services/webhooks/{webhook}/history': ['administrator'],
  'admin services/webhooks/{webhook}/deliveries': ['administrator'],
  'admin services/webhooks/{webhook}/deliveries/{delivery}': ['administrator'],
  'admin services/webhooks/{webhook}/deliveries/{delivery}/redeliver': ['administrator', 'writes'],
  'admin services/{service}': ['member'],
  'admin services/{service}/status': ['member'],
  'admin services/{service}/edit': ['publisher', 'writes'],
  'admin services/{service}/start': ['publisher', 'writes'],
  'admin services/{service}/stop': ['publisher', 'writes'],
  'admin services/{service}/delete': ['publisher', 'writes'],
  'admin services/{service}/webhooks': ['administrator'],
  'admin services/{service}/webhooks/create': ['administrator', 'writes'],
  'admin services/{service}/webhooks/activateAll': ['administrator', 'writes'],
  'admin services/{service}/webhooks/deactivateAll': ['administrator', 'writes'],
  'admin services/{service}/webhooks/deleteAll': ['administrator', 'writes'],
  'admin services/{folder}': ['member'],
  'admin services/{folder}/deleteFolder': ['publisher', 'writes'],
  'admin services/{folder}/{service}': ['member'],
  'admin services/{folder}/{service}/status': ['member'],
  'admin services/{folder}/{service}/edit': ['publisher', 'writes'],
  'admin services/{folder}/{service}/start': ['publisher', 'writes'],
  'admin services/{folder}/{service}/stop': ['publisher', 'writes'],
  'admin services/{folder}/{service}/delete': ['publisher', 'writes'],
  'admin services/{folder}/{service}/webhooks': ['administrator'],
  'admin services/{folder}/{service}/webhooks/create': ['administrator', 'writes'],
  'admin services/{folder}/{service}/webhooks/activateAll': ['administrator', 'writes'],
  'admin services/{folder}/{service}/webhooks/deactivateAll': ['administrator', 'writes'],
  'admin services/{folder}/{service}/webhooks/deleteAll': ['administrator', 'writes'],
  'admin system': ['administrator'],
  'admin system/audit': ['administrator'],
  'admin system/upgrades': ['administrator'],
  'admin system/upgrades/available': ['administrator'],
  'admin system/upgrades/installed': ['administrator'],
  'admin system/upgrades/currentVersion': ['administrator'],
  'admin system/upgrades/history': ['administrator'],
  'admin system/upgrades/history/{job}': ['administrator'],
  'admin system/upgrades/manifestStatus': ['administrator'],
  'admin system/upgrades/checkRollback': ['administrator'],
  'admin system/upgrades/config': ['administrator'],
  'admin system/upgrades/config/update': ['administrator', 'writes'],
  'admin system/upgrades/getUpgradeSettings': ['administrator', 'reads'],
  'admin system/upgrades/plan': ['administrator', 'reads'],
  'admin system/upgrades/upgrade': ['administrator', 'writes'],
  'admin system/upgrades/rollback': ['administrator', 'writes'],
  'admin system/upgrades/importManifest': ['administrator', 'writes'],
  'admin system/upgrades/deleteImportedManifest': ['administrator', 'writes'],
  'admin system/upgrades/adopt': ['administrator', 'writes'],
  'admin system/jobs': ['administrator'],
  'admin system/jobs/{job}': ['administrator'],
  'admin system/jobs/{job}/cancel': ['administrator', 'writes always'],
  'admin system/jobs/{job}/resume': ['administrator', 'writes always'],
  'admin system/jobs/{job}/reschedule': ['administrator', 'writes'],
  'admin uploads': ['administrator'],
  'admin uploads/upload': ['administrator', 'writes'],
  'admin uploads/{itemID}': ['administrator'],
  'admin uploads/{itemID}/delete': ['administrator', 'writes'],
  'tokens ': ['anyone'],
  'tokens generateToken': ['anyone', 'writes always'],
  'tokens revokeToken': ['anyone', 'writes always'],
  'tokens community': ['member'],
  'tokens community/self': ['member'],
  'tokens oauth2': ['anyone'],
  'tokens oauth2/revokeToken': ['anyone', 'writes always'],
  'tokens portals': ['anyone'],
  'tokens portals/self': ['optional'],
  'tokens sharing': ['anyone'],
  'tokens sharing/rest': ['anyone'],
  'tokens sharing/rest/info': ['anyone'],
  'tokens sharing/rest/generateToken': ['member', 'reads'],
  'rest ': ['anyone'],
  'rest info': ['anyone'],
  'rest services': ['optional'],
  'rest services/{folder}': ['optional'],
};

/** A webhook has the same resources and operations beneath its service. */
for (const [entry, access] of Object.entries(expected)) {
  if (!entry.startsWith('admin services/webhooks/{webhook}')) continue;
  for (const service of ['{service}', '{folder}/{service}'])
    expected[entry.replace('services/', `services/${service}/`)] = access;
}

/** What a key may not call for its own user. */
const refusesKeys = (entry: string, effect = '') =>
  (entry.startsWith('admin security/self/') && effect.startsWith('writes')) ||
  ['update', 'remove', 'endSessions'].some((name) => entry === `admin security/users/${name}`) ||
  entry === 'admin security/keys/delete';

const server = perFile(startServer);
/** A server with a job that never ends. */
const busy = perFile(() => startServer({ env: { UPGRADE_STEP_MS: '600000' } }));
/** The key of an administrator. */
let key: string;
let keyId: string;
beforeAll(async () => {
  const token = busy.token('administrator');
  const asAdministrator = { authorization: `Bearer ${server.token('administrator')}` };
  const created = await server.post('/admin/security/self/keys/create', { name: 'nightly' }, asAdministrator);
  ({ key, id: keyId } = created.json<{ key: string; id: string }>());
  await busy.post('/admin/system/upgrades/upgrade', { token, versionManifest: '{"id":"pat_17022022_1250"}' });
});

/** Uses ids that do not exist, so that a request changes nothing and an allowed caller gets 404 or 400. */
const pathOf = (entry: string) =>
  `/${entry
    .replace(' ', '/')
    .replace(/\{service\}/g, 'None.Such')
    .replace(/\{\w+\}/g, 'None')}`;

/** Reads a resource with GET if POST runs an operation there. */
function request(on: Server, entry: string, headers: Record<string, string>, fields = {}) {
  const path = pathOf(entry.replace(' (POST)', ''));
  return `${entry} (POST)` in expected ? on.get(path, headers) : on.post(path, fields, headers);
}

it('the table contains every resource and operation', () => {
  const entries = (name: string, root: Resource) =>
    [...walk(root)].map(({ route, resource, operation }) => {
      const isOnPost = operation !== undefined && operation === resource.onPost;
      return `${name} ${route}${isOnPost ? ' (POST)' : ''}`;
    });
  const found = Object.entries(server.app.trees).flatMap(([name, root]) => entries(name, root));
  expect(found.sort()).toEqual(Object.keys(expected).sort());
});

it('the configuration reserves every name at the root of the admin directory', () => {
  const { resources, operations } = server.app.trees.admin;
  const served = ['assets', 'openapi.json', ...Object.keys(resources), ...Object.keys(operations)];
  expect(served.sort(), 'adminNames of src/config/config.ts').toEqual([...adminNames].sort());
});

describe.each(Object.entries(expected))('%s', (entry, [access, effect]) => {
  it.each(['anonymous', ...roles] as const)('called by: %s', async (who) => {
    const headers: Record<string, string> =
      who === 'anonymous' ? {} : { authorization: `Bearer ${server.token(who)}` };
    const { statusCode } = await request(server, entry, headers);
    const allowed =
      !needsToken(access) || (who !== 'anonymous' && roles.indexOf(who) >= roles.indexOf(access));
    if (allowed) expect([200, 400, 404]).toContain(statusCode);
    else expect(statusCode).toBe(who === 'anonymous' ? 401 : 403);
  });

  it('called by: the key of an administrator', async () => {
    const fields = { username: 'administrator', id: keyId };
    const { statusCode } = await request(server, entry, { authorization: `Bearer ${key}` }, fields);
    if (refusesKeys(entry, effect)) expect(statusCode).toBe(403);
    else expect([200, 400, 404]).toContain(statusCode);
  });

  it('while a job runs', async () => {
    const headers = { authorization: `Bearer ${busy.token('administrator')}` };
    const { statusCode } = await request(busy, entry, headers);
    const isChild = entry.startsWith('admin system/upgrades/') && entry !== 'admin system/upgrades/config';
    if (isChild) expect(statusCode).toBe(409);
    else if (effect === 'writes') expect(statusCode).toBe(503);
    else expect([200, 400, 404]).toContain(statusCode);
  });

  it('in read-only mode', async () => {
    const headers = { authorization: `Bearer ${server.token('administrator')}` };
    await server.post('/admin/mode/update', { isReadOnly: 'true' }, headers);
    const { statusCode } = await request(server, entry, headers);
    if (effect === 'writes') expect(statusCode).toBe(503);
    else expect([200, 400, 404]).toContain(statusCode);
    await server.post('/admin/mode/update', { isReadOnly: 'false' }, headers);
  });
});

it.each(['', '/', '/reset', '/snapshot', '/clock', '/failures', '/requests', '/none'])(
  '/control%s is not found without TEST_CONTROL',
  async (path) => {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE'] as const) {
      const headers = {
        authorization: `Bearer ${server.token('administrator')}`,
        'content-type': 'application/json',
      };
      const response = await server.http.inject({ method, url: `/control${path}`, headers, payload: '{}' });
      expect([method, response.statusCode]).toEqual([method, 404]);
    }
  },
);
