// The page at /control: its forms, without a script, and its size.
import { beforeEach, expect, it } from 'vitest';
import { startControl } from './kit.ts';

const server = await startControl();
const { control, get, raw, send, soap, url } = server;
beforeEach(() => control.reset());

/** Sends a form of the page as a browser does. */
const submit = (form: string, fields: Record<string, string> = {}) =>
  raw(`?do=${form}`, {
    method: 'POST',
    headers: { origin: url },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  });

/** Sends a form, and returns the page that it leads to. */
async function pageAfter(form: string, fields: Record<string, string> = {}): Promise<string> {
  const response = await submit(form, fields);
  expect([response.status, response.headers.get('location')]).toEqual([303, '/control']);
  const cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  return (await raw('', { headers: { cookie } })).text();
}

it('resets the server, and freezes, advances and releases its clock', async () => {
  expect(await pageAfter('freeze')).toContain('The clock is frozen.');
  const { now } = await control.clock();
  expect(await pageAfter('advance', { amount: '36', unit: 'hours' })).toContain(
    'The clock has advanced by 36 hours.',
  );
  expect(await control.clock()).toEqual({ now: now + 36 * 3_600_000, frozen: true });
  expect(await pageAfter('release')).toContain('The clock runs.');
  expect(await pageAfter('reset')).toContain('The server is in the state after its start.');
  expect((await control.clock()).now).toBeLessThanOrEqual(Date.now());
});

it.each(['', '-1', '1.5', '99999999'])('refuses to advance the clock by %j days', async (amount) => {
  const response = await submit('advance', { amount, unit: 'days' });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain(
    'must be a number of seconds, minutes, hours, days, at most ten years.',
  );
});

it('adds and deletes rules', async () => {
  const rule = { route: '/admin/mode', method: 'get', status: '404', delayMs: '0', error: '', times: '2' };
  const page = await pageAfter('rule', rule);
  expect(page).toContain('The rule is active.');
  expect(page).toContain('route /admin/mode, method GET → status 404, delayMs 0');
  await pageAfter('rule', { container: 'PORTAL_API', disconnect: 'true' });
  expect(await control.failures()).toEqual([
    {
      id: '1',
      match: { route: '/admin/mode', method: 'GET' },
      respond: { status: 404, delayMs: 0 },
      times: 2,
      hits: 0,
    },
    { id: '2', match: { container: 'PORTAL_API' }, respond: { disconnect: true }, hits: 0 },
  ]);
  await pageAfter('remove', { id: '1' });
  expect((await control.failures()).map(({ id }) => id)).toEqual(['2']);
  await pageAfter('remove');
  expect(await control.failures()).toEqual([]);
});

it('shows the problems of a rule beside its fields, with what was entered', async () => {
  const refused = async (fields: Record<string, string>) => {
    const response = await submit('rule', fields);
    expect(response.status).toBe(400);
    return response.text();
  };
  const page = await refused({ route: '/nothing', status: '500' });
  expect(page).toMatch(/<p class="problem" id="route-problem">Must be a path template of openapi\.json/);
  expect(page).toMatch(/<input\s+id="route"[^>]* value="\/nothing"/);
  expect(await refused({ status: 'many' })).toContain(
    '<p class="problem" id="status-problem">Must be an integer from 200 to 599.</p>',
  );
  expect(await control.failures()).toEqual([]);
});

it('lists the requests, and shows one with its messages, escaped', async () => {
  await soap('<b>&lt;script&gt;</b>');
  const response = await send('/control');
  const page = await response.text();
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(page).toContain('data-live="1"');
  expect(page).toContain('<a href="?request=1">POST /services</a>');
  const entry = await (await raw('?request=1')).text();
  expect(entry).toContain('&lt;b&gt;');
  expect(entry).not.toContain('<script>');
  expect((await raw('?request=9')).status).toBe(404);
  expect(await pageAfter('clear')).toContain('No program has sent a request yet.');
});

it('has at most 100 KB, whatever the rules and requests contain', async () => {
  const long = '\'"'.repeat(500);
  for (let rule = 0; rule < 30; rule += 1)
    await control.addFailure({ match: { route: `/admin/services/{${long}}` }, respond: { status: 500 } });
  for (let request = 0; request < 30; request += 1)
    await soap(`<GetFolders xmlns="urn:${request}">${'&apos;'.repeat(5000)}</GetFolders>`, {
      'x-long': long,
    });
  await get(`/admin?${new URLSearchParams({ q: long }).toString()}`);
  for (const path of ['', '?start=25&rules=20', '?request=1', '?request=31'])
    expect((await (await raw(path)).text()).length, path).toBeLessThan(100_000);
  expect(await (await raw('?start=25')).text()).toContain('Requests 26 to 31 of 31.');
});
