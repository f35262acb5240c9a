// What an administrator sees of webhooks in a browser: how each has been doing, and the buttons to do something about it.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { partOf } from '../../src/rest/table-view.ts';
import { destinationOf, tellPolicy } from '../../src/webhooks/page.ts';
import { webhookSettings } from '../../src/webhooks/settings.ts';
import { tellOutcomes } from '../../src/webhooks/sparkline.page.ts';
import { tellAgo, tellCount, tellSpan } from '../../src/words.ts';
import { type Hooks, quick, startHooks } from '../kit/hooks.ts';

const all = '/admin/services/webhooks';

let hooks: Hooks;
beforeEach(async () => {
  hooks = await startHooks();
});
afterEach(() => hooks.close());

const cookie = () => `steward_session=${hooks.token('administrator')}`;

async function see(path: string) {
  const page = await hooks.get(path, { accept: 'text/html', cookie: cookie() });
  expect(page.statusCode).toBe(200);
  return page.body;
}

/** The page without its markup and with single blanks: what is read. */
const textOf = (page: string) =>
  page
    .replace(/<(script|style|title)[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&#39;', "'")
    .replace(/\s+/g, ' ');

/** Presses the button of a page that posts to an address; answers where the browser is sent, but for what was done. */
async function press(page: string, action: string) {
  const form = page.split('<form').find((part) => part.includes(`action="${action}"`)) ?? '';
  const inputs = form.slice(0, form.indexOf('</form>')).matchAll(/name="(\w+)" value="([^"]*)"/g);
  const fields: Record<string, string> = {};
  for (const [, name = '', value = ''] of inputs) fields[name] = value.replaceAll('&amp;', '&');
  expect(fields).toMatchObject({ f: 'html' });
  const answer = await hooks.post(action, fields, { cookie: cookie() });
  expect(answer.statusCode).toBe(303);
  return String(answer.headers.location).replace(/[?&]done=\w+$/, '');
}

/** Lets a delivery with three attempts fail. */
async function failOnce() {
  await hooks.publish();
  await hooks.world.advance(20_000);
}

describe('the list', () => {
  it('says so when there are none, and leads to making one', async () => {
    const page = await see(all);
    expect(textOf(page)).toContain('Nobody is told anything yet.');
    expect(page).toContain(`href="${all}/create"`);
  });

  it('tells where each points without credentials or query, and whom it concerns', async () => {
    const { id } = await hooks.register({
      name: 'One <b>',
      hookUrl: 'https://hooks.example/in?token=geheim',
    });
    await hooks.register({ service: 'World.MapServer' });
    const page = await see(all);
    expect(page).toContain(`<a href="${all}/${id}">One &lt;b&gt;</a`);
    expect(page).toContain('hooks.example/in?…');
    expect(page).not.toContain('geheim');
    expect(page).not.toContain('whsec_');
    expect(textOf(page)).toContain('The whole organization');
    expect(page).toContain('href="/admin/services/World.MapServer"');
    expect(textOf(page)).toContain('2 webhooks');
  });

  it('marks a service that is gone', async () => {
    const services = '/admin/services';
    await hooks.post(`${services}/createService`, { serviceName: 'New', type: 'T' }, hooks.administrator);
    await hooks.register({ service: 'New.T' });
    await hooks.post(`${services}/New.T/delete`, {}, hooks.administrator);
    expect(textOf(await see(all))).toContain('New.T (deleted)');
  });

  it('tells states in words, and failures against the policy', async () => {
    await hooks.act('settings', quick);
    hooks.answerWith(500);
    await hooks.register({ name: 'failing' });
    await failOnce();
    expect(textOf(await see(all))).toMatch(/failing .* Active 1 of 2 within 5 days/);
    await failOnce();
    const off = await hooks.register({ name: 'off' });
    await hooks.act(`${off.id}/deactivate`);
    await hooks.register({ name: 'never', active: 'false' });
    const text = textOf(await see(all));
    expect(text).toMatch(/Deactivated for its failures 2026-01-01 \S+ UTC 2 of 2 within 5 days/);
    expect(text).toMatch(/Deactivated by an administrator 2026-01-01 \S+ UTC 0 of 2 within 5 days/);
    expect(text).toMatch(/Not active since it was created 0 of 2/);
  });

  it('pictures the newest deliveries and says the same in words, with the last one', async () => {
    await hooks.act('settings', { ...quick, notificationAttempts: '1', numberOfFailures: '100' });
    await hooks.register();
    expect(textOf(await see(all))).toContain('Nothing sent yet');
    hooks.answerWith(200, 200, 500);
    for (let count = 0; count < 3; count += 1) await failOnce();
    const page = await see(all);
    const words = 'The last 3 deliveries, oldest first: 2 delivered, 1 failed';
    expect(page).toContain(`aria-label="${words}"`);
    expect(page).toContain(`<title>${words}</title>`);
    const marks = [...page.matchAll(/<rect\s+class="(\w+)"\s+x="([\d.]+)"/g)].map(([, state, x]) => [
      state,
      Number(x),
    ]);
    // The newest is at the right end.
    expect(marks.slice(1)).toEqual([
      ['delivered', 120],
      ['delivered', 127],
      ['failed', 134],
    ]);
    expect(textOf(page)).toMatch(/failed 2026-01-01 \S+ UTC 20 seconds ago: The receiver answered 500\./);
    for (let count = 0; count < 30; count += 1) await hooks.publish();
    await hooks.settle();
    expect(await see(all)).toContain('aria-label="The last 20 deliveries: 20 failed"');
  });

  it('has buttons that act and come back', async () => {
    const { id } = await hooks.register();
    let page = await see(all);
    expect(await press(page, `${all}/${id}/deactivate`)).toBe(all);
    page = await see(all);
    expect(textOf(page)).toContain('Deactivated by an administrator');
    expect(page).not.toContain(`action="${all}/${id}/deactivate"`);
    expect(await press(page, `${all}/${id}/ping`)).toBe(all);
    expect(await press(page, `${all}/${id}/activate`)).toBe(all);
    await hooks.settle();
    expect(hooks.arrivals.map(({ headers }) => headers['webhook-id'])).toHaveLength(1);
    expect(textOf(await see(all))).toContain('Active');
  });

  it('has none, and carries no token, for a caller without a session', async () => {
    await hooks.register();
    const token = hooks.token('administrator');
    const page = await hooks.get(`${all}?f=html&token=${token}&start=0`);
    expect(page.statusCode).toBe(200);
    expect(page.body).not.toContain(token);
    expect(page.body).not.toContain('/ping"');
    expect(textOf(page.body)).toContain('Sign in with this browser to have buttons here.');
  });

  it('is shown in parts', async () => {
    for (let count = 0; count < 3; count += 1) await hooks.register();
    const page = await see(`${all}?start=1&num=1&token=`);
    expect(textOf(page)).toContain('Webhooks 2 to 2 of 3. Previous Next');
    expect(textOf(page)).toContain('hook 2');
    expect(textOf(page)).not.toContain('hook 3');
    expect(page).toContain('name="next" value="/admin/services/webhooks?start=1&amp;num=1"');
  });

  it('beneath a service shows its own', async () => {
    await hooks.register({ name: 'other' });
    const { id } = await hooks.register({ name: 'own', service: 'World.MapServer' });
    const path = '/admin/services/World.MapServer/webhooks';
    const page = await see(path);
    expect(page).toContain(`href="${all}/${id}"`);
    expect(page).toContain(`href="${path}/create"`);
    expect(textOf(page)).not.toContain('other');
    expect(await press(page, `${all}/${id}/ping`)).toBe(path);
  });
});

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

it('the settings say what they mean', async () => {
  const text = textOf(await see(`${all}/settings`));
  expect(text).toContain('Each event is tried up to 3 times, 5 seconds apart;');
  expect(text).toContain('5 failed deliveries within 5 days deactivate a webhook.');
});

describe('in words', () => {
  it.each([
    [{}, 'tried up to 3 times, 5 seconds apart; a receiver has 10 seconds to answer.'],
    [{ notificationAttempts: 1, notificationTimeOutInSeconds: 1 }, 'tried once; a receiver has 1 second to'],
    [{ notificationElapsedTimeInSeconds: 0 }, 'tried up to 3 times, one right after the other;'],
    [{ daysInPast: 1 }, '5 failed deliveries within 1 day deactivate'],
    [{ numberOfFailures: 1 }, 'The first failed delivery deactivates a webhook.'],
  ])('the policy %j', (change, words) => {
    expect(tellPolicy({ ...webhookSettings.initial, ...change })).toContain(words);
  });

  it('outcomes', () => {
    expect(tellOutcomes([])).toBe('No deliveries yet');
    expect(tellOutcomes(['failed'])).toBe('The last delivery: 1 failed');
    expect(tellOutcomes(['failed', 'pending', 'pending', 'failed'])).toBe(
      'The last 4 deliveries, oldest first: 1 failed, 2 pending, 1 failed',
    );
  });

  it.each([
    ['https://hooks.example/', 'hooks.example'],
    ['https://hooks.example:8443/in#part', 'hooks.example:8443/in'],
    ['https://user:word@hooks.example/in?key=1', 'hooks.example/in?…'],
    [`https://hooks.example/${'a'.repeat(50)}`, `hooks.example/${'a'.repeat(15)}…`],
  ])('the receiver %s', (hookUrl, words) => {
    expect(destinationOf({ hookUrl }, 30)).toBe(words);
  });

  it('numbers and spans', () => {
    const counts = [
      tellCount(1, 'day'),
      tellCount(2, 'day'),
      tellCount(0, 'delivery'),
      tellCount(12_345, 'day'),
    ];
    expect(counts).toEqual(['1 day', '2 days', '0 deliveries', '12,345 days']);
    const spans = [0, 999, 1234, 9999, 10_000, 59_999, 60_000, 7_200_000, 86_400_000 * 3];
    expect(spans.map(tellSpan)).toEqual([
      ...['0 ms', '999 ms', '1.2 s', '9.9 s', '10 seconds', '59 seconds', '1 minute', '2 hours', '3 days'],
    ]);
    expect([tellAgo(0), tellAgo(60_000)]).toEqual(['just now', '1 minute ago']);
  });

  it('what is no number of a part counts for nothing', () => {
    const part = (query: string) => partOf(new URLSearchParams(query), { usual: 25 });
    expect(part('')).toEqual({ start: 0, num: 25 });
    expect(part('start=7&num=3')).toEqual({ start: 7, num: 3 });
    expect(part('start=-1&num=1e3')).toEqual({ start: 0, num: 25 });
    expect(part('num=5000')).toEqual({ start: 0, num: 100 });
  });
});
