// Encrypts secrets at rest with AES-256-GCM and a key derived from SECRET_KEY. Without SECRET_KEY, secrets are stored as plain text.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

export type Secrets = {
  /** `context` names the row and column. A secret that is copied to another row cannot be decrypted there. */
  seal: (text: string, context: string) => string;
  /** Throws if the secret was encrypted with another key or for another context. */
  open: (sealed: string, context: string) => string;
};

/** The prefix of a secret that is stored as plain text. */
export const plainMark = 'plain:';
const sealedBy = 'aes-256-gcm:';
const [ivBytes, tagBytes] = [12, 16];

export function createSecrets(secretKey: string | undefined): Secrets {
  const key =
    secretKey === undefined
      ? undefined
      : Buffer.from(hkdfSync('sha256', secretKey, '', 'steward: secrets at rest', 32));

  return {
    seal(text, context) {
      if (!key) return plainMark + text;
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return sealedBy + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64');
    },
    open(sealed, context) {
      if (sealed.startsWith(plainMark)) return sealed.slice(plainMark.length);
      if (!key) throw new Error('The database contains encrypted secrets: SECRET_KEY must be set.');
      const bytes = Buffer.from(sealed.slice(sealedBy.length), 'base64');
      const tag = bytes.subarray(ivBytes, ivBytes + tagBytes);
      try {
        const cipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes), {
          authTagLength: tagBytes,
        });
        cipher.setAAD(Buffer.from(context)).setAuthTag(tag);
        const text = cipher.update(bytes.subarray(ivBytes + tagBytes));
        return Buffer.concat([text, cipher.final()]).toString();
      } catch {
        throw new Error('The database contains secrets that were encrypted with another SECRET_KEY.');
      }
    },
  };
}
