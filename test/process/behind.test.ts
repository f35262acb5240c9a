// A process whose copy of the state is behind loses nothing and records nothing wrong.
import { expect, it } from 'vitest';
import { realRuntime } from '../../src/lib/runtime.ts';
import type { Store } from '../../src/store/store.ts';
import { eventOf } from '../../src/webhooks/event.ts';
import { webhookEvent } from '../../src/webhooks/own-events.ts';
import { newDelivery } from '../../src/webhooks/queue/delivery.ts';
import {
  activateWebhook,
  changeSettings,
  deactivateWebhook,
  deleteWebhook,
} from '../../src/webhooks/registry.ts';
import { DeliveryWorker } from '../../src/webhooks/sending/delivery-worker.ts';
import { type WebhookSettings, webhookSettings } from '../../src/webhooks/settings.ts';
import { webhooks } from '../../src/webhooks/webhook.ts';
import { allDeliveries } from '../kit/deliveries-sql.ts';
import { type Receiver, createFakeHttpClient } from '../kit/http-client.ts';
import { createDatabase } from '../kit/postgres.ts';
import { connect } from './steward.ts';
import {
  closeAfterTest,
  createPublisher,
  openPeerStore,
  publishEvent,
  registerWebhook,
  tested,
} from './store-kit.ts';
import { failureWindowOf } from '../../src/webhooks/sending/failure-window.ts';

const runtime = realRuntime;
const pollOptions = { timeout: 60_000, interval: 50 };
const ignore = () => undefined;

/**
 * Opens two stores. `behind` reads the changes of other processes only when it is asked to: it does not look for
 * them every 500 ms, and it has lost the connection that notifies it.
 */
async function openBehind() {
  const { url } = await createDatabase();
  const query = await connect(url);
  const behind = closeAfterTest(await openPeerStore(url));
  const disconnect = `select pg_terminate_backend(pid) from pg_stat_activity
    where query = 'listen "steward_' || left(encode(sha256(convert_to(current_schema(), 'UTF8')), 'hex'), 32) || '"'`;
  await expect.poll(() => query(disconnect), pollOptions).toHaveLength(1);
  await query(`update processes set alive_until = clock_timestamp() + interval '1 hour'`);
  const ahead = closeAfterTest(await openPeerStore(url));
  const recorded = () =>
    query<{ event: string; webhook: string; state: string; attempts: number }>(
      `select event_id as event, webhook_id as webhook, state, attempts from ${allDeliveries} d order by number`,
    );
  const pending = async () => (await query<{ count: number }>('select count(*)::int from queue'))[0]?.count;
  return { behind, ahead, recorded, pending };
}

const isActive = (store: Store, id: string) => store.get(webhooks, id)?.active;

/** Starts a delivery worker. `sent` lists the requests of its attempts; `stop` waits until they are recorded. */
function startWorker(store: Store, respond: Receiver) {
  const sent: string[] = [];
  const httpClient = createFakeHttpClient(runtime);
  httpClient.receiver = (request, ...rest) => {
    sent.push(`${request.headers['webhook-id'] ?? ''} to ${request.url}`);
    return respond(request, ...rest);
  };
  const { tasks, eventPublisher } = createPublisher(store);
  const worker = new DeliveryWorker({
    store,
    runtime,
    tasks,
    httpClient,
    notify: (transaction, notice, at) => eventPublisher.publishWithin(transaction, webhookEvent(notice), at),
    // Half of what one receiver gets at the same time, so that two workers can share it.
    concurrency: 2,
    slotsPerReceiver: 4,
    request: { userAgent: 'test', legacyHeader: undefined },
    onAttempt: ignore,
    onNotice: ignore,
  });
  worker.start();
  return { sent, stop: tasks.stop };
}

it.each<[string, boolean | undefined]>([
  ['lacks the webhook', undefined],
  ['shows an active webhook as inactive', false],
])('a delivery worker whose replica %s does not discard the delivery', async (_what, known) => {
  const { behind, ahead, recorded, pending } = await openBehind();
  await registerWebhook(known === undefined ? ahead : behind, 'new', known ?? true);
  await ahead.update((transaction) => activateWebhook(transaction, 'new', Date.now()));
  await publishEvent(ahead, 'first');
  expect(isActive(behind, 'new')).toBe(known);
  const { sent, stop } = startWorker(behind, () => 200);
  await expect.poll(recorded, pollOptions).not.toMatchObject([{ state: 'pending' }]);
  await stop();
  expect(await recorded()).toEqual([{ event: 'first', webhook: 'new', state: 'delivered', attempts: 1 }]);
  expect(sent).toEqual(['first to http://new.example/in']);
  expect(await pending()).toBe(0);
});

it('an event goes to the webhooks that exist when it is published', async () => {
  const { behind, ahead, recorded, pending } = await openBehind();
  await registerWebhook(behind, 'deactivated');
  await registerWebhook(behind, 'deleted');
  await registerWebhook(behind, 'unchanged');
  await ahead.update((transaction) => {
    deactivateWebhook(transaction, 'deactivated', 'administrator', Date.now());
    deleteWebhook(transaction, 'deleted');
  });
  await registerWebhook(ahead, 'new');
  expect([...behind.all(webhooks)].filter(({ active }) => active).map(({ id }) => id)).toEqual([
    'deactivated',
    'deleted',
    'unchanged',
  ]);
  expect(await publishEvent(behind, 'first')).toEqual({ eventId: 'first', deliveries: 2 });
  expect(await publishEvent(ahead, 'first')).toEqual({ eventId: 'first', deliveries: 2 });
  expect(await recorded()).toEqual([
    { event: 'first', webhook: 'deactivated', state: 'missed', attempts: 0 },
    { event: 'first', webhook: 'unchanged', state: 'pending', attempts: 0 },
    { event: 'first', webhook: 'new', state: 'pending', attempts: 0 },
  ]);
  expect(await pending()).toBe(2);
});

type Change = Parameters<Store['update']>[0];

const change = (settings: Partial<WebhookSettings>): Change => {
  return (transaction) => changeSettings(transaction, settings);
};
const deactivate: Change = (transaction) =>
  deactivateWebhook(transaction, 'hook', 'administrator', Date.now());
const activate: Change = (transaction) => activateWebhook(transaction, 'hook', Date.now());
const remove: Change = (transaction) => deleteWebhook(transaction, 'hook');

type Outcome = { state: string | undefined; failures: number; active: boolean | undefined };

it.each<[number, string, Change[], Outcome]>([
  [500, 'deactivated the webhook', [deactivate], { state: 'discarded', failures: 0, active: false }],
  [200, 'deactivated the webhook', [deactivate], { state: 'delivered', failures: 0, active: false }],
  [
    500,
    'deactivated and activated the webhook',
    [deactivate, activate],
    { state: 'discarded', failures: 0, active: true },
  ],
  [500, 'deleted the webhook', [remove], { state: undefined, failures: 0, active: undefined }],
  [200, 'deleted the webhook', [remove], { state: undefined, failures: 0, active: undefined }],
  [
    500,
    'allowed one attempt only',
    [change({ notificationAttempts: 1 })],
    { state: 'failed', failures: 1, active: true },
  ],
  [
    500,
    'allowed no failure',
    [change({ notificationAttempts: 1, numberOfFailures: 1 })],
    { state: 'failed', failures: 1, active: false },
  ],
])(
  'an attempt is recorded that ended with %i after another process has %s',
  async (status, _change, changes, { state, failures, active }) => {
    const { behind, ahead, recorded, pending } = await openBehind();
    await registerWebhook(behind, 'hook');
    await publishEvent(behind, 'first');
    const known = () => [behind.get(webhooks, 'hook'), behind.read(webhookSettings)];
    const before = known();
    const knownAtEnd: unknown[] = [];
    const { sent, stop } = startWorker(behind, async () => {
      for (const rule of changes) await ahead.update(rule);
      knownAtEnd.push(known());
      return status;
    });
    const isCompleted = async () => (await behind.deliveries.page({ states: ['pending'] }, 0, 1)).total === 0;
    await expect.poll(isCompleted, pollOptions).toBe(true);
    await stop();
    expect(knownAtEnd).toEqual([before]);
    expect(sent).toEqual(['first to http://hook.example/in']);
    expect(await recorded()).toEqual(
      state === undefined ? [] : [{ event: 'first', webhook: 'hook', state, attempts: 1 }],
    );
    await ahead.refresh();
    expect(isActive(ahead, 'hook')).toBe(active);
    expect(failureWindowOf(ahead, 'hook')?.count ?? 0).toBe(failures);
    expect(await pending()).toBe(0);
  },
);

it.each<[string, Change, { state: string; attempts: number }[]]>([
  ['deactivated', deactivate, [{ state: 'discarded', attempts: 0 }]],
  ['deleted', remove, []],
])(
  'a delivery that was stored after its webhook was %s is not attempted',
  async (_change, rule, expected) => {
    const { behind, ahead, recorded, pending } = await openBehind();
    await registerWebhook(behind, 'hook');
    await behind.update(rule);
    // The webhook was changed after the rule of `publish` had read it.
    const event = eventOf(tested, 'first', Date.now());
    const late = newDelivery({ id: 'late', webhookId: 'hook', event, isPing: false }, Date.now());
    expect(await ahead.deliveries.publish(() => [late])).toBe(1);
    const { sent, stop } = startWorker(behind, () => 200);
    await expect.poll(recorded, pollOptions).not.toMatchObject([{ state: 'pending' }]);
    await stop();
    expect(await recorded()).toMatchObject(expected);
    expect(await recorded()).toHaveLength(expected.length);
    expect(await pending()).toBe(0);
    expect(sent).toEqual([]);
  },
);

it('two processes report a failing webhook and its recovery once', async () => {
  const { behind, ahead, recorded } = await openBehind();
  await ahead.update(change({ notificationAttempts: 1, numberOfFailures: 40 }));
  await registerWebhook(ahead, 'hook');
  await registerWebhook(ahead, 'watcher', true, ['WebhookFailing', 'WebhookRecovered']);
  let status = 500;
  // The first attempts end when both processes have begun one: a fast process could make all of them.
  const respond: Receiver = async ({ url }) => {
    await expect.poll(() => workers.every(({ sent }) => sent.length > 0), pollOptions).toBe(true);
    return url.includes('watcher') ? 200 : status;
  };
  const publish = (name: string, count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => publishEvent(ahead, `${name}-${n}`)));
  const isDone = async () => (await ahead.deliveries.page({ states: ['pending'] }, 0, 1)).total === 0;
  await publish('failed', 30);
  const workers = [behind, ahead].map((store) => startWorker(store, respond));
  await expect.poll(isDone, pollOptions).toBe(true);
  status = 200;
  await publish('delivered', 20);
  await expect.poll(isDone, pollOptions).toBe(true);
  await Promise.all(workers.map(({ stop }) => stop()));
  await ahead.refresh();
  expect(failureWindowOf(ahead, 'hook')?.count).toBe(30);
  expect((await recorded()).filter(({ webhook }) => webhook === 'watcher')).toHaveLength(2);
});
