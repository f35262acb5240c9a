// The redelivery worker on the store in memory, which answers without a turn of the event loop.
import { expect, it } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { createTasks } from '../../src/lib/tasks.ts';
import { RedeliveryWorker } from '../../src/webhooks/queue/redelivery-worker.ts';
import { redeliveries } from '../../src/webhooks/queue/redelivery.ts';
import { webhooks } from '../../src/webhooks/webhook.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { defaultStoreOptions } from '../kit/store.ts';
import { webhook } from '../store/definitions.ts';
import { delivery } from '../store/deliveries.ts';

it('lets other work run between the portions of a redelivery', async () => {
  const runtime = createFakeRuntime();
  const store = createMemoryStore(defaultStoreOptions);
  const tasks = createTasks(runtime, (_name, error) => expect.fail(String(error)));
  const missed = Array.from({ length: 250 }, (_, index) =>
    delivery(`a${index}`, 1, { state: 'missed', endedAt: 1 }),
  );
  await store.update((transaction) => {
    transaction.put(webhooks, webhook('a'));
    transaction.deliveries.enqueue(missed);
    transaction.put(redeliveries, { id: 'r', webhookId: 'a', filter: {}, requestedAt: 2 });
  });
  const limits = { pending: 1_000, pendingBytes: 1_000_000 };
  new RedeliveryWorker({ store, runtime, tasks, limits }).start();
  const seen = new Set<number>();
  while (store.count(redeliveries) > 0) {
    await runtime.yieldToEventLoop();
    seen.add(store.deliveries.pending().count);
  }
  expect([...seen]).toEqual(expect.arrayContaining([100, 200, 250]));
  await tasks.stop();
});
