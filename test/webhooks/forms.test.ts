// Tests of the forms about webhooks: event types as boxes, the key that is shown once, warnings, and the sentences
// about results.
import { describe, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';
import { all, browse, textOf } from './page-kit.ts';

const hooks = perTest(startHooks);

const { cookie, see, press } = browse(() => hooks);

/** Sends the form as a browser does, and returns its answer. */
async function send(path: string, fields: Record<string, string> = {}) {
  const token = /name="token" value="([^"]+)"/.exec(await see(all))?.[1] ?? '';
  return hooks.post(`${all}/${path}`, { f: 'html', token, ...fields }, { cookie: cookie() });
}

/** The sentence that the next page shows. */
function noticeOf({ headers }: Awaited<ReturnType<typeof send>>): unknown {
  const [, notice = ''] = /steward_notice=([^;]+)/.exec(String(headers['set-cookie'])) ?? [];
  return JSON.parse(Buffer.from(notice, 'base64url').toString());
}

const given = { name: 'One', hookUrl: 'https://hooks.example/in' };

describe('event types', () => {
  it('are all chosen at first in the form, and without the field', async () => {
    expect(await see(`${all}/create`)).toMatch(/id="changeTypes\.\*"[^>]*checked/);
    const answer = await hooks.post(`${all}/create`, given, hooks.administrator);
    expect(answer.json()).toMatchObject({ webhook: { changeTypes: ['*'] } });
  });

  it('are chosen by boxes, and others by name', async () => {
    const answer = await send('create', {
      ...given,
      'changeTypes.ServiceCreated': 'true',
      'changeTypes.UpgradeFailed': 'true',
      'changeTypes.': ' Odd , Even ',
    });
    expect(answer.statusCode).toBe(200);
    const { webhooks } = await hooks.read<{ webhooks: { id: string; changeTypes: string[] }[] }>('');
    expect(webhooks[0]?.changeTypes).toEqual(['ServiceCreated', 'UpgradeFailed', 'Odd', 'Even']);
    const edit = await see(`${all}/${webhooks[0]?.id}/edit`);
    expect(edit.match(/id="changeTypes\.\w+"[^>]*checked/g)).toHaveLength(2);
    expect(edit).toContain('name="changeTypes." value="Odd, Even"');
  });

  it('must not be empty, in a change either', async () => {
    const { id } = await hooks.register();
    for (const path of ['create', `${id}/edit`]) {
      const answer = await send(path, { ...given, name: 'Two', 'changeTypes.': '' });
      expect(answer.statusCode, path).toBe(400);
      expect(textOf(answer.body)).toContain('comma list of 1 to 100 change types');
    }
  });
});

describe('the filter of a redelivery', () => {
  it('may have dates in UTC', async () => {
    const { id } = await hooks.register({ active: 'false' });
    await hooks.publish();
    await hooks.act(`${id}/activate`);
    const sent = async (fields: Record<string, string>) =>
      (noticeOf(await send(`${id}/redeliver`, fields)) as { text: string }).text;
    expect(await sent({ from: '2026-01-01T00:00:01' })).toBe('No delivery matches.');
    expect(await sent({ to: '2025-12-31T23:59' })).toBe('No delivery matches.');
    expect(await sent({ from: '2026-01-01T00:00', to: '2026-01-01T00:00' })).toBe(
      '1 delivery is sent again.',
    );
  });

  it('is refused on the page that was left', async () => {
    const fields = {
      state: 'lost',
      from: '2026-02-30T00:00',
      to: '2026-01-01T24:00',
      next: `${all}/deliveries`,
    };
    const refused = await send('redeliver', fields);
    expect([refused.statusCode, refused.headers.location]).toEqual([303, fields.next]);
    const { text, isProblem } = noticeOf(refused) as { text: string; isProblem: boolean };
    expect(isProblem).toBe(true);
    expect(text).toContain('States must be a comma list of delivered, failed, discarded, missed.');
    for (const label of ['Created from', 'Created until'])
      expect(text).toContain(`${label} must be a time in UTC such as 2026-11-18T07:30,`);
    // Without a page that was left, the answer is an error.
    const alone = await send('redeliver', { ...fields, next: '' });
    expect([alone.statusCode, textOf(alone.body).includes('States must be')]).toEqual([400, true]);
  });
});

it('a page shows the key once, also with a page to continue with, and offers a ping of the new webhook', async () => {
  const created = await send('create', { ...given, changeTypes: '*', next: all });
  const { webhooks } = await hooks.read<{ webhooks: { id: string }[] }>('');
  const id = webhooks[0]?.id ?? '';
  const rotated = await send(`${id}/rotateKey`, { next: all });
  for (const { statusCode, body } of [created, rotated]) {
    expect(statusCode).toBe(200);
    expect(body.match(/whsec_/g)).toHaveLength(1);
    expect(body).toMatch(/data-copy="primary">whsec_/);
    expect(body).toContain(`href="${all}/${id}">Open One</a>`);
  }
  expect(rotated.body).toMatch(/The previous one signs too until <time datetime="2026-01-02T00/);
  expect(await see(`${all}/${id}/rotateKey`)).toMatch(/name="graceHours"[^>]* value="24"/);
  expect((await send(`${id}/rotateKey`)).body).not.toContain('>Open One</a>');
  expect((await send(`${id}/rotateKey`, { graceHours: '0' })).body).toContain(
    'The previous one no longer signs.',
  );
  expect(created.body).toContain('<button class="quiet">Ping (leaves this page)</button>');
  expect(await press(created.body, `${all}/${id}/ping`)).toBe(`${all}/${id}`);
});

it('Edit refuses the form of an older version', async () => {
  const { id } = await hooks.register();
  const version = /name="version" value="(\d+)"/.exec(await see(`${all}/${id}/edit`))?.[1] ?? '';
  await hooks.runtime.advance(1000);
  expect((await send(`${id}/edit`, { name: 'Theirs', version })).statusCode).toBe(303);
  const refused = await send(`${id}/edit`, { name: 'Mine', version });
  expect(refused.statusCode).toBe(409);
  expect(textOf(refused.body)).toContain('The webhook was changed meanwhile.');
  expect(textOf(refused.body)).toContain('Name is now: Theirs');
});

it('Edit shows whether the webhook is active, and does not send it', async () => {
  const { id } = await hooks.register({ headers: '{"X-Key":"geheimgeheim"}' });
  const page = await see(`${all}/${id}/edit`);
  expect(page).toContain('<option value="">Yes (unchanged)</option>');
  expect(page).toContain('{&quot;X-Key&quot;:&quot;***&quot;}');
  expect(page).not.toContain('geheim');
  await hooks.act(`${id}/deactivate`);
  expect(noticeOf(await send(`${id}/edit`, { name: 'Two', active: '', next: all }))).toEqual({
    text: 'The webhook Two was changed.',
    link: { name: 'Open Two', href: `${all}/${id}` },
  });
  expect(await hooks.read(`/${id}`)).toMatchObject({ name: 'Two', active: false });
});

it('a refused form shows the names of the headers again, and no values', async () => {
  const { id } = await hooks.register({ name: 'One', headers: '{"X-Key":"geheimgeheim"}' });
  const refused = async (headers: string) => {
    const responses = [
      await send(`${id}/edit`, { hookUrl: 'no address', headers }),
      await send('create', { ...given, hookUrl: 'no address', headers }),
    ];
    for (const { statusCode, body } of responses) {
      expect(statusCode).toBe(400);
      expect(body).not.toContain('geheim');
    }
    return /<textarea id="headers".*?>(.*?)<\/textarea>/s.exec(responses[0]?.body ?? '')?.[1];
  };
  expect(await refused('{"X-Key":"***","X-New":"geheimer"}')).toBe(
    '{&quot;X-Key&quot;:&quot;***&quot;,&quot;X-New&quot;:&quot;…&quot;}',
  );
  expect(await refused('{"X-Key": geheim')).toBe('…');
  expect(await refused('')).toBe('');
});

it('every operation says what it has done', async () => {
  const { id } = await hooks.register({ name: 'One' });
  hooks.answerWith(500);
  const said = async (path: string, fields: Record<string, string> = {}) =>
    (noticeOf(await send(path, { ...fields, next: all })) as { text: string }).text;
  expect(await said('publish', { changeType: 'Odd' })).toBe('Odd was published to 1 webhook.');
  expect(await said(`${id}/ping`)).toBe('Ping was sent to One.');
  expect(await said(`${id}/deactivate`)).toBe('One is deactivated. 1 pending delivery was discarded.');
  expect(await said('redeliver')).toBe('No delivery matches. 1 delivery to inactive webhooks was skipped.');
  expect(await said('publish', { changeType: 'Odd' })).toContain('No active webhook subscribes to it.');
  expect(await said('activateAll')).toBe('1 webhook was activated.');
  expect(await said(`${id}/redeliver`)).toBe('2 deliveries are sent again.');
  expect(await said('deactivateAll')).toMatch(/^1 webhook was deactivated\./);
  expect(await said(`${id}/activate`)).toBe('One is active. Its failures are counted from 0.');
  expect(await said('settings', { daysInPast: '3' })).toBe('The webhook settings were changed.');
  expect(await said(`${id}/delete`)).toBe('The webhook One was deleted.');
});

it('the forms of destructive operations name what is lost', async () => {
  const { id } = await hooks.register({ name: 'One' });
  await hooks.act('settings', { notificationElapsedTimeInSeconds: '60' });
  hooks.answerWith(500);
  await hooks.publish();
  await hooks.publish();
  await hooks.settle();
  expect(textOf(await see(`${all}/${id}/delete`))).toContain(
    'One is deleted together with 2 deliveries, 2 pending ones included. None of them can be redelivered.',
  );
  expect(textOf(await see(`${all}/deactivateAll`))).toContain(
    '1 active webhook (One) gets no more events. 2 pending deliveries will be discarded.',
  );
  expect(textOf(await see(`${all}/${id}/rotateKey`))).toContain('must know the new key');
  const refused = await send(`${id}/rotateKey`, { graceHours: 'two' });
  expect([refused.statusCode, textOf(refused.body)]).toEqual([
    400,
    expect.stringContaining('must know the new key'),
  ]);
});
