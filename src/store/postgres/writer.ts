// Runs updates in batches.
//
// Updates that arrive during a commit wait and form the next batch. A batch takes the lock on `clock` once, reads the changes of other
// processes once and commits once; without this, the commit rate of the disk would limit the number of updates per second. The changes of a
// batch run one after another, each on top of the one before. A change that throws is left out and rejected; the others commit.
//
// If the commit fails, the batch runs again:
// - A claim is lost: forget the claim. In the next run its `settle` throws `LostClaim` within the change.
// - Two transactions collided: repeat the batch.
// - The database refused a value: run every update on its own, so that only the faulty one is rejected.
// - The database is unavailable: reject every update.
import {
  type Act,
  type Changes,
  clear,
  createChanges,
  createTransaction,
  isEmpty,
  merge,
  readThrough,
} from '../changes.ts';
import type { Copy } from '../copy.ts';
import { LostClaim, type Queue, type Reader, type Transaction } from '../transaction.ts';
import type { Claims } from './claims.ts';
import { type Client, type Database, isCollision, query } from './database.ts';
import { performActs } from './queue-acts.ts';
import { Lost } from './queue-statements.ts';
import type { Replica, Unfinished } from './replica.ts';
import type { Secrets } from './secrets.ts';
import { writeChanges } from './writes.ts';
import { isUnavailable } from '../../errors.ts';
import { groupBy } from '../../lib/collections.ts';
import type { Mutex } from '../../lib/async.ts';

export type Writer = { update: <T>(change: (transaction: Transaction) => T) => Promise<T> };

export type WriterOptions = {
  readonly database: Database;
  readonly copy: Copy;
  readonly reader: Reader;
  readonly replica: Replica;
  readonly claims: Claims;
  readonly secrets: Secrets;
  /** Protects the copy: only one holder at a time changes it. */
  readonly mutex: Mutex;
  readonly channel: string;
  /** The payload of notifications: a process ignores its own. */
  readonly self: string;
};

type Submitted = {
  readonly change: (transaction: Transaction) => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
};

const mostAtOnce = 500;

/** A batch with more enqueued bytes takes no further update. Without this, a batch of large rows would fill the memory. */
const mostBytesAtOnce = 8 * 1024 ** 2;

/** `placed` and `finished` in queues are version × this number + a counter, so they increase over all versions. */
const momentsPerVersion = 1_000_000;

export function createWriter(options: WriterOptions): Writer {
  const { database, copy, reader, replica, claims, secrets, mutex, channel, self } = options;
  let submitted: Submitted[] = [];
  let isWriting = false;

  async function write(): Promise<void> {
    while (submitted.length > 0) {
      const batch = submitted.slice(0, mostAtOnce);
      submitted = submitted.slice(mostAtOnce);
      await mutex(() => runBatch(batch));
    }
    isWriting = false;
  }

  async function runBatch(batch: readonly Submitted[]): Promise<void> {
    let answers: (() => void)[];
    try {
      answers = await database.use((client) => commit(client, batch));
    } catch (error) {
      if (error instanceof Lost) {
        for (const claimed of error.claimed) claims.forget(claimed);
        await runBatch(batch);
      } else if (isCollision(error)) {
        await runBatch(batch);
      } else if (batch.length > 1 && !isUnavailable(error)) {
        for (const one of batch) await runBatch([one]);
      } else {
        for (const { reject } of batch) reject(error);
      }
      return;
    }
    // The updates that had no room in the batch go first in the next one.
    submitted = [...batch.slice(answers.length), ...submitted];
    for (const answer of answers) answer();
    copy.notify();
  }

  /** Returns the callbacks that resolve or reject the first updates of the batch, to be called after the commit. */
  async function commit(client: Client, batch: readonly Submitted[]): Promise<(() => void)[]> {
    await replica.begin(client, 'locked');
    const changes = createChanges();
    const answers = runAll(batch, changes);
    if (isEmpty(changes)) {
      await query(client, 'rollback');
      return answers;
    }
    const version = replica.seen + 1;
    let moments = version * momentsPerVersion;
    const acts = groupBy(changes.acts, ({ queue }) => queue);
    const [deltas] = await Promise.all([
      performAll(client, acts, () => (moments += 1)),
      writeChanges(client, changes, version, { base: reader, secrets }),
    ]);
    await Promise.all([
      query(client, 'update clock set version = $1', [version]),
      deltas.length > 0 && recordQueues(client, deltas, version),
      query(client, 'select pg_notify($1, $2)', [channel, self]),
      query(client, 'commit'),
    ]);
    takeEffect(changes, version, deltas);
    return answers;
  }

  type Delta = Unfinished & { readonly name: string };

  async function performAll(
    client: Client,
    acts: ReadonlyMap<Queue<never>, readonly Act[]>,
    nextMoment: () => number,
  ): Promise<Delta[]> {
    const claimOf = (claimed: object) => claims.numberOf(claimed) ?? -1;
    const deltas: Delta[] = [];
    for (const [queue, done] of acts) {
      const unfinished = await performActs(client, done, { queue, secrets, claimOf, nextMoment });
      deltas.push({ name: queue.name, ...unfinished });
    }
    return deltas;
  }

  /** An empty queue has no bytes. Without this, a process of version 0.1, which does not count bytes, would make the sum wrong for ever. */
  function recordQueues(client: Client, deltas: readonly Delta[], version: number): Promise<unknown> {
    return query(
      client,
      `insert into queues as q (name, unfinished, unfinished_bytes, touched)
       select name, rows, bytes, $4 from unnest($1::text[], $2::bigint[], $3::bigint[]) v(name, rows, bytes)
       on conflict (name) do update set unfinished = q.unfinished + excluded.unfinished,
         unfinished_bytes = case when q.unfinished + excluded.unfinished = 0 then 0
           else q.unfinished_bytes + excluded.unfinished_bytes end,
         touched = excluded.touched`,
      [
        deltas.map(({ name }) => name),
        deltas.map(({ rows }) => rows),
        deltas.map(({ bytes }) => bytes),
        version,
      ],
    );
  }

  /** Runs each change on top of those before it, until the batch has enough bytes. */
  function runAll(batch: readonly Submitted[], changes: Changes): (() => void)[] {
    const own = createChanges();
    const base = readThrough(reader, changes);
    const sums = new UnfinishedSums();
    const transaction = createTransaction(
      {
        ...base,
        waiting: (queue) => base.waiting(queue) + sums.of(queue).rows,
        waitingBytes: (queue) => base.waitingBytes(queue) + sums.of(queue).bytes,
      },
      own,
      (queue, claimed) => {
        const isHeld = claims.numberOf(claimed as object) !== undefined;
        if (!isHeld || changes.acts.some((act) => takesAway(act, queue, claimed)))
          throw new LostClaim(queue.keyOf(claimed));
      },
    );
    const answers: (() => void)[] = [];
    for (const { change, resolve, reject } of batch) {
      if (sums.enqueuedBytes > mostBytesAtOnce) break;
      try {
        const result = change(transaction);
        sums.add(own.acts);
        merge(changes, own);
        answers.push(() => resolve(result));
      } catch (error) {
        answers.push(() => reject(error));
      } finally {
        clear(own);
      }
    }
    return answers;
  }

  function takeEffect(changes: Changes, version: number, deltas: readonly Delta[]): void {
    for (const table of changes.tables.keys()) if ('isArchive' in table) changes.tables.delete(table);
    copy.apply(changes);
    for (const act of changes.acts) if (act.kind === 'settle') claims.forget(act.claimed);
    for (const { name, rows, bytes } of deltas) {
      const before = replica.unfinished(name);
      replica.note(name, { rows: before.rows + rows, bytes: before.bytes + bytes }, version);
    }
    replica.seen = version;
  }

  return {
    update: <T>(change: (transaction: Transaction) => T) =>
      new Promise<T>((resolve, reject) => {
        submitted.push({ change, resolve: resolve as (result: unknown) => void, reject });
        if (isWriting) return;
        isWriting = true;
        void write();
      }),
  };
}

/** Whether the act releases the claim. */
function takesAway<T>(act: Act, queue: Queue<T>, claimed: T): boolean {
  if (act.queue.name !== queue.name) return false;
  return act.kind === 'settle'
    ? act.claimed === claimed
    : act.kind === 'drop' && act.owner === queue.ownerOf(claimed);
}

/** How much a batch adds to the unfinished rows. Only enqueued and settled rows: the effect of other acts is known after the query. */
class UnfinishedSums {
  enqueuedBytes = 0;
  readonly #sums = new Map<string, Unfinished>();

  of({ name }: Queue<never>): Unfinished {
    return this.#sums.get(name) ?? { rows: 0, bytes: 0 };
  }

  add(acts: readonly Act[]): void {
    for (const act of acts) {
      const { queue } = act;
      if (act.kind === 'enqueue') this.enqueuedBytes += queue.bytesOf(act.row);
      if (act.kind === 'enqueue' && queue.dueAt(act.row) !== null) this.#count(queue, act.row, 1);
      if (act.kind === 'settle' && queue.dueAt(act.row) === null) this.#count(queue, act.row, -1);
    }
  }

  #count(queue: Queue<never>, row: never, sign: 1 | -1): void {
    const { rows, bytes } = this.of(queue);
    this.#sums.set(queue.name, { rows: rows + sign, bytes: bytes + sign * queue.bytesOf(row) });
  }
}
