// Ids and secrets that follow from a seed: the same number of draws gives the same values.
import { createHash } from 'node:crypto';
import type { Runtime } from '../lib/runtime.ts';

/** How many ids and secrets have been drawn. */
export type Draws = { ids: number; secrets: number };

type Random = Pick<Runtime, 'newId' | 'newSecret'>;

export function seededRandom(seed: string, draws: Draws): Random {
  const block = (...parts: (string | number)[]) =>
    createHash('sha256')
      .update(JSON.stringify([seed, ...parts]))
      .digest();
  return {
    newId: () => uuidOf(block('id', (draws.ids += 1))),
    newSecret: (bytes) => {
      draws.secrets += 1;
      const blocks = Array.from({ length: Math.ceil(bytes / 32) }, (_, index) =>
        block('secret', draws.secrets, index),
      );
      return Buffer.concat(blocks).subarray(0, bytes);
    },
  };
}

/** A UUID of version 4, like the random ones. */
function uuidOf(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  const variant = '89ab'[(bytes[8] ?? 0) & 3] ?? '8';
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
