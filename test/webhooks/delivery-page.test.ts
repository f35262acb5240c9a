// Tests of the page of one delivery: what it waits for, and the command that sends it from a shell.
import { execFileSync } from 'node:child_process';
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
  it('shows that its receiver is busy, and how many deliveries go first', async () => {
    const { id } = await hooks.register();
    await hooks.register({ name: 'same receiver', hookUrl: 'https://hooks.example/other' });
    hooks.httpClient.receiver = blackHole;
    for (let count = 0; count < 5; count += 1) await hooks.publish();
    await hooks.settle();
    const { deliveries } = await hooks.deliveriesOf(id);
    const texts = await Promise.all(
      deliveries.map(async (delivery) => textOf(await see(all + pathOf(id, delivery)))),
    );
    const busy = '4 deliveries to hooks.example are in progress, which is the limit for a receiver.';
    expect(texts[0]).toContain(`pending Attempt 1 is due. ${busy} 2 deliveries of this webhook go first.`);
    expect(texts[1]).toContain(`${busy} 1 delivery of this webhook goes first.`);
    expect(texts[2]).toContain(`${busy} It is the next delivery of this webhook.`);
    for (const text of texts.slice(3)) expect(text).toContain('pending Attempt 1 is in progress.');
    expect(texts[0]).toContain('Not attempted yet');
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

describe('the command for a shell', () => {
  /** The arguments that curl gets from a shell which runs the command of the page. */
  async function argumentsFor(path: string): Promise<string[]> {
    const page = await see(all + path);
    const [, escaped = ''] = /<pre[^>]*>(curl -i [^<]*)<\/pre/.exec(page) ?? [];
    const command = escaped
      .replace(/&(lt|gt|quot|#39);/g, (whole) => entities[whole] ?? whole)
      .replaceAll('&amp;', '&');
    const printed = `curl() { for word; do printf '%s\\0' "$word"; done; }\n${command}`;
    return execFileSync('sh', ['-c', printed], { encoding: 'utf8' }).split('\0').slice(0, -1);
  }
  const entities: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };

  it('sends exactly the request of the page, without secrets', async () => {
    const { id, signatureKey } = await hooks.register({
      name: `It's "odd" $HOME`,
      hookUrl: 'https://hooks.example/in[1]?key=geheim',
      headers: '{"X-Key":"a secret value"}',
    });
    await hooks.publish({ payload: '{\n"text": "<a> & `b` \\\\ é\'"}' });
    await hooks.settle();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    const path = pathOf(id, delivery);
    const { request } = await hooks.read<{ request: { headers: Record<string, string>; body: string } }>(
      path,
    );
    const headers = Object.entries(request.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    const address = 'https://hooks.example/in%5B1%5D?***';
    const command = ['-i', '-X', 'POST', address, ...headers, '--data-raw', request.body];
    expect(await argumentsFor(path)).toEqual(command);
    expect(command).toContain('X-Key: ***');
    const page = await see(all + path);
    expect(textOf(page)).toContain('with the values of the custom headers and the query of the address');
    for (const secret of ['geheim', 'a secret value', signatureKey]) expect(page).not.toContain(secret);
  });

  it('reads a payload from a file that is too long or has control characters', async () => {
    const { id } = await hooks.register();
    await hooks.publish({ payload: JSON.stringify({ text: 'x'.repeat(40_000) }) });
    await hooks.publish({ payload: '{\r\n}' });
    await hooks.publish({ payload: '{"text":"\u009b2J"}' });
    await hooks.settle();
    for (const delivery of (await hooks.deliveriesOf(id)).deliveries)
      expect((await argumentsFor(pathOf(id, delivery))).slice(-2)).toEqual(['--data-binary', '@payload']);
  });
});
