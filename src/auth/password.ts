// Password hashes: `scrypt$N$r$p$salt$key`. A hash names its cost.
import { scrypt, timingSafeEqual } from 'node:crypto';

type PasswordCost = { readonly N: number; readonly r: number; readonly p: number };

const defaultCost: PasswordCost = { N: 2 ** 14, r: 8, p: 5 };
const keyBytes = 32;
export const saltBytes = 16;

export type Passwords = {
  readonly hash: (password: string, salt: Buffer) => Promise<string>;
  /** Takes as long as `hash`, also for a hash of a lower cost: the time must not tell which users have one. */
  readonly matches: (password: string, hash: string) => Promise<boolean>;
  /**
   * Replaces the hash of an unknown user: a shorter response time would reveal that the name is unknown. No
   * password matches it.
   */
  readonly unmatchable: string;
};

/** Tests use a lower cost. */
export function createPasswords(cost: PasswordCost = defaultCost): Passwords {
  const format = (salt: Buffer, key: Buffer) =>
    ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64url'), key.toString('base64url')].join('$');
  return {
    hash: async (password, salt) => format(salt, await derive(password, salt, cost)),
    matches: async (password, hash) => {
      const isCheap = Number(hash.split('$')[1]) < cost.N;
      const [isMatch] = await Promise.all([
        matches(password, hash),
        isCheap && derive(password, Buffer.alloc(saltBytes), cost),
      ]);
      return isMatch;
    },
    unmatchable: format(Buffer.alloc(saltBytes), Buffer.alloc(0)),
  };
}

async function matches(password: string, hash: string): Promise<boolean> {
  const [, N, r, p, salt = '', key = ''] = hash.split('$');
  const expected = Buffer.from(key, 'base64url');
  const given = await derive(password, Buffer.from(salt, 'base64url'), {
    N: Number(N),
    r: Number(r),
    p: Number(p),
  });
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function derive(password: string, salt: Buffer, cost: PasswordCost): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, keyBytes, cost, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
}
