// Answers of writes name the fields that had no effect. The tour of the API reference sends a valid request to each write;
// stored.test.ts tests the known fields.
import { expect, it } from 'vitest';
import { type Entry, changesExisting, walk } from '../../src/rest/tree.ts';
import { type Around, takeTour } from '../documents/reference/api-tour.ts';
import { perFile } from '../kit/cleanup.ts';
import { type Server, startServer } from '../kit/server.ts';

const asAdmin = { authorization: 'Bearer token-of-the-administrator' };

type Posting = (
  path: string,
  fields: Record<string, string>,
) => { path: string; fields: Record<string, string> };

/** A tour whose requests are sent in another way. `seen` gets each answer of a write. */
function tourWith(change: Posting, seen: (name: string, answer: Record<string, unknown>) => void) {
  const changed = new WeakSet<Server>();
  const around: Around = async (server, name, send) => {
    if (!changed.has(server)) {
      changed.add(server);
      const post = server.postParts;
      server.postParts = (path, given, token) => {
        const texts = Object.entries(given).filter(
          (entry): entry is [string, string] => typeof entry[1] === 'string',
        );
        const files = Object.entries(given).filter(([, value]) => typeof value !== 'string');
        const to = change(path, Object.fromEntries(texts));
        return post(to.path, { ...to.fields, ...Object.fromEntries(files) }, token);
      };
    }
    const answer = await send();
    const { body } = answer as { body: string };
    if (name.startsWith('POST')) seen(name, JSON.parse(body) as Record<string, unknown>);
    return answer;
  };
  return takeTour(around);
}

const server = perFile(startServer);

function* writes(): Generator<[template: string, entry: Entry]> {
  const { admin, tokens } = server.app.trees;
  for (const [prefix, root] of [
    ['/admin', admin],
    ['/tokens', tokens],
  ] as const)
    for (const entry of walk(root))
      if (entry.operation?.effect === 'writes') yield [`${prefix}/${entry.route}`, entry];
}

it('every write names an unknown field of the body and of the query', async () => {
  const named = new Set<string>();
  const effects = new Map([...writes()].map(([template]) => [template.replace(/\/$/, ''), 'writes']));
  await tourWith(
    (path, fields) => ({ path: `${path}?unknownThere=1`, fields: { ...fields, unknownHere: '2' } }),
    (name, { ignored }) => {
      const template = name.slice('POST '.length).replaceAll('{serviceName}.{type}', '{service}');
      if (!effects.has(template)) return;
      expect(ignored, name).toEqual(expect.arrayContaining(['unknownThere', 'unknownHere']));
      named.add(template);
    },
  );
  expect(named.size).toBeGreaterThan(60);
});

it('a change of which no field is known is refused, and names both', async () => {
  const changes = [...writes()].filter(
    ([template, entry]) => changesExisting(entry) && !template.includes('{webhook}'),
  );
  expect(changes.length).toBeGreaterThan(5);
  for (const [template] of changes) {
    const isAtRoot = !template.includes('{folder}');
    const path = template
      .replace('{folder}', 'Maps')
      .replace('{service}', isAtRoot ? 'World.MapServer' : 'Roads.MapServer');
    const answer = await server.post(`${path}?runAsync=true`, { provider: 'x' }, asAdmin);
    expect(answer.statusCode, template).toBe(400);
    expect(answer.json<{ error: { details: string[] } }>().error.details[0]).toMatch(
      /^None of the given fields is known: runAsync, provider\. Known are \w+/,
    );
  }
});

it('names at most 20 fields, cut at 64 characters, and known ones without effect', async () => {
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`${n}_${'x'.repeat(80)}`, '1']));
  const answer = await server.post('/admin/mode/update', { isReadOnly: 'false', ...many }, asAdmin);
  const { ignored } = answer.json<{ ignored: string[] }>();
  expect(ignored).toHaveLength(20);
  expect(ignored.every((name) => name.length === 64)).toBe(true);
  const given = {
    name: 'two',
    hookUrl: 'https://example.com/',
    config: '{"deactivationPolicy":{"numberOfFailures":7}}',
  };
  const webhook = await server.post('/admin/services/webhooks/create', given, asAdmin);
  expect(webhook.json()).toMatchObject({ ignored: ['config.deactivationPolicy'] });
  const nothing = await server.post('/admin/services/webhooks/settings', {}, asAdmin);
  expect(nothing.json()).toMatchObject({ status: 'success', notificationAttempts: 3 });
});

it('a write that changes nothing moves no updatedAt, lists no change and publishes no event', async () => {
  const own = await startServer();
  const send = async (path: string, fields: Record<string, string>) =>
    (await own.post(`/admin/${path}`, fields, asAdmin)).json<{ id: string }>();
  const { id } = await send('services/webhooks/create', { name: 'all', hookUrl: 'https://example.com/' });
  await own.runtime.advance(1000);
  const newest = async () =>
    (await own.get('/admin/system/audit?num=1', asAdmin)).json<{ entries: { changes: object[] }[] }>()
      .entries[0];
  const same: [string, Record<string, string>][] = [
    [`services/webhooks/${id}/edit`, { name: 'all', hookUrl: 'https://example.com/', active: 'true' }],
    [`services/webhooks/${id}/activate`, {}],
    ['services/World.MapServer/edit', { capabilities: 'Map, Query,Data', access: 'public' }],
    ['services/World.MapServer/start', {}],
    ['services/webhooks/settings', { notificationAttempts: '3' }],
    ['mode/update', { isReadOnly: 'false' }],
  ];
  for (const [path, fields] of same) {
    expect(await send(path, fields), path).toMatchObject(path === 'mode/update' ? {} : { status: 'success' });
    expect((await newest())?.changes, path).toEqual([]);
  }
  const webhook = (await own.get(`/admin/services/webhooks/${id}`, asAdmin)).json<{
    createdAt: number;
    updatedAt: number;
  }>();
  expect(webhook.updatedAt).toBe(webhook.createdAt);
  const world = (await own.get('/admin/services/World.MapServer', asAdmin)).json<{
    createdAt: number;
    updatedAt: number;
  }>();
  expect(world.updatedAt).toBe(world.createdAt);
  expect((await own.get(`/admin/services/webhooks/${id}/deliveries`, asAdmin)).json()).toMatchObject({
    total: 0,
  });
});
