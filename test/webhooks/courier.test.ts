// Deliveries obey the policy to the letter: attempts, waits, time-outs, limits, and what ends them.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { type Receiver, blackHole } from '../kit/world.ts';
import { type Hooks, quick, startHooks } from '../kit/hooks.ts';
import { createTestStore } from '../kit/store.ts';

let hooks: Hooks;
beforeEach(async () => {
  hooks = await startHooks();
});
afterEach(() => hooks.close());

const start = () => hooks.world.now();
const onlyDelivery = async (id: string) => {
  const { deliveries } = await hooks.deliveriesOf(id);
  expect(deliveries).toHaveLength(1);
  return deliveries[0];
};

describe('attempts', () => {
  it.each([1, 2, 3, 4, 5])(
    'are exactly %i, each the wait after the one before',
    async (notificationAttempts) => {
      await hooks.act('settings', {
        notificationAttempts: String(notificationAttempts),
        notificationElapsedTimeInSeconds: '7',
      });
      const { id } = await hooks.register();
      hooks.answerWith(500);
      const from = start();
      await hooks.publish();
      await hooks.world.advance(3_600_000);
      // Parts of a millisecond are waited for in full, so that no wait is too short.
      const times = hooks.arrivals.map(({ at }) => at - from);
      expect(times).toEqual(Array.from({ length: notificationAttempts }, (_, n) => n * 7001));
      const delivery = await onlyDelivery(id);
      expect(delivery).toMatchObject({
        state: 'failed',
        nextAttemptAt: null,
        endedAt: from + (times.at(-1) ?? 0),
      });
      expect(delivery?.attempts).toHaveLength(notificationAttempts);
      expect(new Set(hooks.arrivals.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
      expect(new Set(hooks.arrivals.map(({ body }) => body)).size).toBe(1);
      expect(hooks.arrivals.map(({ headers }) => Number(headers['webhook-timestamp']))).toEqual(
        hooks.arrivals.map(({ at }) => Math.floor(at / 1000)),
      );
    },
  );

  it('end with the first success', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(503, { status: 204, body: Buffer.from('thanks') });
    const from = start();
    await hooks.publish();
    await hooks.settle();
    expect(await onlyDelivery(id)).toEqual({
      id: expect.any(String) as string,
      event: { id: expect.any(String) as string, type: 'Tested', timestamp: from },
      state: 'pending',
      createdAt: from,
      endedAt: null,
      nextAttemptAt: from + 5000,
      attempts: [
        { when: from, durationMs: 0, status: 503, error: 'The receiver answered 503.', response: '' },
      ],
    });
    await hooks.world.advance(5000);
    expect(hooks.arrivals).toHaveLength(1);
    await hooks.world.advance(1);
    const delivery = await onlyDelivery(id);
    expect(delivery).toMatchObject({ state: 'delivered', endedAt: from + 5001 });
    expect(delivery?.attempts[1]).toMatchObject({ status: 204, error: null, response: 'thanks' });
    await hooks.world.advance(3_600_000);
    expect(hooks.arrivals).toHaveLength(2);
  });

  it.each([100, 199, 300, 301, 302, 304, 307, 400, 404, 410, 429, 500, 503])(
    'fail with %i',
    async (status) => {
      const { id } = await hooks.register();
      hooks.answerWith(status);
      await hooks.publish();
      await hooks.settle();
      expect((await onlyDelivery(id))?.attempts).toMatchObject([
        { status, error: `The receiver answered ${status}.` },
      ]);
    },
  );

  it.each([200, 201, 202, 204, 226, 299])('succeed with %i', async (status) => {
    const { id } = await hooks.register();
    hooks.answerWith(status);
    await hooks.publish();
    await hooks.settle();
    expect(await onlyDelivery(id)).toMatchObject({ state: 'delivered' });
  });

  it('that find nobody tell why', async () => {
    const { id } = await hooks.register();
    hooks.world.receiver = () => {
      throw new Error('The name hooks.example does not resolve.');
    };
    await hooks.publish();
    await hooks.settle();
    expect((await onlyDelivery(id))?.attempts).toMatchObject([
      { status: null, error: 'The name hooks.example does not resolve.', response: null },
    ]);
  });

  it('without a wait follow at once', async () => {
    await hooks.act('settings', { notificationElapsedTimeInSeconds: '0' });
    await hooks.register();
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.world.advance(10);
    expect(hooks.arrivals).toHaveLength(3);
  });
});

describe('the time-out', () => {
  it('ends an attempt that has no complete answer, and the wait begins then', async () => {
    await hooks.act('settings', { notificationTimeOutInSeconds: '2' });
    const { id } = await hooks.register();
    const seen: { at: number; ended?: number }[] = [];
    hooks.world.receiver = (_outgoing, signal) => {
      const entry: (typeof seen)[number] = { at: hooks.world.now() };
      seen.push(entry);
      signal.addEventListener('abort', () => (entry.ended = hooks.world.now()));
      return blackHole(_outgoing, signal, entry.at);
    };
    const from = start();
    await hooks.publish();
    await hooks.world.advance(60_000);
    expect(seen.map(({ at, ended }) => [at - from, (ended ?? 0) - from])).toEqual([
      [0, 2000],
      [7001, 9001],
      [14_002, 16_002],
    ]);
    expect((await onlyDelivery(id))?.attempts[0]).toEqual({
      when: from,
      durationMs: 2000,
      status: null,
      error: 'There was no complete answer within 2 seconds.',
      response: null,
    });
  });

  it('is that of the settings when the attempt starts', async () => {
    const { id } = await hooks.register();
    hooks.world.receiver = blackHole;
    await hooks.publish();
    await hooks.settle();
    await hooks.act('settings', { notificationTimeOutInSeconds: '1' });
    await hooks.world.advance(60_000);
    const { attempts = [] } = (await onlyDelivery(id)) ?? {};
    expect(attempts.map(({ durationMs, error }) => [durationMs, error])).toEqual([
      [10_000, 'There was no complete answer within 10 seconds.'],
      [1000, 'There was no complete answer within 1 second.'],
      [1000, 'There was no complete answer within 1 second.'],
    ]);
  });
});

describe('changed settings', () => {
  it('decide after each attempt whether there is another', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.act('settings', { notificationAttempts: '2' });
    await hooks.world.advance(60_000);
    expect((await onlyDelivery(id))?.attempts).toHaveLength(2);
  });

  it.each([
    ['longer', '20', 20_001],
    ['shorter', '3', 3001],
    ['shorter than what has passed', '1', 2000],
  ])('make a wait that has begun %s', async (_what, notificationElapsedTimeInSeconds, next) => {
    await hooks.register();
    hooks.answerWith(500);
    const from = start();
    await hooks.publish();
    await hooks.world.advance(2000);
    await hooks.act('settings', { notificationElapsedTimeInSeconds });
    await hooks.world.advance(20_001 - 2000);
    expect((hooks.arrivals[1]?.at ?? 0) - from).toBe(next);
  });
});

describe('a webhook that changes', () => {
  it('gets its retries at the new address, under the new name', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(500, 200);
    await hooks.publish();
    await hooks.settle();
    await hooks.act(`${id}/edit`, { hookUrl: 'https://other.example/', name: 'Renamed' });
    await hooks.world.advance(5001);
    expect(hooks.arrivals.map(({ url }) => url)).toEqual([
      'https://hooks.example/in',
      'https://other.example/',
    ]);
    expect(hooks.arrivals[1]?.body).toContain('"webhookName":"Renamed"');
  });

  it('gets nothing more once deactivated: what is pending is discarded', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.settle();
    await hooks.act(`${id}/deactivate`);
    const deactivatedAt = hooks.world.now();
    expect(await hooks.read(`/${id}`)).toMatchObject({
      active: false,
      deactivatedAt,
      deactivatedBy: 'administrator',
    });
    expect(await onlyDelivery(id)).toMatchObject({
      state: 'discarded',
      endedAt: deactivatedAt,
      nextAttemptAt: null,
    });
    await hooks.world.advance(3_600_000);
    await hooks.act(`${id}/activate`);
    await hooks.world.advance(3_600_000);
    expect(hooks.arrivals).toHaveLength(1);
    expect(await hooks.publish()).toMatchObject({ deliveries: 1 });
  });

  it.each<[string, number, string]>([
    ['succeeds', 200, 'delivered'],
    ['fails', 500, 'discarded'],
  ])('while an attempt is under way that %s', async (_how, status, state) => {
    const { id } = await hooks.register();
    let answer: (status: number) => void = () => undefined;
    hooks.world.receiver = () => new Promise((resolve) => (answer = resolve));
    await hooks.publish();
    await hooks.settle();
    await hooks.act(`${id}/deactivate`);
    expect(await onlyDelivery(id)).toMatchObject({ state: 'pending' });
    answer(status);
    await hooks.settle();
    expect(await onlyDelivery(id)).toMatchObject({ state });
    expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 0 } });
  });

  it('gets no retry of what was sent before it was off and on again', async () => {
    const { id } = await hooks.register();
    let answer: (status: number) => void = () => undefined;
    hooks.world.receiver = () => new Promise((resolve) => (answer = resolve));
    await hooks.publish();
    await hooks.settle();
    await hooks.act(`${id}/deactivate`);
    await hooks.act(`${id}/activate`);
    answer(500);
    await hooks.settle();
    expect(await onlyDelivery(id)).toMatchObject({ state: 'discarded' });
  });

  it('still gets a ping that waits for a slot', async () => {
    const { id } = await hooks.register();
    hooks.world.receiver = blackHole;
    for (let n = 0; n < 4; n += 1) await hooks.publish();
    await hooks.settle();
    const { deliveryId } = await hooks.act<{ deliveryId: string }>(`${id}/ping`);
    await hooks.act(`${id}/deactivate`);
    hooks.world.receiver = () => 200;
    await hooks.world.advance(10_000);
    expect(await hooks.read(`/${id}/deliveries/${deliveryId}`)).toMatchObject({ state: 'delivered' });
  });

  it('gets nothing more once deleted', async () => {
    const { id } = await hooks.register();
    let answer: (status: number) => void = () => undefined;
    let asked = 0;
    hooks.world.receiver = () => new Promise((resolve) => ((answer = resolve), (asked += 1)));
    await hooks.publish();
    await hooks.settle();
    await hooks.act(`${id}/delete`);
    answer(500);
    await hooks.world.advance(3_600_000);
    expect(asked).toBe(1);
    expect((await hooks.get('/metrics')).body).toMatch(/^steward_webhook_deliveries_pending 0$/m);
  });
});

describe('too many failures', () => {
  beforeEach(() => hooks.act('settings', { ...quick, notificationAttempts: '1' }));
  const fail = async () => {
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.settle();
  };

  it('deactivate the webhook, and activating it starts anew', async () => {
    const { id } = await hooks.register();
    const windowStart = start();
    await fail();
    const window = { count: 1, windowStart, windowEnd: windowStart + 5 * 86_400_000 };
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: true, failures: window });
    await hooks.world.advance(5 * 86_400_000 - 1);
    await fail();
    expect(await hooks.read(`/${id}`)).toMatchObject({
      active: false,
      deactivatedAt: hooks.world.now(),
      deactivatedBy: 'failures',
      failures: { ...window, count: 2 },
    });
    expect(await hooks.publish()).toMatchObject({ deliveries: 0 });
    await hooks.act(`${id}/activate`);
    expect(await hooks.read(`/${id}`)).toMatchObject({
      active: true,
      deactivatedBy: null,
      failures: { count: 0, windowStart: null, windowEnd: null },
    });
    await fail();
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: true, failures: { count: 1 } });
  });

  it('are counted anew after the window, which a success does not touch', async () => {
    const { id } = await hooks.register();
    await fail();
    hooks.answerWith(200);
    await hooks.publish();
    await hooks.settle();
    expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 1 } });
    await hooks.world.advance(5 * 86_400_000);
    expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 0, windowStart: null } });
    const windowStart = start();
    await fail();
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: true, failures: { count: 1, windowStart } });
  });

  it('discard what is pending then', async () => {
    await hooks.act('settings', { numberOfFailures: '1', notificationTimeOutInSeconds: '1' });
    const { id } = await hooks.register();
    hooks.world.receiver = blackHole;
    for (let n = 0; n < 6; n += 1) await hooks.publish();
    await hooks.world.advance(1000);
    const states = (await hooks.deliveriesOf(id)).deliveries.map(({ state }) => state);
    // Four were under way and end as failed; only the first of them counts.
    expect(states).toEqual(['discarded', 'discarded', 'failed', 'failed', 'failed', 'failed']);
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: false, failures: { count: 1 } });
  });

  it('counts a redelivery, and no ping', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(500);
    for (let n = 0; n < 3; n += 1) await hooks.act(`${id}/ping`);
    await hooks.settle();
    expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 0 } });
    await fail();
    const { deliveries } = await hooks.deliveriesOf(id);
    await hooks.act(`${id}/deliveries/${deliveries[0]?.id ?? ''}/redeliver`);
    await hooks.settle();
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: false, failures: { count: 2 } });
  });
});

describe('ping', () => {
  it('is one attempt, also while inactive', async () => {
    const { id } = await hooks.register({ active: 'false', changeTypes: 'Nothing' });
    hooks.answerWith(500);
    const { deliveryId } = await hooks.act<{ deliveryId: string }>(`${id}/ping`);
    await hooks.world.advance(3_600_000);
    expect(hooks.arrivals).toHaveLength(1);
    expect(JSON.parse(hooks.arrivals[0]?.body ?? '')).toMatchObject({
      type: 'Ping',
      service: null,
      data: {},
    });
    expect(await hooks.read(`/${id}/deliveries/${deliveryId}`)).toMatchObject({
      id: deliveryId,
      event: { type: 'Ping' },
      state: 'failed',
    });
  });
});

it('a redelivered ping is a ping', async () => {
  const { id } = await hooks.register();
  hooks.answerWith(500);
  const { deliveryId } = await hooks.act<{ deliveryId: string }>(`${id}/ping`);
  await hooks.settle();
  await hooks.act(`${id}/deliveries/${deliveryId}/redeliver`);
  await hooks.world.advance(3_600_000);
  expect(hooks.arrivals).toHaveLength(2);
  expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 0 } });
});

describe('deliveries', () => {
  it('are listed newest first, in pages', async () => {
    const { id } = await hooks.register();
    for (let n = 0; n < 30; n += 1) await hooks.publish({ eventId: `e${n}` });
    await hooks.settle();
    type Page = { deliveries: { event: { id: string } }[]; total: number };
    const page = async (query: string) => {
      const { deliveries, total } = await hooks.read<Page>(`/${id}/deliveries${query}`);
      return [total, deliveries.length, deliveries[0]?.event.id];
    };
    expect(await page('')).toEqual([30, 25, 'e29']);
    expect(await page('?start=25')).toEqual([30, 5, 'e4']);
    expect(await page('?start=28&num=1')).toEqual([30, 1, 'e1']);
    expect(await page('?start=30')).toEqual([30, 0, undefined]);
    for (const bad of ['start=-1', 'num=0', 'num=101']) {
      const { statusCode } = await hooks.get(
        `/admin/services/webhooks/${id}/deliveries?${bad}`,
        hooks.administrator,
      );
      expect(statusCode).toBe(400);
    }
  });

  it('can be sent once more: the same event, as a new delivery', async () => {
    const { id } = await hooks.register();
    await hooks.publish({ eventId: 'again', payload: '{"a":1}' });
    await hooks.settle();
    const first = await onlyDelivery(id);
    const path = `${id}/deliveries/${first?.id ?? ''}`;
    const { deliveryId } = await hooks.act<{ deliveryId: string }>(`${path}/redeliver`);
    await hooks.settle();
    expect(deliveryId).not.toBe(first?.id);
    const [one, two] = hooks.arrivals;
    expect([two?.body, two?.headers['webhook-id']]).toEqual([one?.body, 'again']);
    expect((await hooks.deliveriesOf(id)).total).toBe(2);
    await hooks.act(`${id}/deactivate`);
    const refused = await hooks.post(`/admin/services/webhooks/${path}/redeliver`, {}, hooks.administrator);
    expect(refused.statusCode).toBe(409);
  });

  it('of another webhook are not found', async () => {
    const { id } = await hooks.register();
    await hooks.publish();
    const delivery = await onlyDelivery(id);
    const other = await hooks.register();
    const path = `/admin/services/webhooks/${other.id}/deliveries/${delivery?.id ?? ''}`;
    expect((await hooks.get(path, hooks.administrator)).statusCode).toBe(404);
  });

  it('that have ended are kept to WEBHOOK_HISTORY', async () => {
    await hooks.close();
    hooks = await startHooks({ env: { WEBHOOK_HISTORY: '3' } });
    const { id } = await hooks.register();
    for (let n = 0; n < 6; n += 1) await hooks.publish({ eventId: `e${n}` });
    await hooks.settle();
    const told = async () => (await hooks.deliveriesOf(id)).deliveries.map(({ event }) => event.id);
    expect(await told()).toEqual(['e5', 'e4', 'e3']);
    hooks.world.receiver = blackHole;
    for (let n = 6; n < 14; n += 1) await hooks.publish({ eventId: `e${n}` });
    await hooks.settle();
    expect((await told()).slice(8)).toEqual(['e5', 'e4', 'e3']);
    await hooks.act(`${id}/deactivate`);
    // Four are under way; the others were never tried, and tell less than what was.
    expect(await told()).toEqual(['e9', 'e8', 'e7', 'e6', 'e5', 'e4', 'e3']);
  });

  it('keep an answer as text, whatever it was', async () => {
    const { id } = await hooks.register();
    hooks.answerWith({ status: 500, body: Buffer.from([0x61, 0, 0xff, 0xc3, 0xa4, 0xe2, 0x82]) });
    await hooks.publish();
    await hooks.settle();
    expect((await onlyDelivery(id))?.attempts[0]?.response).toBe('a\uFFFD\uFFFDä');
  });
});

describe('limits', () => {
  /** How many are under way at each receiver, and the most there ever were. */
  function watch() {
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
    hooks.world.receiver = receiver;
    return { now, most, waiting };
  }

  it('are four at one receiver, whatever its webhooks and paths', async () => {
    const { most, waiting } = watch();
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
    expect([most.get('one.example'), most.get('one.example:8443')]).toEqual([4, 4]);
  });

  it('are WEBHOOK_CONCURRENCY in all', async () => {
    await hooks.close();
    hooks = await startHooks({ env: { WEBHOOK_CONCURRENCY: '10' } });
    const { most, waiting } = watch();
    for (let n = 0; n < 8; n += 1) await hooks.register({ hookUrl: `https://r${n}.example/` });
    for (let n = 0; n < 5; n += 1) await hooks.publish();
    for (let left = 40; left > 0;) {
      await hooks.settle();
      expect(waiting.length).toBeGreaterThan(0);
      left -= waiting.length;
      for (const answer of waiting.splice(0)) answer();
    }
    expect(most.get('all')).toBe(10);
  });

  it('are given to what has begun before anything new, so that a dead receiver is found out', async () => {
    await hooks.act('settings', { notificationTimeOutInSeconds: '1', notificationElapsedTimeInSeconds: '1' });
    const { id } = await hooks.register();
    hooks.world.receiver = blackHole;
    for (let n = 0; n < 60; n += 1) await hooks.publish();
    // Three attempts of a second each and two waits for the first four, and four more of the next.
    await hooks.world.advance(12_000);
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: false, deactivatedBy: 'failures' });
  });

  it('let nobody wait for a black hole', async () => {
    const { id: healthy } = await hooks.register({ hookUrl: 'https://healthy.example/' });
    await hooks.register({ hookUrl: 'https://hole.example/' });
    hooks.world.receiver = (outgoing, signal, at) =>
      outgoing.url.includes('hole') ? blackHole(outgoing, signal, at) : 200;
    for (let n = 0; n < 100; n += 1) await hooks.publish();
    await hooks.settle();
    const { deliveries } = await hooks.deliveriesOf(healthy);
    expect(deliveries.filter(({ state }) => state === 'delivered')).toHaveLength(100);
  });
});

describe('when the server stops', () => {
  it('an attempt under way may end', async () => {
    await hooks.close();
    hooks = await startHooks();
    const { id } = await hooks.register();
    let answer: (status: number) => void = () => undefined;
    hooks.world.receiver = () => new Promise((resolve) => (answer = resolve));
    await hooks.publish();
    await hooks.settle();
    const closed = hooks.app.close();
    await hooks.settle();
    answer(200);
    await closed;
    hooks = await startHooks({ store: await hooks.store.reopen() });
    expect(await onlyDelivery(id)).toMatchObject({ state: 'delivered' });
  });

  it('one that does not end is put back, and made anew by the next', async () => {
    await hooks.close();
    hooks = await startHooks();
    const { id } = await hooks.register();
    hooks.world.receiver = blackHole;
    await hooks.publish();
    await hooks.settle();
    const closed = hooks.app.close();
    await hooks.world.advance(3000);
    await closed;
    hooks = await startHooks({ store: await hooks.store.reopen() });
    await hooks.settle();
    expect(hooks.arrivals).toHaveLength(1);
    const delivery = await onlyDelivery(id);
    expect(delivery).toMatchObject({ state: 'delivered' });
    expect(delivery?.attempts).toHaveLength(1);
  });
});

describe('a store that is slow or fails', () => {
  /** A store whose claims happen when the test says so, or fail. */
  async function createSlowStore() {
    const store = await createTestStore();
    const gate: { wait: () => Promise<void> } = { wait: () => Promise.resolve() };
    const claim: Store['claim'] = async (queue, asked) => {
      await gate.wait();
      return store.claim(queue, asked);
    };
    return { store: { ...store, claim }, gate };
  }

  it('is asked again after a claim has failed', async () => {
    await hooks.close();
    const { store, gate } = await createSlowStore();
    hooks = await startHooks({ store });
    await hooks.register();
    gate.wait = () => Promise.reject(new Error('away'));
    for (let n = 0; n < 5; n += 1) await hooks.publish();
    await hooks.settle();
    gate.wait = () => Promise.resolve();
    await hooks.world.advance(1000);
    expect(hooks.arrivals).toHaveLength(5);
    expect(hooks.logLines.join('')).toContain('away');
  });

  it('is asked again when something came in while it answered', async () => {
    await hooks.close();
    const { store, gate } = await createSlowStore();
    hooks = await startHooks({ store });
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

  it('gets back what it hands out too late', async () => {
    await hooks.close();
    const { store, gate } = await createSlowStore();
    hooks = await startHooks({ store });
    const { id } = await hooks.register();
    let open: () => void = () => undefined;
    gate.wait = () => new Promise((resolve) => (open = resolve));
    await hooks.publish();
    const closed = hooks.app.close();
    await hooks.settle();
    open();
    await closed;
    hooks = await startHooks({ store: await store.reopen() });
    await hooks.settle();
    expect(await onlyDelivery(id)).toMatchObject({ state: 'delivered' });
  });
});

it('shows in the metrics, without names', async () => {
  await hooks.act('settings', { ...quick, notificationAttempts: '2', numberOfFailures: '1' });
  await hooks.register({ name: 'Secretive' });
  hooks.answerWith(500);
  await hooks.publish();
  await hooks.world.advance(2500);
  const before = (await hooks.get('/metrics')).body;
  expect(before).toMatch(/^steward_webhook_deliveries_pending 1$/m);
  expect(before).toMatch(/^steward_webhook_oldest_pending_seconds 2.5$/m);
  await hooks.world.advance(10_000);
  const { body } = await hooks.get('/metrics');
  expect(body).toMatch(/^steward_webhook_attempt_duration_seconds_count\{outcome="failed"\} 2$/m);
  expect(body).toMatch(/^steward_webhook_failures_total 1$/m);
  expect(body).toMatch(/^steward_webhook_deliveries_pending 0$/m);
  expect(body).toMatch(/^steward_webhook_oldest_pending_seconds 0$/m);
  expect(body).toMatch(/^steward_webhook_deactivated 1$/m);
  expect(body).not.toMatch(/Secretive|hooks\.example/);
});
