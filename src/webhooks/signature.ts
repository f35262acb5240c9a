// How a receiver knows that a delivery is ours: signatures and keys as Standard Webhooks has them (contract 5).
import { createHmac } from 'node:crypto';

const prefix = 'whsec_';

/** `default` is the length of a key that is made here. */
export const signatureKeyBytes = { least: 24, default: 32, most: 64 } as const;

/** Completes "must be …". */
export const signatureKeyRule = `${prefix} and the base64 of ${signatureKeyBytes.least} to ${signatureKeyBytes.most} bytes, with its padding`;

export function isSignatureKey(text: string): boolean {
  const secret = secretOf(text);
  // Node skips what is not base64. What is not spelled the one right way, another toolkit may refuse or decode to other bytes.
  return (
    text === makeSignatureKey(secret) &&
    secret.length >= signatureKeyBytes.least &&
    secret.length <= signatureKeyBytes.most
  );
}

export function makeSignatureKey(secret: Buffer): string {
  return prefix + secret.toString('base64');
}

export type SignedBody = {
  readonly id: string;
  /** Whole seconds since the Unix epoch, as the receiver is told. */
  readonly timestampSeconds: number;
  readonly body: string;
  /** More than one while a key is being replaced: a receiver is content with the one it knows. */
  readonly keys: readonly string[];
};

/** The value of `webhook-signature`. */
export function signBody({ id, timestampSeconds, body, keys }: SignedBody): string {
  const content = `${id}.${timestampSeconds}.${body}`;
  return keys
    .map((key) => `v1,${createHmac('sha256', secretOf(key)).update(content).digest('base64')}`)
    .join(' ');
}

function secretOf(key: string): Buffer {
  return Buffer.from(key.slice(prefix.length), 'base64');
}
