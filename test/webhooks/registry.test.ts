// Tests of creating, editing, listing and deleting webhooks over HTTP.
import { describe, expect, it } from 'vitest';
import type { Transaction } from '../../src/store/transaction.ts';
import { createWebhook, maxWebhooks } from '../../src/webhooks/registry.ts';
import { perTest } from '../kit/cleanup.ts';
import { bodyOf, startHooks } from '../kit/hooks.ts';
import { webhook } from '../store/definitions.ts';

const hooks = perTest(startHooks);

it('creates no more webhooks than a process can hold', () => {
  const full = { count: () => maxWebhooks } as unknown as Transaction;
  expect(() => createWebhook(full, webhook('a'), 1)).toThrow('There can be at most 100000 webhooks');
});

const base = '/admin/services/webhooks';
const good = { name: 'Ops', hookUrl: 'https://hooks.example/in?x=1', changeTypes: 'ServiceCreated, Tested' };
const create = (fields: Record<string, string>, path = base) =>
  hooks.post(`${path}/create`, fields, hooks.administrator);
const detailsOf = async (response: ReturnType<typeof create>) =>
  (await response).json<{ error: { details: string[] } }>().error.details;

it('create returns the webhook and, only then, the key', async () => {
  const response = await create(good);
  const { id, webhook, signatureKey, status } = response.json<Record<string, Record<string, unknown>>>();
  expect(status).toBe('success');
  expect(webhook?.id).toBe(id);
  expect(signatureKey).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(webhook).toEqual({
    id: webhook?.id,
    name: 'Ops',
    hookUrl: 'https://hooks.example/in?x=1',
    changeTypes: ['ServiceCreated', 'Tested'],
    service: null,
    active: true,
    contentType: 'application/json',
    bodyFormat: 'envelope',
    headers: {},
    createdAt: hooks.runtime.now(),
    updatedAt: hooks.runtime.now(),
    deactivatedAt: null,
    deactivatedBy: null,
    health: 'ok',
    undelivered: 0,
    undeliveredIsExact: true,
    failures: { count: 0, windowStart: null, windowEnd: null },
    previousKeyUntil: null,
  });
  expect(await hooks.read('')).toEqual({ webhooks: [webhook] });
  expect(await hooks.read(`/${String(webhook?.id)}`)).toEqual(webhook);
});

describe('create refuses', () => {
  it('any bad field', async () => {
    const refused: [Record<string, string>, string][] = [
      [{ name: '' }, 'name: is required.'],
      [{ name: 'x'.repeat(129) }, 'name: must be at most 128 characters.'],
      [{ hookUrl: 'ftp://hooks.example' }, 'hookUrl: must be an absolute http or https address'],
      [{ hookUrl: 'https://me:secret@hooks.example' }, 'hookUrl: must not contain a user name or password.'],
      [{ hookUrl: 'http://127.0.0.1/' }, 'hookUrl: must not point to the address 127.0.0.1'],
      [{ hookUrl: 'http://0x7f.1/' }, 'hookUrl: must not point to the address 127.0.0.1'],
      [{ hookUrl: 'http://[::1]/' }, 'hookUrl: must not point to the address ::1'],
      [{ hookUrl: 'http://localhost:9000/' }, 'hookUrl: must not point to localhost'],
      [{ hookUrl: 'http://hooks.example:0/' }, 'hookUrl: must not have the port 0.'],
      [{ name: 'two\nlines' }, 'name: must be one line.'],
      [
        { changeTypes: 'Good, not good' },
        'changeTypes: must be a JSON array or comma list of 1 to 100 change types',
      ],
      [{ changeTypes: '["Good", 7]' }, 'changeTypes: must be a JSON array or comma list'],
      [{ changeTypes: '[]' }, 'changeTypes: must be a JSON array or comma list'],
      [{ changeTypes: '["Good"' }, 'changeTypes: must be a JSON array or comma list'],
      [{ changeTypes: '{}' }, 'changeTypes: must be a JSON array or comma list'],
      [{ changeTypes: ',,' }, 'changeTypes: must be a JSON array or comma list'],
      [
        { changeTypes: Array.from({ length: 101 }, (_, i) => `T${i}`).join() },
        'changeTypes: must be a JSON array or comma list of 1 to 100',
      ],
      [{ service: 'Maps/None.MapServer' }, 'service: there is no service Maps/None.MapServer'],
      [{ service: 'Maps' }, 'service: there is no service Maps'],
      [{ service: '/World.MapServer' }, 'service: there is no service /World.MapServer'],
      [
        { signatureKey: ' a key with blanks ' },
        'that do not begin with whsec_, without a blank at either end.',
      ],
      [{ signatureKey: 'whsec_short' }, 'signatureKey: must be whsec_ and the base64 of 24 to 64 bytes'],
      [{ active: 'maybe' }, 'active: must be true or false.'],
      [
        { contentType: 'text/plain' },
        'contentType: must be one of application/json, application/x-www-form-urlencoded.',
      ],
    ];
    for (const [bad, problem] of refused) {
      const response = create({ ...good, ...bad });
      expect((await response).statusCode, problem).toBe(400);
      expect(await detailsOf(response)).toEqual([expect.stringContaining(problem)]);
    }
    expect(await hooks.read('')).toEqual({ webhooks: [] });
  });

  it('a name that differs from another one only in case', async () => {
    await create(good);
    expect((await create({ ...good, name: 'OPS' })).statusCode).toBe(409);
    const { id } = await hooks.register();
    const renamed = await hooks.post(`${base}/${id}/edit`, { name: 'ops' }, hooks.administrator);
    expect(renamed.statusCode).toBe(409);
  });
});

const hundred = Array.from({ length: 100 }, (_, index) => `T${index}`);

it.each<[string, string[]]>([
  [JSON.stringify(hundred), hundred],
  ['["A","B","A"]', ['A', 'B']],
  [' A , B,,A ', ['A', 'B']],
  ['*', ['*']],
  ['A,*', ['*']],
])('create reads the change types %s', async (given, kept) => {
  const { webhook } = (await create({ ...good, changeTypes: given })).json<{ webhook: unknown }>();
  expect(webhook).toMatchObject({ changeTypes: kept });
});

describe('the webhooks of a service', () => {
  const roads = '/admin/services/Maps/Roads.MapServer/webhooks';

  it('can be listed and created', async () => {
    await create(good);
    const { webhook } = (await create({ ...good, name: 'Roads' }, roads)).json<{
      webhook: { service: string };
    }>();
    expect(webhook.service).toBe('Maps/Roads.MapServer');
    const { webhooks } = (await hooks.get(roads, hooks.administrator)).json<{ webhooks: unknown[] }>();
    expect(webhooks).toEqual([webhook]);
    expect((await hooks.read<{ webhooks: unknown[] }>('')).webhooks).toHaveLength(2);
  });

  it('can still be edited after the service was deleted', async () => {
    const { id } = await hooks.register({ service: 'Maps/Roads.MapServer', changeTypes: 'ServiceDeleted' });
    await hooks.post('/admin/services/Maps/Roads.MapServer/delete', {}, hooks.administrator);
    await hooks.settle();
    expect(hooks.arrivals.map((sent) => bodyOf(sent).type)).toEqual(['ServiceDeleted']);
    await hooks.act(`${id}/edit`, { name: 'Was roads', service: 'Maps/Roads.MapServer' });
    expect(await hooks.read(`/${id}`)).toMatchObject({ name: 'Was roads', service: 'Maps/Roads.MapServer' });
  });
});

describe('edit', () => {
  it('changes the given fields only', async () => {
    const { id } = await hooks.register({ ...good, service: 'Maps/Roads.MapServer' });
    const before = await hooks.read(`/${id}`);
    await hooks.runtime.advance(1000);
    await hooks.act(`${id}/edit`, { hookUrl: 'https://hooks.example/new', contentType: '' });
    const updatedAt = hooks.runtime.now();
    expect(await hooks.read(`/${id}`)).toEqual({
      ...before,
      hookUrl: 'https://hooks.example/new',
      updatedAt,
    });
    await hooks.act(`${id}/edit`, { service: '' });
    expect(await hooks.read(`/${id}`)).toMatchObject({ service: null });
  });

  it('with active=true does not change an active webhook and its window', async () => {
    await hooks.act('settings', { notificationAttempts: '1' });
    const { id } = await hooks.register();
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.settle();
    await hooks.act(`${id}/edit`, { active: 'true' });
    expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 1 } });
    await hooks.act(`${id}/activate`);
    expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 0 } });
  });

  it('activates and deactivates', async () => {
    const { id } = await hooks.register();
    await hooks.act(`${id}/edit`, { active: 'false' });
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: false, deactivatedBy: 'administrator' });
    await hooks.act(`${id}/edit`, { active: 'true' });
    expect(await hooks.read(`/${id}`)).toMatchObject({
      active: true,
      deactivatedBy: null,
      deactivatedAt: null,
    });
  });

  it('refuses the same values as create', async () => {
    const { id } = await hooks.register();
    const response = hooks.post(`${base}/${id}/edit`, { hookUrl: 'http://10.0.0.1/' }, hooks.administrator);
    expect(await detailsOf(response)).toEqual([expect.stringContaining('hookUrl: must not point to')]);
  });
});

it('webhooks are listed oldest first', async () => {
  for (const name of ['one', 'two', 'three']) {
    await hooks.register({ name });
    await hooks.runtime.advance(1);
  }
  const { webhooks } = await hooks.read<{ webhooks: { name: string }[] }>('');
  expect(webhooks.map(({ name }) => name)).toEqual(['one', 'two', 'three']);
});

it('delete removes the webhook and its deliveries', async () => {
  const { id } = await hooks.register();
  await hooks.publish();
  await hooks.act(`${id}/delete`);
  expect(await hooks.read('')).toEqual({ webhooks: [] });
  for (const path of [`/${id}`, `/${id}/deliveries`]) {
    expect((await hooks.get(base + path, hooks.administrator)).statusCode).toBe(404);
  }
});
