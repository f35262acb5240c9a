// A success has changed something: for every field of every write, in the body and in the query, two valid values have
// two effects on the stored state, or are refused because of the field, or the field is named in `ignored`.
import { expect, it } from 'vitest';
import { tables } from '../../src/app/backends.ts';
import { choicesOf, describeField, readField } from '../../src/rest/fields.ts';
import { type Entry, walk } from '../../src/rest/tree.ts';
import { modeSetting } from '../../src/mode/mode.ts';
import type { Cell, Reader, Table } from '../../src/store/state.ts';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { maintenanceWindows } from '../../src/upgrades/schedule/windows.ts';
import { deployment, importedManifest } from '../../src/upgrades/versions/deployment.ts';
import { webhookSettings } from '../../src/webhooks/settings.ts';
import { startHooks } from '../kit/hooks.ts';
import { freshRelease, sampleManifest } from '../kit/sample-manifest.ts';
import { password } from '../kit/server.ts';

const cells: readonly Cell<never>[] = [
  modeSetting,
  newestJob,
  maintenanceWindows,
  deployment,
  importedManifest,
  webhookSettings,
] as readonly unknown[] as Cell<never>[];
const allTables = tables as readonly Table<{ readonly id: string }>[];

const stateOf = (reader: Reader) => ({
  rows: allTables.map((table) => new Map([...reader.all(table)].map((row) => [table.keyOf(row), row]))),
  cells: cells.map((cell) => reader.read(cell)),
});
type State = ReturnType<typeof stateOf>;

const patches = sampleManifest.versions.filter(
  ({ version, type }) => version === '10.9.1' && type === 'patch',
);
const hour = 3_600_000;

/** A deployment with two patches, webhooks with failed deliveries, keys, tokens and an upload. */
async function startWorld() {
  const server = await startHooks({ present: { release: freshRelease, patches } });
  const { runtime, store } = server;
  const admin = server.token('administrator');
  const send = async <T>(path: string, fields: Record<string, string>) => {
    const answer = await server.post(`/admin/${path}`, fields, server.administrator);
    expect(answer.statusCode, answer.body).toBe(200);
    return answer.json<T>();
  };
  await server.act('settings', { notificationAttempts: '1' });
  const hooks: string[] = [];
  for (let index = 0; index < 4; index += 1)
    hooks.push((await server.register({ service: 'World.MapServer' })).id);
  const inactive = (await server.register({ service: 'World.MapServer' })).id;
  /** Publishes an event that no webhook gets. */
  const fail = async () => {
    server.answerWith(500);
    const { eventId } = await server.publish({ service: 'World.MapServer' });
    await server.settle();
    server.answerWith(200);
    return eventId;
  };
  const event = await fail();
  await server.act(`${inactive}/deactivate`);
  const key = async (name: string) => (await send<{ id: string }>('security/self/keys/create', { name })).id;
  const keys = [await key('one'), await key('two')];
  const sessions: string[] = [];
  for (let index = 0; index < 2; index += 1)
    await server.post('/tokens/generateToken', { username: 'administrator', password });
  const self = await server.get('/admin/security/self', server.administrator);
  for (const { id } of self.json<{ sessions: { id: string }[] }>().sessions) sessions.push(id);
  const itemFile = { name: 'license.json', content: '{}' };
  const uploaded = await server.postParts('/admin/uploads/upload', { itemFile }, admin);
  const license = uploaded.json<{ item: { itemID: string } }>().item.itemID;
  const schedule = async () => {
    const fields = { versionManifest: release, startAt: String(runtime.now() + hour), ...settings(license) };
    return (await send<{ jobId: string }>('system/upgrades/upgrade', fields)).jobId;
  };
  runtime.newSecret = (bytes) => Buffer.alloc(bytes, 7);
  const ids = Number(runtime.newId().slice('id-'.length));
  return {
    server,
    store,
    runtime,
    admin,
    hooks,
    inactive,
    event,
    keys,
    sessions,
    license,
    schedule,
    fail,
    ids,
  };
}

type World = Awaited<ReturnType<typeof startWorld>>;

const release = 'rel_14072022_2632';
const settings = (license: string) => ({
  upgradeSettings: JSON.stringify({ userInputs: [{ id: 'licenseUpload', value: license }] }),
});
const manifest = (count: number) => JSON.stringify(sampleManifest.versions.slice(0, count));

/** Values by the name of the field, after the last part of the path if they differ there. The field refuses the others. */
function valuesIn({
  server,
  hooks,
  inactive,
  event,
  keys,
  sessions,
  license,
  runtime,
}: World): Record<string, unknown[]> {
  const at = (hours: number) => String(runtime.now() + hours * hour);
  const window = (from: string) =>
    JSON.stringify([{ days: ['mon'], from, to: '23:00', timeZone: 'Europe/Vienna' }]);
  return {
    ids: [hooks[2], inactive],
    changeType: ['Tested', 'Checked'],
    eventId: [event, 'none'],
    from: ['0', String(runtime.now() + 1)],
    to: ['0', String(runtime.now() + 1)],
    service: ['World.MapServer', 'Maps/Roads.MapServer', '{"a":1}', '{"b":2}'],
    signatureKey: ['one', 'two'].map((text) => `whsec_${Buffer.from(text.repeat(12)).toString('base64')}`),
    headers: ['{"x-one":"1"}', '{"x-two":"2"}'],
    state: ['failed', 'discarded'],
    status: ['500', '4xx'],
    'createService folderName': ['Maps', 'Tools'],
    'update username': ['member', 'publisher'],
    'remove username': ['member', 'publisher'],
    'endSessions username': ['member', 'publisher'],
    'generateToken username': ['administrator', 'member'],
    'generateToken password': [password, 'a wrong password'],
    'changePassword password': [password, 'a wrong password'],
    password: ['one password', 'another password'],
    newPassword: ['one password', 'another password'],
    client: ['requestip', 'ip', 'referer'],
    ip: ['10.0.0.1', '10.0.0.2'],
    'delete id': keys,
    'endSession id': sessions,
    token: [server.token('member'), server.token('publisher')],
    auth_token: [server.token('member'), server.token('publisher')],
    expires: [at(24), at(48)],
    startAt: [at(2), at(3)],
    'rollback versionManifest': [freshRelease.id, patches[0]?.id],
    versionManifest: [release, 'rel_unknown'],
    upgradeSettings: [settings(license).upgradeSettings, '{"userInputs":[]}'],
    planDigest: ['0'.repeat(64), '1'.repeat(64)],
    versionManifestFile: [manifest(4), manifest(5)],
    manifestFile: [manifest(4), manifest(5)],
    installedVersion: patches.map(({ id }) => id),
    windows: [window('20:00'), window('21:00')],
    'upload itemFile': ['one', 'two'].map((content) => ({ name: `${content}.txt`, content })),
  };
}

/** What a request has besides, by the end of its path. Each is a case of its own. */
const others: Record<string, (world: World) => Record<string, string>[]> = {
  generateToken: () => [
    {},
    { client: 'ip', ip: '10.0.0.1' },
    { client: 'referer', referer: 'https://one.example/' },
  ],
  upgrade: ({ license, runtime }) => [{ startAt: String(runtime.now() + hour), ...settings(license) }],
  rollback: ({ runtime }) => [{ startAt: String(runtime.now() + hour) }],
  'users/update': () => [{ username: 'member', role: 'member' }],
  publish: () => [{ service: 'World.MapServer' }],
  'users/add': () => [{ role: 'member' }],
  'oauth2/revokeToken': ({ server }) => [{}, { auth_token: server.token('member') }],
};

const generic = [
  'alpha1',
  'beta2',
  '1',
  '2',
  'https://one.example/',
  'https://two.example/',
  '{"a":1}',
  '{"b":2}',
];

/** Two values that the field accepts. */
function validValues(world: World, { route, operation }: Entry, name: string): unknown[] {
  const field = operation?.fields[name];
  if (!field) return [];
  const described = describeField(field);
  const own = valuesIn(world);
  const last = route.split('/').at(-1) ?? '';
  const { minimum } = described.schema;
  const numbers = minimum === undefined ? [] : [String(minimum), String(minimum + 1)];
  const all = own[`${last} ${name}`] ?? [
    ...(own[name] ?? []),
    ...(choicesOf(described) ?? []),
    ...numbers,
    ...generic,
  ];
  return all.filter((value) => typeof value !== 'string' || 'value' in readField(field, value)).slice(0, 2);
}

type Fields = Record<string, unknown>;

/** Sends one request, and puts back the state from before. */
async function observe(world: World, path: string, body: Fields, query: Fields = {}) {
  const { server, store, runtime } = world;
  const before = stateOf(store);
  const ids = new Set((await store.deliveries.page({}, 0, 100)).deliveries.map(({ id }) => id));
  const update = store.update.bind(store);
  let written = '';
  store.update = (rule) =>
    update((transaction) => {
      const result = rule(transaction);
      written ||= JSON.stringify(differences(before, stateOf(transaction)));
      return result;
    });
  const search = new URLSearchParams(query as Record<string, string>).toString();
  const texts = { ...(path.startsWith('/tokens') || 'token' in body ? {} : { f: 'json' }), ...body };
  const answer = await server.postParts(
    `${path}${search && `?${search}`}`,
    texts,
    /generateToken|evokeToken/.test(path) ? '' : world.admin,
  );
  store.update = update;
  await runtime.advance(0);
  const { deliveries } = await store.deliveries.page({}, 0, 100);
  const events = deliveries
    .filter(({ id }) => !ids.has(id))
    .map(({ event, webhookId }) => [event.type, event.data, webhookId]);
  await restore(store, before);
  const { ignored = [], ...json } = answer.json<{ ignored?: string[] }>();
  const effect = JSON.stringify([written, json, events]).replaceAll(/\bid-(\d+)/g, (id, number) =>
    Number(number) > world.ids ? 'id' : id,
  );
  return { isAccepted: answer.statusCode === 200, effect, ignored, body: answer.body };
}

function differences(before: State, after: State): unknown {
  return [
    after.rows.map((rows, index) => [...rows].filter(([key, row]) => before.rows[index]?.get(key) !== row)),
    before.rows.map((rows, index) => [...rows.keys()].filter((key) => !after.rows[index]?.has(key))),
    after.cells,
  ];
}

async function restore(store: World['store'], before: State): Promise<void> {
  await store.update((transaction) => {
    for (const [index, table] of allTables.entries()) {
      const kept = before.rows[index];
      for (const key of Array.from(transaction.all(table), table.keyOf))
        if (!kept?.has(key)) transaction.remove(table, key);
      for (const row of kept?.values() ?? []) transaction.put(table, row);
    }
    for (const [index, cell] of cells.entries()) transaction.write(cell, before.cells[index] as never);
  });
}

/** The path of the operation, with the ids of the world. */
async function pathOf(world: World, prefix: string, route: string): Promise<string> {
  const ids: Record<string, string> = {
    folder: 'Maps',
    service: 'World.MapServer',
    webhook: (route.endsWith('/activate') ? world.inactive : world.hooks[0]) ?? '',
    itemID: world.license,
    job: route.includes('{job}') ? await world.schedule() : '',
  };
  return `/${prefix}/${route.replaceAll(/\{(\w+)\}/g, (_all, name: string) => ids[name] ?? '')}`;
}

const secrets = ['password', 'newPassword', 'signatureKey', 'key', 'username'];

it(
  'two valid values of a field have two effects, or are refused, or the field is named',
  { timeout: 120_000 },
  async () => {
    const world = await startWorld();
    const { admin, tokens } = world.server.app.trees;
    const before = stateOf(world.store);
    const counts = { stored: 0, refused: 0, named: 0 };
    const wrong: string[] = [];
    const entries = [...walk(admin)].map((entry) => ['admin', entry] as const);
    for (const [prefix, entry] of [...entries, ...[...walk(tokens)].map((one) => ['tokens', one] as const)]) {
      const { operation, route } = entry;
      // The services of a folder have the operations of those at the root.
      if (operation?.effect !== 'writes' || route.includes('{folder}/{service}')) continue;
      const names = Object.keys(operation.fields).filter((name) => name !== 'next');
      const required = names.filter((name) => describeField(operation.fields[name] as never).isRequired);
      const end = Object.keys(others).find((one) => route === one || route.endsWith(`/${one}`)) ?? '';
      for (const other of others[end]?.(world) ?? [{}])
        for (const name of names) {
          const where = `${prefix}/${route} ${name} ${JSON.stringify(other)}`;
          const path = await pathOf(world, prefix, route);
          if (route.endsWith('/redeliver')) world.event = await world.fail();
          const values = Object.fromEntries(names.map((one) => [one, validValues(world, entry, one)]));
          const needed = Object.fromEntries(required.map((one) => [one, values[one]?.[0]]));
          const base: Fields = Object.fromEntries(
            Object.entries({ ...needed, ...other }).filter(([one]) => one !== name),
          );
          const [one, two = one] = values[name] ?? [];
          if (one === undefined) {
            wrong.push(`${where}: no valid value`);
            continue;
          }
          const inQuery = typeof two === 'string' && !secrets.includes(name);
          const results = [
            await observe(world, path, { ...base, [name]: one }),
            await observe(
              world,
              path,
              inQuery ? base : { ...base, [name]: two },
              inQuery ? { [name]: two } : {},
            ),
          ];
          const isNamed = results.every(({ ignored }) =>
            ignored.some((given) => given.split('.')[0] === name),
          );
          const accepted = new Set(
            results.filter(({ isAccepted }) => isAccepted).map(({ effect }) => effect),
          );
          if (isNamed) counts.named += 1;
          else if (accepted.size === 2) counts.stored += 1;
          else if (
            results.some(({ isAccepted }) => !isAccepted) &&
            (accepted.size === 1 || (await observe(world, path, base)).isAccepted)
          )
            counts.refused += 1;
          else
            wrong.push(
              `${where}: ${JSON.stringify([one, two])} ${results.map(({ body }) => body.slice(0, 200)).join(' ')}`,
            );
          await restore(world.store, before);
        }
    }
    expect(wrong, 'A new Cell must be in `cells` above.').toEqual([]);
    expect(counts).toEqual({ stored: 158, refused: 22, named: 12 });
  },
);
