// Tests of the warnings about failing webhooks: when they are sent, to whom, and that each is sent once.
import { beforeEach, describe, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { type Hooks, bodyOf, startHooks } from '../kit/hooks.ts';

const daysMs = 5 * 86_400_000;

const hooks = perTest(startHooks);
let id: string;
let brokenAnswer: number;
beforeEach(async () => {
  await hooks.act('settings', { notificationAttempts: '1', numberOfFailures: '5', daysInPast: '5' });
  ({ id } = await hooks.register({
    name: 'Broken',
    hookUrl: 'https://broken.example/',
    changeTypes: 'Tested,WebhookFailing,WebhookRecovered',
  }));
  await hooks.register({
    name: 'Watcher',
    changeTypes: 'WebhookFailing,WebhookRecovered,WebhookDeactivated',
  });
  brokenAnswer = 500;
  answerAs(hooks);
});

function answerAs(server: Hooks): void {
  const { receiver } = server.httpClient;
  server.httpClient.receiver = (request, signal, at) => {
    const answer = receiver(request, signal, at);
    return request.url.includes('broken') ? brokenAnswer : answer;
  };
}

/** The events that the watcher got. */
const warnings = (server = hooks) =>
  server.arrivals
    .filter(({ url }) => !url.includes('broken'))
    .map((sent) => bodyOf(sent))
    .map(({ type, service, data }) => ({ type, service, data }));

/** The types that the broken webhook got. */
const sentToBroken = () =>
  hooks.arrivals.filter(({ url }) => url.includes('broken')).map((sent) => bodyOf(sent).type);

async function deliver(answer: number, times = 1): Promise<void> {
  brokenAnswer = answer;
  for (let n = 0; n < times; n += 1) {
    await hooks.deliver();
  }
  await hooks.settle();
}

const eventOf = (type: string, failures: number, windowStart: number, numberOfFailures = 5) => ({
  type,
  service: null,
  data: { webhookId: id, webhookName: 'Broken', failures, numberOfFailures, windowStart },
});

const healthOf = async () => (await hooks.read<{ health: string }>(`/${id}`)).health;

describe('a failing webhook', () => {
  it('is reported to others at half of the failures, and its recovery at the next success', async () => {
    const start = hooks.runtime.now();
    await deliver(500, 2);
    expect([await healthOf(), warnings()]).toEqual(['behind', []]);
    await deliver(500, 2);
    expect(await healthOf()).toBe('failing');
    expect(warnings()).toEqual([eventOf('WebhookFailing', 3, start)]);
    await deliver(200, 2);
    expect(warnings()).toEqual([eventOf('WebhookFailing', 3, start), eventOf('WebhookRecovered', 4, start)]);
    expect(new Set(sentToBroken())).toEqual(new Set(['Tested']));
    expect(await healthOf()).toBe('failing');
    const logged = hooks.logLines.map((line) => JSON.parse(line) as { level: number; webhookId?: string });
    expect(logged.filter(({ webhookId }) => webhookId === id).map(({ level }) => level)).toEqual([40, 30]);
  });

  it('is reported once per window', async () => {
    await deliver(500, 3);
    await deliver(200);
    await deliver(500);
    await deliver(200);
    expect(warnings()).toHaveLength(2);
    await hooks.runtime.advance(daysMs);
    expect(await healthOf()).toBe('behind');
    const start = hooks.runtime.now();
    await deliver(500, 3);
    await deliver(200);
    expect(warnings().slice(2)).toEqual([
      eventOf('WebhookFailing', 3, start),
      eventOf('WebhookRecovered', 3, start),
    ]);
  });

  it('recovers after its window has ended too', async () => {
    const start = hooks.runtime.now();
    await deliver(500, 3);
    await hooks.runtime.advance(daysMs);
    await deliver(500);
    await deliver(200);
    expect(warnings()).toEqual([eventOf('WebhookFailing', 3, start), eventOf('WebhookRecovered', 3, start)]);
  });

  it('does not recover by a ping', async () => {
    await deliver(500, 3);
    brokenAnswer = 200;
    await hooks.act(`${id}/ping`);
    await hooks.settle();
    expect(warnings()).toHaveLength(1);
  });

  it('is reported when lower limits are reached by the next failure', async () => {
    const start = hooks.runtime.now();
    await deliver(500, 2);
    await hooks.act('settings', { numberOfFailures: '4' });
    expect([await healthOf(), warnings()]).toEqual(['failing', []]);
    await deliver(500);
    expect(warnings()).toEqual([eventOf('WebhookFailing', 3, start, 4)]);
  });

  it('is deactivated without a warning if half of the failures deactivate it', async () => {
    await hooks.act('settings', { numberOfFailures: '1' });
    await deliver(500);
    expect(warnings().map(({ type }) => type)).toEqual(['WebhookDeactivated']);
    expect(await healthOf()).toBe('deactivated');
    await hooks.act(`${id}/activate`);
    await deliver(200);
    expect(warnings()).toHaveLength(1);
  });

  it('begins again after it was activated', async () => {
    await deliver(500, 3);
    await hooks.act(`${id}/deactivate`);
    expect(await healthOf()).toBe('inactive');
    await hooks.act(`${id}/activate`);
    await deliver(200);
    expect([await healthOf(), warnings().length]).toEqual(['behind', 1]);
    await deliver(500, 3);
    expect(warnings().map(({ type }) => type)).toEqual(['WebhookFailing', 'WebhookFailing']);
  });
});
