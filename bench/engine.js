// The webhook engine as the server has it, without the server: eventPublisher, deliveryWorker and httpClient over a store, in memory unless another is given.
import { randomBytes } from 'node:crypto';
import { createMemoryStore } from '../dist/store/memory.js';
import { createTasks } from '../dist/tasks.js';
import { readConfig } from '../dist/config.js';
import { startDeliveryWorker } from '../dist/webhooks/delivery-worker.js';
import { createHttpClient } from '../dist/webhooks/http-client.js';
import { createEventPublisher } from '../dist/webhooks/event-publisher.js';
import { webhookSettings } from '../dist/webhooks/settings.js';
import { makeSignatureKey } from '../dist/webhooks/signature.js';
import { createWebhook } from '../dist/webhooks/webhook.js';
import { realRuntime } from '../dist/runtime.js';

/** The defaults of everything, and loopback allowed. */
export const config = readConfig({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', PORT: '0', LOG_LEVEL: 'silent' });

/** Some 200 bytes, as much as most events have to tell. */
export const news = {
  type: 'ServiceUpdated',
  service: null,
  data: JSON.stringify({
    folderName: 'Planning',
    serviceName: 'Parcels',
    type: 'Map',
    note: 'n'.repeat(128),
  }),
};

/** Puts up with everything: no webhook is deactivated while a bench runs. */
export function set(store, settings) {
  const patience = { notificationAttempts: 5, numberOfFailures: 10_000 };
  return store.update((transaction) =>
    transaction.write(webhookSettings, { ...webhookSettings.initial, ...patience, ...settings }),
  );
}

/** One webhook for each address, which wants every event from now on. */
export function register(store, urls) {
  const webhookAt = (hookUrl) => ({
    id: realRuntime.newId(),
    name: `Receiver at ${hookUrl}`,
    hookUrl,
    changeTypes: ['*'],
    service: null,
    contentType: 'application/json',
    active: true,
    signatureKey: makeSignatureKey(randomBytes(32)),
  });
  return store.update((transaction) =>
    urls.map((url) => createWebhook(transaction, webhookAt(url), realRuntime.now())),
  );
}

/** `given` may hold a store, and what stands in for sending. Nothing is carried before it is started. */
export function createEngine(onAttempt, given = {}) {
  const store = given.store ?? createMemoryStore();
  const httpClient = createHttpClient(config.webhookAllowCidrs);
  const runtime = { ...realRuntime, post: given.post ?? httpClient.post };
  const failures = [];
  const tasks = createTasks(runtime, (_name, error) => failures.push(error));
  const eventPublisher = createEventPublisher({
    store,
    runtime,
    tasks,
    maxPending: config.webhookMaxPending,
  });
  return {
    set: (settings) => set(store, settings),
    register: (urls) => register(store, urls),
    publish: (eventId) => eventPublisher.publish(news, eventId),
    start: () =>
      startDeliveryWorker({
        store,
        runtime,
        tasks,
        eventPublisher,
        concurrency: config.webhookConcurrency,
        history: config.webhookHistory,
        userAgent: 'Steward/bench',
        onAttempt,
        onDeactivated: () => undefined,
      }),
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
