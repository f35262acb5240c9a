// The home page and what each role sees there.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Role } from '../../src/caller.ts';
import { type Hooks, startHooks } from '../kit/hooks.ts';

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
  const items = (await see(role)).split('<ul class="cards">')[1]?.split('</ul>')[0]?.split('</li>') ?? [];
  const found: Record<string, string> = {};
  for (const item of items) {
    const title = /<h2>(.*?)<\/h2>/.exec(item)?.[1];
    const rest = item.replace(/[\s\S]*<\/h2>/, '').replace(/<[^>]*>/g, ' ');
    if (title !== undefined) found[title] = rest.replace(/\s+/g, ' ').trim();
  }
  return found;
}

const upgrade = (id: string) =>
  server.post(
    '/admin/system/upgrades/upgrade',
    { versionManifest: JSON.stringify({ id }) },
    server.administrator,
  );

it('shows all cards to an administrator', async () => {
  await server.runtime.advance(2 * 3_600_000);
  expect(await cards()).toEqual({
    Version: '10.9.1 Full version 10.9.1.1234',
    Mode: 'Changes are accepted Change the mode',
    Catalog: '12 services In the root and 3 folders',
    'Last job': 'None yet Show available versions',
    'Pending deliveries': '0',
    'Deactivated webhooks': 'None because of failures No webhooks yet',
    Store: 'In memory Nothing survives a restart.',
    Executor: 'Simulated Jobs only wait; they change no real deployment.',
    Uptime: '2 hours Since 2026-01-01 00:00:00 UTC',
  });
});

it.each(['member', 'publisher'] as const)(
  'shows a %s the version, the mode and the visible services',
  async (role) => {
    expect(await cards(role)).toEqual({
      Version: '10.9.1 Full version 10.9.1.1234',
      Mode: 'Changes are accepted',
      Catalog: '11 services Visible to you, in the root and 2 folders',
    });
    expect(await see(role)).not.toContain('system/upgrades');
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
  expect((await cards()).Mode).toBe(`${text} Change the mode`);
});

describe('jobs', () => {
  it('shows the running job, then its outcome, with a link', async () => {
    const available = await server.get('/admin/system/upgrades/available', server.administrator);
    const [patch] = available.json<{ id: string; version: string; build: string }[]>();
    expect((await upgrade(patch?.id ?? '')).statusCode).toBe(200);
    const during = await cards();
    expect(during['Running job']).toMatch(
      /^0 of 4 deployments Upgrade from 10\.9\.1\.1234 to 10\.9\.1\.\d+ Since .* Show progress$/,
    );
    expect(during['Last job']).toBeUndefined();
    expect(during.Mode).toBe('Read-only An upgrade job is in progress.');
    expect(await see('administrator')).toContain('href="/admin/system/upgrades"');
    await server.runtime.advance(60_000);
    const after = await cards();
    expect(after['Last job']).toMatch(/^Succeeded Upgrade from 10\.9\.1\.1234 to .* Show messages$/);
    expect(after['Running job']).toBeUndefined();
    expect(after.Version).toBe(`${patch?.version} Full version ${patch?.version}.${patch?.build}`);
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
    expect((await cards())['Pending deliveries']).toBe('2 The oldest is 3 minutes old');
  });

  it('shows how many webhooks were deactivated because of failures, and how many others are inactive', async () => {
    server.answerWith(500);
    await server.act('settings', { notificationAttempts: '1', numberOfFailures: '1' });
    await server.register();
    await server.publish();
    await server.settle();
    await server.register({ active: 'false' });
    await server.register();
    expect((await cards())['Deactivated webhooks']).toBe(
      '1 because of failures 1 inactive for other reasons Show 3 webhooks',
    );
    expect(await see('administrator')).toContain('href="/admin/services/webhooks"');
  });
});
