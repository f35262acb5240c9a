// Tests of what receivers need: custom headers, plain signature keys and the legacy signature header.
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { entriesOf } from '../audit/kit.ts';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';

const hooks = perTest(() => startHooks({ env: { LEGACY_SIGNATURE_HEADER: 'X-Signature' } }));
afterEach(() => {
  vi.useRealTimers();
});

const base = '/admin/services/webhooks';
const value = 'a secret value';
const given = { 'X-Api-Key': value, Authorization: 'Bearer of good news' };
const masked = { 'X-Api-Key': '***', Authorization: '***' };
const created = { name: 'new', hookUrl: 'https://hooks.example/', changeTypes: '*' };
const json = (headers: Record<string, unknown>) => ({ headers: JSON.stringify(headers) });

async function send() {
  await hooks.deliver();
  return hooks.arrivals.at(-1)?.headers ?? {};
}

async function detailsOf(path: string, fields: Record<string, string>) {
  const response = await hooks.post(`${base}/${path}`, fields, hooks.administrator);
  expect(response.statusCode).toBe(400);
  return response.json<{ error: { details: string[] } }>().error.details;
}

describe('custom headers', () => {
  it('are shown without their values in answers, pages, the audit trail and logs', async () => {
    const { id } = await hooks.register(json(given));
    await send();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    const details = await hooks.read(`/${id}/deliveries/${delivery?.id ?? ''}`);
    expect(await hooks.read(`/${id}`)).toMatchObject({ headers: masked });
    expect(details).toMatchObject({ request: { headers: masked } });
    const pages = [`/${id}`, `/${id}/edit`, `/${id}/deliveries/${delivery?.id ?? ''}`].map((path) =>
      hooks.get(`${base}${path}?f=html`, hooks.administrator),
    );
    const entries = await entriesOf(hooks);
    expect(entries[0]?.changes).toContainEqual({
      field: 'headers',
      before: null,
      after: 'X-Api-Key: ***, Authorization: ***',
    });
    const shown = [JSON.stringify([details, entries]), ...hooks.logLines];
    for (const { body } of await Promise.all(pages)) shown.push(body);
    for (const secret of Object.values(given)) expect(shown.join('\n')).not.toContain(secret);
  });

  it('are hidden where a receiver returns them', async () => {
    const { id } = await hooks.register(json(given));
    const headers = {
      'x-api-key': value,
      'x-echo': `got ${value}`,
      'set-cookie': ['a=1', 'b=2'],
      server: 'test',
    };
    hooks.answerWith({ status: 200, headers, body: Buffer.from(`{"key":"${value}"}`) });
    await send();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    expect(await hooks.read(`/${id}/deliveries/${delivery?.id ?? ''}`)).toMatchObject({
      attempts: [
        {
          response: '{"key":"***"}',
          responseHeaders: { 'x-api-key': '***', 'x-echo': 'got ***', 'set-cookie': '***', server: 'test' },
        },
      ],
    });
  });

  it('are hidden where one contains another, and where the response is cut', async () => {
    const { id } = await hooks.register(json({ 'X-A': value, 'X-B': `${value} and its end` }));
    const begin = `${value} and its end ${'x'.repeat(984)}`;
    hooks.answerWith({ status: 200, headers: {}, body: Buffer.from(`${begin}${value}`) });
    await send();
    const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
    expect(delivery?.attempts[0]?.response).toBe(`*** ${'x'.repeat(984)}***`);
  });

  it('are replaced by edit, where *** keeps the stored value', async () => {
    const { id } = await hooks.register(json(given));
    await hooks.act(`${id}/edit`, { name: 'another' });
    expect(await send()).toMatchObject(given);
    await hooks.act(`${id}/edit`, json({ 'x-api-key': '***', 'X-Tenant': 'harbour' }));
    const sent = await send();
    expect(sent).toMatchObject({ 'x-api-key': value, 'X-Tenant': 'harbour' });
    expect(sent).not.toHaveProperty('Authorization');
    await hooks.act(`${id}/edit`, { headers: '' });
    expect(await hooks.read(`/${id}`)).toMatchObject({ headers: {} });
    const noStored = 'headers: the value *** keeps a stored one, but X-Tenant has none.';
    expect(await detailsOf(`${id}/edit`, json({ 'X-Tenant': '***' }))).toEqual([noStored]);
    expect(await detailsOf('create', { ...created, ...json({ 'X-Tenant': '***' }) })).toEqual([noStored]);
  });

  it('are not sent to another origin before a person has entered their values again', async () => {
    const { id } = await hooks.register({ hookUrl: 'https://hooks.example/in', ...json(given) });
    const again = (name: string) =>
      `headers: the value of ${name} must be entered again, or ${name} removed: hookUrl has another origin.`;
    const moved = { hookUrl: 'https://other.example/in' };
    expect(await detailsOf(`${id}/edit`, moved)).toEqual([again('X-Api-Key'), again('Authorization')]);
    expect(await detailsOf(`${id}/edit`, { ...moved, ...json({ ...masked, 'X-Api-Key': 'new' }) })).toEqual([
      again('Authorization'),
    ]);
    for (const hookUrl of ['http://hooks.example/in', 'https://hooks.example:8443/in'])
      expect(await detailsOf(`${id}/edit`, { hookUrl })).toHaveLength(2);

    await hooks.act(`${id}/edit`, { hookUrl: 'https://HOOKS.example:443/elsewhere' });
    expect(await send()).toMatchObject(given);
    await hooks.act(`${id}/edit`, { ...moved, ...json({ 'X-Api-Key': 'new value' }) });
    const sent = await send();
    expect(sent).toMatchObject({ 'X-Api-Key': 'new value' });
    expect(sent).not.toHaveProperty('Authorization');
    await hooks.act(`${id}/edit`, { hookUrl: 'https://third.example/', headers: '' });
    expect(await hooks.read(`/${id}`)).toMatchObject({ hookUrl: 'https://third.example/', headers: {} });
  });

  const valueRule = 'must be a text of 1 to 1024 printable ASCII characters without a blank at either end.';
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`X-${index}`, 'value']));

  it('must be an object of few texts, and are refused with all problems', async () => {
    const refused = [
      ['[]', 'must be a JSON object.'],
      [JSON.stringify(many), 'must have at most 16 entries.'],
      ['{"X-A":7}', `the value of "X-A" ${valueRule}`],
      ['{"X-A":""}', `the value of "X-A" ${valueRule}`],
      ['{"X-A":" a"}', `the value of "X-A" ${valueRule}`],
      ['{"X-A":"ä"}', `the value of "X-A" ${valueRule}`],
      ['{"X-A":"a\\r\\nb: c"}', `the value of "X-A" ${valueRule}`],
      [JSON.stringify({ 'X-A': 'x'.repeat(1025) }), `the value of "X-A" ${valueRule}`],
      ['{"X-A":"1","x-a":"2"}', 'the name "x-a" must not be repeated in other case.'],
      ['{"x-signature":"1"}', 'the name "x-signature" is reserved: LEGACY_SIGNATURE_HEADER uses it.'],
    ] as const;
    for (const [headers, problem] of refused)
      expect(await detailsOf('create', { ...created, headers }), headers).toEqual([`headers: ${problem}`]);
    expect(await detailsOf('create', { ...created, ...json({ 'X-A': '', 'x-a': '1' }) })).toEqual([
      `headers: the value of "X-A" ${valueRule}`,
      'headers: the name "x-a" must not be repeated in other case.',
    ]);
  });

  const refusedNames =
    'a b|a:b|ä|Host|content-length|Content-Anything|webhook-id|User-Agent|Expect|proxy-authorization|Connection|keep-alive|TE|Trailer|upgrade|Transfer-Encoding';

  it('may not have reserved or malformed names', async () => {
    for (const name of ['', 'x'.repeat(129), ...refusedNames.split('|')]) {
      const [problem, ...more] = await detailsOf('create', { ...created, ...json({ [name]: 'value' }) });
      expect(more, name).toEqual([]);
      expect(problem, name).toMatch(
        /^headers: the name ".*" must be an HTTP token of at most 128 characters that is/,
      );
    }
  });

  it('may have any name that is an HTTP token', async () => {
    await hooks.register({ headers: '{"__proto__":"one","x_1~":"two"}' });
    const sent = await send();
    expect(Object.entries(sent)).toContainEqual(['__proto__', 'one']);
    expect(sent['x_1~']).toBe('two');
  });
});

describe('signatures', () => {
  const plain = 'a plain key, not base64';

  it('use a plain key as it is, in the raw format of Standard Webhooks', async () => {
    vi.setSystemTime(hooks.runtime.now());
    const { signatureKey } = await hooks.register({ signatureKey: plain });
    expect(signatureKey).toBe(plain);
    const sent = await send();
    const body = hooks.arrivals.at(-1)?.body ?? '';
    expect(new Webhook(plain, { format: 'raw' }).verify(body, sent)).toMatchObject({ type: 'Tested' });
    expect(sent['X-Signature']).toBe(`sha256=${createHmac('sha256', plain).update(body).digest('base64')}`);
  });

  it('of the legacy header use the current key only', async () => {
    const { id } = await hooks.register();
    const { signatureKey } = await hooks.act<{ signatureKey: string }>(`${id}/rotateKey`);
    const sent = await send();
    const key = Buffer.from(signatureKey.slice('whsec_'.length), 'base64');
    const body = hooks.arrivals.at(-1)?.body ?? '';
    expect(sent['X-Signature']).toBe(`sha256=${createHmac('sha256', key).update(body).digest('base64')}`);
    expect(sent['webhook-signature']?.split(' ')).toHaveLength(2);
  });

  it('have no legacy header by default', async () => {
    const plainHooks = await startHooks();
    await plainHooks.register();
    await plainHooks.deliver();
    expect(Object.keys(plainHooks.arrivals[0]?.headers ?? {}).sort()).toEqual([
      'content-type',
      'user-agent',
      'webhook-id',
      'webhook-signature',
      'webhook-timestamp',
    ]);
  });

  it('of the legacy header replace a custom header of the same name', async () => {
    const { store } = hooks;
    const first = await startHooks({ store: { ...store, close: () => Promise.resolve() } });
    await first.register(json({ 'x-signature': 'of the receiver' }));
    await first.close();
    const sent = await send();
    expect(Object.keys(sent).filter((name) => /^x-signature$/i.test(name))).toEqual(['X-Signature']);
    expect(sent['X-Signature']).toMatch(/^sha256=/);
  });
});
