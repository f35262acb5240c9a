// Tests of the page of all webhooks, and of the texts on it.
import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pageNumbers, pageRange } from '../../src/console/list.ts';
import { compareNaturally } from '../../src/console/table.ts';
import { formatAgo, formatCount, formatDuration } from '../../src/lib/format.ts';
import { formatReceiver } from '../../src/webhooks/pages/parts.ts';
import { formatPolicy } from '../../src/webhooks/pages/settings.ts';
import { formatOutcomes } from '../../src/webhooks/pages/webhooks.ts';
import { webhookSettings } from '../../src/webhooks/settings.ts';
import { type Hooks, quick, startHooks } from '../kit/hooks.ts';
import { all, browse, textOf } from './page-kit.ts';

let hooks: Hooks;
beforeEach(async () => {
  hooks = await startHooks();
});
afterEach(() => hooks.close());

const { see, press, failOnce } = browse(() => hooks);

/** The names of the webhooks in the table. */
const namesIn = (page: string) =>
  [...page.matchAll(/scope="row">\s*(?:<input [^>]*>\s*)?<a [^>]*><bdi>(.*?)<\/bdi>/g)].map(
    ([, name]) => name,
  );

describe('the list', () => {
  it('links to the form for a first webhook', async () => {
    const page = await see(all);
    expect(textOf(page)).toContain('There are no webhooks yet.');
    expect(page).toContain(`href="${all}/create"`);
  });

  it('shows the receiver without its query, and the service of each webhook', async () => {
    const { id } = await hooks.register({
      name: 'One <b>',
      hookUrl: 'https://hooks.example/in?token=geheim',
    });
    expect(await see(all)).not.toContain('Scope');
    await hooks.register({ service: 'World.MapServer' });
    const page = await see(all);
    expect(page).toContain(`<a href="${all}/${id}"><bdi>One &lt;b&gt;</bdi></a`);
    expect(page).toContain('hooks.example/in?…');
    expect(page).not.toContain('geheim');
    expect(page).not.toContain('whsec_');
    expect(textOf(page)).toContain('The whole organization');
    expect(page).toContain('href="/admin/services/World.MapServer"');
    expect(textOf(page)).toContain('All 2 OK 2');
  });

  it('marks a deleted service', async () => {
    const services = '/admin/services';
    await hooks.post(`${services}/createService`, { serviceName: 'New', type: 'T' }, hooks.administrator);
    await hooks.register({ service: 'New.T' });
    await hooks.post(`${services}/New.T/delete`, {}, hooks.administrator);
    expect(textOf(await see(all))).toContain('New.T (deleted)');
  });

  it('shows the health in words, worst first, and how close a webhook is to its deactivation', async () => {
    await hooks.act('settings', { ...quick, numberOfFailures: '3' });
    hooks.answerWith(500);
    const never = await hooks.register({ name: 'never', active: 'false' });
    await hooks.register({ name: 'fine', changeTypes: 'Other' });
    const off = await hooks.register({ name: 'off' });
    await hooks.act(`${off.id}/deactivate`);
    const failing = await hooks.register({ name: 'failing' });
    await failOnce();
    await hooks.register({ name: 'worse' });
    await failOnce();
    const text = textOf(await see(all));
    expect(text).toMatch(/failing hooks\S+ Failing 2 of 3 failures/);
    expect(text).toMatch(/worse hooks\S+ Last delivery failed 1 of 3 failures/);
    expect(text).toMatch(/fine hooks\S+ Not used yet No deliveries yet/);
    expect(text).toMatch(/off hooks\S+ Inactive by an administrator /);
    expect(text).toMatch(/never hooks\S+ Inactive never active/);
    expect(text).toMatch(/ failing hooks.* worse hooks.* fine hooks.* never hooks.* off hooks/);
    await failOnce();
    const page = await see(all);
    expect(textOf(page)).toMatch(/Deactivated 3 failures /);
    expect(page.indexOf(`id="webhook-${failing.id}"`)).toBeLessThan(page.indexOf(`id="webhook-${never.id}"`));
    const inactive = textOf(await see(`${all}?health=inactive`));
    expect(inactive).toContain('All 5 OK 1 Deactivated 2 Inactive 2');
    expect(inactive).not.toContain('worse');
  });

  it('draws the newest deliveries, with a text alternative and the last delivery', async () => {
    await hooks.act('settings', { ...quick, notificationAttempts: '1', numberOfFailures: '100' });
    await hooks.register();
    expect(textOf(await see(all))).toContain('No deliveries yet');
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
    // The newest delivery is at the right end.
    expect(marks.slice(1)).toEqual([
      ['delivered', 120],
      ['delivered', 127],
      ['failed', 134],
    ]);
    expect(textOf(page)).toMatch(/failed 20 s ago/);
    expect(page).toContain('title="The receiver answered 500."');
    for (let count = 0; count < 30; count += 1) await hooks.publish();
    await hooks.settle();
    expect(await see(all)).toContain('aria-label="The last 20 deliveries: 20 failed"');
  });

  it('has buttons that return to the list, and deactivates in two steps with the number of pending deliveries', async () => {
    const { id } = await hooks.register({ name: 'One' });
    await hooks.act('settings', { notificationElapsedTimeInSeconds: '60' });
    hooks.answerWith(500);
    for (let count = 0; count < 3; count += 1) await hooks.publish();
    await hooks.settle();
    let page = await see(all);
    expect(page).not.toContain(`action="${all}/${id}/deactivate"`);
    const form = `${all}/${id}/deactivate?next=${encodeURIComponent(all)}`;
    expect(page).toContain(`href="${form}"`);
    const second = await see(form);
    expect(textOf(second)).toContain('3 pending deliveries will be discarded. You can redeliver them');
    expect(await press(second, `${all}/${id}/deactivate`)).toBe(all);
    page = await see(all);
    expect(textOf(page)).toContain('Inactive by an administrator');
    expect(textOf(await see(form))).toContain('One is inactive already.');
    hooks.answerWith(200);
    expect(await press(page, `${all}/${id}/ping`)).toBe(all);
    expect(await press(page, `${all}/${id}/activate`)).toBe(all);
    await hooks.settle();
    expect(textOf(await see(all))).toMatch(/One hooks\S+ OK delivered/);
  });

  it('has no buttons and contains no token without a session', async () => {
    await hooks.register();
    const token = hooks.token('administrator');
    const page = await hooks.get(`${all}?f=html&token=${token}&start=0`);
    expect(page.statusCode).toBe(200);
    expect(page.body).not.toContain(token);
    expect(page.body).not.toContain('/ping"');
    expect(textOf(page.body)).toContain('Sign in with this browser to get buttons here.');
  });

  it('is divided into pages', async () => {
    for (let count = 0; count < 3; count += 1) await hooks.register();
    const page = await see(`${all}?start=1&num=1&token=`);
    expect(textOf(page)).toContain('Webhooks 2 to 2 of 3. Previous 1 2 3 Next');
    expect(textOf(page)).toContain('hook 2');
    expect(textOf(page)).not.toContain('hook 3');
    expect(page).toContain('name="next" value="/admin/services/webhooks?start=1&amp;num=1"');
  });

  it('finds webhooks by name and host, and offers to remove the filters', async () => {
    await hooks.register({ name: 'Billing' });
    await hooks.register({ name: 'Stock', hookUrl: 'https://STOCK.example/in?key=billing' });
    const found = await see(`${all}?q=bill&sort=name&token=`);
    expect(namesIn(found)).toEqual(['Billing']);
    expect(found).toContain('<span id="webhook-count" data-live="10">1 webhook</span>');
    expect(found).toMatch(/<input id="q"[^>]*value="bill"/);
    expect(found).toContain('<input type="hidden" name="sort" value="name" />');
    expect(namesIn(await see(`${all}?q=stock.EXAMPLE`))).toEqual(['Stock']);
    const none = await see(`${all}?q=nowhere`);
    expect(textOf(none)).toContain('0 webhooks');
    expect(textOf(none)).toContain('No webhook matches.');
    expect(none).toContain(`<a href="${all}">Remove the filters</a>`);
  });

  it('is sorted by name, health or last delivery, in both directions', async () => {
    for (const number of [10, 2, 1])
      await hooks.register({ name: `user${number}`, changeTypes: `To${number}` });
    const sorted = async (query: string) => namesIn(await see(`${all}?${query}`));
    expect(await sorted('sort=name')).toEqual(['user1', 'user2', 'user10']);
    expect(await sorted('sort=name&order=desc')).toEqual(['user10', 'user2', 'user1']);
    await hooks.publish({ changeType: 'To2' });
    await hooks.runtime.advance(60_000);
    await hooks.publish({ changeType: 'To10' });
    await hooks.settle();
    expect(await sorted('sort=last')).toEqual(['user10', 'user2', 'user1']);
    expect(await sorted('sort=last&order=asc')).toEqual(['user1', 'user2', 'user10']);
    const page = await see(`${all}?sort=name&q=user`);
    expect(page).toMatch(/aria-sort="ascending">\s*<a href="\?sort=name&amp;q=user&amp;order=desc">Webhook/);
    expect(page).toContain('href="?sort=health&amp;q=user">Health');
    expect(page.match(/aria-sort=/g)).toHaveLength(1);
  });

  it('has one menu for each webhook, which redelivers what the receiver did not get', async () => {
    await hooks.act('settings', { ...quick, notificationAttempts: '1', numberOfFailures: '100' });
    const { id } = await hooks.register({ name: 'One' });
    hooks.answerWith(500, 200);
    await failOnce();
    const page = await see(all);
    expect(page).toMatch(new RegExp(`popovertarget="menu-${id}" aria-label="Actions for One"`));
    expect(page).toMatch(new RegExp(`<div id="menu-${id}" class="row-menu" popover>`));
    expect(textOf(page)).toContain('Redeliver 1 not delivered');
    expect(await press(page, `${all}/${id}/redeliver`)).toBe(all);
    await hooks.runtime.advance(60_000);
    expect(textOf(await see(all))).not.toContain('not delivered');
  });

  it('of a service shows only its webhooks', async () => {
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

it('the settings are explained in words', async () => {
  const text = textOf(await see(`${all}/settings`));
  expect(text).toContain('Each event is tried up to 3 times, 5 s apart;');
  expect(text).toContain('5 failed deliveries within 5 days deactivate a webhook.');
});

describe('texts', () => {
  it.each([
    [{}, 'tried up to 3 times, 5 s apart; a receiver has 10 s to answer.'],
    [{ notificationAttempts: 1, notificationTimeOutInSeconds: 1 }, 'tried once; a receiver has 1 s to'],
    [{ notificationElapsedTimeInSeconds: 0 }, 'tried up to 3 times, without a wait;'],
    [{ daysInPast: 1 }, '5 failed deliveries within 1 day deactivate'],
    [{ numberOfFailures: 1 }, 'The first failed delivery deactivates a webhook.'],
  ])('for the policy %j', (change, words) => {
    expect(formatPolicy({ ...webhookSettings.initial, ...change })).toContain(words);
  });

  it('for outcomes', () => {
    expect(formatOutcomes([])).toBe('No deliveries yet');
    expect(formatOutcomes(['failed'])).toBe('The last delivery: 1 failed');
    expect(formatOutcomes(['failed', 'pending', 'pending', 'failed'])).toBe(
      'The last 4 deliveries, oldest first: 1 failed, 2 pending, 1 failed',
    );
  });

  it.each([
    ['https://hooks.example/', 'hooks.example'],
    ['https://hooks.example:8443/in#part', 'hooks.example:8443/in'],
    ['https://user:word@hooks.example/in?key=1', 'hooks.example/in?…'],
    [`https://hooks.example/${'a'.repeat(50)}`, `hooks.example/${'a'.repeat(15)}…`],
  ])('for the receiver %s', (hookUrl, words) => {
    expect(formatReceiver({ hookUrl }, 30)).toBe(words);
  });

  it('for counts and durations', () => {
    const counts = [
      formatCount(1, 'day'),
      formatCount(2, 'day'),
      formatCount(0, 'delivery'),
      formatCount(12_345, 'day'),
    ];
    expect(counts).toEqual(['1 day', '2 days', '0 deliveries', '12,345 days']);
    const spans = [0, 999, 1234, 9999, 10_000, 59_999, 60_000, 72_190, 7_500_000, 86_400_000 * 3 + 59_000];
    expect(spans.map(formatDuration)).toEqual([
      '0 ms',
      '999 ms',
      '1.2 s',
      '9.9 s',
      '10 s',
      '59 s',
      '1 min',
      '1 min 12 s',
      '2 h 5 min',
      '3 d',
    ]);
    const ages = [0, 45_000, 72_000, 86_400_000 * 12, 86_400_000 * 1234];
    const texts = ['just now', '45 s ago', '1 min ago', '12 d ago', '1,234 d ago'];
    expect(ages.map(formatAgo)).toEqual(texts);
    // The script has the function again.
    const script = readFileSync('src/console/assets/steward.js', 'utf8');
    const own = /function formatAgo[^]*?\n\}/.exec(script)?.[0] ?? '';
    expect(ages.map(runInNewContext(`(${own})`) as typeof formatAgo)).toEqual(texts);
  });

  it('invalid numbers in the query of a page are ignored', () => {
    const part = (query: string) => {
      const { start, num } = pageRange(new URLSearchParams(query), { usual: 25 });
      return { start, num };
    };
    expect(part('')).toEqual({ start: 0, num: 25 });
    expect(part('start=7&num=3')).toEqual({ start: 7, num: 3 });
    expect(part('start=-1&num=1e3')).toEqual({ start: 0, num: 25 });
    expect(part('num=5000')).toEqual({ start: 0, num: 100 });
  });

  it('for the numbers of pages', () => {
    const numbers = (current: number, last: number) =>
      pageNumbers(current, last)
        .map((page) => page ?? '…')
        .join(' ');
    expect(numbers(1, 1)).toBe('1');
    expect(numbers(2, 5)).toBe('1 2 3 4 5');
    expect(numbers(1, 40)).toBe('1 2 3 4 … 40');
    expect(numbers(20, 40)).toBe('1 … 19 20 21 … 40');
    expect(numbers(4, 40)).toBe('1 2 3 4 5 … 40');
    expect(numbers(40, 40)).toBe('1 … 37 38 39 40');
  });

  it('are sorted as a reader sorts them', () => {
    expect(['user10', 'User3', 'user2'].sort(compareNaturally)).toEqual(['user2', 'User3', 'user10']);
  });
});
