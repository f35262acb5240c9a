// Encrypts secrets at rest with AES-256-GCM and a key derived from SECRET_KEY. Without SECRET_KEY, secrets are
// stored as plain text. SECRET_KEY_PREVIOUS only decrypts: during a rotation, processes with the old and the new
// key read each other's secrets.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

export type Secrets = {
  /** `context` names the row and field. A secret that is copied to another row cannot be decrypted there. */
  seal: (text: string, context: string) => string;
  /** Throws if no key decrypts the secret in this context. */
  open: (sealed: string, context: string) => Opened;
};

/** `isCurrent`: `seal` would store it the same way. */
type Opened = { readonly text: string; readonly isCurrent: boolean };

type SecretKeys = { readonly current: string | undefined; readonly previous: string | undefined };

/** The prefix of a secret that is stored as plain text. */
const plainMark = 'plain:';
const sealedBy = 'aes-256-gcm:';
const [ivBytes, tagBytes] = [12, 16];

export function createSecrets(keys: SecretKeys): Secrets {
  const current = deriveKey(keys.current);
  const previous = deriveKey(keys.previous);

  return {
    seal(text, context) {
      if (!current) return plainMark + text;
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv('aes-256-gcm', current, iv).setAAD(Buffer.from(context));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return sealedBy + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64');
    },
    open(sealed, context) {
      if (sealed.startsWith(plainMark))
        return { text: sealed.slice(plainMark.length), isCurrent: current === undefined };
      if (!current && !previous)
        throw new Error('The database contains encrypted secrets: SECRET_KEY must be set.');
      const text = current && decrypt(sealed, context, current);
      if (text !== undefined) return { text, isCurrent: true };
      const older = previous && decrypt(sealed, context, previous);
      if (older !== undefined) return { text: older, isCurrent: false };
      throw new Error('The database contains secrets that were encrypted with another SECRET_KEY.');
    },
  };
}

function deriveKey(secretKey: string | undefined): Buffer | undefined {
  return secretKey === undefined
    ? undefined
    : Buffer.from(hkdfSync('sha256', secretKey, '', 'steward: secrets at rest', 32));
}

/** Returns undefined if the key or the context is wrong. */
function decrypt(sealed: string, context: string, key: Buffer): string | undefined {
  const bytes = Buffer.from(sealed.slice(sealedBy.length), 'base64');
  const tag = bytes.subarray(ivBytes, ivBytes + tagBytes);
  try {
    const cipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes), {
      authTagLength: tagBytes,
    });
    cipher.setAAD(Buffer.from(context)).setAuthTag(tag);
    return Buffer.concat([cipher.update(bytes.subarray(ivBytes + tagBytes)), cipher.final()]).toString();
  } catch {
    return undefined;
  }
}
