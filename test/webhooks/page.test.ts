// Tests of the page of all webhooks, and of the texts on it. test/pages has the page in its states.
import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { pageRange } from '../../src/console/list.ts';
import { compareNaturally } from '../../src/console/table.ts';
import { formatAgo, formatCount, formatDuration } from '../../src/lib/format.ts';
import { formatReceiver } from '../../src/webhooks/pages/parts.ts';
import { formatPolicy } from '../../src/webhooks/pages/settings.ts';
import { webhookSettings } from '../../src/webhooks/settings.ts';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';
import { all, browse, textOf } from './page-kit.ts';

const hooks = perTest(startHooks);

const { see, press } = browse(() => hooks);

/** The names of the webhooks in the table. */
const namesIn = (page: string) =>
  [...page.matchAll(/scope="row">\s*(?:<input [^>]*>\s*)?<a [^>]*><bdi>(.*?)<\/bdi>/g)].map(
    ([, name]) => name,
  );

describe('the list', () => {
  it('has buttons that return to the list, and deactivates in two steps', async () => {
    const { id } = await hooks.register({ name: 'One' });
    hooks.answerWith(500, 200);
    await hooks.act('settings', { notificationAttempts: '1' });
    await hooks.deliver();
    expect(await press(await see(all), `${all}/${id}/redeliver`)).toBe(all);
    await hooks.runtime.advance(60_000);
    expect(textOf(await see(all))).not.toContain('not delivered');
    const form = `${all}/${id}/deactivate?next=${encodeURIComponent(all)}`;
    expect(await press(await see(form), `${all}/${id}/deactivate`)).toBe(all);
    const page = await see(all);
    expect(textOf(await see(form))).toContain('One is inactive already.');
    expect(await press(page, `${all}/${id}/ping`)).toBe(all);
    expect(await press(page, `${all}/${id}/activate`)).toBe(all);
    await hooks.settle();
    expect(textOf(await see(all))).toMatch(/One hooks\S+ OK – delivered/);
  });

  it('has a link to all webhooks if there are some, or if a filter has to be removed', async () => {
    const hasLink = async (query: string) => / All [01] /.test(textOf(await see(all + query)));
    expect([await hasLink(''), await hasLink('?health=inactive')]).toEqual([false, true]);
    await hooks.register({ name: 'One' });
    expect([await hasLink(''), await hasLink('?health=inactive')]).toEqual([true, true]);
  });

  it('finds webhooks by name, host and health, and offers to remove the filters', async () => {
    await hooks.register({ name: 'Billing' });
    await hooks.register({ name: 'Stock', hookUrl: 'https://STOCK.example/in?key=billing', active: 'false' });
    const found = async (query: string) => namesIn(await see(`${all}?${query}`));
    expect(await found('q=bill&sort=name&token=')).toEqual(['Billing']);
    expect(await found('q=stock.EXAMPLE')).toEqual(['Stock']);
    expect(await found('health=inactive')).toEqual(['Stock']);
    const none = await see(`${all}?q=nowhere`);
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
    await hooks.deliver({ changeType: 'To10' });
    expect(await sorted('sort=last')).toEqual(['user10', 'user2', 'user1']);
    expect(await sorted('sort=last&order=asc')).toEqual(['user1', 'user2', 'user10']);
  });
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
    const hour = 3_600_000;
    const ages = [
      0,
      45_000,
      72_000,
      hour - 1,
      hour,
      24 * hour - 1,
      24 * hour,
      12 * 24 * hour,
      1234 * 24 * hour,
    ];
    const at = Date.UTC(2026, 1, 3, 4, 5, 6);
    const ago = ['just now', '45 s ago', '1 min ago', '59 min ago'];
    const texts = [...ago, '04:05', '04:05', '3 Feb 04:05', '3 Feb 04:05', '3 Feb 2026'];
    expect(ages.map((age) => formatAgo(at, at + age))).toEqual(texts);
    // The script has the function again.
    const script = readFileSync('src/console/assets/steward.js', 'utf8');
    const own = /function formatAgo[^]*?\n\}/.exec(script)?.[0] ?? '';
    const ownAgo = runInNewContext(`(${own})`) as typeof formatAgo;
    // In the zone of the reader, which is the one of this process.
    const local = at + new Date(at).getTimezoneOffset() * 60_000;
    expect(ages.map((age) => ownAgo(local, local + age))).toEqual(texts);
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

  it('are sorted as a reader sorts them', () => {
    expect(['user10', 'User3', 'user2'].sort(compareNaturally)).toEqual(['user2', 'User3', 'user10']);
  });
});
