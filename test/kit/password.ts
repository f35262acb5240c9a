// Password hashes for tests. Those of the server are slow to compute on purpose (test/auth/rules.test.ts); a hash
// names its cost, so these are fast.
import { scryptSync } from 'node:crypto';
import { type Passwords, createPasswords, saltBytes } from '../../src/auth/password.ts';

const cost = { N: 2, r: 8, p: 1 };
const salt = Buffer.alloc(saltBytes);

export function hashCheaply(password: string): string {
  const key = scryptSync(password, salt, 32, cost);
  return `scrypt$${cost.N}$${cost.r}$${cost.p}$${salt.toString('base64url')}$${key.toString('base64url')}`;
}

/** `holdNext` resolves when the next hash is about to be computed, with the function that lets it continue. */
export type TestPasswords = Passwords & { readonly holdNext: () => Promise<() => void> };

export function createTestPasswords(): TestPasswords {
  const { hash, matches, unmatchable } = createPasswords(cost);
  let hold: () => Promise<void> = () => Promise.resolve();
  const take = async () => {
    const held = hold();
    hold = () => Promise.resolve();
    await held;
  };
  return {
    hash: async (...given) => {
      await take();
      return hash(...given);
    },
    matches: async (...given) => {
      await take();
      return matches(...given);
    },
    unmatchable,
    holdNext: () =>
      new Promise((resolve) => {
        hold = () => new Promise((release) => resolve(release));
      }),
  };
}
