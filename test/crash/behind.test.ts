// A process that does not know yet what the others have done, or of which the others do not know: nothing is lost by that.
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

const patience = { timeout: 15_000, interval: 50 };
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

/** Publishes past any deliveryWorker. */
function publish(store: Store, eventId: string) {
  const tasks = createTasks(realRuntime, noFailure);
  onTestFinished(() => tasks.stop());
  const eventPublisher = new EventPublisher({ store, runtime: realRuntime, tasks, maxPending: 1000 });
  return eventPublisher.publish({ type: 'Tested', service: null, data: '{}' }, eventId);
}

it(
  'a delivery is not discarded by a deliveryWorker that does not know its webhook yet',
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
    // Whoever changes something knows afterwards what the others have done.
    let isBehind = true;
    const late: Store = {
      ...store,
      get: (table, key) => (isBehind ? undefined : store.get(table, key)),
      update: (change) => store.update(change).finally(() => (isBehind = false)),
    };
    const eventPublisher = new EventPublisher({ store: late, runtime, tasks, maxPending: 1000 });
    const ignore = () => undefined;
    const worker = new DeliveryWorker({
      store: late,
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
    await expect.poll(states, patience).not.toEqual([{ state: 'pending' }]);
    expect(await states()).toEqual([{ state: 'delivered' }]);
    expect(sent).toEqual(['first to http://new.example/in']);
  },
);

it(
  'what was claimed by a process that was taken for dead before is given free',
  { timeout: 60_000 },
  async () => {
    const { ahead, store, query } = await open();
    await register(ahead, 'old');
    await publish(ahead, 'first');
    // As after a long stillness: the others have buried it, it claims something, and then it is really dead.
    await query('delete from processes where id = $1', [ahead.self]);
    const lanes = { laneOf: () => '', roomIn: () => 1 };
    const { rows } = await ahead.claim(deliveries, { at: Date.now(), most: 1, ...lanes });
    expect(rows).toHaveLength(1);
    const claimed = async () => {
      const [first] = (await store.claim(deliveries, { at: Date.now(), most: 1, ...lanes })).rows;
      return first?.event.id;
    };
    await expect.poll(claimed, patience).toBe('first');
  },
);
