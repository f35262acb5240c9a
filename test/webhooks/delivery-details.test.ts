// Tests of one delivery in detail: the request as it was sent, and the headers of the responses.
import { expect, it } from 'vitest';
import { RequestError } from '../../src/lib/request-error.ts';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';
import { blackHole } from '../kit/http-client.ts';

const hooks = perTest(startHooks);

type Details = {
  request: { url: string; headers: Record<string, string>; body: string };
  attempts: { responseHeaders: Record<string, string> }[];
};

async function detailsOf(id: string): Promise<Details> {
  const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
  return hooks.read<Details>(`/${id}/deliveries/${delivery?.id ?? ''}`);
}

it('the request is what the last attempt sent, whatever has changed since', async () => {
  await hooks.act('settings', { notificationAttempts: '2' });
  const { id } = await hooks.register({ contentType: 'application/x-www-form-urlencoded' });
  hooks.answerWith(500);
  await hooks.publish({ payload: '{"berth":7}' });
  await hooks.runtime.advance(10_000);
  expect(hooks.arrivals).toHaveLength(2);
  await hooks.act(`${id}/edit`, {
    name: 'another',
    hookUrl: 'https://other.example/',
    contentType: 'application/json',
    headers: '{"X-New":"new value"}',
  });
  await hooks.act(`${id}/rotateKey`);
  const { at: _at, ...sent } = hooks.arrivals[1] ?? { at: 0 };
  expect((await detailsOf(id)).request).toEqual(sent);
});

it('before the first attempt, the request is what the next one will send', async () => {
  const { id } = await hooks.register();
  hooks.httpClient.receiver = blackHole;
  for (let n = 0; n < 5; n += 1) await hooks.publish();
  await hooks.settle();
  const { request, attempts } = await detailsOf(id);
  expect(attempts).toEqual([]);
  let sent = request;
  hooks.httpClient.receiver = (next) => {
    if (next.body === request.body) sent = next;
    return 200;
  };
  // The first four time out.
  await hooks.runtime.advance(10_000);
  expect(sent).not.toBe(request);
  const { 'webhook-timestamp': _time, 'webhook-signature': _signature, ...headers } = request.headers;
  expect(sent).toMatchObject({ url: request.url, headers });
});

it('the request of a missed delivery is what a redelivery would send', async () => {
  const { id } = await hooks.register({ active: 'false', headers: '{"X-Key":"a secret value"}' });
  await hooks.publish();
  const { request } = await detailsOf(id);
  expect(request.headers).toMatchObject({ 'X-Key': '***' });
  await hooks.act(`${id}/activate`);
  await hooks.act(`${id}/redeliver`);
  await hooks.settle();
  expect(hooks.arrivals).toMatchObject([
    { url: request.url, headers: { 'webhook-id': request.headers['webhook-id'] }, body: request.body },
  ]);
});

it('an attempt has at most 4 KiB of response headers, and none without a response', async () => {
  await hooks.act('settings', { notificationAttempts: '2' });
  const { id } = await hooks.register();
  const headers = {
    'x-long': 'x'.repeat(5000),
    'x-many': ['one', 'two'],
    'x-half': 'y'.repeat(3000),
    'x-rest': 'z'.repeat(2000),
  };
  hooks.answerWith({ status: 500, headers, body: Buffer.alloc(0) });
  await hooks.deliver();
  hooks.httpClient.receiver = () => Promise.reject(new RequestError('The connection was refused.'));
  await hooks.runtime.advance(10_000);
  const { attempts } = await detailsOf(id);
  expect(attempts.map(({ responseHeaders }) => responseHeaders)).toEqual([
    { 'x-many': 'one, two', 'x-half': headers['x-half'] },
    {},
  ]);
  expect(JSON.stringify(attempts[0]?.responseHeaders).length).toBeLessThanOrEqual(4096);
});

it('a list of deliveries leaves out requests and headers', async () => {
  const { id } = await hooks.register();
  await hooks.deliver();
  const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
  expect(delivery).not.toHaveProperty('request');
  expect(delivery?.attempts[0]).not.toHaveProperty('responseHeaders');
});
