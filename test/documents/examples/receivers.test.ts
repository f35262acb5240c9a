// Tests the webhook receivers in examples/: they accept what Steward delivers, and refuse forged and old deliveries.
import { describe, expect, it } from 'vitest';
import { makeSignatureKey, signBody } from '../../../src/webhooks/sending/signature.ts';
import { startProcess } from '../../kit/process.ts';
import { startSteward } from '../../kit/steward.ts';
import { pathOf, patience, succeeds } from './kit.ts';

const receivers = [
  { name: 'receiver-node', command: [process.execPath, pathOf('examples/receiver-node/receiver.js')] },
  { name: 'receiver-python', command: ['python3', pathOf('examples/receiver-python/receiver.py')] },
].map((receiver) => ({ ...receiver, isMissing: !succeeds(receiver.command[0] ?? '', '--version') }));

const key = makeSignatureKey(Buffer.alloc(32, 1));
const otherKey = makeSignatureKey(Buffer.alloc(24, 2));
const now = () => Math.floor(Date.now() / 1000);

type Delivery = { id: string; timestampSeconds: number; body: string; keys: string[] };

async function startReceiver(command: readonly string[], keys: string) {
  const { output } = startProcess({ SIGNATURE_KEYS: keys }, {}, { command });
  await expect.poll(() => output.out).toMatch(/^listening on http:\S+\n/);
  const address = /^listening on (\S+)/.exec(output.out)?.[1] ?? '';

  /** Sends a signed delivery. `sent` replaces headers and the body after signing. Returns the status of the answer. */
  async function deliver(
    delivery: Partial<Delivery> = {},
    sent: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<number> {
    const { id = 'event-1', timestampSeconds = now(), keys = [key] } = delivery;
    const body = delivery.body ?? JSON.stringify({ id, type: 'Tested', data: {} });
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': signBody({ id, timestampSeconds, body, keys }),
      ...sent.headers,
    };
    return (await fetch(address, { method: 'POST', headers, body: sent.body ?? body })).status;
  }

  return { address, deliver, lines: () => output.out.trim().split('\n').slice(1) };
}

describe.each(receivers)('$name', ({ command, isMissing }) => {
  it.skipIf(isMissing)(
    'accepts what Steward delivers: JSON, a form, and after a key rotation',
    patience,
    async () => {
      const steward = await startSteward({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
      const receiver = await startReceiver(command, `${otherKey} ${key}`);
      const register = (contentType: string, changeTypes: string, signatureKey: string) => {
        const fields = { name: changeTypes, hookUrl: `${receiver.address}/in`, contentType, changeTypes };
        return steward.act<{ webhook: { id: string } }>('services/webhooks/create', {
          ...fields,
          signatureKey,
        });
      };
      const { webhook } = await register('application/json', 'Rotated', key);
      await register('application/json', 'Json', key);
      await register('application/x-www-form-urlencoded', 'Form', otherKey);
      // The receiver has only the old key, which signs beside the new one during the grace period.
      await steward.act(`services/webhooks/${webhook.id}/rotateKey`, { graceHours: '1' });
      const data = { berth: 7, name: 'Süd & West=1+1 %' };
      for (const changeType of ['Json', 'Form', 'Rotated'])
        await steward.act('services/webhooks/publish', {
          changeType,
          eventId: `of-${changeType}`,
          payload: JSON.stringify(data),
        });
      await expect.poll(receiver.lines).toHaveLength(3);
      const events = receiver.lines().map((line) => /^accepted (\S+) (\S+) (.*)$/.exec(line)?.slice(1) ?? []);
      expect(events.map(([type, id]) => [type, id]).sort()).toEqual([
        ['Form', 'of-Form'],
        ['Json', 'of-Json'],
        ['Rotated', 'of-Rotated'],
      ]);
      for (const [, , json = ''] of events) expect(JSON.parse(json)).toEqual(data);
      await steward.act(`services/webhooks/${webhook.id}/rotateKey`, { graceHours: '0' });
      await steward.act('services/webhooks/publish', { changeType: 'Rotated' });
      await expect.poll(receiver.lines).toContain('refused');
    },
  );

  it.skipIf(isMissing)('refuses forged and old deliveries', patience, async () => {
    const { deliver, lines, address } = await startReceiver(command, key);
    const tampered = { body: JSON.stringify({ id: 'event-1', type: 'Tested', data: { paid: true } }) };
    const old = now() - 310;
    expect(await deliver({}, tampered)).toBe(401);
    expect(await deliver({ keys: [otherKey] })).toBe(401);
    expect(await deliver({ timestampSeconds: old })).toBe(401);
    expect(await deliver({ timestampSeconds: now() + 310 })).toBe(401);
    // An old delivery with a new time, another id, or another version of the signature.
    expect(
      await deliver({ timestampSeconds: old }, { headers: { 'webhook-timestamp': String(now()) } }),
    ).toBe(401);
    expect(await deliver({}, { headers: { 'webhook-id': 'event-2' } })).toBe(401);
    expect(await deliver({}, { headers: { 'webhook-id': '' } })).toBe(401);
    for (const signature of ['', 'v1,', 'v1', 'v1,AAAA', 'v2,AAAA ', 'v1,é'])
      expect(await deliver({}, { headers: { 'webhook-signature': signature } }), signature).toBe(401);
    for (const timestamp of ['', 'NaN', '1e9', '-1', `${now()}.5`, '²'])
      expect(await deliver({}, { headers: { 'webhook-timestamp': timestamp } }), timestamp).toBe(401);
    expect((await fetch(address, { method: 'POST', body: '{}' })).status).toBe(401);
    expect(await deliver({}, { body: 'a'.repeat(1024 * 1024 + 1) })).toBe(413);
    expect([405, 501]).toContain((await fetch(address)).status);
    expect(await deliver({ id: 'genuine' })).toBe(204);
    await expect.poll(() => lines().at(-1)).toBe('accepted Tested genuine {}');
    expect(new Set(lines().slice(0, -1))).toEqual(new Set(['refused']));
  });

  it.skipIf(isMissing)('handles an event once, however often it is delivered', patience, async () => {
    const { deliver, lines } = await startReceiver(command, key);
    expect(await deliver({ timestampSeconds: now() - 200, keys: [otherKey, key] })).toBe(204);
    expect(await deliver()).toBe(204);
    expect(await deliver({ id: 'event-2', body: 'not JSON' })).toBe(500);
    expect(await deliver({ id: 'event-3' })).toBe(204);
    await expect.poll(lines).toEqual(['accepted Tested event-1 {}', 'accepted Tested event-3 {}']);
  });

  it.skipIf(isMissing)('does not start without a key', patience, async () => {
    const { exited, output } = startProcess({ SIGNATURE_KEYS: 'whsec' }, {}, { command });
    expect(await exited).toBe(1);
    expect(output.err).toContain('SIGNATURE_KEYS must hold at least one key');
  });
});
