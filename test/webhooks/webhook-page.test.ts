// Tests of the pages of one webhook and its deliveries, and of all pages in read-only mode.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Hooks, quick, startHooks } from '../kit/hooks.ts';
import { all, browse, textOf } from './page-kit.ts';

let hooks: Hooks;
beforeEach(async () => {
  hooks = await startHooks();
});
afterEach(() => hooks.close());

const { cookie, see, press, failOnce } = browse(() => hooks);

describe('a webhook', () => {
  it('shows its details, and links to the forms of operations that need one', async () => {
    const { id } = await hooks.register({ name: 'One', changeTypes: 'Tested,Odd' });
    await hooks.act(`${id}/rotateKey`);
    const page = await see(`${all}/${id}`);
    expect(textOf(page)).toContain('Receiver hooks.example/in');
    expect(textOf(page)).toContain('Events Tested, Odd');
    expect(textOf(page)).toMatch(/Previous key signs until 2026-01-02/);
    expect(textOf(page)).toContain('Nothing has been sent to this webhook yet.');
    for (const operation of ['edit', 'rotateKey', 'delete']) {
      expect(page).toContain(`href="${all}/${id}/${operation}"`);
      expect(page).not.toContain(`action="${all}/${id}/${operation}"`);
    }
    expect(page).not.toContain('whsec_');
  });

  it('shows its deliveries with all attempts and answers, and redelivers', async () => {
    await hooks.act('settings', quick);
    const { id } = await hooks.register();
    hooks.answerWith({ status: 500, body: Buffer.from('<h1>broken</h1>') });
    await failOnce();
    const page = await see(`${all}/${id}`);
    const [failed] = (await hooks.deliveriesOf(id)).deliveries;
    expect(page).toContain(`href="${all}/${id}/deliveries/${failed?.id}"`);
    expect(page.match(/The receiver answered 500\./g)).toHaveLength(3);
    expect(page).toContain('&lt;h1&gt;broken&lt;/h1&gt;</pre');
    expect(textOf(page)).toContain('Newest right: 1 failed (down).');
    expect(textOf(page)).toMatch(/Failures 1 of 2 within 5 days , counted from 2026-01-01 .* to 2026-01-06/);
    hooks.answerWith(200);
    expect(await press(page, `${all}/${id}/deliveries/${failed?.id}/redeliver`)).toBe(`${all}/${id}`);
    await hooks.settle();
    expect(textOf(await see(`${all}/${id}`))).toContain('Newest right: 1 delivered (up), 1 failed (down).');
  });

  it('shows when the next attempt of a pending delivery is due', async () => {
    await hooks.act('settings', quick);
    const { id } = await hooks.register();
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.settle();
    const text = textOf(await see(`${all}/${id}`));
    expect(text).toContain('pending next attempt 2026-01-01 00:00:05 UTC');
    expect(text).toContain('Reload the page to see their outcome.');
  });

  it('shows how many deliveries deactivating it discards, and so does the list', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(500);
    for (let n = 0; n < 2; n += 1) await hooks.publish();
    await hooks.settle();
    expect(textOf(await see(`${all}/${id}`))).toContain(
      'Deactivating the webhook discards 2 pending deliveries; deleting it deletes them.',
    );
    expect(textOf(await see(all))).toContain('Deactivating it discards 2 pending deliveries.');
    await hooks.act(`${id}/deactivate`);
    expect(textOf(await see(all))).not.toContain('discards');
  });

  it('disables redelivery while it is inactive, and explains why', async () => {
    const { id } = await hooks.register();
    await hooks.publish();
    await hooks.settle();
    await hooks.act(`${id}/deactivate`);
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    for (const path of ['', '/deliveries', `/deliveries/${delivery?.id}`]) {
      const page = await see(`${all}/${id}${path}`);
      expect(page).toMatch(/<button[^>]* disabled aria-describedby="activate-first"/);
      expect(page).toContain('id="activate-first"');
      expect(page).not.toContain('/redeliver" ');
      expect(textOf(page)).toContain('Activate it to redeliver.');
    }
  });
});

describe('in read-only mode', () => {
  const pagesOf = async () => {
    const { id } = await hooks.register();
    await hooks.publish();
    await hooks.settle();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    const own = `${all}/${id}`;
    return [all, own, `${own}/deliveries`, `${own}/deliveries/${delivery?.id}`];
  };
  const buttonsIn = (page: string) => page.match(/<form class="action"|Redeliver\s*<\/button>/g) ?? [];

  it('every page explains once why it has no buttons, and links to the mode', async () => {
    const paths = await pagesOf();
    for (const path of paths) expect(buttonsIn(await see(path)), path).not.toEqual([]);
    const fields = { isReadOnly: 'true', message: 'Moving <house>' };
    await hooks.post('/admin/mode/update', fields, hooks.administrator);
    for (const path of paths) {
      const page = await see(path);
      expect(buttonsIn(page), path).toEqual([]);
      expect(page.match(/The system is read-only\./g), path).toHaveLength(1);
      expect(textOf(page)).toContain('Moving &lt;house&gt; Webhooks cannot be changed or tested until');
      expect(page).toContain('href="/admin/mode/update"');
    }
  });

  it('the explanation names the upgrade job that causes it', async () => {
    const [list = ''] = await pagesOf();
    const available = await hooks.get('/admin/system/upgrades/available', hooks.administrator);
    const id = available.json<{ id: string }[]>()[0]?.id;
    const fields = { versionManifest: JSON.stringify({ id }) };
    await hooks.post('/admin/system/upgrades/upgrade', fields, hooks.administrator);
    const text = textOf(await see(list));
    expect(text).toContain('The system is read-only. An upgrade job is in progress.');
    expect(text).toContain('cannot be changed or tested until the upgrade job has ended.');
  });

  it('an empty list explains it too', async () => {
    await hooks.post('/admin/mode/update', { isReadOnly: 'true' }, hooks.administrator);
    expect(textOf(await see(all))).toMatch(/There are no webhooks yet\. The system is read-only\./);
  });
});

describe('deliveries', () => {
  it('are divided into pages, and redelivering returns to the same page', async () => {
    const { id } = await hooks.register();
    for (let count = 0; count < 5; count += 1) await hooks.publish({ changeType: `Number${count}` });
    await hooks.settle();
    const path = `${all}/${id}/deliveries`;
    const page = await see(`${path}?start=2&num=2`);
    expect(textOf(page)).toContain('Deliveries 3 to 4 of 5. Previous Next');
    expect(page).toContain('href="?start=0&amp;num=2"');
    expect(page).toContain('href="?start=4&amp;num=2"');
    expect(textOf(page)).toMatch(/Number2.*Number1/);
    expect(textOf(page)).not.toMatch(/Number[034]/);
    const third = (await hooks.deliveriesOf(id)).deliveries[2]?.id;
    expect(await press(page, `${path}/${third}/redeliver`)).toBe(`${path}?start=2&num=2`);
  });

  it('have a page each, with the attempts and the request body', async () => {
    const { id } = await hooks.register({ name: 'One' });
    await hooks.publish({ payload: '{"text":"<script>"}', service: 'World.MapServer' });
    await hooks.settle();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    const page = await see(`${all}/${id}/deliveries/${delivery?.id}`);
    expect(textOf(page)).toMatch(
      /1 attempt When Took Outcome Answer 2026-01-01 00:00:00 UTC 0 ms answered 200/,
    );
    expect(textOf(page)).toContain('Service World.MapServer');
    expect(page).toContain('&quot;data&quot;:{&quot;text&quot;:&quot;&lt;script&gt;&quot;}}</pre');
  });

  it('of another webhook are not found', async () => {
    const one = await hooks.register();
    const other = await hooks.register();
    await hooks.publish();
    await hooks.settle();
    const [delivery] = (await hooks.deliveriesOf(one.id)).deliveries;
    const path = `${all}/${other.id}/deliveries/${delivery?.id}`;
    expect((await hooks.get(path, { accept: 'text/html', cookie: cookie() })).statusCode).toBe(404);
  });
});
