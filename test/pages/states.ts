// The states of the pages, in stories: each story starts a server, changes it step by step, and shows pages on the way.
// The walks over them compare texts (pages.test.ts), check accessibility (test/browser) and take pictures
// (test/documents). Time and ids are those of the fake runtime: the same in every run.
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import type { Role } from '../../src/lib/caller.ts';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { type Hooks, quick, startHooks } from '../kit/hooks.ts';
import { sampleManifest } from '../kit/sample-manifest.ts';
import { type ServerOptions, namespace, password } from '../kit/server.ts';

export type State = {
  /** The story and the page. */
  readonly name: string;
  readonly server: Hooks;
  readonly path: string;
  /** The token of the session, if there is one. */
  readonly session: string | undefined;
  readonly status: number;
  /** The part of the page that only this state shows. */
  readonly part: 'main' | 'header' | 'body';
  /** What the page shows after a click. */
  readonly answers: readonly string[];
};

type Shown = Partial<Pick<State, 'session' | 'status' | 'part' | 'answers'>> & {
  readonly role?: Role | 'nobody';
};
type Show = (page: string, path: string, shown?: Shown) => Promise<void>;
type Story = { readonly options?: ServerOptions; tell(server: Hooks, show: Show): Promise<void> };

const seconds = (count: number) => count * 1000;
const minutes = (count: number) => seconds(60 * count);
const hours = (count: number) => minutes(60 * count);

const services = '/admin/services';
const webhooks = '/admin/services/webhooks';
const upgrades = '/admin/system/upgrades';
const patch = 'pat_17022022_1250';
const release = 'rel_14072022_2632';

const wizardOf = (id: string, fields: Record<string, string> = {}, step = 'plan') =>
  `${upgrades}/${step}?${new URLSearchParams({ versionManifest: JSON.stringify({ id }), ...fields }).toString()}`;
const withLicense = (value: string) => ({
  upgradeSettings: JSON.stringify({ userInputs: [{ id: 'licenseUpload', value }] }),
});

/** Sends a form of the API as an administrator, or as the user of a session. */
async function act<T>(
  server: Hooks,
  path: string,
  fields: Readonly<Record<string, string>> = {},
  session = server.token('administrator'),
): Promise<T> {
  const response = await server.post(`/admin/${path}`, fields, { authorization: `Bearer ${session}` });
  expect(response.statusCode, response.body).toBe(200);
  return response.json<T>();
}

async function upload(
  server: Hooks,
  name: string,
  session = server.token('administrator'),
  fields: Record<string, string> = {},
): Promise<string> {
  const itemFile = { name, content: '{"licensed":true}' };
  const response = await server.postParts('/admin/uploads/upload', { itemFile, ...fields }, session);
  return response.json<{ item: { itemID: string } }>().item.itemID;
}

const startUpgrade = (server: Hooks, id: string) =>
  act(server, 'system/upgrades/upgrade', { versionManifest: JSON.stringify({ id }) });
const newestJobPath = ({ store }: Hooks) => `system/jobs/${store.read(newestJob)?.id ?? ''}`;

/** A server that nobody has used yet. */
const start: Story = {
  async tell(server, show) {
    await server.runtime.advance(hours(2));
    await show('home', '/admin', { part: 'body' });
    await show('home of a publisher', '/admin', { role: 'publisher' });
    await show('sign-in', '/admin/services?q=map', { role: 'nobody', status: 401 });
    await show('not found', `${services}/Maps/Nothing.MapServer`, { status: 404 });
    await show('not allowed', '/admin/security/users/add', { role: 'member', status: 403 });
    await show('services', services);
    await show('folder', `${services}/Maps?sort=changed&type=MapServer&num=1`, { role: 'publisher' });
    await show('search', `${services}?q=tools`, { role: 'member' });
    await show('nothing found', `${services}?q=%22%3E%3Cb%3E`);
    await show('service', `${services}/Maps/Roads.MapServer`, { role: 'publisher' });
    await show('delete service', `${services}/Maps/Roads.MapServer/delete`);
    await show('create service', `${services}/createService?folderName=Maps`, { role: 'publisher' });
    await show('users', '/admin/security/users');
    await show('add user', '/admin/security/users/add?username=mia&password=secret12&role=publisher');
    await show('change user', '/admin/security/users/update?username=member&role=member');
    await show('account', '/admin/security/self');
    await show('no uploads', '/admin/uploads');
    await show('no webhooks', webhooks);
    await show('settings of webhooks', `${webhooks}/settings`);
    await show('event types', `${webhooks}/eventTypes`);
    await show('no jobs', '/admin/system/jobs');
    await show('upgrades', upgrades);
    await show('versions', `${upgrades}/available`);
    await show('maintenance windows', `${upgrades}/config`);
    await show('settings of a release', wizardOf(release));
    await show('plan of a patch', wizardOf(patch));
    await show('installed version', wizardOf('rel_10092021_1234'));
    await show('no audit entries', '/admin/system/audit?q=nothing+like+this');
  },
};

/** Uploads, keys, users and the mode. */
const administration: Story = {
  async tell(server, show) {
    const license = await upload(server, 'a <b>.json', undefined, { description: 'Of May' });
    await show('uploads', '/admin/uploads');
    await show('delete upload', `/admin/uploads/${license}/delete`);
    await show('plan of a release', wizardOf(release, withLicense(license), 'upgrade'));
    await show('unusable license', wizardOf(release, withLicense(await upload(server, 'license.txt'))));
    await act(server, 'security/self/keys/create', { name: 'nightly' });
    await show('keys', '/admin/security/keys');
    await show('own keys', '/admin/security/self/keys');
    await show('create key', '/admin/security/self/keys/create?next=%2Fadmin%2Fsecurity%2Fkeys');
    await act(server, 'mode/update', { isReadOnly: 'true', message: 'Moving <house>' });
    await show('read-only mode', '/admin/mode');
    await show('banner of read-only mode', '/admin/uploads/upload', { part: 'header' });
    await show('refused form', '/admin/uploads/upload');
    await show('read-only home', '/admin', { role: 'member' });
  },
};

/** Webhooks of every health. */
const hooks: Story = {
  async tell(server, show) {
    await server.act('settings', { ...quick, numberOfFailures: '3' });
    server.answerWith({ status: 500, body: Buffer.from('{"error":"<full>"}'), headers: { 'x-host': 'one' } });
    const register = async (name: string, fields: Record<string, string> = {}) =>
      (await server.register({ name, changeTypes: 'Tested', ...fields })).id;
    const publish = async (fields: Record<string, string> = {}) => {
      await server.publish(fields);
      await server.runtime.advance(seconds(20));
    };
    await register('never', { active: 'false' });
    await register('fine', { changeTypes: 'Other', service: 'World.MapServer' });
    await act(server, 'services/createService', { serviceName: 'New', type: 'T' });
    await register('of a deleted service', { changeTypes: 'Other', service: 'New.T' });
    await act(server, 'services/New.T/delete');
    const headers = '{"X-Key":"a secret value"}';
    const off = await register('off', { hookUrl: 'http://hooks.example/in?key=geheim', headers });
    await server.act(`${off}/rotateKey`);
    await server.act(`${off}/deactivate`);
    await register('deactivated');
    await publish();
    const failing = await register('failing <1>', { headers });
    await publish();
    const pinged = await register('pinged', { changeTypes: 'Other' });
    await server.act(`${pinged}/ping`);
    await register('failed once');
    await publish({ payload: '{"text":"<script>"}', service: 'World.MapServer' });
    await server.deliver();
    await show('list', webhooks);
    await show('part of the list', `${webhooks}?q=f&sort=name&start=1&num=1`);
    await show('without a session', `${webhooks}?f=html&token=${server.token('administrator')}&num=1`, {
      role: 'nobody',
    });
    await show('inactive', `${webhooks}/${off}`);
    await show('deactivate', `${webhooks}/${failing}/deactivate`);
    await show('home', '/admin');
    await show('service', `${services}/World.MapServer`);
    await show('deliveries', `${webhooks}/deliveries?state=failed&status=500&eventId=&from=0&num=2`);
    const [pending, failed] = (await server.deliveriesOf(failing)).deliveries;
    await show('pending delivery', `${webhooks}/${failing}/deliveries/${pending?.id}`);
    await show('failed delivery', `${webhooks}/${failing}/deliveries/${failed?.id}`);
    const [missed] = (await server.deliveriesOf(off)).deliveries;
    await show('missed delivery', `${webhooks}/${off}/deliveries/${missed?.id}`);
  },
};

/** A patch that is cancelled, then one that can be rolled back. */
const patches: Story = {
  options: { env: { UPGRADE_STEP_MS: '1000' } },
  async tell(server, show) {
    await startUpgrade(server, patch);
    await server.runtime.advance(seconds(9));
    await show('running', upgrades);
    await show('without a session', `${upgrades}?f=html&token=${server.token('administrator')}`, {
      role: 'nobody',
    });
    await show('wizard', `${upgrades}/plan`, { status: 409 });
    await show('home', '/admin');
    await act(server, `${newestJobPath(server)}/cancel`);
    await server.runtime.advance(hours(1));
    await show('cancelled', `/admin/${newestJobPath(server)}`);
    await startUpgrade(server, 'pat_28042022_1260');
    await server.runtime.advance(hours(1));
    await show('succeeded', upgrades);
    await show('rollback', `${upgrades}/rollback`);
  },
};

/** A patch that fails; the job puts its workloads back until it is stopped. */
const reverting: Story = {
  options: { env: { UPGRADE_STEP_MS: '1000', SIMULATED_FAILURES: 'SECURITY_DIRECTORY:1' } },
  async tell(server, show) {
    await startUpgrade(server, patch);
    while (server.store.read(newestJob)?.reverting === null) await server.runtime.advance(seconds(1));
    await show('reverting', upgrades);
    await act(server, `${newestJobPath(server)}/cancel`, { stop: 'true' });
    await server.runtime.advance(hours(1));
    await show('stopped', `/admin/${newestJobPath(server)}`);
    await show('home', '/admin');
    await show('versions', `${upgrades}/available`);
  },
};

/** The folder whose services the page of the SOAP service lists. */
export const folderName = 'Tools';

let isBoardDown = false;

/** What the pictures of the documents show: webhooks, and a release that fails. */
const pictures: Story = {
  options: { env: { UPGRADE_STEP_MS: '2500', SIMULATED_FAILURES: 'SEARCH_INDEX:1' } },
  async tell(server, show) {
    isBoardDown = false;
    server.httpClient.receiver = async ({ url }) => {
      const isDown = isBoardDown && url.includes('board');
      await server.runtime.sleep(isDown ? 240 : 80);
      return isDown ? { status: 503, body: Buffer.from('{"error":"maintenance until 10:00"}') } : 204;
    };
    server.runtime.newId = createIds();
    await server.runtime.advance(hours(3 * 24 + 7));
    const session = await signIn(server);
    const actAsAdmin = <T>(path: string, fields: Record<string, string>) =>
      act<T>(server, path, fields, session);
    const register = async (name: string, hookUrl: string, changeTypes: string) => {
      const fields = { name, hookUrl: `https://${hookUrl}`, changeTypes };
      return (await actAsAdmin<{ webhook: { id: string } }>('services/webhooks/create', fields)).webhook.id;
    };
    const edit = async (...names: readonly string[]) => {
      for (const name of names) {
        const capabilities = isBoardDown ? 'Map,Query,Data' : 'Map,Query,Export';
        await actAsAdmin(`services/Maps/${name}/edit`, { capabilities });
        await server.runtime.advance(minutes(25));
      }
    };
    await register('Chat room', 'chat.example.com/hooks/steward', '*');
    await register('Search index', 'search.example.com/reindex', 'ServiceCreated,ServiceDeleted');
    const board = await register('Status board', 'board.example.com/events', '*');
    await edit('Roads.MapServer', 'Elevation.ImageServer', 'Boundaries.MapServer');
    await actAsAdmin('system/upgrades/upgrade', { versionManifest: `{"id":"${patch}"}` });
    await server.runtime.advance(minutes(40));
    isBoardDown = true;
    await edit('Roads.MapServer', 'Boundaries.FeatureServer', 'Elevation.ImageServer');
    await actAsAdmin('services/Maps/Roads.MapServer/edit', { description: 'Roads, paths and ferries.' });
    await server.runtime.advance(seconds(2));
    await show('webhook', `${webhooks}/${board}`, { session });
    await show('home', '/admin', { session });
    const request = `<GetServiceDescriptionsEx xmlns="${namespace}"><FolderName>${folderName}</FolderName></GetServiceDescriptionsEx>`;
    await show('soap', '/services', { session, answers: [(await server.soap(request)).body] });

    const { jobId } = await actAsAdmin<{ jobId: string }>('system/upgrades/upgrade', {
      versionManifest: `{"id":"${release}"}`,
      ...withLicense(await upload(server, 'license.json', session)),
    });
    await server.runtime.advance(minutes(5));
    await show('upgrade', `/admin/system/jobs/${jobId}`, { session });
    await server.runtime.advance(minutes(10));
    await show('failed', `/admin/system/jobs/${jobId}`, { session });
    await show('audit', '/admin/system/audit', { session });
    const filter = 'operation=services/{folder}/{service}/edit&outcome=success&user=admin&num=1';
    await show('filtered audit', `/admin/system/audit?${filter}`, { session });
    await show('versions', `${upgrades}/available`, { session });
    await show('jobs', '/admin/system/jobs', { session });
  },
};

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

/** Adds the user `admin`, and returns the token of its session. */
async function signIn(server: Hooks): Promise<string> {
  await act(server, 'security/users/add', { username: 'admin', password, role: 'administrator' });
  const fields = { username: 'admin', password, expiration: '20160' };
  return (await server.post('/tokens/generateToken', fields)).json<{ token: string }>().token;
}

/** Nobody knows what is installed, because the manifest names no release. */
const unknown: Story = {
  options: {
    present: null,
    manifest: {
      ...sampleManifest,
      versions: sampleManifest.versions.filter(({ type }) => type === 'patch'),
    },
  },
  async tell(server, show) {
    await show('home', '/admin');
    await show('upgrades', upgrades);
    await show('versions', `${upgrades}/available`);
    await show('adopt', `${upgrades}/adopt`);
    await show('plan', wizardOf(patch), { status: 409 });
    await act(server, 'system/upgrades/adopt', { installedVersion: patch });
    await show('adopted', upgrades);
  },
};

const stories = { start, administration, webhooks: hooks, patches, reverting, unknown, pictures };

export type StoryName = keyof typeof stories;
export const storyNames = Object.keys(stories) as StoryName[];

/** Calls `visit` for each state, one after the other: the server is in that state only during the call. */
export async function walkStory(
  name: StoryName,
  visit: (state: State) => Promise<void>,
  options: ServerOptions = {},
): Promise<void> {
  const story: Story = stories[name];
  const server = await startHooks({ ...story.options, ...options });
  const show: Show = async (page, path, { role = 'administrator', ...shown } = {}) => {
    const session = role === 'nobody' ? undefined : server.token(role);
    const state = { server, path, session, status: 200, part: 'main' as const, answers: [], ...shown };
    await visit({ ...state, name: `${name}/${page}` });
  };
  try {
    await story.tell(server, show);
  } finally {
    await server.close();
  }
}

/** The HTML of the page in a state. */
export async function readPage({ server, path, session, status }: State): Promise<string> {
  const cookie = session && { cookie: `steward_session=${session}` };
  const page = await server.get(path, { accept: 'text/html', ...cookie });
  expect(page.statusCode, path).toBe(status);
  return page.body;
}
