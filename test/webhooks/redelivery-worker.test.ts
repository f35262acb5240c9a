// The redelivery worker on the store in memory, which answers without a turn of the event loop.
import { expect, it, onTestFinished, vi } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { createTasks } from '../../src/lib/tasks.ts';
import { RedeliveryWorker } from '../../src/webhooks/queue/redelivery-worker.ts';
import { redeliveries } from '../../src/webhooks/queue/redelivery.ts';
import { webhooks } from '../../src/webhooks/webhook.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { defaultStoreOptions } from '../kit/store.ts';
import { webhook } from '../store/definitions.ts';
import { delivery } from '../store/deliveries.ts';

async function startWorker({ missed, onError }: { missed: number; onError: (error: unknown) => void }) {
  const runtime = createFakeRuntime();
  const store = createMemoryStore(defaultStoreOptions);
  const tasks = createTasks(runtime, (_name, error) => onError(error));
  await store.update((transaction) => {
    transaction.put(webhooks, webhook('a'));
    transaction.deliveries.enqueue(
      Array.from({ length: missed }, (_, index) => delivery(`a${index}`, 1, { state: 'missed', endedAt: 1 })),
    );
    transaction.put(redeliveries, { id: 'r', webhookId: 'a', filter: {}, requestedAt: 2 });
  });
  const limits = { pending: 1_000, pendingBytes: 1_000_000 };
  const worker = new RedeliveryWorker({ store, runtime, tasks, limits });
  onTestFinished(() => tasks.stop());
  return { runtime, store, start: () => worker.start() };
}

it('lets other work run between the portions of a redelivery', async () => {
  const onError = (error: unknown) => expect.fail(String(error));
  const { runtime, store, start } = await startWorker({ missed: 250, onError });
  start();
  const seen = new Set<number>();
  while (store.count(redeliveries) > 0) {
    await runtime.yieldToEventLoop();
    seen.add(store.deliveries.pending().count);
  }
  expect([...seen]).toEqual(expect.arrayContaining([100, 200, 250]));
});

it('reports an error, and goes on ten seconds later', async () => {
  const errors: unknown[] = [];
  const { runtime, store, start } = await startWorker({ missed: 1, onError: (error) => errors.push(error) });
  const broken = new Error('broken');
  vi.spyOn(store.deliveries, 'redeliver').mockRejectedValueOnce(broken);
  start();
  await runtime.advance(9_999);
  expect([errors, store.count(redeliveries)]).toEqual([[broken], 1]);
  await runtime.advance(1);
  expect([errors, store.count(redeliveries), store.deliveries.pending().count]).toEqual([[broken], 0, 1]);
});
