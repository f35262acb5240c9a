// The audit trail while processes are killed and answers of the database are lost: every change has exactly one
// entry, every entry of a success has its change, and no request has two entries. CRASH_KILLS sets the number of
// kills.
import { expect, it } from 'vitest';
import { noteSecret } from '../kit/leaks.ts';
import { type Fleet, type Point, startClients, startFleet } from './fleet.ts';
import {
  type Answer,
  connect,
  createSeededDatabase,
  pause,
  signInEverywhere,
  startSteward,
} from './steward.ts';

const kills = Number(process.env.CRASH_KILLS ?? 2);
const clients = 6;
const successesPerFault = 8;
const pollOptions = { timeout: 60_000, interval: 50 };
/** Requests get addresses of their own, which their entries show. */
const env = { TRUSTED_PROXIES: '127.0.0.0/8' };

type Fields = Record<string, string | Blob>;
type Query = Awaited<ReturnType<typeof connect>>;

type Request = {
  readonly path: string;
  /** Undefined: the process was killed, or the database was unavailable. The change may have been made or not. */
  status: number | undefined;
  /** The address of the request that issued the token that this one revokes. */
  readonly revokes: string | undefined;
};

type Entry = {
  readonly address: string;
  readonly operation: string;
  readonly target: string;
  readonly outcome: string;
  readonly changes: readonly { readonly field: string; readonly before: unknown; readonly after: unknown }[];
};

const readEntries = (query: Query) =>
  query<Entry>('select address, operation, target, outcome, changes from audit order by placed');

/** Makes all kinds of changes in turn, and remembers every request by its address. */
class Administrator {
  readonly requests = new Map<string, Request>();
  readonly #fleet: Fleet;
  readonly #token: string;
  readonly #webhooks: string[] = [];
  readonly #uploads: string[] = [];
  readonly #tokens: { readonly token: string; readonly address: string }[] = [];
  #turn = 0;

  constructor(fleet: Fleet, token: string) {
    this.#fleet = fleet;
    this.#token = token;
  }

  async changeSomething(): Promise<void> {
    const changes = Object.values(this.#changes);
    this.#turn += 1;
    await changes[this.#turn % changes.length]?.();
  }

  /** Few names, so that changes of the same object meet. Each change gets all of them in turn. */
  readonly #name = () => `crash-${this.#turn % 4}`;
  readonly #unique = () => `crash ${this.requests.size}`;
  readonly #pick = <T>(all: readonly T[]): T | undefined => all[this.#turn % all.length];

  readonly #changes = {
    createFolder: () =>
      this.#admin('services/createFolder', { folderName: this.#name(), description: this.#unique() }),
    deleteFolder: () => this.#admin(`services/${this.#name()}/deleteFolder`, {}),
    createService: () =>
      this.#admin('services/createService', {
        serviceName: this.#name(),
        type: 'MapServer',
        description: this.#unique(),
      }),
    editService: () =>
      this.#admin(`services/${this.#name()}.MapServer/edit`, { description: this.#unique() }),
    deleteService: () => this.#admin(`services/${this.#name()}.MapServer/delete`, {}),
    createWebhook: async () => {
      const hook = { name: this.#unique(), hookUrl: 'http://127.0.0.1:9/in', changeTypes: 'Never' };
      const created = await this.#admin('services/webhooks/create', hook);
      if (created?.status !== 200) return;
      const { webhook, signatureKey } = created.body as { webhook: { id: string }; signatureKey: string };
      noteSecret(signatureKey);
      this.#webhooks.push(webhook.id);
    },
    editWebhook: () =>
      this.#admin(`services/webhooks/${this.#pick(this.#webhooks) ?? 'none'}/edit`, {
        name: this.#unique(),
      }),
    deleteWebhook: () => this.#admin(`services/webhooks/${this.#pick(this.#webhooks) ?? 'none'}/delete`, {}),
    upload: async () => {
      const itemFile = new Blob(['{}'], { type: 'application/json' });
      const stored = await this.#admin('uploads/upload', { itemFile, description: this.#unique() });
      if (stored?.status === 200) this.#uploads.push((stored.body.item as { itemID: string }).itemID);
    },
    deleteUpload: () => this.#admin(`uploads/${this.#pick(this.#uploads) ?? 'none'}/delete`, {}),
    addUser: () =>
      this.#admin('security/users/add', {
        username: this.#name(),
        password: 'a password of a user',
        role: 'member',
      }),
    updateUser: () =>
      this.#admin('security/users/update', {
        username: this.#name(),
        role: this.#pick(['member', 'publisher']) ?? '',
      }),
    removeUser: () => this.#admin('security/users/remove', { username: this.#name() }),
    signIn: async () => {
      const fields = { username: 'admin', password: 'a password for the crash tests' };
      const { address, answer } = await this.#send('/tokens/generateToken', fields);
      if (answer?.status !== 200) return;
      const token = answer.body.token as string;
      noteSecret(token);
      this.#tokens.push({ token, address });
    },
    signOut: async () => {
      const ended = this.#tokens.shift();
      if (ended) await this.#send('/tokens/revokeToken', { token: ended.token }, ended.address);
    },
  };

  async #admin(path: string, fields: Fields): Promise<Answer | undefined> {
    return (await this.#send(`/admin/${path}`, fields)).answer;
  }

  async #send(path: string, fields: Fields, revokes?: string) {
    const number = this.requests.size;
    const address = `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`;
    const request: Request = { path, status: undefined, revokes };
    this.requests.set(address, request);
    const headers = { 'x-forwarded-for': address };
    const answer = await this.#fleet.post(path, fields, this.#token, 10_000, headers).catch(() => undefined);
    request.status = answer?.status === 503 ? undefined : answer?.status;
    return { address, answer };
  }
}

it('every change has exactly one entry', { timeout: 300_000 + kills * 20_000 }, async () => {
  const { url } = await createSeededDatabase();
  const query = await connect(url);
  const fleet = await startFleet(startSteward, url, 2, env);
  const token = await signInEverywhere(fleet.running());
  const administrator = new Administrator(fleet, token);
  const { requests } = administrator;
  const work = startClients(clients, async () => {
    await administrator.changeSomething();
    await pause(40);
  });
  const changeMore = async () => {
    const before = countSuccesses(requests);
    await expect
      .poll(() => countSuccesses(requests), pollOptions)
      .toBeGreaterThan(before + successesPerFault);
  };

  for (let kill = 0; kill < kills; kill += 1) {
    const slot = kill % 2;
    await changeMore();
    await fleet.proxy(slot).loseNextCommit('crash');
    await changeMore();
    fleet.proxy(1 - slot).cut();
    const proxy = fleet.proxy(slot);
    const inTransaction: Point = (_slot, act) => proxy.atNextTransaction(act);
    const afterCommit: Point = (_slot, act) => proxy.loseNextCommit('crash').then(act);
    await fleet.killAt(kill % 2 === 0 ? inTransaction : afterCommit, [slot]);
    await fleet.start(slot, env);
  }
  await changeMore();
  await work.stop();

  const entries = (await readEntries(query)).filter(({ address }) => requests.has(address));
  const successes = entries.filter(({ outcome }) => outcome === 'success');
  expect(findRepeated(entries.map(({ address }) => address))).toEqual([]);
  const recorded = new Set(successes.map(({ address }) => address));
  for (const [address, { path, status }] of requests)
    if (status !== undefined)
      expect({ path, status, isRecorded: recorded.has(address) }).toEqual({
        path,
        status,
        isRecorded: status === 200,
      });
  expect(replay(successes)).toEqual(await readObjects(query));
  expect(await readSessions(query, requests)).toEqual(expectedSessions(successes, requests));
  expect(fleet.loggedErrors()).toEqual([]);
  // Without this check the test could pass without any fault.
  expect([...requests.values()].some(({ status }) => status === undefined)).toBe(true);
});

const countSuccesses = (requests: ReadonlyMap<string, Request>) =>
  [...requests.values()].filter(({ status }) => status === 200).length;

const findRepeated = (all: readonly string[]) => all.filter((one, index) => all.indexOf(one) !== index);

/** The field of each kind of object that the changes set. */
const followed = ['description', 'name', 'role'];

/**
 * Applies the changes of the entries: each must begin where the one before has ended. The result has the objects by
 * target.
 */
function replay(successes: readonly Entry[]): Record<string, unknown> {
  const objects = new Map<string, unknown>();
  for (const { target, changes } of successes)
    for (const { field, before, after } of changes) {
      if (!followed.includes(field)) continue;
      expect({ target, before }).toEqual({ target, before: objects.get(target) ?? null });
      objects.set(target, after);
    }
  return Object.fromEntries([...objects].filter(([, value]) => value !== null).sort());
}

/** The objects that the database holds. */
async function readObjects(query: Query): Promise<Record<string, unknown>> {
  const rows = await query<{ target: string; value: string }>(
    `select 'services/' || (value ->> 'folderName') as target, value ->> 'description' as value
       from state where kind = 'folders' and key like 'crash%' and value is not null
     union all select 'services/' || (value ->> 'serviceName') || '.MapServer', value ->> 'description'
       from state where kind = 'services' and key like '%crash%' and value is not null
     union all select 'services/webhooks/' || key, value ->> 'name'
       from state where kind = 'webhooks' and value is not null
     union all select 'security/users/' || key, value ->> 'role'
       from state where kind = 'users' and key like 'crash%' and value is not null
     union all select 'uploads/' || key, value ->> 'description'
       from state where kind = 'uploads' and value is not null`,
  );
  return Object.fromEntries(rows.map(({ target, value }) => [target, value] as const).sort());
}

/** The addresses of the sign-ins whose tokens the database holds. */
async function readSessions(query: Query, requests: ReadonlyMap<string, Request>): Promise<string[]> {
  const rows = await query<{ address: string }>(
    `select value ->> 'address' as address from state where kind = 'tokens' and value is not null`,
  );
  return rows
    .map(({ address }) => address)
    .filter((address) => requests.has(address))
    .sort();
}

function expectedSessions(successes: readonly Entry[], requests: ReadonlyMap<string, Request>): string[] {
  const addressesOf = (operation: string) =>
    successes.filter((entry) => entry.operation === operation).map(({ address }) => address);
  const ended = new Set(addressesOf('tokens/revokeToken').map((address) => requests.get(address)?.revokes));
  return addressesOf('tokens/generateToken')
    .filter((address) => !ended.has(address))
    .sort();
}
