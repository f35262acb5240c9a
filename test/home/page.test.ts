// The home page and what each role sees there.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Role } from '../../src/lib/caller.ts';
import type { Store } from '../../src/store/store.ts';
import { type Hooks, startHooks } from '../kit/hooks.ts';
import { createTestStore } from '../kit/store.ts';
import { linkOf } from '../upgrades/page-kit.ts';

let server: Hooks;
beforeEach(async () => {
  server = await startHooks();
});
afterEach(() => server.close());

async function see(role: Role) {
  const cookie = `steward_session=${server.token(role)}`;
  const page = await server.get('/admin', { accept: 'text/html', cookie });
  expect(page.statusCode).toBe(200);
  return page.body;
}

/** The text of each card, by its title. */
async function cards(role: Role = 'administrator') {
  const items = (await see(role)).split('<ul class="cards"')[1]?.split('</ul>')[0]?.split('</li>') ?? [];
  const found: Record<string, string> = {};
  for (const item of items) {
    const title = /<h2>(.*?)<\/h2>/.exec(item)?.[1];
    const rest = item.replace(/[\s\S]*<\/h2>/, '').replace(/<[^>]*>/g, ' ');
    if (title !== undefined) found[title] = rest.replace(/\s+/g, ' ').trim();
  }
  return found;
}

/** The sentence about the health of the system, and its reasons. */
async function findings() {
  const part = (await see('administrator')).split('id="health"')[1]?.split('id="changes"')[0] ?? '';
  return [...part.matchAll(/<(?:strong|a [^>]*)>([^<]*)</g)].map(([, text]) => text);
}

const upgrade = (id: string) =>
  server.post(
    '/admin/system/upgrades/upgrade',
    { versionManifest: JSON.stringify({ id }) },
    server.administrator,
  );

const up =
  'Up for 2 h, since 2026-01-01 00:00:00 UTC Data is in memory and does not survive a restart. ' +
  'Jobs are simulated and change no deployment.';

it('shows all cards to an administrator', async () => {
  await server.runtime.advance(2 * 3_600_000);
  expect(await cards()).toEqual({
    Version: '10.9.1 Build 1234 Product 11.2 is available',
    'Last job': 'None yet Show available versions',
    Webhooks: 'None yet No delivery is pending.',
    'Mode and server': `Accepts changes Change the mode ${up}`,
  });
  expect(await findings()).toEqual(['Everything works.']);
  expect(await see('administrator')).toMatch(
    /upgrades\/plan\?[^"]*rel_\w+[^"]*"\s*>Product 11\.2 is available</,
  );
});

it.each(['member', 'publisher'] as const)(
  'shows a %s the version, the mode and the visible services',
  async (role) => {
    expect(await cards(role)).toEqual({
      Version: '10.9.1 Build 1234',
      Mode: 'Accepts changes',
      Catalog: `11 services Visible to you, in the root and 2 folders${role === 'publisher' ? ' Create a service' : ''}`,
    });
    expect(await see(role)).not.toContain('system/upgrades');
    expect(await see(role)).not.toContain('id="health"');
  },
);

it('does not change the JSON of the resource', async () => {
  expect((await server.get('/admin', server.administrator)).json()).toEqual({
    currentVersion: '10.9.1',
    fullVersion: '10.9.1.1234',
    resources: ['mode', 'security', 'services', 'system', 'uploads'],
  });
});

it('shows why the system is read-only', async () => {
  await server.post(
    '/admin/mode/update',
    { isReadOnly: 'true', message: 'Moving <house>' },
    server.administrator,
  );
  const text = 'Read-only Set by an administrator. Moving &lt;house&gt;';
  expect((await cards('member')).Mode).toBe(text);
  expect((await cards())['Mode and server']).toContain(`${text} Change the mode`);
});

it('shows the last changes: all of them to an administrator, the own ones to a publisher', async () => {
  const changesOf = async (role: Role) => {
    const part = (await see(role)).split('id="changes"')[1]?.split('</section>')[0] ?? '';
    return [...part.matchAll(/<strong>([^<]*)<\/strong>\s*<a [^>]*><bdi>([^<]*)</g)].map(([, ...one]) => one);
  };
  const publisher = { authorization: `Bearer ${server.token('publisher')}` };
  await server.post('/admin/services/createFolder', { folderName: 'Own' }, publisher);
  await server.register({ name: 'Billing' });
  expect(await changesOf('publisher')).toEqual([['Create folder', 'Own']]);
  expect(await changesOf('administrator')).toEqual([
    ['Create webhook', 'Billing'],
    ['Create folder', 'Own'],
  ]);
  expect(await see('member')).not.toContain('id="changes"');
});

it('finds pages, services, webhooks, users and jobs that the caller may see', async () => {
  await server.register({ name: 'Road works', hookUrl: 'https://billing.example.com/' });
  const find = async (query: string, role: Role = 'administrator') => {
    const cookie = `steward_session=${server.token(role)}`;
    const { body } = await server.get(`/admin?q=${encodeURIComponent(query)}`, {
      accept: 'text/html',
      cookie,
    });
    expect(body).toMatch(/<h1>Search: [^<]+<\/h1>/);
    expect(body).toMatch(/id="everywhere"[^>]* value="[^"]+"/);
    const main = body.split('<main')[1]?.split('</main>')[0] ?? '';
    return [...main.matchAll(/<h2>([^<]*)<\/h2>|<bdi>([^<]*)<\/bdi>/g)].map(
      ([, title, name]) => title ?? name,
    );
  };
  expect(await find('road')).toEqual(['Services', 'Maps/Roads.MapServer', 'Webhooks', 'Road works']);
  expect(await find('road', 'member')).toEqual(['Services', 'Maps/Roads.MapServer']);
  expect(await find('BILLING')).toEqual(['Webhooks', 'Road works']);
  expect(await find('audit')).toEqual(['Pages', 'Audit']);
  expect(await find('publisher')).toEqual(['Users', 'publisher']);
  expect(await find('<nothing>')).toEqual([]);
});

describe('jobs', () => {
  it('shows the running job, then its outcome, with a link', async () => {
    const available = await server.get('/admin/system/upgrades/available', server.administrator);
    const [patch] = available.json<{ id: string; version: string; build: string }[]>();
    expect((await upgrade(patch?.id ?? '')).statusCode).toBe(200);
    const during = await cards();
    expect(during['Running job']).toMatch(
      /^0 % 0 % Upgrade from 10\.9\.1\.1234 to 10\.9\.1\.1250 0 of 4 deployments$/,
    );
    expect(await findings()).toEqual(['A job is running.', 'The upgrade to 10.9.1.1250 is running: 0 %.']);
    expect(during['Last job']).toBeUndefined();
    expect(during['Mode and server']).toContain('Read-only An upgrade job is in progress.');
    expect(await see('administrator')).toMatch(/href="\/admin\/system\/jobs\/[^"/]+">Upgrade from/);
    // The wizard is closed.
    expect(await see('administrator')).toMatch(/upgrades"\s*>Product 11\.2 is available</);
    await server.runtime.advance(60_000);
    const after = await cards();
    expect(after['Last job']).toMatch(/^Succeeded Upgrade from 10\.9\.1\.1234 to \S+ (just now|.* ago)$/);
    expect(after['Running job']).toBeUndefined();
    expect(after.Version).toBe(
      `${patch?.version} Build ${patch?.build} Product 11.2 is available Roll back to 10.9.1.1234 …`,
    );
    const form = linkOf(await see('administrator'), 'Roll back to 10.9.1.1234 …');
    const cookie = `steward_session=${server.token('administrator')}`;
    const { body } = await server.get(form, { accept: 'text/html', cookie });
    expect(body).toMatch(
      / selected>10\.9\.1\.1234: removes Product 10\.9\.1 Security Update, puts back 4 containers/,
    );
  });
});

describe('webhooks', () => {
  it('shows the number of pending deliveries and the age of the oldest', async () => {
    server.answerWith(500);
    await server.act('settings', { notificationElapsedTimeInSeconds: '86400' });
    await server.register();
    await server.publish();
    await server.runtime.advance(180_000);
    await server.publish();
    await server.settle();
    expect((await cards()).Webhooks).toBe('1 webhook 1 ok 2 deliveries pending, the oldest for 3 min');
  });

  it('shows how many webhooks were deactivated because of failures, and how many others are inactive', async () => {
    server.answerWith(500);
    await server.act('settings', { notificationAttempts: '1', numberOfFailures: '1' });
    await server.register();
    await server.publish();
    await server.settle();
    await server.register({ active: 'false' });
    await server.register();
    expect((await cards()).Webhooks).toBe(
      '3 webhooks 1 ok, 1 deactivated, 1 inactive 0 % delivered in the last 24 hours No delivery is pending.',
    );
    expect(await findings()).toEqual([
      '1 thing needs attention.',
      expect.stringMatching(/^Webhook .* was deactivated after too many failures\.$/),
      expect.stringMatching(/^Webhook .* is inactive\.$/),
    ]);
    expect(await see('administrator')).toContain('href="/admin/services/webhooks"');
  });

  it('does not say that everything works if webhooks are switched off', async () => {
    for (const name of 'abcd') await server.register({ name, active: 'false' });
    expect(await findings()).toEqual([
      'Nothing needs attention.',
      '4 webhooks are inactive: a, b, c and 1 more.',
    ]);
    expect(await see('administrator')).toContain('href="/admin/services/webhooks?health=inactive"');
  });

  it('counts all webhooks of a kind, and names three of them', async () => {
    server.answerWith(500);
    await server.act('settings', { notificationAttempts: '1', numberOfFailures: '1' });
    for (const name of 'abcdefghijkl')
      await server.register({ name, hookUrl: `https://${name}.example.com/` });
    await server.publish();
    await server.settle();
    expect((await findings()).slice(0, 2)).toEqual([
      '12 things need attention.',
      '12 webhooks were deactivated after too many failures: a, b, c and 9 more.',
    ]);
    expect(await see('administrator')).toContain('href="/admin/services/webhooks?health=deactivated"');
  });

  it('names a webhook whose last delivery failed, also if it was a ping', async () => {
    const { id } = await server.register({ name: 'pinged' });
    server.answerWith(500);
    await server.act(`${id}/ping`);
    await server.settle();
    expect((await findings()).slice(0, 2)).toEqual([
      '1 thing needs attention.',
      'The last delivery of webhook pinged failed.',
    ]);
    expect((await cards()).Webhooks).toContain('1 webhook 1 failing');
    const cookie = `steward_session=${server.token('administrator')}`;
    const pageOf = async (path: string) => (await server.get(path, { accept: 'text/html', cookie })).body;
    expect(await pageOf('/admin/services/webhooks')).toMatch(
      /<span class="state warn">Last delivery failed<\/span>\s*<span class="hint">a ping</,
    );
    expect(await pageOf(`/admin/services/webhooks/${id}`)).toContain('It was a ping, which does not count');
    server.answerWith(204);
    await server.act(`${id}/ping`);
    await server.settle();
    expect((await findings())[0]).toBe('Everything works.');
  });

  it('shows no rate of deliveries that are too many to count', async () => {
    await server.close();
    const store = await createTestStore();
    let isTotalExact = true;
    const page: Store['deliveries']['page'] = async (filter, start, num) => ({
      ...(await store.deliveries.page(filter, start, num)),
      total: filter.states?.includes('delivered') ? 10_000 : 1,
      isTotalExact: isTotalExact || !filter.states?.includes('delivered'),
    });
    server = await startHooks({ store: { ...store, deliveries: { ...store.deliveries, page } } });
    await server.register();
    expect((await cards()).Webhooks).toContain('99 % delivered in the last 24 hours');
    isTotalExact = false;
    expect((await cards()).Webhooks).not.toContain('delivered');
  });

  it('says how many more failures deactivate a webhook, until it works again', async () => {
    await server.act('settings', { notificationAttempts: '1', numberOfFailures: '5' });
    await server.register();
    server.answerWith(500);
    await server.publish();
    await server.settle();
    expect((await cards()).Webhooks).toBe(
      '1 webhook 1 failing 0 % delivered in the last 24 hours No delivery is pending.',
    );
    expect((await findings()).slice(0, 2)).toEqual([
      '1 thing needs attention.',
      expect.stringMatching(/^Webhook .* will be deactivated after 4 more failures\.$/),
    ]);
    server.answerWith(204);
    await server.publish();
    await server.settle();
    expect((await findings()).slice(0, 2)).toEqual([
      'Nothing needs attention.',
      expect.stringMatching(/^Webhook .* works again\. 4 more failures would deactivate it\.$/),
    ]);
  });
});

it('says why a job has failed, and resumes it', async () => {
  const failing = await startHooks({ env: { SIMULATED_FAILURES: 'SECURITY_DIRECTORY:1' } });
  await failing.post(
    '/admin/system/upgrades/upgrade',
    { versionManifest: '{"id":"pat_17022022_1250"}' },
    failing.administrator,
  );
  await failing.runtime.advance(3_600_000);
  const cookie = `steward_session=${failing.token('administrator')}`;
  const { body } = await failing.get('/admin', { accept: 'text/html', cookie });
  expect(body).toContain('1 thing needs attention.');
  expect(body).toMatch(
    /href="\/admin\/system\/jobs\/[^"/]+">The upgrade to 10\.9\.1\.1250 has failed\. [^<]*SECURITY_DIRECTORY/,
  );
  const [, action = '', fields = ''] =
    /<form class="action" method="post" action="([^"]*\/resume)">([^]*?)<\/form>/.exec(body) ?? [];
  const hidden = [...fields.matchAll(/name="(\w+)" value="([^"]*)"/g)];
  const form = Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value]));
  const resumed = await failing.post(action, form, { cookie });
  expect(resumed.statusCode).toBe(303);
  expect(resumed.headers.location).toMatch(/^\/admin\/system\/jobs\/[^/]+$/);
  await failing.close();
});
