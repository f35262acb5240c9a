// Secrets at rest: encrypted (AES-256-GCM) with a key made from SECRET_KEY, or as they are where none is given.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

export type Secrets = {
  /** `place` is where it is kept: what was moved elsewhere cannot be read there. */
  seal: (text: string, place: string) => string;
  /** Throws where it was sealed with another key, or for another place. */
  open: (sealed: string, place: string) => string;
};

/** What stands before a secret that is kept as it is. */
export const plainMark = 'plain:';
const sealedBy = 'aes-256-gcm:';
const [ivBytes, tagBytes] = [12, 16];

export function createSecrets(secretKey: string | undefined): Secrets {
  const key =
    secretKey === undefined
      ? undefined
      : Buffer.from(hkdfSync('sha256', secretKey, '', 'steward: secrets at rest', 32));

  return {
    seal(text, place) {
      if (!key) return plainMark + text;
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(place));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return sealedBy + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64');
    },
    open(sealed, place) {
      if (sealed.startsWith(plainMark)) return sealed.slice(plainMark.length);
      if (!key) throw new Error('The database holds encrypted keys: SECRET_KEY must be given.');
      const bytes = Buffer.from(sealed.slice(sealedBy.length), 'base64');
      const tag = bytes.subarray(ivBytes, ivBytes + tagBytes);
      try {
        const cipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes), {
          authTagLength: tagBytes,
        });
        cipher.setAAD(Buffer.from(place)).setAuthTag(tag);
        const text = cipher.update(bytes.subarray(ivBytes + tagBytes));
        return Buffer.concat([text, cipher.final()]).toString();
      } catch {
        throw new Error('The database holds keys that were encrypted with another SECRET_KEY.');
      }
    },
  };
}
