// The clock of the control API: frozen, moved to a time, advanced. Everything that becomes due has been done when
// the answer arrives.
import { beforeEach, describe, expect, it } from 'vitest';
import { realRuntime } from '../../src/lib/runtime.ts';
import { createTasks } from '../../src/lib/tasks.ts';
import { ControlClock } from '../../src/testing/clock.ts';
import { password } from '../kit/server.ts';
import { createWebhook, dayMs, startControl, startReceiver } from './kit.ts';

const server = await startControl();
const receiver = await startReceiver();
const { control, act, get } = server;
beforeEach(async () => {
  receiver.status = 200;
  receiver.key = '';
  receiver.arrivals.length = 0;
  await control.reset();
});

async function failOnce(): Promise<void> {
  await act('/admin/services/webhooks/publish', { changeType: 'Tested' });
  await control.advanceClock(0);
}

it.each([true, false])(
  'signs for receivers at the time of day after five days (frozen: %s)',
  async (frozen) => {
    receiver.key = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const id = await createWebhook(server, receiver.url, 'signed', { signatureKey: receiver.key });
    await control.setClock({ frozen, advanceMs: 5 * dayMs });
    await failOnce();
    const { deliveries } = await get<{ deliveries: { attempts: { status: number; when: number }[] }[] }>(
      `/admin/services/webhooks/${id}/deliveries`,
    );
    expect(deliveries.flatMap(({ attempts }) => attempts.map(({ status }) => status))).toEqual([200]);
    expect(deliveries[0]?.attempts[0]?.when).toBeGreaterThan(Date.now() + 4 * dayMs);
  },
);

describe('a frozen clock', () => {
  it('stands until a reset, which returns to the time of day', async () => {
    const { now } = await control.setClock({ frozen: true });
    await get('/admin');
    expect(await control.clock()).toEqual({ now, frozen: true });
    await control.advanceClock(dayMs);
    const before = Date.now();
    await control.reset();
    const after = await control.clock();
    expect(after).toEqual({ now: expect.any(Number) as number, frozen: false });
    expect(after.now).toBeGreaterThanOrEqual(before);
    expect(after.now).toBeLessThanOrEqual(Date.now());
  });

  it('is the time of day again when it is released, plus what was advanced', async () => {
    await control.setClock({ frozen: true });
    await control.advanceClock(dayMs);
    const before = Date.now();
    const { now } = await control.setClock({ frozen: false });
    expect(now).toBeGreaterThanOrEqual(before + dayMs);
    expect(now).toBeLessThanOrEqual(Date.now() + dayMs);
    await expect.poll(async () => (await control.clock()).now).toBeGreaterThan(now);
  });

  it('lets attempts take no time, or exactly the timeout', async () => {
    await control.setClock({ frozen: true });
    await act('/admin/services/webhooks/settings', { notificationAttempts: '1' });
    const id = await createWebhook(server, receiver.url);
    await failOnce();
    receiver.status = 0;
    // An attempt takes real time.
    await act('/admin/services/webhooks/settings', { notificationTimeOutInSeconds: '1' });
    await failOnce();
    const { deliveries } = await get<{ deliveries: { attempts: { durationMs: number }[] }[] }>(
      `/admin/services/webhooks/${id}/deliveries`,
    );
    expect(deliveries.map(({ attempts }) => attempts[0]?.durationMs)).toEqual([1000, 0]);
  });
});

it('an advance ends the steps of a job, waits, tokens and retries that become due', async () => {
  await control.setClock({ frozen: true });
  const signedIn = await act<{ token: string }>('/tokens/generateToken', {
    username: 'admin',
    password,
    expiration: '1',
  });
  receiver.status = 500;
  await act('/admin/services/webhooks/settings', {
    notificationAttempts: '3',
    notificationElapsedTimeInSeconds: '10',
  });
  await createWebhook(server, receiver.url);
  await act('/admin/system/upgrades/upgrade', { versionManifest: '{"id":"pat_28042022_1260"}' });
  const waiting = get<{ messageCount: number }>('/admin/system/upgrades?after=999&wait=60');
  await control.advanceClock(60_000);
  expect((await waiting).messageCount).toBeGreaterThan(1);
  const { status } = await get<{ status: { state: string } }>('/admin/system/upgrades');
  expect(status.state).toBe('success');
  // The start and the end of the job, each with three attempts.
  expect(receiver.arrivals).toHaveLength(6);
  const response = await server.send('/admin', { headers: { authorization: `Bearer ${signedIn.token}` } });
  expect(await response.json()).toMatchObject({ error: { code: 498 } });
});

it('moves to a time, but not back', async () => {
  const { now } = await control.setClock({ frozen: true });
  expect(await control.setClock({ now: now + 5000 })).toEqual({ now: now + 5000, frozen: true });
  await expect(control.setClock({ now })).rejects.toThrow(
    `400 Invalid or missing input parameters. now: must not be before the time of the clock, ${now + 5000}.`,
  );
});

it.each([
  [{}, 'body: must name frozen, now or advanceMs.'],
  [{ frozen: 'yes' }, 'frozen: must be true or false.'],
  [{ advanceMs: -1 }, 'advanceMs: must be an integer from 0 to 315619200000.'],
  [{ advanceMs: 1, now: 1 }, 'body: must not name both now and advanceMs.'],
  [{ freeze: true }, 'freeze: is not known here.'],
  [[], 'body: must be a JSON object.'],
])('refuses %j', async (change, problem) => {
  await expect(control.setClock(change as object)).rejects.toThrow(problem);
});

it('a reset ends an advance that waits for a receiver', async () => {
  await control.setClock({ frozen: true });
  receiver.status = 0;
  await createWebhook(server, receiver.url);
  await act('/admin/services/webhooks/publish', { changeType: 'Tested' });
  const advance = control.advanceClock(1000);
  const refused = expect(advance).rejects.toThrow(
    '409 The server was reset or restored while the clock advanced.',
  );
  await expect.poll(() => receiver.arrivals.length).toBe(1);
  await control.reset();
  await refused;
});

it('wakes tasks of the same moment together, so that a long advance takes few turns of the event loop', async () => {
  let turns = 0;
  const yieldToEventLoop = () => {
    turns += 1;
    return realRuntime.yieldToEventLoop();
  };
  const clock = new ControlClock({ ...realRuntime, yieldToEventLoop }, { advancedMs: 0, frozenAt: 0 });
  const tasks = createTasks(clock, () => undefined);
  const ran: string[] = [];
  for (const name of ['one', 'two', 'three'])
    tasks.every(name, 600_000, () => {
      ran.push(name);
      return Promise.resolve();
    });
  await clock.advanceTo(10 * 600_000, new AbortController().signal);
  expect(ran).toEqual(Array.from({ length: 10 }, () => ['one', 'two', 'three']).flat());
  expect(turns).toBe(2 * (1 + 10));
  await tasks.stop();
});
