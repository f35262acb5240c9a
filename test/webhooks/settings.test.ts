// Tests of reading and changing the webhook settings over HTTP.
import { beforeEach, describe, expect, it } from 'vitest';
import { webhookSettings } from '../../src/webhooks/settings.ts';
import { perTest } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const path = '/admin/services/webhooks/settings';
const initial = {
  notificationAttempts: 3,
  notificationTimeOutInSeconds: 10,
  notificationElapsedTimeInSeconds: 5,
  daysInPast: 5,
  numberOfFailures: 5,
  status: 'success',
};

const server = perTest(startServer);
let token: string;
beforeEach(() => {
  token = server.token('administrator');
});

const set = (fields: Record<string, string>) => server.post(path, { token, ...fields });

it('GET returns the defaults at first', async () => {
  const { statusCode, body } = await server.get(`${path}?token=${token}`);
  expect(statusCode).toBe(200);
  expect(JSON.parse(body)).toEqual(initial);
});

it('POST stores the five integers and returns them with the status', async () => {
  const given = {
    notificationAttempts: '5',
    notificationTimeOutInSeconds: '60',
    notificationElapsedTimeInSeconds: '86400',
    daysInPast: '365',
    numberOfFailures: '10000',
  };
  const stored = {
    ...Object.fromEntries(Object.entries(given).map(([k, v]) => [k, Number(v)])),
    status: 'success',
  };
  expect((await set(given)).json()).toEqual(stored);
  expect((await server.get(`${path}?token=${token}`)).json()).toEqual(stored);
});

it('POST keeps the values of absent and blank fields', async () => {
  await set({ notificationAttempts: '5' });
  const { statusCode, body } = await set({ numberOfFailures: '7', notificationAttempts: ' ' });
  expect(statusCode).toBe(200);
  expect(JSON.parse(body)).toEqual({ ...initial, notificationAttempts: 5, numberOfFailures: 7 });
  expect((await set({})).json()).toEqual({ ...initial, notificationAttempts: 5, numberOfFailures: 7 });
});

it('POST stores -0 as 0', async () => {
  await set({ notificationElapsedTimeInSeconds: '-0' });
  expect(Object.is(server.store.read(webhookSettings).notificationElapsedTimeInSeconds, 0)).toBe(true);
});

describe.each([
  ['notificationAttempts', 1, 5],
  ['notificationTimeOutInSeconds', 1, 60],
  ['notificationElapsedTimeInSeconds', 0, 86_400],
  ['numberOfFailures', 1, 10_000],
  ['daysInPast', 1, 365],
])('%s', (field, from, to) => {
  it(`may be ${from} and ${to}`, async () => {
    for (const value of [from, to])
      expect((await set({ [field]: ` ${value} ` })).json()).toEqual({ ...initial, [field]: value });
  });

  it('may be no other text', async () => {
    for (const value of [String(from - 1), String(to + 1), '1.0', '1e1', '0x1', 'three', '--1']) {
      const response = await set({ [field]: value });
      expect(response.statusCode, value).toBe(400);
      expect(response.json(), value).toMatchObject({
        error: { code: 400, details: [`${field}: must be an integer from ${from} to ${to}.`] },
      });
    }
  });
});

it('reports all problems at once and then stores nothing', async () => {
  const bad = { notificationAttempts: '6', notificationTimeOutInSeconds: '0', daysInPast: '3' };
  const response = await set(bad);
  expect(response.json<{ error: { details: string[] } }>().error.details).toEqual([
    'notificationAttempts: must be an integer from 1 to 5.',
    'notificationTimeOutInSeconds: must be an integer from 1 to 60.',
  ]);
  expect((await server.get(`${path}?token=${token}`)).json()).toEqual(initial);
});
