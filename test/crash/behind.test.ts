// A process whose replica is behind, or that others have declared dead, loses nothing.
import { expect, it, onTestFinished } from 'vitest';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import type { Store } from '../../src/store/store.ts';
import { createTasks } from '../../src/tasks.ts';
import { DeliveryWorker } from '../../src/webhooks/delivery-worker.ts';
import { deliveries } from '../../src/webhooks/delivery.ts';
import { EventPublisher } from '../../src/webhooks/event-publisher.ts';
import { createWebhook } from '../../src/webhooks/webhook.ts';
import { realRuntime } from '../../src/runtime.ts';
import { createFakeHttpClient } from '../kit/http-client.ts';
import { records } from '../../src/records.ts';
import { createDatabase } from '../kit/postgres.ts';
import { migrations } from '../kit/store.ts';
import { openPeerStore } from './peer.ts';
import { connect } from './steward.ts';

const pollOptions = { timeout: 15_000, interval: 50 };
const noFailure = (_name: string, error: unknown) => expect.unreachable(String(error));

async function open() {
  const { url } = await createDatabase();
  const ahead = await openPeerStore(url);
  const store = await openPostgresStore({ url, records, migrations, runtime: realRuntime });
  onTestFinished(async () => {
    await ahead.close();
    await store.close();
  });
  return { url, ahead, store, query: await connect(url) };
}

const register = (store: Store, id: string) =>
  store.update((transaction) =>
    createWebhook(
      transaction,
      {
        id,
        name: id,
        hookUrl: `http://${id}.example/in`,
        changeTypes: ['*'],
        service: null,
        active: true,
        contentType: 'application/json',
        signatureKey: `whsec_${'a'.repeat(32)}`,
      },
      Date.now(),
    ),
  );

const limits = { pending: 1000, pendingBytes: 1024 ** 2, eventIds: 1000 };

/** Publishes without a delivery worker. */
function publish(store: Store, eventId: string) {
  const tasks = createTasks(realRuntime, noFailure);
  onTestFinished(() => tasks.stop());
  const eventPublisher = new EventPublisher({ store, runtime: realRuntime, tasks, limits });
  return eventPublisher.publish({ type: 'Tested', service: null, data: '{}' }, eventId);
}

it(
  'a delivery worker whose replica lacks the webhook does not discard the delivery',
  { timeout: 60_000 },
  async () => {
    const { ahead, store, query } = await open();
    const sent: string[] = [];
    const httpClient = createFakeHttpClient(realRuntime);
    httpClient.receiver = ({ url, headers }) => {
      sent.push(`${headers['webhook-id'] ?? ''} to ${url}`);
      return 200;
    };
    const runtime = realRuntime;
    const tasks = createTasks(runtime, noFailure);
    // Every update brings the replica up to date.
    let isBehind = true;
    const outdated: Store = {
      ...store,
      get: (table, key) => (isBehind ? undefined : store.get(table, key)),
      update: (change) => store.update(change).finally(() => (isBehind = false)),
    };
    const eventPublisher = new EventPublisher({ store: outdated, runtime, tasks, limits });
    const ignore = () => undefined;
    const worker = new DeliveryWorker({
      store: outdated,
      runtime,
      tasks,
      httpClient,
      eventPublisher,
      concurrency: 8,
      history: 100,
      userAgent: 'test',
      onAttempt: ignore,
      onDeactivated: ignore,
    });
    worker.start();
    onTestFinished(() => tasks.stop());
    await register(ahead, 'new');
    await publish(ahead, 'first');
    const states = () => query('select state from deliveries');
    await expect.poll(states, pollOptions).not.toEqual([{ state: 'pending' }]);
    expect(await states()).toEqual([{ state: 'delivered' }]);
    expect(sent).toEqual(['first to http://new.example/in']);
  },
);

it('a claim of a process that was declared dead before is released', { timeout: 60_000 }, async () => {
  const { ahead, store, query } = await open();
  await register(ahead, 'old');
  await publish(ahead, 'first');
  // The process was suspended: the others have removed it, it claims a delivery, and then it dies.
  await query('delete from processes where id = $1', [ahead.self]);
  const lanes = { laneOf: () => '', roomIn: () => 1 };
  const { rows } = await ahead.claim(deliveries, { at: Date.now(), most: 1, ...lanes });
  expect(rows).toHaveLength(1);
  const claimed = async () => {
    const [first] = (await store.claim(deliveries, { at: Date.now(), most: 1, ...lanes })).rows;
    return first?.event.id;
  };
  await expect.poll(claimed, pollOptions).toBe('first');
});
