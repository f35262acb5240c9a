// Operations on several webhooks at once, and the bar of the list that calls them.
import { describe, expect, it } from 'vitest';
import { entriesOf } from '../audit/kit.ts';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';
import { all, browse, textOf } from './page-kit.ts';

const hooks = perTest(startHooks);

const { see, press, cookie } = browse(() => hooks);

const registerThree = async () => {
  const registered = [];
  for (const name of ['Ada', 'Bo', 'Cy']) registered.push((await hooks.register({ name })).id);
  return registered as [string, string, string];
};

const send = (operation: string, ids: string) =>
  hooks.post(`${all}/${operation}`, { ids }, hooks.administrator);

const names = async () =>
  (await hooks.read<{ webhooks: { name: string; active: boolean }[] }>('')).webhooks
    .filter(({ active }) => active)
    .map(({ name }) => name);

describe('the operations', () => {
  it('deactivate, activate and delete the given webhooks, and count those that they change', async () => {
    const [one, two, three] = await registerThree();
    await hooks.act(`${three}/deactivate`);
    const changesOne = { status: 'success', webhooks: 1, discarded: 0 };
    expect(await hooks.act('deactivateAll', { ids: `${one},${three}` })).toEqual(changesOne);
    expect(await names()).toEqual(['Bo']);
    expect(await hooks.act('activateAll', { ids: `${one}, ${two}, ${one}` })).toEqual(changesOne);
    expect(await names()).toEqual(['Ada', 'Bo']);
    expect(await hooks.act('delete', { ids: [one, three].join(',') })).toMatchObject({ webhooks: 2 });
    expect((await hooks.get(`${all}/${one}`, hooks.administrator)).statusCode).toBe(404);
    expect(await names()).toEqual(['Bo']);
  });

  it('count the pending deliveries that are discarded', async () => {
    const [one, two] = await registerThree();
    await hooks.act('settings', { notificationElapsedTimeInSeconds: '60' });
    hooks.answerWith(500);
    await hooks.deliver();
    expect(await hooks.act('deactivateAll', { ids: one })).toMatchObject({ discarded: 1 });
    expect(await hooks.act('delete', { ids: `${one},${two}` })).toMatchObject({ webhooks: 2, discarded: 1 });
  });

  it.each(['activateAll', 'deactivateAll', 'delete', 'redeliver'])(
    '%s changes nothing if an id is unknown, and names it',
    async (operation) => {
      const [one] = await registerThree();
      const refused = await send(operation, `${one},nobody,${'x'.repeat(300)}`);
      expect(refused.statusCode).toBe(400);
      const { details } = refused.json<{ error: { details: string[] } }>().error;
      expect(details).toHaveLength(2);
      expect(details[0]).toBe('ids: there is no webhook nobody.');
      expect(await names()).toEqual(['Ada', 'Bo', 'Cy']);
    },
  );

  it('refuse a list without an id, and one of more than 50, and leave one audit entry that names each webhook', async () => {
    const ids: string[] = [];
    for (let count = 0; count < 51; count += 1) ids.push((await hooks.register()).id);
    for (const operation of ['activateAll', 'deactivateAll', 'redeliver', 'delete']) {
      const before = await hooks.read('');
      for (const given of [',', ids.join(',')]) {
        const refused = await send(operation, given);
        expect(refused.statusCode).toBe(400);
        expect(refused.body).toContain('ids: must be a comma list of 1 to 50 ids.');
      }
      expect(await hooks.read('')).toEqual(before);
      expect((await send(operation, ids.slice(0, 50).join(','))).statusCode).toBe(200);
    }
    expect((await hooks.read<{ webhooks: { id: string }[] }>('')).webhooks).toMatchObject([{ id: ids[50] }]);
    const [entry] = await entriesOf(hooks);
    expect(entry).toMatchObject({ operation: 'services/webhooks/delete', target: 'services/webhooks' });
    const fields = entry?.changes.map(({ field }) => field) ?? [];
    for (const id of ids.slice(0, 50)) expect(fields).toContain(`webhooks/${id}.name`);
  });

  it('activate and deactivate all webhooks without ids, but delete none', async () => {
    await registerThree();
    expect(await hooks.act('deactivateAll', { ids: '' })).toMatchObject({ webhooks: 3 });
    expect(await hooks.act('activateAll')).toMatchObject({ webhooks: 3 });
    expect((await send('delete', '')).statusCode).toBe(400);
    expect(await names()).toEqual(['Ada', 'Bo', 'Cy']);
  });

  it('of a service know only its webhooks', async () => {
    const service = { serviceName: 'New', type: 'T' };
    await hooks.post('/admin/services/createService', service, hooks.administrator);
    const [one] = await registerThree();
    const { id } = await hooks.register({ name: 'Di', service: 'New.T' });
    const send = (ids: string) =>
      hooks.post('/admin/services/New.T/webhooks/deactivateAll', { ids }, hooks.administrator);
    expect((await send(`${id},${one}`)).body).toContain(`ids: there is no webhook ${one}.`);
    expect(await names()).toEqual(['Ada', 'Bo', 'Cy', 'Di']);
    expect((await send(id)).json()).toMatchObject({ webhooks: 1 });
    expect(await names()).toEqual(['Ada', 'Bo', 'Cy']);
  });

  it('redeliver only to the given webhooks', async () => {
    const [one, two, three] = await registerThree();
    await hooks.act('settings', { notificationAttempts: '1', numberOfFailures: '100' });
    hooks.answerWith(500, 500, 500, 200);
    await hooks.deliver();
    await hooks.act('deactivateAll', { ids: two });
    expect(await hooks.act('redeliver', { ids: `${one},${two}` })).toEqual({
      status: 'success',
      matched: 1,
      skipped: 1,
    });
    await hooks.runtime.advance(60_000);
    expect((await hooks.deliveriesOf(one)).deliveries.map(({ state }) => state)).toEqual([
      'delivered',
      'failed',
    ]);
    expect((await hooks.deliveriesOf(three)).total).toBe(1);
  });
});

describe('the list', () => {
  /** Presses a button of the bar, as a browser without a script does. */
  function pressBulk(page: string, operation: string, ids: readonly string[]) {
    const [, bar = ''] = page.split('<form id="bulk"');
    const fields: Record<string, string> = {};
    for (const [, name = '', value = ''] of bar
      .slice(0, bar.indexOf('</form>'))
      .matchAll(/<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?/g))
      fields[name] = value.replaceAll('&amp;', '&');
    for (const id of ids) {
      expect(page).toContain(`<input type="checkbox" form="bulk" name="ids.${id}"`);
      fields[`ids.${id}`] = 'on';
    }
    // The address of a page that asks must not contain the token.
    expect(fields).not.toHaveProperty('token');
    const button = new RegExp(`<button [^>]*formaction="${all}/${operation}"[^>]*>`).exec(bar)?.[0] ?? '';
    const token = /name="token" value="([^"]*)"/.exec(button)?.[1];
    if (!button.includes('formmethod="post"'))
      return see(`${all}/${operation}?${new URLSearchParams(fields).toString()}`);
    return hooks.post(`${all}/${operation}`, { ...fields, token: token ?? '' }, { cookie: cookie() });
  }

  it('activates the selected webhooks with one button, and comes back', async () => {
    const [one, two] = await registerThree();
    await hooks.act('deactivateAll', { ids: `${one},${two}` });
    const page = await see(`${all}?q=hooks&sort=name`);
    const answer = await pressBulk(page, 'activateAll', [one, two]);
    expect(answer).toMatchObject({ statusCode: 303, headers: { location: `${all}?q=hooks&sort=name` } });
    expect(await names()).toEqual(['Ada', 'Bo', 'Cy']);
  });

  it('asks before it deletes, and names the number and the webhooks', async () => {
    const [one, two] = await registerThree();
    await hooks.deliver();
    const page = (await pressBulk(await see(all), 'delete', [one, two])) as string;
    expect(textOf(page)).toContain(
      '2 webhooks (Ada, Bo) are deleted together with their deliveries. None of them can be redelivered.',
    );
    expect(await names()).toEqual(['Ada', 'Bo', 'Cy']);
    expect(await press(page, `${all}/delete`)).toBe(all);
    expect(await names()).toEqual(['Cy']);
  });

  it('has no bar while the system is read-only', async () => {
    await registerThree();
    expect(await see(all)).toContain('form="bulk"');
    await hooks.post('/admin/mode/update', { isReadOnly: 'true' }, hooks.administrator);
    expect(await see(all)).not.toContain('form="bulk"');
  });

  it('asks before it deactivates', async () => {
    const [one, two] = await registerThree();
    const page = (await pressBulk(await see(all), 'deactivateAll', [one, two])) as string;
    expect(textOf(page)).toContain('2 active webhooks (Ada, Bo) get no more events. No delivery is pending.');
    expect(await press(page, `${all}/deactivateAll`)).toBe(all);
    expect(await names()).toEqual(['Cy']);
    const none = (await pressBulk(await see(all), 'deactivateAll', [])) as string;
    expect(textOf(none)).toContain('No webhook is selected.');
  });
});
