// SECRET_KEY is introduced and replaced by rolling restarts while events are published, delivered and the secrets
// of webhooks are changed: no request fails, every signature is good, and in the end the former key reads nothing
// in the database.
import { createDecipheriv, hkdfSync } from 'node:crypto';
import { expect, it } from 'vitest';
import { noteSecret } from '../kit/leaks.ts';
import { type Fleet, startClients, startFleet, startPublishers } from './fleet.ts';
import {
  type Receiver,
  expectDelivered,
  publish,
  register,
  startReceiver,
  webhooksPath,
} from './receiver.ts';
import { connect, createSeededDatabase, pause, signInEverywhere, startInProcess } from './steward.ts';

const settled = { timeout: 60_000, interval: 50 };
const processes = 2;
let replications = 0;

type Query = Awaited<ReturnType<typeof connect>>;
type Keys = { readonly SECRET_KEY: string; readonly SECRET_KEY_PREVIOUS: string };

/** Replaces all processes once for each of the following keys. A process without a key has the empty text. */
async function rollThrough([first, ...following]: readonly Keys[]) {
  const { url } = await createSeededDatabase();
  const query = await connect(url);
  const fleet = await startFleet(startInProcess, url, processes, first);
  const token = await signInEverywhere(fleet.running());
  const hooks = await Promise.all([startReceiver(), startReceiver()]);
  for (const hook of hooks) await register(fleet.running(), token, hook, 'Tested');
  const publishers = startPublishers(fleet, token, {
    changeType: 'Tested',
    deliveries: hooks.length,
    clients: 2,
    pauseMs: 50,
    mayRepeat: false,
  });
  const editors = startEditors(fleet, token, hooks);
  for (const keys of following)
    for (let slot = 0; slot < processes; slot += 1) await fleet.replace(slot, keys);
  await expect.poll(editors.edits, settled).toBeGreaterThan(10);
  await editors.stop();
  await replicated(fleet, token);
  await publishers.stop();

  for (const hook of hooks) {
    await expectDelivered(fleet.at(0), token, hook, publishers.acknowledged);
    expect(hook.duplicates()).toBe(0);
  }
  await expectNewestKeys(fleet, token, hooks);
  expect(fleet.loggedErrors()).toEqual([]);
  return { url, query, hooks };
}

const headerValue = 'the value of a header in the crash tests';

/** Changes the signature key, or the name and a header of the webhooks again and again. */
function startEditors(fleet: Fleet, token: string, hooks: readonly Receiver[]) {
  let edits = 0;
  const { stop } = startClients(hooks.length, async ({ client, number }) => {
    const hook = hooks[client] as Receiver;
    edits += 1;
    if (number % 2 === client) await rotate(fleet, token, hook, 1);
    else {
      const headers = JSON.stringify({ 'X-Key': headerValue });
      const fields = { name: `${hook.webhookId} ${edits}`, headers };
      const edited = await fleet.post(`${webhooksPath}/${hook.webhookId}/edit`, fields, token);
      expect(edited).toMatchObject({ status: 200 });
    }
    await pause(100);
  });
  return { stop, edits: () => edits };
}

async function rotate(
  fleet: Fleet,
  token: string,
  { webhookId, keys }: Receiver,
  graceHours: number,
): Promise<void> {
  const fields = { graceHours: String(graceHours) };
  const rotated = await fleet.post(`${webhooksPath}/${webhookId}/rotateKey`, fields, token);
  expect(rotated).toMatchObject({ status: 200 });
  const key = rotated?.body.signatureKey as string;
  noteSecret(key);
  keys.push(key);
}

/** Gives the webhooks new keys without a grace period and checks that every process signs with them. */
async function expectNewestKeys(fleet: Fleet, token: string, hooks: readonly Receiver[]): Promise<void> {
  for (const hook of hooks) {
    await rotate(fleet, token, hook, 0);
    hook.keys.splice(0, hook.keys.length - 1);
  }
  await replicated(fleet, token);
  const events = fleet
    .running()
    .flatMap((_steward, slot) => [1, 2, 3].map((n) => ({ slot, eventId: `last-${slot}-${n}` })));
  for (const { slot, eventId } of events) {
    expect(await publish(fleet.at(slot), token, eventId)).toMatchObject({
      status: 200,
      body: { deliveries: hooks.length },
    });
  }
  for (const { arrivals, badSignatures } of hooks) {
    const missing = () => events.filter(({ eventId }) => !arrivals.has(eventId));
    await expect.poll(missing, settled).toEqual([]);
    expect(badSignatures).toEqual([]);
  }
}

/** Resolves when every server has the changes of the others: they arrive in their order, and this one is the last. */
async function replicated(fleet: Fleet, token: string): Promise<void> {
  replications += 1;
  const folderName = `replicated-${replications}`;
  const created = await fleet.post('/admin/services/createFolder', { folderName }, token);
  expect(created).toMatchObject({ status: 200 });
  for (const steward of fleet.running()) {
    const folders = async () => (await steward.get('/admin/services', token)).body.folders;
    await expect.poll(folders, settled).toContain(folderName);
  }
}

/** All rows of all tables, as text. */
async function dump(query: Query): Promise<string> {
  const tables = await query<{ name: string }>(
    `select quote_ident(table_name) as name from information_schema.tables where table_schema = current_schema()`,
  );
  let dumped = '';
  for (const { name } of tables)
    for (const { row } of await query<{ row: string }>(`select t::text as row from ${name} t`))
      dumped += `${row}\n`;
  return dumped;
}

const [nonceBytes, tagBytes] = [12, 16];

/**
 * Counts the secrets that a holder of the secret key reads in a dump. It skips the authentication of AES-GCM, as an
 * attacker would, so it needs not know which row a text belongs to.
 */
function countReadable(dumped: string, secretKey: string, secret: string): number {
  const key = Buffer.from(hkdfSync('sha256', secretKey, '', 'steward: secrets at rest', 32));
  const sealed = dumped.match(/[A-Za-z0-9+/]{56,}={0,2}/g) ?? [];
  return sealed.filter((text) => {
    const bytes = Buffer.from(text, 'base64');
    // AES-GCM encrypts in counter mode, and begins with the counter 2.
    const counter = Buffer.concat([bytes.subarray(0, nonceBytes), Buffer.from([0, 0, 0, 2])]);
    const cipher = createDecipheriv('aes-256-ctr', key, counter);
    return cipher.update(bytes.subarray(nonceBytes + tagBytes)).includes(secret);
  }).length;
}

/** Checks that a server with these keys does not start, and says that the key is the reason. */
async function expectRefused(url: string, keys: Keys): Promise<void> {
  await expect(startInProcess(url, keys)).rejects.toThrow(/SECRET_KEY/);
}

const firstKey = 'the first secret key of the crash tests';
const secondKey = 'the second secret key of the crash tests';
const keys = (current: string, previous = ''): Keys => ({
  SECRET_KEY: current,
  SECRET_KEY_PREVIOUS: previous,
});

it('SECRET_KEY is introduced and replaced by rolling restarts', async () => {
  noteSecret(firstKey, secondKey, headerValue);
  const { url, query, hooks } = await rollThrough([
    keys(''),
    keys('', firstKey),
    keys(firstKey, secondKey),
    keys(secondKey, firstKey),
  ]);
  const dumped = await dump(query);
  for (const secret of ['whsec_', headerValue]) {
    expect(countReadable(dumped, secondKey, secret)).toBeGreaterThanOrEqual(hooks.length);
    expect(countReadable(dumped, firstKey, secret)).toBe(0);
    expect(dumped).not.toContain(secret);
  }
  await expectRefused(url, keys(firstKey));
  await expectRefused(url, keys(''));
});
