// Signatures, read by a toolkit that is not ours; and what counts as a key.
// FUZZ_RUNS raises the number of deliveries (500 unless told); fast-check prints its seed when they disagree.
import fc from 'fast-check';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  isSignatureKey,
  makeSignatureKey,
  signBody,
  signatureKeyBytes,
  signatureKeyRule,
} from '../../src/webhooks/signature.ts';

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

/** Throws when the receiver does not believe what it got. */
function receive({ id, timestampSeconds, body }: Sent, signature: string, key: string): void {
  // The toolkit refuses what is older or newer than five minutes.
  vi.setSystemTime(timestampSeconds * 1000);
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signature,
  };
  new Webhook(key).verify(body, headers, { jsonParse: false });
}

describe('a receiver with an independent toolkit', { timeout: 20_000 + numRuns * 10 }, () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
  afterEach(() => void vi.useRealTimers());

  it('believes a delivery, whatever its body, id, time and key', () => {
    const property = fc.property(deliveries, keys, (sent, key) => {
      receive(sent, signBody({ ...sent, keys: [key] }), key);
    });
    fc.assert(property, { numRuns });
  });

  it('believes it with either key while one is being replaced, and with no third', () => {
    const three = fc.uniqueArray(keys, { minLength: 3, maxLength: 3 });
    const property = fc.property(deliveries, three, (sent, [former = '', present = '', other = '']) => {
      const signature = signBody({ ...sent, keys: [present, former] });
      receive(sent, signature, former);
      receive(sent, signature, present);
      expect(() => receive(sent, signature, other)).toThrow(WebhookVerificationError);
    });
    fc.assert(property, { numRuns });
  });

  it('does not believe it when one character of the body, the id or the time is another', () => {
    const property = fc.property(deliveries, keys, fc.nat(), (sent, key, where) => {
      const signature = signBody({ ...sent, keys: [key] });
      const changed = [
        { ...sent, id: changeOne(sent.id, where) },
        { ...sent, timestampSeconds: sent.timestampSeconds + 1 },
        { ...sent, body: changeOne(sent.body, where) },
        { ...sent, body: `${sent.body} ` },
      ];
      for (const received of changed)
        expect(() => receive(received, signature, key)).toThrow(WebhookVerificationError);
    });
    fc.assert(property, { numRuns });
  });
});

/** Another text of the same length; nothing has no character to change, so it gets one. */
function changeOne(text: string, where: number): string {
  const characters = Array.from(text);
  const index = characters.length === 0 ? 0 : where % characters.length;
  // Never half of a surrogate pair: these are read as one and the same replacement character.
  characters[index] = String.fromCodePoint((characters[index]?.codePointAt(0) ?? 0) ^ 1);
  return characters.join('');
}

it('one signature per key, in their order, each as it would be alone', () => {
  const sent = { id: 'a', timestampSeconds: 1, body: '{}' };
  const [first, second] = [24, 64].map((length) => makeSignatureKey(Buffer.alloc(length, 7))) as [
    string,
    string,
  ];
  const alone = [first, second].map((key) => signBody({ ...sent, keys: [key] }));
  expect(signBody({ ...sent, keys: [first, second] })).toBe(alone.join(' '));
  for (const signature of alone) expect(signature).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
});

describe('a key', () => {
  const base64Of = (bytes: number) => Buffer.alloc(bytes, 0xfb).toString('base64');
  const good = base64Of(32);

  it.each([
    ['the shortest', `whsec_${base64Of(24)}`, true],
    ['one byte of padding', `whsec_${base64Of(26)}`, true],
    ['two bytes of padding', `whsec_${base64Of(25)}`, true],
    ['the longest', `whsec_${base64Of(64)}`, true],
    ['both characters beyond letters and digits', `whsec_${'+/'.repeat(16)}`, true],
    ['too short', `whsec_${base64Of(23)}`, false],
    ['too long', `whsec_${base64Of(65)}`, false],
    ['nothing', '', false],
    ['nothing but the prefix', 'whsec_', false],
    ['no prefix', good, false],
    ['another prefix', `whpk_${good}`, false],
    ['another prefix of the same length', `whsek_${good}`, false],
    ['a prefix in capitals', `WHSEC_${good}`, false],
    ['the prefix twice', `whsec_whsec_${good}`, false],
    ['not base64', `whsec_${'!'.repeat(44)}`, false],
    ['one character that is not base64', `whsec_${good.replace('+', '*')}`, false],
    ['one such character between good ones', `whsec_${base64Of(24)}*`, false],
    ['the alphabet for addresses', `whsec_${good.replaceAll('+', '-').replaceAll('/', '_')}`, false],
    ['missing padding', `whsec_${good.replace(/=+$/, '')}`, false],
    ['too much padding', `whsec_${base64Of(24)}=`, false],
    ['padding in the middle', `whsec_${base64Of(25)}${base64Of(25)}`, false],
    ['bits beyond the last byte', `whsec_${'A'.repeat(42)}B=`, false],
    ['a blank before', ` whsec_${good}`, false],
    ['a blank after', `whsec_${good} `, false],
    ['a line end after', `whsec_${good}\n`, false],
    ['a blank after the prefix', `whsec_ ${good}`, false],
    ['a blank within', `whsec_${good.slice(0, 20)} ${good.slice(20)}`, false],
  ])('%s', (_name, text, expected) => {
    expect(isSignatureKey(text)).toBe(expected);
  });

  it('is one when it was made here, of any length that is allowed', () => {
    for (let bytes = 0; bytes <= 100; bytes += 1) {
      const key = makeSignatureKey(Buffer.alloc(bytes, 0xfb));
      expect(isSignatureKey(key), `${bytes} bytes`).toBe(bytes >= 24 && bytes <= 64);
    }
    expect(isSignatureKey(makeSignatureKey(Buffer.alloc(signatureKeyBytes.default)))).toBe(true);
  });

  it('has a rule in words', () => {
    expect(signatureKeyRule).toBe('whsec_ and the base64 of 24 to 64 bytes, with its padding');
  });
});
