// Tests what only the memory store does: its own limits, its heaps, and the check of needs.
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/lib/errors.ts';
import { keeping, openMemory } from './backends.ts';
import {
  claim,
  claimed,
  deleteAll,
  delivery,
  discard,
  end,
  enqueue,
  list,
  ping,
  publish,
} from './deliveries.ts';

const mib = 1024 ** 2;

describe('finished deliveries of more than 64 MiB', () => {
  const data = Buffer.alloc(30 * mib, '1').toString('latin1');
  const large = (id: string) => delivery(id, 1, { event: { ...delivery(id, 1).event, data } });

  it('are removed in the order they finished, of all webhooks', async () => {
    const store = await openMemory();
    const ids = ['a1', 'b1', 'a2', 'b2'];
    await publish(store, ...ids.map(large));
    await claim(store, 1);
    const left = async () => [...(await list(store, 'a')), ...(await list(store, 'b'))].sort();
    await end(store, 'b1', 2);
    await end(store, 'a1', 3);
    expect(await left()).toEqual(['a1', 'a2', 'b1', 'b2']);
    await end(store, 'b2', 4);
    expect(await left()).toEqual(['a1', 'a2', 'b2']);
    await end(store, 'a2', 5);
    expect(await left()).toEqual(['a2', 'b2']);
    // A delivery that is removed otherwise gives its bytes back.
    await deleteAll(store, 'a');
    await publish(store, large('a3'));
    await claim(store, 1);
    await end(store, 'a3', 6);
    expect(await left()).toEqual(['a3', 'b2']);
    expect(store.deliveries.pending()).toEqual({ count: 0, bytes: 0 });
  });

  it('are removed in the order they finished after they were redelivered', async () => {
    const store = await openMemory();
    await publish(store, ...['a1', 'b1', 'b2'].map(large));
    await claim(store, 1);
    await end(store, 'a1', 2, 'failed');
    await end(store, 'b1', 3, 'failed');
    const mark = (id: string) =>
      store.update((transaction) => transaction.deliveries.markRedelivered(id, `${id} again`));
    await mark('b1');
    await mark('a1');
    await end(store, 'b2', 4, 'failed');
    await mark('b2');
    expect([...(await list(store, 'a')), ...(await list(store, 'b'))].sort()).toEqual(['b1', 'b2']);
  });

  it('stay if deliveries are discarded that the webhook does not keep anyway', async () => {
    const store = await openMemory(keeping(1));
    await publish(store, large('a1'));
    await claim(store, 1);
    await end(store, 'a1', 2);
    await publish(store, ...['b1', 'b2', 'b3', 'b4'].map(large));
    await discard(store, 'b', 3);
    expect(await list(store, 'b')).toEqual(['b4']);
    expect(await list(store, 'a')).toEqual(['a1']);
  });
});

describe('more event ids than allowed', () => {
  const publishAt = (store: Awaited<ReturnType<typeof openMemory>>, eventId: string, at: number) =>
    store.deliveries.publish(() => [delivery(`a${at}`, at)], { eventId, at });

  it('are refused, and nothing is stored', async () => {
    const store = await openMemory({}, 2);
    for (const [index, id] of ['e1', 'e2'].entries()) expect(await publishAt(store, id, index)).toBe(1);
    const refused = await publishAt(store, 'e3', 3).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ServiceError);
    expect(refused).toMatchObject({
      kind: 'unavailable',
      message: 'Too many event ids are remembered: MAX_EVENT_IDS allows 2.',
      retryAfterSeconds: 600,
    });
    expect(await list(store, 'a')).toEqual(['a1', 'a0']);
    // Known ids and events without an id are accepted.
    expect(await publishAt(store, 'e1', 4)).toBe(1);
    expect(await publish(store, delivery('a5', 5))).toBe(1);
    // An id that has expired is replaced. Others have room when it is forgotten.
    const day = 24 * 3_600_000;
    expect(await publishAt(store, 'e1', day)).toBe(1);
    await expect(publishAt(store, 'e3', day + 1)).rejects.toThrow(ServiceError);
    await store.deliveries.forgetEvents(day + 1);
    expect(await publishAt(store, 'e3', day + 1)).toBe(1);
  });
});

describe('discarded deliveries', () => {
  it('do not hide others when the store rebuilds its heaps', async () => {
    const store = await openMemory(keeping(0));
    const numbers = Array.from({ length: 40 }, (_, index) => index + 1);
    await publish(store, ...numbers.map((n) => delivery(`a${n}`, n)));
    expect((await claim(store, 2, 2)).ids).toEqual(['a1', 'a2']);
    await publish(store, ping('a50', 50));
    await discard(store, 'a', 60);
    await publish(store, delivery('a70', 70), delivery('a71', 71));
    expect((await claim(store, 99)).ids).toEqual(['a50', 'a70', 'a71']);
    await store.deliveries.release([claimed(store, 'a1')]);
    expect(await claim(store, 99)).toEqual({ ids: ['a1'], nextAt: undefined });
  });

  it('leave the heaps', async () => {
    const store = await openMemory(keeping(0));
    let reads = 0;
    const counting = (id: string) =>
      Object.defineProperty(delivery(id, 1), 'id', { get: () => ((reads += 1), id), enumerable: true });
    for (let n = 0; n < 100; n += 1) {
      await enqueue(store, ...Array.from({ length: 10 }, (_, index) => counting(`a${10 * n + index}`)));
      await discard(store, 'a', 2);
    }
    await publish(store, delivery('a9999', 3));
    reads = 0;
    expect((await claim(store, 3)).ids).toEqual(['a9999']);
    expect(reads).toBeLessThan(100);
  });
});
