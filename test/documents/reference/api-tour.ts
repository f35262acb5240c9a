// Calls every resource and operation once, on a server with a fixed clock and fixed ids, and records the answers
// for the API reference. test/audit/operations.test.ts counts what each call leaves in the audit trail.
import { readFileSync } from 'node:fs';
import { type Server, password, startServer } from '../../kit/server.ts';

export type Recorded = { readonly method: 'GET' | 'POST'; readonly path: string; readonly answer: unknown };

/** The answers by the path of the OpenAPI document, one for each path and method that does something of its own. */
export type Tour = ReadonlyMap<string, Recorded>;

type Fields = Record<string, string | { name: string; content: string }>;

export const keyOf = (method: string, path: string) => `${method.toUpperCase()} ${path}`;

/** Sends one request of the tour; `name` is its method and its path in the OpenAPI document. */
export type Around = <T>(server: Server, name: string, send: () => Promise<T>) => Promise<T>;

export async function takeTour(around: Around = (_server, _name, send) => send()): Promise<Tour> {
  const server = await startServer({ env: { SIMULATED_FAILURES: 'GATEWAY_PROXY:1' }, receiver: () => 204 });
  server.runtime.newSecret = (bytes) => Buffer.alloc(bytes, 'steward');
  try {
    const recorder = new Recorder(server, around);
    await visitCatalog(recorder);
    await visitWebhooks(recorder);
    await visitSecurity(recorder);
    await visitUpgrades(recorder);
    await visitTokens(recorder);
    await visitSeveralWebhooks(recorder);
    return recorder.recorded;
  } finally {
    await server.close();
  }
}

class Recorder {
  readonly recorded = new Map<string, Recorded>();
  readonly server: Server;
  readonly #around: Around;

  constructor(server: Server, around: Around) {
    this.server = server;
    this.#around = around;
  }

  get(template: string, ids: Record<string, string> = {}): Promise<unknown> {
    const path = fill(template, ids);
    return this.#record('GET', template, path, () =>
      this.server.get(path, { authorization: `Bearer ${this.server.token('administrator')}` }),
    );
  }

  post<T>(template: string, fields: Fields = {}, ids: Record<string, string> = {}): Promise<T> {
    const path = fill(template, ids);
    const token = this.server.token('administrator');
    return this.#record('POST', template, path, () =>
      this.server.postParts(path, fields, token),
    ) as Promise<T>;
  }

  /** Lets the clock run, so that deliveries are sent and jobs advance. */
  wait(seconds: number): Promise<void> {
    return this.server.runtime.advance(seconds * 1000);
  }

  async #record(
    method: 'GET' | 'POST',
    template: string,
    path: string,
    send: () => Promise<{ statusCode: number; body: string }>,
  ): Promise<unknown> {
    const key = keyOf(method, template);
    const { statusCode, body } = await this.#around(this.server, key, send);
    if (statusCode !== 200) throw new Error(`${method} ${path}: ${body}`);
    const answer: unknown = JSON.parse(body);
    if (!this.recorded.has(key)) this.recorded.set(key, { method, path, answer });
    return answer;
  }
}

function fill(template: string, ids: Record<string, string>): string {
  return template.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    const id = ids[name];
    if (id === undefined) throw new Error(`${template} needs ${name}.`);
    return id;
  });
}

async function visitCatalog(tour: Recorder): Promise<void> {
  await tour.get('/admin');
  await tour.get('/admin/mode');
  await tour.post('/admin/mode/update', { isReadOnly: 'false', message: '' });
  await tour.post('/admin/services/createFolder', { folderName: 'Harbour' });
  for (const folderName of ['/', 'Harbour'])
    await tour.post('/admin/services/createService', {
      folderName,
      serviceName: 'Depths',
      type: 'MapServer',
    });
  await tour.get('/admin/services');
  await tour.get('/admin/services/{folder}', { folder: 'Harbour' });
  const id = { folder: 'Harbour', serviceName: 'Depths', type: 'MapServer' };
  const hook = { hookUrl: 'https://example.com/hook', changeTypes: '*' };
  for (const [service, name] of [
    ['/admin/services/{serviceName}.{type}', 'depths'],
    ['/admin/services/{folder}/{serviceName}.{type}', 'harbour depths'],
  ] as const) {
    await tour.get(service, id);
    await tour.post(`${service}/edit`, { description: 'Depths of the harbour.' }, id);
    await tour.post(`${service}/webhooks/create`, { ...hook, name }, id);
    await tour.get(`${service}/webhooks`, id);
    await tour.post(`${service}/webhooks/deactivateAll`, {}, id);
    await tour.post(`${service}/webhooks/activateAll`, {}, id);
    await tour.post(`${service}/webhooks/deleteAll`, {}, id);
    await tour.get(`${service}/status`, id);
    await tour.post(`${service}/stop`, {}, id);
    const { jobsUrl } = await tour.post<{ jobsUrl: string }>(`${service}/start`, { async: 'true' }, id);
    await tour.get('/admin/jobs/{serviceJob}', { serviceJob: jobsUrl.split('/').at(-1) ?? '' });
    await tour.post(`${service}/delete`, {}, id);
  }
  await tour.get('/admin/jobs');
  const deep = JSON.stringify({ serviceName: 'Deep', type: 'MapServer', recycleStartTime: '00:00' });
  await tour.post('/admin/services/{folder}/createService', { service: deep }, id);
  await tour.post('/admin/services/exists', { folderName: 'Harbour' });
  await tour.post(`/admin/services/{folder}/{serviceName}.{type}/delete`, {}, { ...id, serviceName: 'Deep' });
  await tour.post('/admin/services/{folder}/deleteFolder', {}, id);
}

async function visitWebhooks(tour: Recorder): Promise<void> {
  const all = '/admin/services/webhooks';
  await tour.get(`${all}/settings`);
  await tour.get(`${all}/eventTypes`);
  await tour.post(`${all}/settings`, { notificationAttempts: '3' });
  const { webhook } = await tour.post<{ webhook: { id: string } }>(`${all}/create`, {
    name: 'ships',
    hookUrl: 'https://example.com/ships',
    changeTypes: 'ShipArrived',
    headers: '{"X-Api-Key":"a secret value"}',
  });
  const ids = { webhook: webhook.id, delivery: '' };
  await tour.post(`${all}/publish`, { changeType: 'ShipArrived', payload: '{"berth":7}' });
  await tour.wait(1);
  await tour.get(all);
  await tour.get(`${all}/{webhook}`, ids);
  const { deliveries } = (await tour.get(`${all}/{webhook}/deliveries`, ids)) as {
    deliveries: { id: string }[];
  };
  ids.delivery = deliveries[0]?.id ?? '';
  await tour.get(`${all}/{webhook}/deliveries/{delivery}`, ids);
  await tour.post(`${all}/{webhook}/deliveries/{delivery}/redeliver`, {}, ids);
  await tour.get(`${all}/deliveries`);
  await tour.get(`${all}/history`);
  await tour.get(`${all}/{webhook}/history`, ids);
  await tour.get(`${all}/deliveries/{delivery}`, ids);
  await tour.post(`${all}/deliveries/{delivery}/redeliver`, {}, ids);
  await tour.post(`${all}/{webhook}/redeliver`, { state: 'failed,missed' }, ids);
  await tour.post(`${all}/redeliver`, { changeType: 'ShipArrived' });
  await tour.post(`${all}/{webhook}/ping`, {}, ids);
  await tour.post(`${all}/{webhook}/rotateKey`, { graceHours: '24' }, ids);
  await tour.post(`${all}/{webhook}/edit`, { name: 'ships' }, ids);
  await tour.post(`${all}/{webhook}/deactivate`, {}, ids);
  await tour.post(`${all}/{webhook}/activate`, {}, ids);
  await tour.post(`${all}/{webhook}/dismiss`, {}, ids);
  await tour.post(`${all}/deactivateAll`, {});
  await tour.post(`${all}/activateAll`, {});
  await tour.wait(1);
  await tour.post(`${all}/{webhook}/delete`, {}, ids);
}

async function visitSeveralWebhooks(tour: Recorder): Promise<void> {
  const all = '/admin/services/webhooks';
  const given = { name: 'trains', hookUrl: 'https://example.com/trains', changeTypes: '*' };
  const { id: ids } = await tour.post<{ id: string }>(`${all}/create`, given);
  await tour.post(`${all}/deactivateAll`, { ids });
  await tour.post(`${all}/activateAll`, { ids });
  await tour.post(`${all}/delete`, { ids });
  await tour.post(`${all}/deleteAll`);
}

async function visitSecurity(tour: Recorder): Promise<void> {
  await tour.get('/admin/security');
  await tour.get('/admin/security/users');
  await tour.post('/admin/security/users/add', { username: 'ann', password, role: 'publisher' });
  await tour.post('/admin/security/users/update', { username: 'ann', role: 'member' });
  await tour.post('/admin/security/users/endSessions', { username: 'ann' });
  await tour.post('/admin/security/users/remove', { username: 'ann' });
  await visitOwnAccount(tour);
}

async function visitOwnAccount(tour: Recorder): Promise<void> {
  const self = '/admin/security/self';
  await tour.server.post('/tokens/generateToken', { username: 'administrator', password });
  const { sessions } = (await tour.get(self)) as { sessions: { id: string; current: boolean }[] };
  const id = sessions.find(({ current }) => !current)?.id ?? '';
  await tour.post(`${self}/endSession`, { id });
  const { id: key } = await tour.post<{ id: string }>(`${self}/keys/create`, {
    name: 'pipeline',
    role: 'publisher',
    expires: '365',
  });
  await tour.get(`${self}/keys`);
  await tour.get('/admin/security/keys');
  await tour.post(`${self}/keys/delete`, { id: key });
  const again = await tour.post<{ id: string }>(`${self}/keys/create`, { name: 'pipeline' });
  await tour.post('/admin/security/keys/delete', { id: again.id });
  const another = 'another password';
  await tour.post(`${self}/changePassword`, { password, newPassword: another });
  await tour.post(`${self}/changePassword`, { password: another, newPassword: password });
}

const patch = { versionManifest: '{"id":"pat_17022022_1250"}' };

async function visitUpgrades(tour: Recorder): Promise<void> {
  const upgrades = '/admin/system/upgrades';
  await tour.get('/admin/system');
  await tour.get('/admin/system/audit');
  const manifest = readFileSync(
    new URL('../../../deploy/scratch/version-manifest.json', import.meta.url),
    'utf8',
  );
  await tour.post(`${upgrades}/importManifest`, {
    manifestFile: { name: 'manifest.json', content: manifest },
  });
  await tour.get(`${upgrades}/manifestStatus`);
  await tour.post(`${upgrades}/deleteImportedManifest`);
  await tour.post(`${upgrades}/adopt`, { installedVersion: '10.9.1.1234' });
  await tour.get(`${upgrades}/available`);
  await tour.get(`${upgrades}/installed`);
  await tour.post(`${upgrades}/getUpgradeSettings`, { upgradeId: '{"id":"rel_14072022_2632"}' });
  await tour.post(`${upgrades}/plan`, patch);
  const { jobId } = await tour.post<{ jobId: string }>(`${upgrades}/upgrade`, patch);
  await tour.get(upgrades);
  const ids = { job: jobId };
  await tour.get('/admin/system/jobs', ids);
  await tour.get('/admin/system/jobs/{job}', ids);
  await tour.wait(600);
  await tour.post('/admin/system/jobs/{job}/resume', {}, ids);
  await tour.wait(600);
  await tour.get(`${upgrades}/history`);
  await tour.get(`${upgrades}/history/{job}`, ids);
  await tour.get(`${upgrades}/currentVersion`);
  await tour.get(`${upgrades}/checkRollback`);
  const night = { days: ['sat', 'sun'], from: '22:00', to: '04:00', timeZone: 'Europe/Vienna' };
  await tour.post(`${upgrades}/config/update`, { windows: JSON.stringify([night]) });
  await tour.get(`${upgrades}/config`);
  await tour.post(`${upgrades}/config/update`, { windows: '[]' });
  await tour.post(`${upgrades}/rollback`, { versionManifest: '{"id":"rel_10092021_1234"}' });
  await tour.wait(600);
  const second = await tour.post<{ jobId: string }>(`${upgrades}/upgrade`, patch);
  await tour.post('/admin/system/jobs/{job}/cancel', {}, { job: second.jobId });
  await tour.wait(600);
  const startAt = tour.server.runtime.now() + 3_600_000;
  const third = await tour.post<{ jobId: string }>(`${upgrades}/upgrade`, {
    ...patch,
    startAt: String(startAt),
  });
  const moved = { startAt: String(startAt + 3_600_000) };
  await tour.post('/admin/system/jobs/{job}/reschedule', moved, { job: third.jobId });
  await tour.post('/admin/system/jobs/{job}/cancel', {}, { job: third.jobId });
  const { item } = await tour.post<{ item: { itemID: string } }>('/admin/uploads/upload', {
    itemFile: { name: 'license.json', content: '{"licensed":true}' },
  });
  await tour.get('/admin/uploads');
  await tour.get('/admin/uploads/{itemID}', { itemID: item.itemID });
  await tour.post('/admin/uploads/{itemID}/delete', {}, { itemID: item.itemID });
}

async function visitTokens(tour: Recorder): Promise<void> {
  await tour.get('/tokens');
  const credentials = { username: 'administrator', password };
  const { token } = await tour.post<{ token: string }>('/tokens/generateToken', credentials);
  await tour.post('/admin/generateToken', credentials);
  await tour.get('/tokens/community');
  await tour.get('/tokens/community/self');
  await tour.get('/tokens/portals');
  await tour.get('/tokens/portals/self');
  await tour.get('/tokens/sharing');
  await tour.get('/tokens/sharing/rest');
  await tour.get('/tokens/sharing/rest/info');
  await tour.post('/tokens/sharing/rest/generateToken', {
    token: tour.server.token('administrator'),
    serverUrl: 'http://localhost:8080/rest',
  });
  await tour.post('/tokens/revokeToken', { token });
  await tour.get('/tokens/oauth2');
  const again = await tour.post<{ token: string }>('/tokens/generateToken', credentials);
  await tour.post('/tokens/oauth2/revokeToken', { auth_token: again.token });
  await tour.get('/rest');
  await tour.get('/rest/info');
  await tour.get('/rest/services');
  await tour.get('/rest/services/{folder}', { folder: 'Maps' });
}
