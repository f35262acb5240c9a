// Tests of the page of one delivery: what it waits for, its attempts and its request.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Hooks, quick, startHooks } from '../kit/hooks.ts';
import { blackHole } from '../kit/http-client.ts';
import { all, browse, textOf } from './page-kit.ts';

let hooks: Hooks;
beforeEach(async () => {
  hooks = await startHooks();
});
afterEach(() => hooks.close());

const { see } = browse(() => hooks);

const pathOf = (webhookId: string, { id = '' } = {}) => `/${webhookId}/deliveries/${id}`;

describe('a pending delivery', () => {
  it('shows that its first attempt is due or in progress', async () => {
    const { id } = await hooks.register();
    hooks.httpClient.receiver = blackHole;
    await hooks.publish();
    await hooks.settle();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    const text = textOf(await see(all + pathOf(id, delivery)));
    expect(text).toContain('pending Attempt 1 is due or in progress.');
    expect(text).toContain('Not attempted yet');
  });

  it('shows when its next attempt is due', async () => {
    await hooks.act('settings', quick);
    const { id } = await hooks.register();
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.settle();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    expect(textOf(await see(all + pathOf(id, delivery)))).toContain(
      'pending Attempt 2 is due in 5 s, at 2026-01-01 00:00:05 UTC',
    );
  });
});

it('the newest attempt is first, and its response is open, with the body before the headers', async () => {
  await hooks.act('settings', quick);
  const { id } = await hooks.register({ hookUrl: 'http://hooks.example/in' });
  let attempt = 0;
  hooks.httpClient.receiver = () => {
    attempt += 1;
    const body = Buffer.from(`{"error":${attempt}}`);
    return { status: attempt === 1 ? 500 : 503, body, headers: { 'x-host': 'one' } };
  };
  await hooks.publish();
  await hooks.runtime.advance(6_000);
  const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
  const page = await see(all + pathOf(id, delivery));
  const attempts = page.split('<li id="attempt-').slice(1);
  expect(attempts.map((attempt) => attempt[0])).toEqual(['2', '1']);
  expect(attempts[0]).toMatch(
    /answered 503[\s\S]*<details open>[\s\S]*&quot;error&quot;: 2[\s\S]*x-host: one/,
  );
  expect(attempts[1]).toMatch(/answered 500[\s\S]*<details >[\s\S]*&quot;error&quot;: 1/);
  expect(textOf(page)).toContain('What the last attempt sent: POST http://hooks.example/in');
});

it('a delivery that was never attempted has no duration', async () => {
  const { id } = await hooks.register({ active: 'false' });
  await hooks.publish();
  const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
  const text = textOf(await see(all + pathOf(id, delivery)));
  expect(text).toContain('Not attempted');
  expect(text).not.toMatch(/0 attempts|after 0 ms/);
});

it('shows the request of the last attempt without secrets', async () => {
  const { id, signatureKey } = await hooks.register({
    hookUrl: 'https://hooks.example/in?key=geheim',
    headers: '{"X-Key":"a secret value"}',
  });
  await hooks.publish();
  await hooks.settle();
  const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
  const page = await see(all + pathOf(id, delivery));
  expect(textOf(page)).toContain('X-Key: ***');
  for (const secret of ['geheim', 'a secret value', signatureKey]) expect(page).not.toContain(secret);
});

it('shows the beginning of a long payload', async () => {
  const { id } = await hooks.register();
  await hooks.publish({ payload: JSON.stringify({ text: 'x'.repeat(40_000) }) });
  await hooks.settle();
  const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
  const text = textOf(await see(all + pathOf(id, delivery)));
  expect(text).toContain('This is the beginning;');
  expect(text.length).toBeLessThan(40_000);
});
