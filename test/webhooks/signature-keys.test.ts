// Tests of signature keys over HTTP: they are shown once and rotated with a grace period.
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';

const hooks = perTest(startHooks);
beforeEach(() => {
  vi.setSystemTime(hooks.runtime.now());
});
afterEach(() => {
  vi.useRealTimers();
});

const base = '/admin/services/webhooks';

it('a key is neither shown again nor logged', async () => {
  const key = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
  const { id, signatureKey } = await hooks.register({ signatureKey: key });
  expect(signatureKey).toBe(key);
  const { signatureKey: next } = await hooks.act<{ signatureKey: string }>(`${id}/rotateKey`);
  await hooks.deliver();
  const shown = [await hooks.read(''), await hooks.read(`/${id}`), await hooks.deliveriesOf(id)];
  const pages = [await hooks.get(`${base}/${id}/edit?f=html`, hooks.administrator)].map(({ body }) => body);
  const everything = [JSON.stringify(shown), ...pages, ...hooks.logLines].join('\n');
  for (const secret of [key, next]) expect(everything).not.toContain(secret.slice('whsec_'.length));
});

describe('rotateKey', () => {
  const verifies = (key: string) => {
    const sent = hooks.arrivals.at(-1);
    try {
      new Webhook(key).verify(sent?.body ?? '', sent?.headers ?? {});
      return true;
    } catch {
      return false;
    }
  };

  it('signs with both keys until the grace period ends', async () => {
    const { id, signatureKey: previous } = await hooks.register();
    const answer = await hooks.act<{ signatureKey: string; previousKeyUntil: number }>(`${id}/rotateKey`, {
      graceHours: '2',
    });
    expect(answer.previousKeyUntil).toBe(hooks.runtime.now() + 2 * 3_600_000);
    expect(await hooks.read(`/${id}`)).toMatchObject({ previousKeyUntil: answer.previousKeyUntil });
    await hooks.deliver();
    expect([verifies(previous), verifies(answer.signatureKey)]).toEqual([true, true]);
    await hooks.runtime.advance(2 * 3_600_000);
    vi.setSystemTime(hooks.runtime.now());
    await hooks.deliver();
    expect([verifies(previous), verifies(answer.signatureKey)]).toEqual([false, true]);
    expect(await hooks.read(`/${id}`)).toMatchObject({ previousKeyUntil: null });
  });

  it('signs with each previous key for its whole grace period, even after another rotation', async () => {
    const { id, signatureKey: first } = await hooks.register();
    await hooks.act(`${id}/rotateKey`, { graceHours: '2' });
    await hooks.act(`${id}/rotateKey`, { graceHours: '1' });
    expect(await hooks.read(`/${id}`)).toMatchObject({
      previousKeyUntil: hooks.runtime.now() + 2 * 3_600_000,
    });
    await hooks.deliver();
    expect(verifies(first)).toBe(true);
  });

  it('keeps no key whose grace period has just ended in the place of one that signs', async () => {
    const { id, signatureKey: first } = await hooks.register();
    for (const graceHours of ['3', '1', '1', '1']) await hooks.act(`${id}/rotateKey`, { graceHours });
    await hooks.runtime.advance(3_600_000);
    vi.setSystemTime(hooks.runtime.now());
    await hooks.act(`${id}/rotateKey`, { graceHours: '1' });
    await hooks.deliver();
    expect(verifies(first)).toBe(true);
  });

  it('has a grace period of 24 hours by default, and none with 0', async () => {
    const { id, signatureKey: previous } = await hooks.register();
    expect(await hooks.act(`${id}/rotateKey`)).toMatchObject({
      previousKeyUntil: hooks.runtime.now() + 86_400_000,
    });
    expect(await hooks.act(`${id}/rotateKey`, { graceHours: '0' })).toMatchObject({ previousKeyUntil: null });
    await hooks.deliver();
    expect(verifies(previous)).toBe(false);
    const { statusCode } = await hooks.post(
      `${base}/${id}/rotateKey`,
      { graceHours: '169' },
      hooks.administrator,
    );
    expect(statusCode).toBe(400);
  });
});
