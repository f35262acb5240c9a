// Runs the background tasks of the store: updates the copy, renews the lease of this process and deletes old entries in `changes`.
//
// A notification of another process only makes the next look happen sooner. It can get lost while the connection is down, so the follower
// also looks every 500 ms.
import type { Mutex } from '../../lib/async.ts';
import type { Tasks } from '../../tasks.ts';
import type { Runtime } from '../../runtime.ts';
import type { Copy } from '../copy.ts';
import type { Queue } from '../transaction.ts';
import { type Database, query, soonMs } from './database.ts';
import type { Peers } from './peers.ts';
import type { Replica } from './replica.ts';

const lookEveryMs = 500;
const renewLeaseEveryMs = 2_000;
const pruneEveryMs = 60_000;

/** A process that was disconnected for longer loads everything again. */
const changesKeptMs = 300_000;

export type FollowerOptions = {
  readonly database: Database;
  readonly copy: Copy;
  readonly replica: Replica;
  readonly peers: Peers;
  readonly queues: readonly Queue<never>[];
  readonly mutex: Mutex;
  readonly tasks: Tasks;
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly channel: string;
  readonly self: string;
  /** Called when the database has answered. */
  readonly onContact: () => void;
};

export type Follower = {
  /** Updates the copy, and notifies the listeners if something changed. */
  look: () => Promise<void>;
  start: () => void;
};

export function createFollower(options: FollowerOptions): Follower {
  const { database, copy, replica, peers, mutex, tasks, runtime } = options;

  function notify(areClaimsReleased: boolean): void {
    if (areClaimsReleased) for (const { name } of options.queues) copy.touch(name);
    copy.notify();
  }

  /** The look that has not begun yet. Callers share it: it will see everything that was committed before their call. */
  let nextLook: Promise<void> | undefined;

  function look(): Promise<void> {
    nextLook ??= mutex(() => {
      nextLook = undefined;
      return lookNow();
    });
    return nextLook;
  }

  async function lookNow(): Promise<void> {
    return database.use(async (client) => {
      const [{ rows }, havePeersChanged] = await Promise.all([
        query<{ version: number }>(client, 'select version from clock', [], soonMs),
        peers.look(client),
      ]);
      const isBehind = rows[0]?.version !== replica.seen;
      if (isBehind) {
        await replica.begin(client, 'unlocked');
        await query(client, 'commit');
      }
      options.onContact();
      if (isBehind || havePeersChanged) notify(havePeersChanged);
    });
  }

  async function keepListening(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const onNotice = (from: string) => {
        if (from !== options.self) tasks.start('store hint', look);
      };
      await database.listen(options.channel, onNotice, stopping).catch(() => undefined);
      await runtime.sleep(lookEveryMs, stopping);
    }
  }

  /** The versions that this process saw at each pruning of the last five minutes. */
  const milestones: { readonly at: number; readonly version: number }[] = [];

  async function prune(): Promise<void> {
    const at = runtime.now();
    milestones.push({ at, version: replica.seen });
    let old: number | undefined;
    while ((milestones[0]?.at ?? at) <= at - changesKeptMs) old = milestones.shift()?.version;
    if (old === undefined) return;
    await database.ask(
      `with pruned as (update clock set pruned_to = greatest(pruned_to, $1))
       delete from changes where version <= $1`,
      [old],
    );
  }

  return {
    look,
    start() {
      tasks.every('store look', lookEveryMs, look);
      tasks.every('store lease', renewLeaseEveryMs, async () => {
        await peers.keepAlive();
        // Renewing also releases the claims of dead processes. Those rows may be due, and no notification announces them.
        if (options.queues.some(({ name }) => replica.unfinished(name).rows > 0)) notify(true);
      });
      tasks.every('store prune', pruneEveryMs, prune);
      tasks.start('store listening', keepListening);
    },
  };
}
