// Tests of the pages of one webhook and its deliveries. test/pages has their texts.
import { describe, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { type DeliveryJson, quick, startHooks } from '../kit/hooks.ts';
import { blackHole } from '../kit/http-client.ts';
import { delivery } from '../store/deliveries.ts';
import { formOf } from '../upgrades/page-kit.ts';
import { all, browse, textOf } from './page-kit.ts';

const hooks = perTest(startHooks);

const { see, press } = browse(() => hooks);

describe('a webhook', () => {
  it('shows the result of the last ping, and reads the page often until there is one', async () => {
    const { id } = await hooks.register();
    const unused = textOf(await see(`${all}/${id}`));
    expect(unused).toContain('Not used yet Active, without failures.');
    expect(unused).toContain('There are no deliveries yet.');
    hooks.httpClient.receiver = blackHole;
    await press(await see(`${all}/${id}`), `${all}/${id}/ping`);
    const waiting = await see(`${all}/${id}`);
    expect(textOf(waiting)).toContain('Last ping : no response yet.');
    expect(waiting).toContain('id="health" data-live="1"');
    await hooks.runtime.advance(10_000);
    const silent = await see(`${all}/${id}`);
    expect(silent).toContain('id="health" data-live="5"');
    expect(textOf(silent)).toContain('Last ping , just now : none after 10 s: There was no complete answer');
    hooks.httpClient.receiver = () => ({
      status: 500,
      body: Buffer.from(`Database\n  refused <${'x'.repeat(200)}`),
    });
    await hooks.act(`${id}/ping`);
    await hooks.settle();
    expect(textOf(await see(`${all}/${id}`))).toMatch(
      /Last ping , just now : 500 after 0 ms: Database refused &lt;x{102} … /,
    );
    hooks.httpClient.receiver = () => 204;
    await hooks.act(`${id}/ping`);
    await hooks.settle();
    expect(textOf(await see(`${all}/${id}`))).toContain('204 after 0 ms. ');
    await hooks.runtime.advance(3_600_000);
    expect(textOf(await see(`${all}/${id}`))).not.toContain('Last ping');
  });

  it('says why it was deactivated: how often it failed since when, and what the receiver answered last', async () => {
    await hooks.act('settings', { ...quick, numberOfFailures: '2', notificationAttempts: '1' });
    const { id } = await hooks.register();
    hooks.answerWith({ status: 503, body: Buffer.from('The pool is\nexhausted') });
    await hooks.publish();
    await hooks.runtime.advance(60_000);
    await hooks.deliver();
    for (let count = 0; count < 110; count += 1) await hooks.publish();
    await hooks.runtime.advance(60_000);
    const page = await see(`${all}/${id}`);
    expect(textOf(page)).toMatch(
      /Deactivated 1 min ago , after 2 failed deliveries since 2026-01-01 00:00:00 UTC/,
    );
    expect(textOf(page)).toMatch(/Last response , 1 min ago : 503 after 0 ms: The pool is exhausted/);
    const [failed] = (
      await hooks.read<{ deliveries: DeliveryJson[] }>(`/${id}/deliveries?state=failed&num=1`)
    ).deliveries;
    const cause = `<a href="${all}/${id}/deliveries/${failed?.id}">Last response</a>`;
    expect(page).toContain(cause);
    await hooks.act(`${id}/ping`);
    await hooks.settle();
    expect(await see(`${all}/${id}`)).toContain(cause);
    expect(textOf(await see(all))).toContain('failed a ping, just now');
    await press(page, `${all}/${id}/activate`);
    expect(await see(`${all}/${id}`)).toContain('It was a ping, which does not count towards');
    await hooks.publish();
    await hooks.settle();
    await hooks.act(`${id}/deactivate`);
    await hooks.act(`${id}/activate`);
    expect(await see(`${all}/${id}`)).toContain('It no longer counts towards the deactivation');
    hooks.answerWith(204);
    await hooks.deliver();
    expect(textOf(await see(`${all}/${id}`))).not.toContain('Last response');
  });

  it('is counted on the page of a service if it is active and gets the events of all services', async () => {
    const service = '/admin/services/World.MapServer';
    for (const [changeTypes, active] of Object.entries({
      '*': 'true',
      Ping: 'true',
      ServiceCreated: 'false',
    }))
      await hooks.register({ changeTypes, active });
    expect(textOf(await see(service))).toContain('1 webhook gets the events of all services.');
    await hooks.register({ changeTypes: 'Harbour,ServiceDeleted' });
    expect(textOf(await see(service))).toContain('2 webhooks get the events of all services.');
  });

  it('is activated and gets what it missed by one button', async () => {
    const { id } = await hooks.register({ active: 'false' });
    await hooks.publish();
    await hooks.publish();
    expect(textOf(await see(`${all}/${id}/deliveries`))).toContain(
      '2 events not delivered to inactive webhooks. Activate a webhook to redeliver.',
    );
    const page = await see(`${all}/${id}`);
    expect(textOf(page)).toContain(
      'Activate and redeliver 2 events 2 events not delivered 2: The webhook was inactive',
    );
    await press(page, `${all}/${id}/activate`);
    const running = textOf(await see(`${all}/${id}`));
    expect(running).toContain('A redelivery is running.');
    expect(running).not.toMatch(/Redeliver \d/);
    const { receiver } = hooks.httpClient;
    hooks.httpClient.receiver = blackHole;
    await hooks.runtime.advance(1000);
    const pending = textOf(await see(`${all}/${id}`));
    expect(pending).toContain('2 events not delivered 2: An attempt is in progress or due. Dismiss 2 events');
    expect(pending).not.toMatch(/Redeliver \d/);
    expect(textOf(await see(all))).not.toMatch(/Redeliver \d/);
    hooks.httpClient.receiver = receiver;
    await hooks.runtime.advance(60_000);
    expect(hooks.arrivals).toHaveLength(2);
    expect(textOf(await see(`${all}/${id}`))).not.toContain('not delivered');
  });

  it('counts up to 1,000 deliveries that can be redelivered, as the lists do, and redelivers all of them', async () => {
    const { id } = await hooks.register();
    const missed = Array.from({ length: 1_001 }, (_, n) =>
      delivery(`m${n}`, n, { webhookId: id, state: 'missed', endedAt: n }),
    );
    const shown = async () => {
      const pages = await Promise.all(['', `/${id}`, '/deliveries'].map((path) => see(all + path)));
      return pages.map((page) => /Redeliver [0-9,+]+/.exec(textOf(page))?.[0]);
    };
    await hooks.store.update(({ deliveries }) => deliveries.enqueue(missed.slice(0, 1_000)));
    expect(await shown()).toEqual(Array(3).fill('Redeliver 1,000'));
    await hooks.store.update(({ deliveries }) => deliveries.enqueue(missed.slice(1_000)));
    expect(await shown()).toEqual(Array(3).fill('Redeliver 1,000+'));
    expect(await hooks.act(`${id}/redeliver`)).toMatchObject({ matched: 1_001 });
  });
});

describe('deliveries', () => {
  it('show what the event is about, and are filtered by type and state from lists', async () => {
    await hooks.register({
      name: 'One',
      changeTypes: 'Harbour,ServiceCreated,UpgradeStarted,WebhookFailing',
    });
    const service = { folderName: '/', serviceName: 'World', type: 'MapServer' };
    const job = { jobId: 'a', operation: 'upgrade', from: '1.0', to: '1.1' };
    const webhook = { webhookId: 'b', webhookName: 'Other <1>' };
    const failures = { failures: 1, numberOfFailures: 2, windowStart: 1 };
    await hooks.publish({
      changeType: 'ServiceCreated',
      service: 'World.MapServer',
      payload: JSON.stringify(service),
    });
    await hooks.publish({ changeType: 'UpgradeStarted', payload: JSON.stringify(job) });
    const rollback = JSON.stringify({ ...job, operation: 'rollback', to: '0.9' });
    await hooks.publish({ changeType: 'UpgradeStarted', payload: rollback });
    await hooks.deliver({
      changeType: 'WebhookFailing',
      payload: JSON.stringify({ ...webhook, ...failures }),
    });
    const page = await see(`${all}/deliveries`);
    const subjects = [...page.matchAll(/data-label="Subject"><div>([\s\S]*?)<\/div>/g)].map(([, cell = '']) =>
      textOf(cell).trim(),
    );
    expect(subjects).toEqual(['Other &lt;1&gt;', 'Rollback to 0.9', '1.0 → 1.1', 'World.MapServer']);
    await hooks.publish({ changeType: 'Unheard' });
    await hooks.register({ name: 'Two' });
    await hooks.deliver({ changeType: 'Harbour' });
    const filters = await see(`${all}/deliveries`);
    const optionsOf = (name: string) => {
      const select = new RegExp(`<select id="filter-${name}"[^]*?</select>`).exec(filters)?.[0] ?? '';
      return [...select.matchAll(/<option[^>]*>([^<]*)</g)].map(([, label]) => label);
    };
    expect(optionsOf('changeType')).toEqual([
      'All event types',
      'Harbour',
      'ServiceCreated',
      'UpgradeStarted',
      'WebhookFailing',
    ]);
    expect(optionsOf('webhookId')).toEqual(['All webhooks', 'One', 'Two']);
    const found = await see(`${all}/deliveries?changeType=ServiceCreated&state=failed,missed`);
    expect(found).toContain('<option value="ServiceCreated" selected>');
    expect(found).toContain('<option value="failed,missed" selected>failed, missed</option>');
    expect(textOf(found)).toContain('No delivery matches.');
    expect(found).toContain(`<a href="${all}/deliveries">Remove the filters</a>`);
  });

  it('are filtered, and redelivered by the filter of the page', async () => {
    await hooks.act('settings', { notificationAttempts: '1', numberOfFailures: '100' });
    const { id } = await hooks.register();
    hooks.answerWith(500, 503);
    for (const changeType of ['One', 'Two', 'Two']) await hooks.publish({ changeType });
    await hooks.settle();
    const path = `${all}/deliveries?state=failed&changeType=Two&status=503&eventId=&from=0&to=`;
    const page = await see(path);
    const query = 'state=failed&changeType=Two&status=503&from=0';
    expect(await press(page, `${all}/redeliver`)).toBe(`${all}/deliveries?${query}`);
    await hooks.runtime.advance(1000);
    expect((await hooks.deliveriesOf(id)).total).toBe(5);
    expect(textOf(await see(path))).toContain('redelivered');
    const { id: other } = await hooks.register();
    const ofOther = await see(`${all}/deliveries?webhookId=${other}&state=failed`);
    expect(textOf(ofOther)).toContain('No delivery matches.');
    expect(formOf(await see(`${all}/deliveries?webhookId=${id}`), `${all}/${id}/redeliver`)).toBeDefined();
  });

  it('lead to the new delivery when they are redelivered, and link to each other', async () => {
    const { id } = await hooks.register();
    await hooks.deliver();
    const [first] = (await hooks.deliveriesOf(id)).deliveries;
    const path = `${all}/${id}/deliveries`;
    const next = await press(await see(`${path}/${first?.id}`), `${path}/${first?.id}/redeliver`);
    const [second] = (await hooks.deliveriesOf(id)).deliveries;
    expect(next).toBe(`${path}/${second?.id}`);
    expect(await see(next)).toContain(`href="${path}/${first?.id}">Repeats an earlier delivery`);
    expect(await see(`${path}/${first?.id}`)).toContain(`href="${path}/${second?.id}">Was redelivered`);
  });

  it('show the example of a webhook byte for byte as it is sent', async () => {
    const format = { contentType: 'application/x-www-form-urlencoded', bodyFormat: 'payload' };
    const { id } = await hooks.register({ changeTypes: 'ServiceDeleted', ...format });
    const page = (await see(`${all}/${id}`)).replaceAll('&quot;', '"');
    await hooks.act(`${id}/ping`, { changeType: 'ServiceDeleted' });
    await hooks.settle();
    expect(hooks.arrivals[0]?.body).toMatch(/^payload=\{"folderName"/);
    expect(page).toContain(`\n\n${hooks.arrivals[0]?.body}</pre>`);
  });

  it('show that the first attempt is due or in progress', async () => {
    const { id } = await hooks.register();
    hooks.httpClient.receiver = blackHole;
    await hooks.deliver();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    const text = textOf(await see(`${all}/${id}/deliveries/${delivery?.id}`));
    expect(text).toContain('pending Attempt 1 is due or in progress.');
    expect(text).toContain('Not attempted yet');
  });

  it('show the beginning of a long payload', async () => {
    const { id } = await hooks.register();
    await hooks.publish({ payload: JSON.stringify({ text: 'x'.repeat(40_000) }) });
    await hooks.settle();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    const text = textOf(await see(`${all}/${id}/deliveries/${delivery?.id}`));
    expect(text).toContain('This is the beginning;');
    expect(text.length).toBeLessThan(40_000);
  });
});
