// Runs the background tasks of the store: updates the copy, renews the lease of this process and removes what is no
// longer needed.
//
// A notification of another process only makes the next poll happen sooner. It can get lost while the connection is
// down, so the follower also polls every 500 ms. Without notifications, a browser behind a proxy would nearly always see
// the old list after a change. New deliveries are not announced: transactions that notify commit one after another,
// which would limit the rate of events.
import type { Mutex } from '../../lib/async.ts';
import type { Runtime } from '../../lib/runtime.ts';
import type { Tasks } from '../../lib/tasks.ts';
import type { Copy } from '../../store/copy.ts';
import { type Database, query } from '../../store/postgres/database.ts';
import type { Peers } from '../../store/postgres/peers.ts';
import type { Replica } from '../../store/postgres/replica.ts';
import type { PostgresDeliveries } from '../../webhooks/queue/postgres/queue.ts';

/** The name of the task that reads the changes of other processes. */
export const pollTask = 'store poll';

const pollEveryMs = 500;
/** While the database is unavailable. An attempt to connect may take two seconds. */
const reconnectEveryMs = 250;
const removeEveryMs = 60_000;

/** A process that was disconnected for longer loads everything again. */
const removedRowsKeptMs = 300_000;
const removedAtOnce = 1_000;

type FollowerOptions = {
  readonly database: Database;
  readonly copy: Copy;
  readonly replica: Replica;
  readonly peers: Peers;
  readonly deliveries: PostgresDeliveries;
  /** Protects the copy: only one holder at a time changes it. */
  readonly mutex: Mutex;
  readonly tasks: Tasks;
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly channel: string;
  readonly self: string;
  /** Called after each poll that succeeded. */
  readonly onPoll: () => void;
  /** Removes finished data beyond its retention. */
  readonly removeOld: (stopping: AbortSignal) => Promise<void>;
};

export class Follower {
  readonly #options: FollowerOptions;
  /** The poll that has not begun yet. Callers share it: it will see everything that was committed before their call. */
  #nextPoll: Promise<void> | undefined;
  /** The versions that this process saw at each removal of the last five minutes. */
  readonly #milestones: { readonly at: number; readonly version: number }[] = [];

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  /** Updates the copy. */
  poll(): Promise<void> {
    this.#nextPoll ??= this.#options.mutex(() => {
      this.#nextPoll = undefined;
      return this.#poll();
    });
    return this.#nextPoll;
  }

  start(): void {
    const { database, tasks, peers, deliveries, removeOld } = this.#options;
    tasks.start(pollTask, (stopping) => this.#keepPolling(stopping));
    tasks.start('store listening', (stopping) => this.#keepListening(stopping));
    tasks.every('store lease', peers.renewEveryMs, async () => {
      if (await peers.keepAlive()) deliveries.noteChanges();
    });
    tasks.every('store deliveries', peers.renewEveryMs, (stopping) => deliveries.finishRest(stopping));
    tasks.every('store count', pollEveryMs, () => deliveries.pendingCount.read(database));
    tasks.start('store retention', removeOld);
    tasks.every('store retention', removeEveryMs, async (stopping) => {
      await removeOld(stopping);
      await this.#removeRows(stopping);
    });
  }

  async #poll(): Promise<void> {
    const { database, copy, replica, peers, deliveries, onPoll } = this.#options;
    await database.probe(async (client) => {
      // Reads may succeed while no write does.
      if (database.failure) await peers.renew(client);
      const [, havePeersChanged] = await Promise.all([replica.follow(client), peers.poll(client)]);
      onPoll();
      deliveries.noteChanges();
      if (havePeersChanged) copy.notify();
    });
  }

  async #keepPolling(stopping: AbortSignal): Promise<void> {
    const { runtime, tasks, database } = this.#options;
    while (!stopping.aborted) {
      await runtime.sleep(database.failure ? reconnectEveryMs : pollEveryMs, stopping);
      // A task of its own, so that a failure is reported and the next poll still happens.
      await new Promise<void>((resolve) => {
        if (stopping.aborted) resolve();
        else tasks.start(pollTask, () => this.poll().finally(resolve));
      });
    }
  }

  async #keepListening(stopping: AbortSignal): Promise<void> {
    const { database, tasks, runtime, channel, self } = this.#options;
    const onNotice = (from: string) => {
      if (from !== self) tasks.start('store hint', () => this.poll());
    };
    while (!stopping.aborted) {
      await database.listen(channel, onNotice, stopping).catch(() => undefined);
      await runtime.sleep(pollEveryMs, stopping);
    }
  }

  /** Deletes the marks of rows that were removed more than five minutes ago. */
  async #removeRows(stopping: AbortSignal): Promise<void> {
    const { database, runtime, replica } = this.#options;
    if (database.isOutdated) return;
    const at = runtime.now();
    this.#milestones.push({ at, version: replica.seen });
    let old: number | undefined;
    while ((this.#milestones[0]?.at ?? at) <= at - removedRowsKeptMs) old = this.#milestones.shift()?.version;
    if (old === undefined) return;
    // In portions, so that no update waits long for the lock.
    while (!stopping.aborted && (await this.#removePortion(old)) === removedAtOnce);
  }

  async #removePortion(upTo: number): Promise<number | undefined> {
    const [, , removed] = await this.#options.database.use((client) =>
      Promise.all([
        query(client, 'begin'),
        query(client, 'select from clock for update'),
        query<{ count: number }>(
          client,
          `with removed as (
             delete from state where ctid = any(array(
               select ctid from state where value is null and kind <> 'cell' and version <= $1 order by version limit $2))
             returning 1),
           noted as (update clock set pruned_to = greatest(pruned_to, $1) where exists (select from removed))
           select count(*) from removed`,
          [upTo, removedAtOnce],
        ),
        query(client, 'commit'),
      ]),
    );
    return removed.rows[0]?.count;
  }
}
