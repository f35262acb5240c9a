// Password hashes for tests. Those of the server are slow to compute on purpose (test/auth/rules.test.ts); a hash names its cost, so these are fast.
import { scryptSync } from 'node:crypto';

const salt = Buffer.alloc(16);

export function hashCheaply(password: string): string {
  const key = scryptSync(password, salt, 32, { N: 2, r: 8, p: 1 });
  return `scrypt$2$8$1$${salt.toString('base64url')}$${key.toString('base64url')}`;
}
