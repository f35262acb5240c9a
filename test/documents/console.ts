// The scenes that the screenshots show, on a server whose clock and ids are those of the fake runtime: the same in
// every run.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { type Server, namespace, password, startServer } from '../kit/server.ts';

const readAsset = (name: string) =>
  readFileSync(new URL(`../../src/console/assets/${name}`, import.meta.url), 'utf8');

/** The stylesheet and the script of the pages. The test server itself has neither. */
export const assets = { stylesheet: readAsset('steward.css'), script: readAsset('steward.js') };

export type SceneName = 'home' | 'webhook' | 'soap' | 'upgrade' | 'failed' | 'audit';

/** A page, and the SHA-256 of what it shows. */
export type Scene = {
  readonly name: SceneName;
  readonly path: string;
  readonly session: string;
  readonly server: Server;
  readonly hash: string;
};

/** The folder whose services the SOAP scene lists. */
export const folderName = 'Tools';

const seconds = (count: number) => count * 1000;
const minutes = (count: number) => seconds(60 * count);
const hours = (count: number) => minutes(60 * count);

/** Calls `visit` for each scene, one after the other: the server is in the state of the scene only during the call. */
export async function playScenes(visit: (scene: Scene) => Promise<void>): Promise<void> {
  let isBoardDown = false;
  const server = await startServer({
    env: { UPGRADE_STEP_MS: '2500', SIMULATED_FAILURES: 'SEARCH_INDEX:1' },
    receiver: async ({ url }) => {
      const isDown = isBoardDown && url.includes('board');
      await server.runtime.sleep(isDown ? 240 : 80);
      return isDown ? { status: 503, body: Buffer.from('{"error":"maintenance until 10:00"}') } : 204;
    },
  });
  server.runtime.newId = createIds();
  try {
    await server.runtime.advance(hours(3 * 24 + 7));
    const { session, act, upload } = await signIn(server);
    const show = async (name: SceneName, path: string, answers: readonly string[] = []) => {
      const page = await server.get(path, { accept: 'text/html', cookie: `steward_session=${session}` });
      expect(page.statusCode, path).toBe(200);
      await visit({ name, path, session, server, hash: hashScene([page.body, ...answers]) });
    };

    const board = await createWebhooks(act);
    await editServices(server, act, ['Roads.MapServer', 'Elevation.ImageServer', 'Boundaries.MapServer']);
    await act('system/upgrades/upgrade', { versionManifest: '{"id":"pat_17022022_1250"}' });
    await server.runtime.advance(minutes(40));
    isBoardDown = true;
    await editServices(server, act, ['Roads.MapServer', 'Boundaries.FeatureServer', 'Elevation.ImageServer']);
    await act('services/Maps/Roads.MapServer/edit', { description: 'Roads, paths and ferries.' });
    await server.runtime.advance(seconds(2));
    await show('webhook', `/admin/services/webhooks/${board}`);
    await show('home', '/admin');
    const request = `<GetServiceDescriptionsEx xmlns="${namespace}"><FolderName>${folderName}</FolderName></GetServiceDescriptionsEx>`;
    await show('soap', '/services', [(await server.soap(request)).body]);

    const license = { id: 'licenseUpload', value: await upload('license.json', '{"licensed":true}') };
    const { jobId } = await act<{ jobId: string }>('system/upgrades/upgrade', {
      versionManifest: '{"id":"rel_14072022_2632"}',
      upgradeSettings: JSON.stringify({ userInputs: [license] }),
    });
    await server.runtime.advance(minutes(5));
    await show('upgrade', `/admin/system/jobs/${jobId}`);
    await server.runtime.advance(minutes(10));
    await show('failed', `/admin/system/jobs/${jobId}`);
    await show('audit', '/admin/system/audit');
  } finally {
    await server.close();
  }
}

/** Ids that look like the real ones and are the same in every run. */
function createIds(): () => string {
  let count = 0;
  return () => {
    const digits = createHash('sha256')
      .update(`id ${(count += 1)}`)
      .digest('hex');
    return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5');
  };
}

type Act = <T>(path: string, fields: Readonly<Record<string, string>>) => Promise<T>;

/** Adds the user `admin` and signs in. */
async function signIn(server: Server) {
  const authorization = { authorization: `Bearer ${server.token('administrator')}` };
  const act: Act = async <T>(path: string, fields: Readonly<Record<string, string>>) => {
    const response = await server.post(`/admin/${path}`, fields, authorization);
    expect(response.statusCode, response.body).toBe(200);
    return response.json<T>();
  };
  await act('security/users/add', { username: 'admin', password, role: 'administrator' });
  const answer = await server.post('/tokens/generateToken', {
    username: 'admin',
    password,
    expiration: '20160',
  });
  const session = answer.json<{ token: string }>().token;
  authorization.authorization = `Bearer ${session}`;
  const upload = async (name: string, content: string) => {
    const file = { itemFile: { name, content } };
    const response = await server.postParts('/admin/uploads/upload', file, session);
    return response.json<{ item: { itemID: string } }>().item.itemID;
  };
  return { session, act, upload };
}

/** Returns the id of the webhook whose receiver fails later. */
async function createWebhooks(act: Act): Promise<string> {
  const create = async (name: string, hookUrl: string, changeTypes: string) =>
    (
      await act<{ webhook: { id: string } }>('services/webhooks/create', {
        name,
        hookUrl: `https://${hookUrl}`,
        changeTypes,
      })
    ).webhook.id;
  await create('Chat room', 'chat.example.com/hooks/steward', '*');
  await create('Search index', 'search.example.com/reindex', 'ServiceCreated,ServiceDeleted');
  return create('Status board', 'board.example.com/events', '*');
}

async function editServices({ runtime }: Server, act: Act, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await act(`services/Maps/${name}/edit`, { capabilities: 'Map,Query' });
    await runtime.advance(minutes(25));
  }
}

/**
 * Replaces what differs from run to run, or with unrelated changes: tokens, ids, times, ports, and the versions of
 * the assets.
 */
export function mask(html: string): string {
  return html
    .replaceAll(/form_[\w-]+/g, 'form_token')
    .replaceAll(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'id')
    .replaceAll(/<time[^>]*>[^<]*<\/time>/g, '<time>')
    .replaceAll(/\b(data-(?:elapsed|run|remaining|after))="[^"]*"/g, '$1=""')
    .replaceAll(/\b\d+(?:\.\d+)? (?:ms|s|milliseconds|seconds?|minutes?|hours?|days?)\b/g, 'duration')
    .replaceAll(/localhost:\d+/g, 'localhost')
    .replaceAll(/\?v=[0-9a-f]{12}/g, '');
}

/** The SHA-256 of the masked texts, the stylesheet and the script. */
export function hashScene(texts: readonly string[], { stylesheet, script } = assets): string {
  const hash = createHash('sha256');
  for (const text of [...texts.map(mask), stylesheet, script]) hash.update(JSON.stringify(text));
  return hash.digest('hex');
}
