// What an administrator sees of one webhook and its deliveries in a browser, and of all while the system is read-only.
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
  it('shows its facts, and leads to what shows keys without coming back by itself', async () => {
    const { id } = await hooks.register({ name: 'One', changeTypes: 'Tested,Odd' });
    await hooks.act(`${id}/rotateKey`);
    const page = await see(`${all}/${id}`);
    expect(textOf(page)).toContain('Points to hooks.example/in');
    expect(textOf(page)).toContain('Events Tested, Odd');
    expect(textOf(page)).toMatch(/Former key signs too until 2026-01-02/);
    expect(textOf(page)).toContain('Nothing has been sent to it yet.');
    for (const operation of ['edit', 'rotateKey', 'delete']) {
      expect(page).toContain(`href="${all}/${id}/${operation}"`);
      expect(page).not.toContain(`action="${all}/${id}/${operation}"`);
    }
    expect(page).not.toContain('whsec_');
  });

  it('shows its deliveries with every attempt, what was answered, and sends one again', async () => {
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

  it('tells what is still to come, and when', async () => {
    await hooks.act('settings', quick);
    const { id } = await hooks.register();
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.settle();
    const text = textOf(await see(`${all}/${id}`));
    expect(text).toContain('pending next attempt 2026-01-01 00:00:05 UTC');
    expect(text).toContain('Look again to see what became of them.');
  });

  it('does not offer to send again while it is inactive, and says why', async () => {
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
      expect(textOf(page)).toContain('nothing is delivered to it again until it is activated');
    }
  });
});

describe('while the system is read-only', () => {
  const pagesOf = async () => {
    const { id } = await hooks.register();
    await hooks.publish();
    await hooks.settle();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    const own = `${all}/${id}`;
    return [all, own, `${own}/deliveries`, `${own}/deliveries/${delivery?.id}`];
  };
  const buttonsIn = (page: string) => page.match(/<form class="action"|Redeliver\s*<\/button>/g) ?? [];

  it('says so once instead of offering buttons, and leads to where that is changed', async () => {
    const paths = await pagesOf();
    for (const path of paths) expect(buttonsIn(await see(path)), path).not.toEqual([]);
    const fields = { isReadOnly: 'true', message: 'Moving <house>' };
    await hooks.post('/admin/mode/update', fields, hooks.administrator);
    for (const path of paths) {
      const page = await see(path);
      expect(buttonsIn(page), path).toEqual([]);
      expect(page.match(/The system is read-only\./g), path).toHaveLength(1);
      expect(textOf(page)).toContain('Moving &lt;house&gt; Webhooks can be neither changed nor tried before');
      expect(page).toContain('href="/admin/mode/update"');
    }
  });

  it('waits for the job that makes it so', async () => {
    const [list = ''] = await pagesOf();
    const available = await hooks.get('/admin/system/upgrades/available', hooks.administrator);
    const id = available.json<{ id: string }[]>()[0]?.id;
    const fields = { versionManifest: JSON.stringify({ id }) };
    await hooks.post('/admin/system/upgrades/upgrade', fields, hooks.administrator);
    const text = textOf(await see(list));
    expect(text).toContain('The system is read-only. An upgrade job is in progress.');
    expect(text).toContain('neither changed nor tried until the upgrade job has ended.');
  });

  it('says so too where there are none', async () => {
    await hooks.post('/admin/mode/update', { isReadOnly: 'true' }, hooks.administrator);
    expect(textOf(await see(all))).toMatch(/Nobody is told anything yet\. The system is read-only\./);
  });
});

describe('deliveries', () => {
  it('come in parts, and one leads back to the same part', async () => {
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

  it('each has a page with its attempts and what is sent', async () => {
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

  it('of another webhook are not there', async () => {
    const one = await hooks.register();
    const other = await hooks.register();
    await hooks.publish();
    await hooks.settle();
    const [delivery] = (await hooks.deliveriesOf(one.id)).deliveries;
    const path = `${all}/${other.id}/deliveries/${delivery?.id}`;
    expect((await hooks.get(path, { accept: 'text/html', cookie: cookie() })).statusCode).toBe(404);
  });
});
