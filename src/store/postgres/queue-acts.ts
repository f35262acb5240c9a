// Performs the queue operations of a transaction with few statements.
//
// Consecutive acts form a wave: all enqueued rows go into one statement, all settled rows into another, all trims into a third, in this
// order. A wave ends when it has many bytes. An act ends it if running it out of order could change the result: amend, thin and drop
// always do; a row that finishes after its owner was trimmed does unless the same trim follows again.
import type { Act } from '../changes.ts';
import type { Queue } from '../transaction.ts';
import type { Client } from './database.ts';
import { type Placed, type Settled, type StatementsOptions, createStatements } from './queue-statements.ts';
import type { Unfinished } from './replica.ts';

type Wave = { enqueued: Placed[]; enqueuedBytes: number; settled: Settled[]; trims: Map<string, number> };

/** A wave with more enqueued bytes ends, because a statement is in memory as a whole. */
const mostBytesInWave = 8 * 1024 ** 2;

/** Returns the change in the unfinished rows. */
export async function performActs(
  client: Client,
  acts: readonly Act[],
  options: StatementsOptions,
): Promise<Unfinished> {
  const queue = options.queue as unknown as Queue<object>;
  const { nextMoment } = options;
  const statements = createStatements(client, options);

  async function perform({ enqueued, settled, trims }: Wave): Promise<void> {
    // The statements run in this order: the connection sends them as a pipeline.
    await Promise.all([
      enqueued.length > 0 && statements.enqueue(enqueued),
      settled.length > 0 && statements.settle(settled),
      statements.shelve([...enqueued, ...settled].map(({ row }) => row)),
      trims.size > 0 && statements.trim(trims),
    ]);
  }

  let wave: Wave = { enqueued: [], enqueuedBytes: 0, settled: [], trims: new Map() };
  async function endWave(): Promise<void> {
    const ended = wave;
    wave = { enqueued: [], enqueuedBytes: 0, settled: [], trims: new Map() };
    await perform(ended);
  }
  const dropped = new Set<string>();
  for (const [index, act] of acts.entries()) {
    if (act.kind === 'drop') dropped.add(act.owner);
    // The same transaction has dropped the row.
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
      if (act.kind === 'enqueue') {
        wave.enqueued.push({ row, moment: nextMoment() });
        wave.enqueuedBytes += queue.bytesOf(row);
        if (wave.enqueuedBytes > mostBytesInWave) await endWave();
      } else wave.settled.push({ row, claimed: act.claimed, moment: nextMoment() });
    }
  }
  await endWave();
  return statements.unfinished();
}

/** Whether the row may be written before the trims of the wave. */
function mayGoBefore(
  trims: ReadonlyMap<string, number>,
  queue: Queue<object>,
  row: object,
  acts: readonly Act[],
  index: number,
): boolean {
  const owner = queue.ownerOf(row);
  if (queue.dueAt(row) !== null || !trims.has(owner)) return true;
  const affectsOwner = (act: Act) => act.kind === 'amend' || ('owner' in act && act.owner === owner);
  const next = acts.find((act, position) => position > index && affectsOwner(act));
  return next?.kind === 'trim' && next.keep === trims.get(owner);
}
