// Signs deliveries as Standard Webhooks defines it, and checks signature keys.
import { createHmac } from 'node:crypto';

const prefix = 'whsec_';

export const signatureKeyBytes = { min: 24, default: 32, max: 64 } as const;

/** A key without the prefix is used as it is. */
const plainKey = /^[!-~][ -~]{6,254}[!-~]$/;

export const signatureKeyRule =
  `${prefix} and the base64 of ${signatureKeyBytes.min} to ${signatureKeyBytes.max} bytes, with its padding; or 8 to 256 printable ` +
  `ASCII characters that do not begin with ${prefix}, without a blank at either end`;

export function isSignatureKey(text: string): boolean {
  if (!text.startsWith(prefix)) return plainKey.test(text);
  const secret = secretOf(text);
  // Only the canonical form is valid: Node ignores invalid base64 characters, other libraries refuse them or decode
  // other bytes.
  return (
    text === makeSignatureKey(secret) &&
    secret.length >= signatureKeyBytes.min &&
    secret.length <= signatureKeyBytes.max
  );
}

export function makeSignatureKey(secret: Buffer): string {
  return prefix + secret.toString('base64');
}

type SignedBody = {
  readonly id: string;
  readonly timestampSeconds: number;
  readonly body: string;
  /** More than one during a key rotation. A receiver accepts the body if any of the signatures is valid. */
  readonly keys: readonly string[];
};

export function signBody({ id, timestampSeconds, body, keys }: SignedBody): string {
  const content = `${id}.${timestampSeconds}.${body}`;
  return keys
    .map((key) => `v1,${createHmac('sha256', secretOf(key)).update(content).digest('base64')}`)
    .join(' ');
}

/** For receivers that check the body alone. */
export function signBodyAlone(body: string, key: string): string {
  return `sha256=${createHmac('sha256', secretOf(key)).update(body).digest('base64')}`;
}

function secretOf(key: string): Buffer {
  if (!key.startsWith(prefix)) return Buffer.from(key, 'latin1');
  return Buffer.from(key.slice(prefix.length), 'base64');
}
