// Stores on one database without a server, and deliveries in them.
import { expect, onTestFinished } from 'vitest';
import { openPostgresStore } from '../../src/app/stores/postgres-store.ts';
import { tables } from '../../src/app/backends.ts';
import { type Runtime, realRuntime } from '../../src/lib/runtime.ts';
import { createTasks } from '../../src/lib/tasks.ts';
import type { Store } from '../../src/store/store.ts';
import type { Delivery } from '../../src/webhooks/queue/delivery.ts';
import { EventPublisher } from '../../src/webhooks/queue/event-publisher.ts';
import { createWebhook } from '../../src/webhooks/registry.ts';
import { timelessRuntime } from '../kit/runtime.ts';
import { defaultStoreOptions, migrations, noPauses } from '../kit/store.ts';
import { webhook } from '../store/definitions.ts';

function open(url: string, runtime: Runtime): Promise<Store> {
  const { retention } = defaultStoreOptions;
  return openPostgresStore({ url, tables, migrations, runtime, retention, pace: noPauses });
}

/**
 * Opens a store that does nothing by itself: it does not renew its lease, and does not look for changes without a
 * notification.
 */
export const openPeerStore = (url: string) => open(url, timelessRuntime);

export const openStore = (url: string) => open(url, realRuntime);

export function closeAfterTest(store: Store): Store {
  onTestFinished(() => store.close());
  return store;
}

/** Registers a webhook, by default for events of the type `Tested`. */
export function registerWebhook(store: Store, id: string, active = true, changeTypes = ['Tested']) {
  const hookUrl = `http://${id}.example/in`;
  const signatureKey = `whsec_${'a'.repeat(32)}`;
  const given = webhook(id, { name: id, hookUrl, changeTypes, active, headers: [], signatureKey });
  return store.update((transaction) => createWebhook(transaction, given, Date.now()));
}

export const tested = { type: 'Tested', service: null, data: '{}' };

/** Creates an event publisher. Its tasks stop after the test, and must not fail. */
export function createPublisher(store: Store) {
  const runtime = realRuntime;
  const errors: unknown[] = [];
  const tasks = createTasks(runtime, (_name, error) => errors.push(error));
  onTestFinished(async () => {
    await tasks.stop();
    expect(errors.map(String)).toEqual([]);
  });
  const limits = { pending: 1000, pendingBytes: 1024 ** 2 };
  return { tasks, eventPublisher: new EventPublisher({ store, runtime, tasks, limits }) };
}

export const publishEvent = (store: Store, eventId: string) =>
  createPublisher(store).eventPublisher.publish(tested, eventId);

/** Claims a delivery that is due, if there is one. */
export async function claimOne(store: Store): Promise<readonly Delivery[]> {
  const { deliveries } = await store.deliveries.claim({
    at: Date.now(),
    most: 1,
    retryWaitMs: 0,
    receiverOf: (webhookId) => webhookId,
    roomFor: () => 1,
  });
  return deliveries;
}
