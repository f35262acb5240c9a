// Tests of the delivery worker: its limits, how it stops, a store that is slow or fails, and its metrics.
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { type Hooks, quick, startHooks } from '../kit/hooks.ts';
import { type Receiver, blackHole } from '../kit/http-client.ts';
import type { ServerOptions } from '../kit/server.ts';
import { createTestStore } from '../kit/store.ts';
import { onlyDeliveryOf } from './delivery-worker-kit.ts';

let hooks: Hooks;

async function start(options?: ServerOptions): Promise<void> {
  hooks = await startHooks(options);
}

const onlyDelivery = onlyDeliveryOf(() => hooks);

describe('limits', () => {
  /** Counts the attempts in progress per receiver. `waiting` ends them. */
  function countAttempts() {
    const now = new Map<string, number>();
    const most = new Map<string, number>();
    const waiting: (() => void)[] = [];
    const count = (host: string, by: number) => {
      now.set(host, (now.get(host) ?? 0) + by);
      most.set(host, Math.max(most.get(host) ?? 0, now.get(host) ?? 0));
    };
    const receiver: Receiver = ({ url }) => {
      const { host } = new URL(url);
      count(host, 1);
      count('all', 1);
      return new Promise((resolve) =>
        waiting.push(() => {
          count(host, -1);
          count('all', -1);
          resolve(200);
        }),
      );
    };
    hooks.httpClient.receiver = receiver;
    return { now, most, waiting };
  }

  it.each([
    [undefined, 4],
    ['9/2', 2],
  ])(
    'allow attempts at a time per receiver, for all its webhooks and paths: %s',
    async (text, perReceiver) => {
      await start({ env: text === undefined ? {} : { WEBHOOK_CONCURRENCY: text } });
      const { most, waiting } = countAttempts();
      await hooks.register({ hookUrl: 'https://one.example/a' });
      await hooks.register({ hookUrl: 'https://one.example/b' });
      await hooks.register({ hookUrl: 'https://one.example:8443/b' });
      for (let n = 0; n < 10; n += 1) await hooks.publish();
      for (let left = 30; left > 0;) {
        await hooks.settle();
        expect(waiting.length).toBeGreaterThan(0);
        left -= waiting.length;
        for (const answer of waiting.splice(0)) answer();
      }
      expect([most.get('one.example'), most.get('one.example:8443')]).toEqual([perReceiver, perReceiver]);
    },
  );

  it.each([
    [undefined, 128],
    ['9/4', 9],
  ])('allow attempts at a time in total: %s', async (text, total) => {
    await start({ env: text === undefined ? {} : { WEBHOOK_CONCURRENCY: text } });
    const { most, waiting } = countAttempts();
    for (let n = 0; n < 40; n += 1) await hooks.register({ hookUrl: `https://r${n}.example/` });
    for (let n = 0; n < 5; n += 1) await hooks.publish();
    for (let left = 200; left > 0;) {
      await hooks.settle();
      expect(waiting.length).toBeGreaterThan(0);
      left -= waiting.length;
      for (const answer of waiting.splice(0)) answer();
    }
    expect(most.get('all')).toBe(total);
  });

  it('serve retries before first attempts, so that a dead receiver is soon deactivated', async () => {
    await start();
    await hooks.act('settings', { notificationTimeOutInSeconds: '1', notificationElapsedTimeInSeconds: '1' });
    const { id } = await hooks.register();
    hooks.httpClient.receiver = blackHole;
    for (let n = 0; n < 60; n += 1) await hooks.publish();
    // The first four deliveries take three attempts and two waits of a second each; so do the next four.
    await hooks.runtime.advance(12_000);
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: false, deactivatedBy: 'failures' });
  });

  it('keep a black hole from delaying other receivers', async () => {
    await start();
    const { id: healthy } = await hooks.register({ hookUrl: 'https://healthy.example/' });
    await hooks.register({ hookUrl: 'https://hole.example/' });
    hooks.httpClient.receiver = (request, signal, at) =>
      request.url.includes('hole') ? blackHole(request, signal, at) : 200;
    for (let n = 0; n < 100; n += 1) await hooks.publish();
    await hooks.settle();
    const { deliveries } = await hooks.deliveriesOf(healthy);
    expect(deliveries.filter(({ state }) => state === 'delivered')).toHaveLength(100);
  });
});

describe('when the server stops', () => {
  it('an attempt in progress may end', async () => {
    await start();
    const { id } = await hooks.register();
    let answer: (status: number) => void = () => undefined;
    hooks.httpClient.receiver = () => new Promise((resolve) => (answer = resolve));
    await hooks.deliver();
    const closed = hooks.app.close();
    await hooks.settle();
    answer(200);
    await closed;
    await start({ store: await hooks.store.reopen() });
    expect(await onlyDelivery(id)).toMatchObject({ state: 'delivered' });
  });

  it('an attempt that does not end is aborted, and the next process repeats it', async () => {
    await start();
    const { id } = await hooks.register();
    hooks.httpClient.receiver = blackHole;
    await hooks.deliver();
    const closed = hooks.app.close();
    await hooks.runtime.advance(3000);
    await closed;
    await start({ store: await hooks.store.reopen() });
    await hooks.settle();
    expect(hooks.arrivals).toHaveLength(1);
    const delivery = await onlyDelivery(id);
    expect(delivery).toMatchObject({ state: 'delivered' });
    expect(delivery?.attempts).toHaveLength(1);
  });
});

describe('a store that is slow or fails', () => {
  /** A store whose claims wait for `gate.wait` first, which may reject. */
  async function createSlowStore() {
    const store = await createTestStore();
    const gate: { wait: () => Promise<void> } = { wait: () => Promise.resolve() };
    const claim: Store['deliveries']['claim'] = async (request) => {
      await gate.wait();
      return store.deliveries.claim(request);
    };
    return { store: { ...store, deliveries: { ...store.deliveries, claim } }, gate };
  }

  it('gets another claim after a claim has failed', async () => {
    const { store, gate } = await createSlowStore();
    await start({ store });
    await hooks.register();
    gate.wait = () => Promise.reject(new Error('store failed'));
    for (let n = 0; n < 5; n += 1) await hooks.publish();
    await hooks.settle();
    gate.wait = () => Promise.resolve();
    await hooks.runtime.advance(1000);
    expect(hooks.arrivals).toHaveLength(5);
    expect(hooks.logLines.join('')).toContain('store failed');
  });

  it('gets another claim if deliveries were added during a claim', async () => {
    const { store, gate } = await createSlowStore();
    await start({ store });
    await hooks.register();
    let open: () => void = () => undefined;
    gate.wait = () => new Promise((resolve) => (open = resolve));
    await hooks.publish();
    gate.wait = () => Promise.resolve();
    await hooks.publish();
    open();
    await hooks.settle();
    expect(hooks.arrivals).toHaveLength(2);
  });

  it('gets back deliveries that it returns after the worker was stopped', async () => {
    const { store, gate } = await createSlowStore();
    await start({ store });
    const { id } = await hooks.register();
    let open: () => void = () => undefined;
    gate.wait = () => new Promise((resolve) => (open = resolve));
    await hooks.publish();
    const closed = hooks.app.close();
    await hooks.settle();
    open();
    await closed;
    await start({ store: await store.reopen() });
    await hooks.settle();
    expect(await onlyDelivery(id)).toMatchObject({ state: 'delivered' });
  });
});

describe('an error of this process', () => {
  it('is no attempt: it is logged, counts as no failure, and the delivery is sent later', async () => {
    await start();
    await hooks.act('settings', { ...quick, notificationAttempts: '1', numberOfFailures: '1' });
    const { id } = await hooks.register();
    let calls = 0;
    hooks.httpClient.receiver = () => {
      calls += 1;
      throw Object.assign(new Error('no file descriptor is left'), { code: 'EMFILE' });
    };
    for (let n = 0; n < 5; n += 1) await hooks.publish();
    await hooks.runtime.advance(9_000);
    // The slots of the receiver stay in use, so that nothing is repeated at once.
    expect(calls).toBe(4);
    expect(hooks.logLines.filter((line) => line.includes('EMFILE'))).toHaveLength(4);
    const { deliveries } = await hooks.deliveriesOf(id);
    expect(deliveries).toMatchObject(Array(5).fill({ state: 'pending', attempts: [] }));
    expect((await hooks.get('/metrics')).body).toMatch(/^steward_webhook_failures_total 0$/m);
    hooks.httpClient.receiver = () => 200;
    await hooks.runtime.advance(2_000);
    expect((await hooks.deliveriesOf(id)).deliveries).toMatchObject(
      Array(5).fill({ state: 'delivered', attempts: [{ status: 200 }] }),
    );
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: true, deactivatedBy: null });
  });

  it('keeps no delivery of a server that stops', async () => {
    await start();
    const { id } = await hooks.register();
    hooks.httpClient.receiver = () => {
      throw new TypeError('a defect');
    };
    await hooks.deliver();
    await hooks.app.close();
    await start({ store: await hooks.store.reopen() });
    await hooks.settle();
    expect(await onlyDelivery(id)).toMatchObject({ state: 'delivered' });
  });
});

it('reports metrics without names', async () => {
  await start();
  await hooks.act('settings', { ...quick, notificationAttempts: '2', numberOfFailures: '1' });
  await hooks.register({ name: 'Secretive' });
  hooks.answerWith(500);
  await hooks.publish();
  await hooks.runtime.advance(2500);
  const before = (await hooks.get('/metrics')).body;
  expect(before).toMatch(/^steward_webhook_deliveries_pending 1$/m);
  expect(before).toMatch(/^steward_webhook_oldest_pending_seconds 2.5$/m);
  await hooks.runtime.advance(10_000);
  const { body } = await hooks.get('/metrics');
  expect(body).toMatch(/^steward_webhook_attempt_duration_seconds_count\{outcome="failed"\} 2$/m);
  expect(body).toMatch(/^steward_webhook_failures_total 1$/m);
  expect(body).toMatch(/^steward_webhook_deliveries_pending 0$/m);
  expect(body).toMatch(/^steward_webhook_oldest_pending_seconds 0$/m);
  expect(body).toMatch(/^steward_webhook_deactivated 1$/m);
  expect(body).not.toMatch(/Secretive|hooks\.example/);
});
