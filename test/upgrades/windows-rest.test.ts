// The maintenance windows over REST and on their page: reading, replacing, refusing, and the form without scripts.
import { describe, expect, it } from 'vitest';
import { type MaintenanceWindow, maintenanceWindows } from '../../src/upgrades/schedule/windows.ts';
import { perTest } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';
import { cookie, formOf, patch1, upgrades } from './page-kit.ts';

const config = `${upgrades}/config`;
const night: MaintenanceWindow = {
  days: ['sat', 'sun'],
  from: '22:00',
  to: '04:00',
  timeZone: 'Europe/Vienna',
};

const server = perTest(startServer);

const textOf = (page: string) => page.replace(/<[^>]*>/g, '').replace(/\s+/g, ' ');
const headers = () => ({ authorization: `Bearer ${server.token('administrator')}` });
const read = async () => (await server.get(config, headers())).json<{ windows: unknown; now: unknown }>();
const update = (windows: unknown) =>
  server.post(
    `${config}/update`,
    { windows: typeof windows === 'string' ? windows : JSON.stringify(windows) },
    headers(),
  );
const advanceTo = (time: string) => server.runtime.advance(Date.parse(time) - server.runtime.now());

describe('the windows', () => {
  it('are none at first, are replaced, and say whether one is open', async () => {
    const none = { windows: [], now: { open: true, closesAt: null } };
    expect(await read()).toEqual(none);
    await update([night]);
    await advanceTo('2026-01-01T12:00:00Z');
    const saturday = Date.parse('2026-01-03T21:00:00Z');
    expect(await read()).toEqual({ windows: [night], now: { open: false, opensAt: saturday } });
    await advanceTo('2026-01-03T21:00:00Z');
    const sunday = Date.parse('2026-01-04T03:00:00Z');
    expect(await read()).toEqual({ windows: [night], now: { open: true, closesAt: sunday } });
    await update([]);
    expect(await read()).toEqual(none);
  });

  it('are audited as text', async () => {
    await update([night]);
    await update([{ ...night, to: '05:00' }]);
    const { entries } = (await server.get('/admin/system/audit', headers())).json<{
      entries: { operation: string; changes: unknown }[];
    }>();
    expect(entries.slice(0, 2).map(({ changes }) => changes)).toEqual([
      [
        {
          field: 'windows[0]',
          before: 'sat, sun 22:00–04:00 Europe/Vienna',
          after: 'sat, sun 22:00–05:00 Europe/Vienna',
        },
      ],
      [{ field: 'windows[0]', before: null, after: 'sat, sun 22:00–04:00 Europe/Vienna' }],
    ]);
  });

  it('can be read but not replaced while a job runs', async () => {
    await server.post(`${upgrades}/upgrade`, { versionManifest: `{"id":"${patch1}"}` }, headers());
    expect((await server.get(config, headers())).statusCode).toBe(200);
    expect((await update([night])).statusCode).toBe(409);
    expect((await server.get(`${upgrades}/available`, headers())).statusCode).toBe(409);
  });
});

const timeRule = 'must be a time such as 22:00.';
const daysRule = 'must be an array of different days: mon, tue, wed, thu, fri, sat, sun.';
const zoneRule = 'must be the name of a time zone such as Europe/Vienna.';
const listRule = 'windows: must be a JSON array of at most 20 windows.';
const objectRule = 'must be an object with days, from, to and timeZone.';

describe('a list is refused', () => {
  it.each<[string, unknown, string[]]>([
    ['without text', '', ['windows: is required.']],
    ['that is no JSON', '[', [listRule]],
    ['that is an object', night, [listRule]],
    ['of 21', Array.from({ length: 21 }, () => night), [listRule]],
    ['of texts', ['sat'], [`windows: [0]: ${objectRule}`]],
    ['of nulls', [null], [`windows: [0]: ${objectRule}`]],
    ['with a time of one digit', [night, { ...night, from: '9:00' }], [`windows: [1].from: ${timeRule}`]],
    ['with 24:00', [{ ...night, to: '24:00' }], [`windows: [0].to: ${timeRule}`]],
    ['with a number as time', [{ ...night, to: 4 }], [`windows: [0].to: ${timeRule}`]],
    ['with a line break in a time', [{ ...night, to: '04:00\n' }], [`windows: [0].to: ${timeRule}`]],
    ['without days', [{ ...night, days: [] }], [`windows: [0].days: ${daysRule}`]],
    ['with a day twice', [{ ...night, days: ['sat', 'sat'] }], [`windows: [0].days: ${daysRule}`]],
    ['with a text as days', [{ ...night, days: 'sat' }], [`windows: [0].days: ${daysRule}`]],
    [
      'with an unknown day',
      [{ ...night, days: ['sat', 'Sunday'] }],
      ['windows: [0].days[1]: must be one of mon, tue, wed, thu, fri, sat, sun.'],
    ],
    ['with an offset', [{ ...night, timeZone: '+01:00' }], [`windows: [0].timeZone: ${zoneRule}`]],
    [
      'with an unknown zone',
      [{ ...night, timeZone: 'Europe/Atlantis' }],
      [`windows: [0].timeZone: ${zoneRule}`],
    ],
    [
      'with an unknown key',
      [{ ...night, name: 'Night' }],
      ['windows: [0]: must have no other keys than days, from, to and timeZone.'],
    ],
    [
      'with several problems',
      [{ days: ['sat'] }, { ...night, from: '', timeZone: 'UTC' }],
      [
        `windows: [0].from: ${timeRule}`,
        `windows: [0].to: ${timeRule}`,
        `windows: [0].timeZone: ${zoneRule}`,
        `windows: [1].from: ${timeRule}`,
      ],
    ],
  ])('%s', async (_, windows, details) => {
    await update([night]);
    const response = await update(windows);
    expect(response.statusCode).toBe(400);
    expect(response.json<{ error: { details: string[] } }>().error.details).toEqual(details);
    expect(server.store.read(maintenanceWindows)).toEqual([night]);
  });
});

describe('the page', () => {
  const show = async () => (await server.get(config, { accept: 'text/html', cookie })).body;
  const send = async (given: Record<string, string>) => {
    const form = formOf(await show(), '/config/update');
    return server.post(form?.action ?? '', { ...form?.fields, ...given }, { cookie, accept: 'text/html' });
  };
  const row = (index: number, values: Record<string, string>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [`windows.${index}.${name}`, value]));
  const nightRow = { sat: 'true', sun: 'true', from: '22:00', to: '04:00', timeZone: 'Europe/Vienna' };

  it('says that a job may start at any time, and adds, changes and removes windows without a script', async () => {
    expect(textOf(await show())).toContain('There are no windows: an upgrade may start at any time.');
    const added = await send(row(0, nightRow));
    expect([added.statusCode, added.headers.location]).toEqual([303, config]);
    expect(server.store.read(maintenanceWindows)).toEqual([night]);
    await send({ ...row(0, { ...nightRow, to: '05:00' }), ...row(1, { ...nightRow, timeZone: 'UTC' }) });
    expect(server.store.read(maintenanceWindows)).toEqual([
      { ...night, to: '05:00' },
      { ...night, timeZone: 'UTC' },
    ]);
    await send({
      ...row(0, { ...nightRow, remove: 'true' }),
      ...row(1, { ...nightRow, timeZone: 'UTC' }),
      ...row(2, { from: '', to: '', timeZone: 'UTC' }),
    });
    expect(server.store.read(maintenanceWindows)).toEqual([{ ...night, timeZone: 'UTC' }]);
    await send(row(0, { ...nightRow, remove: 'true' }));
    expect(server.store.read(maintenanceWindows)).toEqual([]);
  });

  it('are named beside the versions, with when the next one opens', async () => {
    const versions = async () =>
      textOf((await server.get(`${upgrades}/available`, { accept: 'text/html', cookie })).body);
    expect(await versions()).not.toContain('maintenance window is');
    await update([night]);
    expect(await versions()).toContain(
      'No maintenance window is open until Sat 03 Jan, 22:00 in Europe/Vienna. Maintenance windows',
    );
  });

  it('shows refused rows again, each with its problems', async () => {
    const response = await send({ ...row(0, nightRow), ...row(1, { mon: 'true', from: '08:00', to: '' }) });
    expect(response.statusCode).toBe(400);
    const rows = response.body.match(/<fieldset[\s\S]*?<\/fieldset>/g) ?? [];
    const words = ['Enter the time at which it ends, such as 04:00.', 'Choose a time zone.'];
    expect(rows.map((one) => words.map((text) => textOf(one).includes(text)))).toEqual([
      [false, false],
      [true, true],
      [false, false],
    ]);
    expect(textOf(response.body)).toContain(
      'Please correct these values. Window 2: enter the time at which it ends, such as 04:00.Window 2: choose a time zone.',
    );
    expect(response.body).not.toContain('[1]');
    expect(textOf(response.body)).toContain('There are no windows: an upgrade may start at any time.');
    expect(rows[1]).toContain('value="08:00"');
    expect(rows[1]).toMatch(/name="windows\.1\.mon" value="true" checked/);
    expect(server.store.read(maintenanceWindows)).toEqual([]);
  });

  it('shows when the next window opens, the week, and the present time', async () => {
    await update([night]);
    await advanceTo('2026-01-01T12:00:00Z');
    const closed = await show();
    expect(textOf(closed)).toContain(
      'No maintenance window is open until Sat 03 Jan, 22:00 in Europe/Vienna.',
    );
    const days = [...closed.matchAll(/<th scope="row">([^<]*)<[\s\S]*?aria-label="([^"]*)"/g)].map(
      ([, day, times]) => `${day}: ${times}`,
    );
    expect(days).toEqual([
      'Thu 01 Jan: Closed',
      'Fri 02 Jan: Closed',
      'Sat 03 Jan: 22:00 to 24:00',
      'Sun 04 Jan: 00:00 to 04:00, 22:00 to 24:00',
      'Mon 05 Jan: 00:00 to 04:00',
      'Tue 06 Jan: Closed',
      'Wed 07 Jan: Closed',
    ]);
    expect(closed.match(/class="now" x="780"/g)).toHaveLength(1);
    await advanceTo('2026-01-03T21:00:00Z');
    expect(textOf(await show())).toContain(
      'A maintenance window is open until Sun 04 Jan, 04:00 in Europe/Vienna',
    );
  });

  it('shows the system as read-only', async () => {
    await server.post('/admin/mode/update', { isReadOnly: 'true' }, headers());
    expect(await show()).toMatch(/<button class="primary" disabled>Save</);
  });
});
