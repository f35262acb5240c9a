// Tests of signatures, verified with the library of Standard Webhooks, and of signature keys.
// FUZZ_RUNS sets the number of random deliveries (default 500). fast-check prints its seed on failure.
import fc from 'fast-check';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  isSignatureKey,
  makeSignatureKey,
  signBody,
  signatureKeyBytes,
  signatureKeyRule,
} from '../../src/webhooks/sending/signature.ts';

const numRuns = Number(process.env.FUZZ_RUNS ?? 500);

const ids = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
const timestamps = fc.integer({ min: 1, max: 4_102_444_800 });
const bodies = fc.oneof(
  fc.json(),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary', maxLength: 300 }),
);
const keys = fc
  .uint8Array({ minLength: 24, maxLength: 64, size: 'max' })
  .map((bytes) => makeSignatureKey(Buffer.from(bytes)));

type Sent = { id: string; timestampSeconds: number; body: string };
const deliveries: fc.Arbitrary<Sent> = fc.record({ id: ids, timestampSeconds: timestamps, body: bodies });

/** Verifies the signature; throws if it is not valid. */
function receive({ id, timestampSeconds, body }: Sent, signature: string, key: string): void {
  // The library refuses timestamps that differ by more than five minutes.
  vi.setSystemTime(timestampSeconds * 1000);
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signature,
  };
  new Webhook(key).verify(body, headers, { jsonParse: false });
}

describe('the library of Standard Webhooks', { timeout: 60_000 + numRuns * 10 }, () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
  afterEach(() => void vi.useRealTimers());

  it('accepts a delivery with any body, id, time and key', () => {
    const property = fc.property(deliveries, keys, (sent, key) => {
      receive(sent, signBody({ ...sent, keys: [key] }), key);
    });
    fc.assert(property, { numRuns });
  });

  it('accepts a delivery with either key during a rotation, and with no other key', () => {
    const three = fc.uniqueArray(keys, { minLength: 3, maxLength: 3 });
    const property = fc.property(deliveries, three, (sent, [previous = '', current = '', other = '']) => {
      const signature = signBody({ ...sent, keys: [current, previous] });
      receive(sent, signature, previous);
      receive(sent, signature, current);
      expect(() => receive(sent, signature, other)).toThrow(WebhookVerificationError);
    });
    fc.assert(property, { numRuns });
  });
});

it('there is one signature per key, in the order of the keys', () => {
  const sent = { id: 'a', timestampSeconds: 1, body: '{}' };
  const [first, second] = [24, 64].map((length) => makeSignatureKey(Buffer.alloc(length, 7))) as [
    string,
    string,
  ];
  const alone = [first, second].map((key) => signBody({ ...sent, keys: [key] }));
  expect(signBody({ ...sent, keys: [first, second] })).toBe(alone.join(' '));
  for (const signature of alone) expect(signature).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
});

describe('isSignatureKey', () => {
  const base64Of = (bytes: number) => Buffer.alloc(bytes, 0xfb).toString('base64');
  const good = base64Of(32);

  it.each([
    ['the shortest', `whsec_${base64Of(24)}`, true],
    ['one byte of padding', `whsec_${base64Of(26)}`, true],
    ['two bytes of padding', `whsec_${base64Of(25)}`, true],
    ['the longest', `whsec_${base64Of(64)}`, true],
    ['the characters + and /', `whsec_${'+/'.repeat(16)}`, true],
    ['too short', `whsec_${base64Of(23)}`, false],
    ['too long', `whsec_${base64Of(65)}`, false],
    ['nothing', '', false],
    ['nothing but the prefix', 'whsec_', false],
    ['the shortest plain key', 'eight ch', true],
    ['the longest plain key', 'x'.repeat(256), true],
    ['a plain key that is too short', 'seven c', false],
    ['a plain key that is too long', 'x'.repeat(257), false],
    ['a plain key with a blank after', 'eight ch ', false],
    ['a plain key with a control character', 'eight\tch', false],
    ['a plain key with another character', 'eight chä', false],
    ['the prefix twice', `whsec_whsec_${good}`, false],
    ['not base64', `whsec_${'!'.repeat(44)}`, false],
    ['one character that is not base64', `whsec_${good.replace('+', '*')}`, false],
    ['one such character at the end', `whsec_${base64Of(24)}*`, false],
    ['the base64url alphabet', `whsec_${good.replaceAll('+', '-').replaceAll('/', '_')}`, false],
    ['missing padding', `whsec_${good.replace(/=+$/, '')}`, false],
    ['too much padding', `whsec_${base64Of(24)}=`, false],
    ['padding in the middle', `whsec_${base64Of(25)}${base64Of(25)}`, false],
    ['bits beyond the last byte', `whsec_${'A'.repeat(42)}B=`, false],
    ['a blank before', ` whsec_${good}`, false],
    ['a blank after', `whsec_${good} `, false],
    ['a line break after', `whsec_${good}\n`, false],
    ['a blank after the prefix', `whsec_ ${good}`, false],
    ['a blank within', `whsec_${good.slice(0, 20)} ${good.slice(20)}`, false],
  ])('%s', (_name, text, expected) => {
    expect(isSignatureKey(text)).toBe(expected);
  });

  it('accepts generated keys of every allowed length', () => {
    for (let bytes = 0; bytes <= 100; bytes += 1) {
      const key = makeSignatureKey(Buffer.alloc(bytes, 0xfb));
      expect(isSignatureKey(key), `${bytes} bytes`).toBe(bytes >= 24 && bytes <= 64);
    }
    expect(isSignatureKey(makeSignatureKey(Buffer.alloc(signatureKeyBytes.default)))).toBe(true);
  });

  it('has its rule in words', () => {
    expect(signatureKeyRule).toBe(
      'whsec_ and the base64 of 24 to 64 bytes, with its padding; or 8 to 256 printable ASCII characters that do not begin with whsec_, without a blank at either end',
    );
  });
});
