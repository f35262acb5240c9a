// The webhook engine without a server: event publisher, delivery worker and HTTP client on a store, the memory store by default.
import { randomBytes } from 'node:crypto';
import { createMemoryStore } from '../dist/store/memory.js';
import { createTasks } from '../dist/tasks.js';
import { readConfig } from '../dist/config.js';
import { DeliveryWorker } from '../dist/webhooks/delivery-worker.js';
import { createHttpClient } from '../dist/webhooks/http-client.js';
import { EventPublisher } from '../dist/webhooks/event-publisher.js';
import { webhookSettings } from '../dist/webhooks/settings.js';
import { makeSignatureKey } from '../dist/webhooks/signature.js';
import { createWebhook } from '../dist/webhooks/webhook.js';
import { realRuntime as runtime } from '../dist/runtime.js';

export const config = readConfig({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', PORT: '0', LOG_LEVEL: 'silent' });

export const limits = {
  pending: config.webhookMaxPending,
  pendingBytes: config.webhookMaxPendingBytes,
  eventIds: config.maxEventIds,
};

/** About 200 bytes of data, the size of a typical event. */
export const eventDraft = {
  type: 'ServiceUpdated',
  service: null,
  data: JSON.stringify({
    folderName: 'Planning',
    serviceName: 'Parcels',
    type: 'Map',
    note: 'n'.repeat(128),
  }),
};

/** The policy deactivates no webhook during a benchmark. */
export function set(store, settings) {
  const policy = { notificationAttempts: 5, numberOfFailures: 10_000 };
  return store.update((transaction) =>
    transaction.write(webhookSettings, { ...webhookSettings.initial, ...policy, ...settings }),
  );
}

export function register(store, urls) {
  const webhookAt = (hookUrl) => ({
    id: runtime.newId(),
    name: `Receiver at ${hookUrl}`,
    hookUrl,
    changeTypes: ['*'],
    service: null,
    contentType: 'application/json',
    active: true,
    signatureKey: makeSignatureKey(randomBytes(32)),
  });
  return store.update((transaction) =>
    urls.map((url) => createWebhook(transaction, webhookAt(url), runtime.now())),
  );
}

export function createEngine(onAttempt, options = {}) {
  const { store = createMemoryStore(), httpClient = createHttpClient(config.webhookAllowCidrs) } = options;
  const failures = [];
  const tasks = createTasks(runtime, (_name, error) => failures.push(error));
  const eventPublisher = new EventPublisher({ store, runtime, tasks, limits });
  const worker = new DeliveryWorker({
    store,
    runtime,
    tasks,
    httpClient,
    eventPublisher,
    concurrency: config.webhookConcurrency,
    history: config.webhookHistory,
    userAgent: 'Steward/bench',
    onAttempt,
    onDeactivated: () => undefined,
  });
  return {
    set: (settings) => set(store, settings),
    register: (urls) => register(store, urls),
    publish: (eventId) => eventPublisher.publish(eventDraft, eventId),
    start: () => worker.start(),
    async stop() {
      const stopped = tasks.stop();
      await httpClient.close();
      await stopped;
      if (failures.length > 0) throw failures[0];
    },
  };
}

export async function startEngine(settings, onAttempt) {
  const engine = createEngine(onAttempt);
  await engine.set(settings);
  engine.start();
  return engine;
}
