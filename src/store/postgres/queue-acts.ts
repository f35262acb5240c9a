// What a transaction does to a queue: what can be done together is, where the order makes no difference to the result.
import type { Act } from '../changes.ts';
import type { Queue } from '../transaction.ts';
import type { Client } from './database.ts';
import { type Placed, type Settled, type StatementsOptions, createStatements } from './queue-statements.ts';

type Wave = { enqueued: Placed[]; settled: Settled[]; trims: Map<string, number> };

/** Answers by how much the number of unfinished rows has changed. */
export async function performActs(
  client: Client,
  acts: readonly Act[],
  options: StatementsOptions,
): Promise<number> {
  const queue = options.queue as unknown as Queue<object>;
  const { nextMoment } = options;
  const statements = createStatements(client, options);

  async function perform({ enqueued, settled, trims }: Wave): Promise<void> {
    // Sent in this order, and together.
    await Promise.all([
      enqueued.length > 0 && statements.enqueue(enqueued),
      settled.length > 0 && statements.settle(settled),
      statements.shelve([...enqueued, ...settled].map(({ row }) => row)),
      trims.size > 0 && statements.trim(trims),
    ]);
  }

  let wave: Wave = { enqueued: [], settled: [], trims: new Map() };
  async function endWave(): Promise<void> {
    const ended = wave;
    wave = { enqueued: [], settled: [], trims: new Map() };
    await perform(ended);
  }
  const dropped = new Set<string>();
  for (const [index, act] of acts.entries()) {
    if (act.kind === 'drop') dropped.add(act.owner);
    // Of what the same change has dropped nothing is left to settle.
    if (act.kind === 'settle' && dropped.has(queue.ownerOf(act.claimed))) continue;
    if (act.kind === 'amend' || act.kind === 'drop' || act.kind === 'thin') {
      await endWave();
      if (act.kind === 'drop') await statements.drop(act.owner);
      else if (act.kind === 'thin') await statements.thin(act.owner, act.keep);
      else await statements.amend(act.owner, act.change as unknown as (row: object) => object);
    } else if (act.kind === 'trim') {
      if (wave.trims.get(act.owner) !== act.keep && wave.trims.has(act.owner)) await endWave();
      wave.trims.set(act.owner, act.keep);
    } else {
      const row = act.row as object;
      if (!mayGoBefore(wave.trims, queue, row, acts, index)) await endWave();
      if (act.kind === 'enqueue') wave.enqueued.push({ row, moment: nextMoment() });
      else wave.settled.push({ row, claimed: act.claimed, moment: nextMoment() });
    }
  }
  await endWave();
  return statements.unfinished();
}

/** Whether the row may come before what is trimmed already: when just the same is trimmed again after it. */
function mayGoBefore(
  trims: ReadonlyMap<string, number>,
  queue: Queue<object>,
  row: object,
  acts: readonly Act[],
  index: number,
): boolean {
  const owner = queue.ownerOf(row);
  if (queue.dueAt(row) !== null || !trims.has(owner)) return true;
  const concerns = (act: Act) => act.kind === 'amend' || ('owner' in act && act.owner === owner);
  const next = acts.find((act, place) => place > index && concerns(act));
  return next?.kind === 'trim' && next.keep === trims.get(owner);
}
