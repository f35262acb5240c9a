// Rounds of reset and upgrade on one server: the answers never change.
import { expect, it } from 'vitest';
import { startControl } from '../testing/kit.ts';
import { runRound } from '../testing/rounds.ts';

/** `npm run test:long` runs a thousand. */
const rounds = Number(process.env.ROUNDS ?? 20);

it('rounds of reset and a full upgrade are byte-equal under one seed', async () => {
  const server = await startControl({ SEED: 'rounds' });
  const first = await runRound(server);
  for (let round = 1; round < rounds; round += 1) expect(await runRound(server)).toEqual(first);
}, 1_800_000);
