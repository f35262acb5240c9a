// The home page: what it finds, counts and leads to. test/pages has its texts.
import { describe, expect, it } from 'vitest';
import type { Role } from '../../src/lib/caller.ts';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';

const server = perTest(startHooks);

async function see(role: Role) {
  const cookie = `steward_session=${server.token(role)}`;
  const page = await server.get('/admin', { accept: 'text/html', cookie });
  expect(page.statusCode).toBe(200);
  return page.body;
}

const textOf = (markup: string) =>
  markup
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();

/** The text of each fact, by its title. */
async function facts(role: Role = 'administrator') {
  const items = (await see(role)).split('<dl class="facts')[1]?.split('</dl>')[0] ?? '';
  const found = [...items.matchAll(/<dt>(.*?)<\/dt>([^]*?)<\/dd>/g)];
  return Object.fromEntries(found.map(([, title = '', rest = '']) => [title, textOf(rest)]));
}

/** The sentence about the health of the system, and its reasons with their buttons. */
async function findings() {
  const part = (await see('administrator')).split('id="health"')[1]?.split('</div>')[0] ?? '';
  const [, sentence = ''] = /<strong>([^<]*)</.exec(part) ?? [];
  return [sentence, ...[...part.matchAll(/<li[^>]*>([^]*?)<\/li>/g)].map(([, item = '']) => textOf(item))];
}

it('shows the last changes to administrators only', async () => {
  const changesOf = async (role: Role) => {
    const part = (await see(role)).split('id="changes"')[1]?.split('</section>')[0] ?? '';
    return [...part.matchAll(/<li[^>]*>([^]*?)<\/li>/g)].map(([, item = '']) => textOf(item));
  };
  const publisher = { authorization: `Bearer ${server.token('publisher')}` };
  await server.post('/admin/services/createFolder', { folderName: 'Own' }, publisher);
  await server.register({ name: 'Billing' });
  expect(await changesOf('administrator')).toEqual([
    'just now administrator created the webhook Billing',
    'just now publisher created the folder Own',
  ]);
  for (const role of ['publisher', 'member'] as const) expect(await see(role)).not.toContain('id="changes"');
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
  expect(await find('audit')).toEqual(['Pages', 'Audit trail']);
  expect(await find('publisher')).toEqual(['Users', 'publisher']);
  expect(await find('<nothing>')).toEqual([]);
});

it('names the first steps, until each is done', async () => {
  const steps = async () => {
    const part = (await see('administrator')).split('<h2>First steps</h2>')[1]?.split('</ul>')[0] ?? '';
    return [...part.matchAll(/<a [^>]*>([^<]*)</g)].map(([, text]) => text);
  };
  // The users of the test server are there already.
  expect(await steps()).toEqual(['Publish a service', 'Create a webhook']);
  await server.register();
  expect(await steps()).toEqual(['Publish a service']);
  const fields = { serviceName: 'Own', type: 'MapServer' };
  await server.post('/admin/services/createService', fields, server.administrator);
  expect(await steps()).toEqual([]);
});

describe('webhooks', () => {
  it('offers to repair three webhooks with one button each, and counts the others', async () => {
    server.answerWith(503);
    await server.act('settings', { notificationAttempts: '1', numberOfFailures: '1' });
    for (const name of 'abcdefghijkl')
      await server.register({ name, hookUrl: `https://${name}.example.com/` });
    await server.deliver();
    const isOff = (name: string): unknown =>
      expect.stringMatching(
        new RegExp(
          `^${name} was deactivated just now : 503\\. 12 events are waiting\\. Activate and redeliver 12 events$`,
        ),
      );
    expect(await findings()).toEqual([
      '12 things need attention.',
      ...['a', 'b', 'c'].map(isOff),
      '9 webhooks more were deactivated after too many failures: d, e, f and 6 more.',
    ]);
    const page = await see('administrator');
    expect(page).toContain('href="/admin/services/webhooks?health=deactivated"');
    expect(page).toMatch(/<bdi>l<\/bdi><\/a> was deactivated after too many failures/);
  });

  it('names a webhook whose last delivery failed, until a ping succeeds', async () => {
    const { id } = await server.register({ name: 'pinged' });
    server.answerWith(500);
    await server.act(`${id}/ping`);
    await server.settle();
    expect(await findings()).toContain('pinged did not accept the last delivery.');
    const cookie = `steward_session=${server.token('administrator')}`;
    const page = await server.get(`/admin/services/webhooks/${id}`, { accept: 'text/html', cookie });
    expect(page.body).toContain(
      'It was a ping, which does not count towards the deactivation of the webhook.',
    );
    server.answerWith(204);
    await server.act(`${id}/ping`);
    await server.settle();
    expect((await findings())[0]).toBe('Everything works.');
  });

  it('names a webhook that did not get all events, until they are redelivered or dismissed', async () => {
    const { id } = await server.register({ name: 'late', active: 'false' });
    await server.publish();
    await server.act(`${id}/activate`);
    expect((await findings()).slice(0, 2)).toEqual([
      '1 thing needs attention.',
      'late did not get all events.',
    ]);
    expect((await facts()).Webhooks).toBe('1 0 ok');
    const counter = /Webhooks <span class="count">1</;
    expect(await see('administrator')).toMatch(counter);
    await server.act(`${id}/redeliver`);
    await server.settle();
    expect((await findings())[0]).toBe('Everything works.');
    expect(await see('administrator')).not.toMatch(counter);
    await server.act(`${id}/deactivate`);
    await server.publish();
    await server.act(`${id}/activate`);
    expect((await findings())[0]).toBe('1 thing needs attention.');
    await server.act(`${id}/dismiss`);
    expect((await findings())[0]).toBe('Everything works.');
  });

  it('says how many more failures deactivate a webhook, and until when, but not of one that works again', async () => {
    await server.act('settings', { notificationAttempts: '1', numberOfFailures: '5' });
    await server.register({ name: 'weak' });
    server.answerWith(500);
    await server.publish();
    await server.deliver();
    expect((await findings()).slice(1)).toEqual([
      expect.stringMatching(/^weak has 2 of 5 failures\. 3 more until .* UTC deactivate it\.$/),
    ]);
    server.answerWith(204);
    await server.publish();
    await server.deliver();
    expect(await findings()).toEqual(['1 thing needs attention.', 'weak did not get all events.']);
  });
});
