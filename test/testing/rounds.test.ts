// A thousand rounds on one server: the answers never change, and the memory does not grow. Runs with `npm run
// test:long`.
import { expect, it } from 'vitest';
import { startControl } from './kit.ts';
import { runRound } from './rounds.ts';

const rounds = 1000;

it('a thousand rounds of reset and a full upgrade are byte-equal under one seed', async () => {
  const server = await startControl({ SEED: 'rounds' });
  const first = await runRound(server);
  for (let round = 1; round < rounds; round += 1) expect(await runRound(server)).toEqual(first);
}, 1_800_000);
