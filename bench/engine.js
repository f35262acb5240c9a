// The webhook engine as the server has it, without the server: herald, courier and egress over a store in memory.
import { randomBytes } from 'node:crypto';
import { createMemoryStore } from '../dist/store/memory.js';
import { createTasks } from '../dist/tasks.js';
import { readConfig } from '../dist/config.js';
import { startCourier } from '../dist/webhooks/courier.js';
import { createEgress } from '../dist/webhooks/egress.js';
import { createHerald } from '../dist/webhooks/herald.js';
import { webhookSettings } from '../dist/webhooks/settings.js';
import { makeSignatureKey } from '../dist/webhooks/signature.js';
import { createWebhook } from '../dist/webhooks/webhook.js';
import { realWorld } from '../dist/world.js';

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

export const createWorld = () => ({ ...realWorld, post: createEgress(config.webhookAllowCidrs).post });

/** One webhook for each address, which wants every event. None is ever deactivated. */
export function register(store, urls, settings) {
  return store.update((transaction) => {
    const patience = { notificationAttempts: 5, numberOfFailures: 10_000 };
    transaction.write(webhookSettings, { ...webhookSettings.initial, ...patience, ...settings });
    return urls.map((hookUrl, index) =>
      createWebhook(
        transaction,
        {
          id: realWorld.newId(),
          name: `Receiver ${index}`,
          hookUrl,
          changeTypes: ['*'],
          service: null,
          contentType: 'application/json',
          active: true,
          signatureKey: makeSignatureKey(randomBytes(32)),
        },
        realWorld.now(),
      ),
    );
  });
}

export async function startEngine(urls, settings, onAttempt) {
  const store = createMemoryStore();
  const egress = createEgress(config.webhookAllowCidrs);
  const world = { ...realWorld, post: egress.post };
  const failures = [];
  const tasks = createTasks(world, (_name, error) => failures.push(error));
  const herald = createHerald({ store, world, tasks, maxPending: config.webhookMaxPending });
  const webhooks = await register(store, urls, settings);
  startCourier({
    store,
    world,
    tasks,
    herald,
    concurrency: config.webhookConcurrency,
    history: config.webhookHistory,
    userAgent: 'Steward/bench',
    onAttempt,
    onDeactivated: () => undefined,
  });
  return {
    webhooks,
    publish: (eventId) => herald.publish(news, eventId),
    async stop() {
      const stopped = tasks.stop();
      await egress.close();
      await stopped;
      if (failures.length > 0) throw failures[0];
    },
  };
}
