// Tests of publishing events: who receives them, what is refused, and the limit of pending deliveries.
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';
import { blackHole } from '../kit/http-client.ts';
import { isOnPostgres } from '../kit/store.ts';

const hooks = perTest(startHooks);
afterEach(() => {
  vi.useRealTimers();
});

const publish = (fields: Record<string, string>, role: 'administrator' | 'publisher' = 'administrator') =>
  hooks.post('/admin/services/webhooks/publish', fields, { authorization: `Bearer ${hooks.token(role)}` });

/** Starts a server with these variables, whose receivers do not answer. */
async function restart(env: Record<string, string>) {
  await hooks.close();
  Object.assign(hooks, await startHooks({ env }));
  hooks.httpClient.receiver = blackHole;
}

async function createService(serviceName: string, fields: Record<string, string> = {}) {
  const service = { serviceName, type: 'MapServer', ...fields };
  const created = await hooks.post('/admin/services/createService', service, hooks.administrator);
  expect(created.statusCode).toBe(200);
}

const statesOf = async (id: string) => (await hooks.deliveriesOf(id)).deliveries.map(({ state }) => state);

describe('publish', () => {
  it('delivers a signed event to every webhook that subscribes to it', async () => {
    const { id, signatureKey } = await hooks.register({ name: 'All' });
    await hooks.register({ changeTypes: 'Other' });
    await hooks.register({ active: 'false' });
    const at = hooks.runtime.now();
    const payload = '{ "größe": 12345678901234567890, "b": [1, 2] }';
    const { eventId, deliveries } = await hooks.publish({ payload, service: 'Maps/Roads.MapServer' });
    await hooks.settle();
    expect(deliveries).toBe(1);
    expect(hooks.arrivals).toHaveLength(1);
    const [sent] = hooks.arrivals;
    expect(sent).toMatchObject({
      url: 'https://hooks.example/in',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Steward/0.0.0',
        'webhook-id': eventId,
        'webhook-timestamp': String(Math.floor(at / 1000)),
      },
    });
    const head = { id: eventId, type: 'Tested', timestamp: at, service: 'Maps/Roads.MapServer' };
    const whole = `${JSON.stringify({ ...head, webhookId: id, webhookName: 'All' }).slice(0, -1)},"data":${payload}}`;
    expect(sent?.body).toBe(whole);
    vi.setSystemTime(at);
    expect(new Webhook(signatureKey).verify(sent?.body ?? '', sent?.headers ?? {})).toEqual(
      JSON.parse(whole),
    );
  });

  it('delivers a signed form if the webhook has the content type of a form', async () => {
    const { signatureKey } = await hooks.register({ contentType: 'application/x-www-form-urlencoded' });
    const { eventId } = await hooks.publish({ payload: '{"a":"ä &+"}' });
    await hooks.settle();
    const [sent] = hooks.arrivals;
    expect(sent?.headers['content-type']).toBe('application/x-www-form-urlencoded');
    const payload = new URLSearchParams(sent?.body).get('payload') ?? '';
    expect(JSON.parse(payload)).toMatchObject({ id: eventId, data: { a: 'ä &+' } });
    vi.setSystemTime(hooks.runtime.now());
    // The library verifies first and then fails to parse the form as JSON.
    const verify = () => new Webhook(signatureKey).verify(sent?.body ?? '', sent?.headers ?? {});
    expect(verify).toThrow(SyntaxError);
  });

  it('has no effect for a repeated id within 24 hours, and returns the first answer, also without the service', async () => {
    await hooks.register();
    const first = await hooks.publish({ eventId: 'order-7' });
    expect(first).toEqual({ status: 'success', eventId: 'order-7', deliveries: 1 });
    await hooks.register();
    await hooks.runtime.advance(86_399_999);
    expect(await hooks.publish({ eventId: 'order-7', payload: '{"other":true}' })).toEqual(first);
    expect(hooks.arrivals).toHaveLength(1);
    await hooks.runtime.advance(1);
    const event = { eventId: 'order-7', service: 'Maps/Roads.MapServer' };
    const second = await hooks.publish(event);
    expect(second).toMatchObject({ deliveries: 2 });
    await hooks.post('/admin/services/Maps/Roads.MapServer/delete', {}, hooks.administrator);
    expect(await hooks.publish(event)).toEqual(second);
  });

  it('removes remembered ids after a day', async () => {
    await hooks.publish({ eventId: 'order-9' });
    const publishedAt = hooks.runtime.now();
    const stored = () => hooks.store.deliveries.findEvent('order-9', publishedAt);
    await hooks.runtime.advance(86_399_999);
    expect(await stored()).toEqual({ eventId: 'order-9', deliveries: 0, publishedAt });
    await hooks.runtime.advance(600_000);
    expect(await stored()).toBeUndefined();
  });

  it('delivers to the webhook of a service only the events of that service', async () => {
    await hooks.register({ service: 'Maps/Roads.MapServer' });
    expect(await hooks.publish()).toMatchObject({ deliveries: 0 });
    expect(await hooks.publish({ service: 'Maps/Elevation.ImageServer' })).toMatchObject({ deliveries: 0 });
    expect(await hooks.publish({ service: 'Maps/Roads.MapServer' })).toMatchObject({ deliveries: 1 });
  });

  it('is allowed to publishers, for services that they may see', async () => {
    expect(
      (await publish({ changeType: 'X', service: 'Maps/Roads.MapServer' }, 'publisher')).statusCode,
    ).toBe(200);
    await createService('Hidden', { access: 'administrators' });
    expect((await publish({ changeType: 'X', service: 'Hidden.MapServer' }, 'publisher')).statusCode).toBe(
      400,
    );
    expect((await publish({ changeType: 'X', service: 'Hidden.MapServer' })).statusCode).toBe(200);
  });

  it.each<[string, Record<string, string>]>([
    ['changeType: is required.', { changeType: '' }],
    ['changeType: must be a letter and up to 63 letters or digits.', { changeType: '7up' }],
    ['changeType: must be a letter and up to 63 letters or digits.', { changeType: '*' }],
    ['service: there is no service None.Such', { service: 'None.Such' }],
    ['payload: must be a JSON object or array.', { payload: '"text"' }],
    ['payload: must be a JSON object or array.', { payload: '{"a":1' }],
    ['payload: must be at most 262144 bytes.', { payload: `{"a":"${'ä'.repeat(131_070)}"}` }],
    ['eventId: must be 1 to 64 letters, digits, _ or -.', { eventId: 'a b' }],
    ['eventId: must be 1 to 64 letters, digits, _ or -.', { eventId: 'x'.repeat(65) }],
  ])('refuses: %s', async (problem, bad) => {
    const response = await publish({ changeType: 'Tested', ...bad });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ error: { details: [expect.stringContaining(problem)] } });
  });

  it('accepts a payload of 256 KiB', async () => {
    const payload = `{"a":"${'x'.repeat(262_144 - 8)}"}`;
    expect((await publish({ changeType: 'Tested', payload })).statusCode).toBe(200);
  });
});

describe('the limit of pending deliveries', () => {
  it('refuses only publish, and loses no delivery', async () => {
    await restart({ WEBHOOK_MAX_PENDING: '3' });
    const { id } = await hooks.register();
    const answered = await hooks.publish({ eventId: 'one' });
    await hooks.publish();
    await hooks.publish();
    const refused = await publish({ changeType: 'Tested' });
    expect(refused.statusCode).toBe(503);
    expect(refused.headers['retry-after']).toBe('5');
    expect(await hooks.publish({ eventId: 'one' })).toEqual(answered);
    await createService('New');
    // All four slots of the receiver are in use.
    await hooks.settle();
    await hooks.act(`${id}/ping`);
    expect(await statesOf(id)).toEqual(Array(5).fill('pending'));
    hooks.httpClient.receiver = () => 200;
    await hooks.runtime.advance(60_000);
    expect(await statesOf(id)).toEqual(Array(5).fill('delivered'));
    expect((await publish({ changeType: 'Tested' })).statusCode).toBe(200);
  });

  /** A payload of this many bytes of UTF-8. */
  const payloadOf = (bytes: number) => JSON.stringify({ text: 'é'.repeat((bytes - 11) / 2) });
  const errorOf = ({ statusCode, headers, json }: Awaited<ReturnType<typeof publish>>) => ({
    status: statusCode,
    retryAfter: headers['retry-after'],
    ...json<{ error: { message: string; details: string[] } }>().error,
  });

  it('refuses publish when the payloads of pending deliveries would exceed WEBHOOK_MAX_PENDING_BYTES', async () => {
    await restart({ WEBHOOK_MAX_PENDING_BYTES: '10000' });
    const { id } = await hooks.register({ name: 'one' });
    const other = await hooks.register({ name: 'two', changeTypes: 'Tested' });
    expect(payloadOf(2001)).toHaveLength(1006);
    await hooks.publish({ payload: payloadOf(2001) });
    await hooks.publish({ payload: payloadOf(2001), changeType: 'Other' });
    const fits = { changeType: 'Other', payload: payloadOf(3997) };
    expect(errorOf(await publish({ changeType: 'Tested', payload: fits.payload }))).toMatchObject({
      status: 503,
      retryAfter: '5',
      message:
        'The payloads of pending deliveries are too large: WEBHOOK_MAX_PENDING_BYTES allows 10000 bytes.',
    });
    expect((await publish(fits)).statusCode).toBe(200);
    expect((await publish({ changeType: 'Other', payload: '{}' })).statusCode).toBe(503);
    expect((await publish({ changeType: 'Nobody', payload: '{}' })).statusCode).toBe(503);
    // Events of the server itself are stored.
    await createService('New');
    expect((await hooks.deliveriesOf(id)).total).toBe(4);
    // Deliveries that end, are discarded or are deleted give their bytes back.
    await hooks.act(`${other.id}/delete`);
    await hooks.act(`${id}/deactivate`);
    await hooks.runtime.advance(60_000);
    await hooks.act(`${id}/activate`);
    const last = { changeType: 'Other', payload: payloadOf(9999) };
    expect((await publish(last)).statusCode).toBe(200);
    expect((await publish(last)).statusCode).toBe(503);
    hooks.httpClient.receiver = () => 200;
    await hooks.runtime.advance(60_000);
    expect((await publish(last)).statusCode).toBe(200);
  });

  it('refuses a payload that can never fit as too large', async () => {
    await restart({ WEBHOOK_MAX_PENDING_BYTES: '10000' });
    for (const name of ['one', 'two', 'three']) await hooks.register({ name });
    expect(errorOf(await publish({ changeType: 'Tested', payload: payloadOf(4001) }))).toMatchObject({
      status: 413,
      retryAfter: undefined,
      details: [
        'payload: is too large for all subscribed webhooks together: WEBHOOK_MAX_PENDING_BYTES allows 10000 bytes.',
      ],
    });
  });

  // The payload of the event is 53 bytes.
  it.each([
    ['WEBHOOK_MAX_PENDING', '2'],
    ['WEBHOOK_MAX_PENDING_BYTES', '106'],
  ])(
    'stores events of the server itself as missed at twice %s, and refuses no change',
    async (name, limit) => {
      await restart({ [name]: limit });
      const { id } = await hooks.register();
      for (const serviceName of ['A', 'B', 'C', 'D', 'E', 'F']) await createService(serviceName);
      expect(await statesOf(id)).toEqual(['missed', 'missed', ...Array<string>(4).fill('pending')]);
      hooks.httpClient.receiver = () => 200;
      await hooks.runtime.advance(60_000);
      await createService('G');
      await hooks.act(`${id}/redeliver`);
      await hooks.runtime.advance(60_000);
      expect(await statesOf(id)).toEqual([
        ...Array<string>(3).fill('delivered'),
        'missed',
        'missed',
        ...Array<string>(4).fill('delivered'),
      ]);
    },
  );
});

it.skipIf(isOnPostgres)('a new event id is refused beyond MAX_EVENT_IDS in memory', async () => {
  await restart({ MAX_EVENT_IDS: '1' });
  await hooks.publish({ eventId: 'one' });
  const refused = await publish({ changeType: 'Tested', eventId: 'two' });
  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '600']);
});

it(
  'large events of the same moment are all stored, and delivered after a change of the settings',
  { timeout: 60_000 },
  async () => {
    hooks.httpClient.receiver = blackHole;
    const webhooks = [await hooks.register(), await hooks.register(), await hooks.register()];
    const text = 'x'.repeat(250_000);
    const numbers = Array.from({ length: 20 }, (_, n) => n);
    const published = await Promise.all(
      numbers.map((n) => hooks.publish({ payload: JSON.stringify({ n, text }) })),
    );
    expect(published.map(({ deliveries }) => deliveries)).toEqual(numbers.map(() => 3));
    await hooks.act('settings', { notificationElapsedTimeInSeconds: '1' });
    const received = new Map<string, number>();
    hooks.httpClient.receiver = ({ headers, body }) => {
      expect(body.length).toBeGreaterThan(text.length);
      const id = headers['webhook-id'] ?? '';
      received.set(id, (received.get(id) ?? 0) + 1);
      return 200;
    };
    for (let minute = 0; minute < 20; minute += 1) await hooks.runtime.advance(60_000);
    expect([...received.keys()].sort()).toEqual(published.map(({ eventId }) => eventId).sort());
    for (const { id } of webhooks) expect(await statesOf(id)).toEqual(numbers.map(() => 'delivered'));
  },
);
